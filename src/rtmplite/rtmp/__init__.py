"""RTMP itself: chunks, messages, commands and the machines over them (RTMP 1.0 §5)."""
