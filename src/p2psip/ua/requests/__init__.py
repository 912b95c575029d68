"""Requests of a user agent: checked, signed, redirected, and what it says of itself in them."""
