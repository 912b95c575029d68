"""The edge of a phone in Python: its calls, their sound, its registration, and what it asks."""
