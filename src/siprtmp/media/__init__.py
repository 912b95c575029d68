"""The media of a call: RTP on one side, FLV tags on the other."""
