"""Media across the gateway, one pure module per direction: RTP to FLV, FLV to RTP."""
