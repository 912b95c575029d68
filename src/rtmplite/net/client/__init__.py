"""Clients for RTMP and RTMFP with calls that wait, on gevent."""
