"""The process itself: its garbage, its wake-ups, and the lag of its loop."""
