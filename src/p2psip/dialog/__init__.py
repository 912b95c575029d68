"""Dialogs and the requests and sessions inside them, all sans-I/O (RFC 3261 §12)."""
