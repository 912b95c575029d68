"""FLV tags: how audio and video are framed inside RTMP messages and files (FLV 10.1 §E)."""

from rtmplite.flv import metadata as metadata
