"""RTMP, AMF and FLV, each class beside the section it implements."""
