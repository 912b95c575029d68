"""The edge of the RTMP family: sockets, clocks and files that drive its machines, on gevent."""
