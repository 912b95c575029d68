"""The edge: sockets and clocks that drive the RTMP machines with gevent."""
