"""FLV and RTMP through HTTP and WebSocket, on gevent."""
