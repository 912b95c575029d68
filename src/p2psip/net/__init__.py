"""The edge: sockets, clocks and resolvers that drive the SIP machines with gevent."""
