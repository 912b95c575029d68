"""Tools for those who write SIP, RTP, RTMP or RTMFP: explain, lint, oracle, conform, demo."""

__version__ = "0.1.0"
