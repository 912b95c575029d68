"""`siprtmp doctor`: what is wrong with this machine, or on the way to a peer, and what to do.

Own design: each step is a line of its own, so that the first one that fails names the fault.  The
machine is looked at with the settings that `serve` would have; nothing is served, and a peer is
sent one OPTIONS or one handshake.
"""

import json
import sys
from collections.abc import Sequence
from typing import Final

from siprtmp.doctor.finding import FAULT, StepFound
from siprtmp.operation.arguments import ConfigError, program

USAGE: Final = """\
usage: {program} doctor [--json] [OPTION OF serve...]
       {program} doctor [--json] sip:HOST|rtmp://HOST[:PORT]/APP

Say what keeps the gateway from serving with these options, or from reaching a
peer, and what to do about it.  Exit code 1 if there is a fault.
"""


def run(arguments: Sequence[str]) -> int:
    """Look, and print what was found; returns 1 for a fault.  Raises ConfigError for no target."""
    from siprtmp.doctor.machine import examined
    from siprtmp.doctor.peer import reached

    words = [each for each in arguments if each != "--json"]
    if {"-h", "--help"} & set(words):
        print(USAGE.format(program=program()), end="")
        return 0
    if words and not words[0].startswith("-"):
        if len(words) > 1:
            raise ConfigError(f"doctor takes one peer, and no {words[1]} with it")
        found = list(reached(words[0]))
    else:
        found = list(examined(words))
    _write(found, as_json=len(words) < len(arguments))
    return 1 if any(each.verdict == FAULT for each in found) else 0


def _write(found: Sequence[StepFound], *, as_json: bool) -> None:
    if as_json:
        json.dump([each.as_json() for each in found], sys.stdout, indent=1)
        print()
        return
    for each in found:
        took = f" ({each.ms:.0f} ms)" if each.ms is not None else ""
        print(f"{each.verdict:5} {each.step}: {each.what}{took}")
        if each.cure:
            print(f"      what to do: {each.cure}")
