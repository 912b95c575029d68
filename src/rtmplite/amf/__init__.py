"""Action Message Format: the values Flash-era peers exchange (AMF0 §2)."""

from rtmplite.amf import amf0 as amf0
from rtmplite.amf import amf3 as amf3
