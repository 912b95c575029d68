"""Tools for those who write SIP, RTP, RTMP or RTMFP: explain, lint, oracle, conform."""

__version__ = "0.1.0"
