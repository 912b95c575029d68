"""Our AMF readers refuse each fault of the strategies, and say what is wrong."""

import pytest
from support.faults import refused

from rtmplite.amf import amf0, amf3
from rtmplite.errors import RemoteError
from rtmplite.strategies import amf_faults
from rtmplite.strategies.faults import broken

CUT = "needs [0-9]+ bytes more"
NO_LENGTH = "more bytes for an integer"
AMF0 = {
    "unknown marker": "no marker 0x",
    "number cut": CUT,
    "boolean cut": CUT,
    "string cut": CUT,
    "object not ended": CUT,
    "movie clip": "movie clip",
    "reference ahead": "reference to value",
    "array with names not ended": CUT,
    "end of no object": "ends that never began",
    "too few items": f"items in|{CUT}",
    "date cut": CUT,
    "long string cut": CUT,
    "record set": "record set",
    "document cut": CUT,
    "instance not ended": CUT,
    "switch to nothing": CUT,
}
AMF3 = {
    "integer cut": NO_LENGTH,
    "string reference ahead": "reference to number",
    "unknown marker": "no marker 0x",
    "object reference ahead": "reference to number",
    "double cut": CUT,
    "string cut": f"{CUT}|{NO_LENGTH}",
    "old document cut": f"{CUT}|{NO_LENGTH}",
    "date cut": CUT,
    "too few items": f"items in|{CUT}",
    "traits reference ahead": "reference to number",
    "sealed member missing": CUT,
    "members not ended": NO_LENGTH,
    "document cut": f"{CUT}|{NO_LENGTH}",
    "bytes cut": f"{CUT}|{NO_LENGTH}",
    "vector cut": f"items in|{CUT}",
    "dictionary cut": f"items in|{CUT}",
}


@pytest.mark.parametrize(
    ("broken", "read", "reasons"),
    [
        (broken(amf_faults.AMF0_FAULTS), amf0.decode, AMF0),
        (broken(amf_faults.AMF3_FAULTS), amf3.decode, AMF3),
    ],
    ids=["AMF0", "AMF3"],
)
def test_each_fault_is_refused(broken, read, reasons):
    """Covers AMF0 §2 and AMF3 §3."""
    refused(broken, read, RemoteError, reasons)
