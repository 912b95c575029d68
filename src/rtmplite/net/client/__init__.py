"""The client's sockets, on gevent."""
