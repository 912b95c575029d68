"""Conformance cases for running programs, and the command that judges a target by them."""
