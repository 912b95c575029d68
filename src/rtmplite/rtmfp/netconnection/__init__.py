"""RTMP commands and media in RTMFP flows: RFC 7425 §5."""
