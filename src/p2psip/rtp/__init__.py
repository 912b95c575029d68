"""RTP and RTCP: packets as values, sessions as machines (RFC 3550)."""
