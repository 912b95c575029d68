"""Remote shared objects: RTMP 1.0 §7.1.3."""
