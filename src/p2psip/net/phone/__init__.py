"""The edge of a phone in Python: its calls, their audio, its registration, and what it asks."""
