"""SRTP: RTP that nobody on the way can read, change or play back."""
