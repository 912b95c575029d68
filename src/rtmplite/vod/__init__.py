"""Recorded files: written, found and played."""
