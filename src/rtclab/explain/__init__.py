"""Explains octets: every field with its bytes, its meaning, and the class and section behind it."""
