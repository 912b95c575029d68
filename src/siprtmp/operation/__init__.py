"""Logs, and what all command lines share."""
