"""Dialogs and what lives inside them, all sans-I/O (RFC 3261 §12)."""
