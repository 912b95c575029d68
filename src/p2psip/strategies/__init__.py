"""Hypothesis strategies for SIP, SDP and RTP: valid, odd and invalid, for any implementation."""
