"""Rich clients: one RTMP connection is one line with one call."""
