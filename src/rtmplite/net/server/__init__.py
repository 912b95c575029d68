"""The server's sockets, files and hooks, on gevent."""
