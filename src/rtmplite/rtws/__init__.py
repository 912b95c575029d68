"""RTWebSocket: the flows of RTMFP in one WebSocket, so that a page speaks NetConnection."""
