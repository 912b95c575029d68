"""Chunks and messages as bytes: RTMP 1.0 §5 to §7."""
