"""Limits on one peer's share of the server: its memory and its connections per host."""
