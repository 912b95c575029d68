"""RTMFP: packets and chunks, the machines over them, and Flash's profile (RFC 7016, RFC 7425)."""
