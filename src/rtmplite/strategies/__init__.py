"""Hypothesis strategies for AMF, FLV and RTMP: valid, odd and invalid, for any implementation."""
