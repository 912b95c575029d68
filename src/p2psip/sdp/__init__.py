"""SDP codecs: session descriptions, and the offer/answer model over them (RFC 8866, RFC 3264)."""
