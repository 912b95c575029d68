"""What RTMFP packets look like: RFC 7016 §2."""
