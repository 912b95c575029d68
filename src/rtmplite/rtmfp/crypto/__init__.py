"""The Flash cryptography profile: RFC 7425 §4."""
