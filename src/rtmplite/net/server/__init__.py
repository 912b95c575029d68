"""A server's listeners, files, access rules and log, on gevent."""
