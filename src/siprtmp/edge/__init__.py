"""The gateway's process: sockets, timers, status."""
