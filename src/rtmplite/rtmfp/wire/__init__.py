"""The layout of RTMFP packets: RFC 7016 §2."""
