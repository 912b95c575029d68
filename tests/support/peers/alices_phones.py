"""Alice's phone of either kind, told what to do in words that both have in common."""

import re

from support.gateway.accounts import PASSWORD
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone
from support.peers.process import wait_until

DOMAIN = "phones.invalid"  # in no DNS: all goes through the server
ALICE, BOB, CAROL = (f"sip:{name}@{DOMAIN}" for name in ("alice", "bob", "carol"))
PATIENCE = 20  # s
SETTINGS = """\
100rel_support_level=2
session_expires_enabled=1
session_expires_value=300
session_expires_min_value=90
session_expires_refresher_value=1
"""  # of linphonec

AFTER_MESSAGE = "\x1b[;m"  # of baresip, as is what follows
ANSWER = ("SIP/2.0 200", " INVITE\n", "\nServer: baresip", "\nm=audio")


def until(condition, what):
    """Wait until it is so."""
    wait_until(condition, what=what, timeout=PATIENCE)


class BaresipPhone:
    """Alice's baresip."""

    def __init__(self, start, place, transport, ca):
        account = {"registrar": place, "password": PASSWORD, "domain": DOMAIN}
        self._phone = start(Baresip, "alice", transport=transport, ca=ca, contact=BOB, **account)
        self._command, self._wait = self._phone.command, self._phone.wait_event

    @property
    def trace(self):
        return self._phone.output

    def calls(self, uri):
        self._command("dial", uri)
        self.is_up()

    def is_up(self):
        self._wait("CALL_ESTABLISHED", PATIENCE)

    def hangs_up(self):
        self._command("hangup")
        self.is_over()

    def is_over(self, calls=1):
        for _ in range(calls):
            self._wait("CALL_CLOSED", PATIENCE)

    def presses(self, keys):
        self._command("sndcode", keys)

    def hears_keys(self, keys):
        for key in keys:
            assert self._wait("CALL_DTMF_START", PATIENCE)["param"] == key

    def holds(self):
        self._command("hold")

    def resumes(self):
        self._command("resume")

    def is_held(self, on):
        """It reports no event, but its answer tells: RFC 3264 §8.4."""
        word = "a=recvonly" if on else "a=sendrecv"
        until(lambda: word in self._last_answer, f"{word} in the answer of baresip")

    @property
    def _last_answer(self):
        """The latest 200 of its own to an INVITE, in the trace of what it sends and receives."""
        messages = self.trace.split(AFTER_MESSAGE)
        answers = [each for each in messages if all(part in each for part in ANSWER)]
        return answers[-1] if answers else ""

    def writes(self, text):
        self._command("message", text)

    def reads(self, text):
        self._phone.wait_until(lambda: text in self._phone.output, what=text)

    def transfers(self, uri):
        self._command("transfer", uri)


class LinphonePhone:
    """Alice's linphonec, whose states are read in their order."""

    def __init__(self, start, place, transport, ca):
        place = place.replace("127.0.0.1", "localhost")  # it finds no address in a certificate
        account = {"registrar": place, "password": PASSWORD, "domain": DOMAIN}
        self._phone = start(
            Linphone,
            "alice",
            codec="PCMU/8000",
            transport=transport,
            ca=ca,
            sip=SETTINGS,
            **account,
        )
        self._command, self._read = self._phone.command, 0
        self._command("ipv6 disable")  # it would offer the address by which it reaches the Internet
        self._says("ipv6 use disabled")

    @property
    def trace(self):
        return self._phone.trace

    def _says(self, text):
        self._phone.wait_until(lambda: text in self._phone.output, what=text, timeout=PATIENCE)

    def _wait(self, state):
        """Wait for a state that comes after the last one that was waited for."""
        text = f" to LinphoneCall{state}\n"
        until(lambda: self.trace.find(text, self._read) >= 0, f"{state} of linphonec")
        self._read = self.trace.find(text, self._read) + len(text)

    def calls(self, uri):
        self._command(f"call {uri}")
        self.is_up()

    def is_up(self):
        self._wait("StreamsRunning")

    def hangs_up(self):
        self._command("terminate")
        self.is_over()

    def is_over(self, calls=1):
        for _ in range(calls):
            self._wait("Released")  # it is busy until then

    def presses(self, keys):
        self._command(keys)

    def hears_keys(self, keys):
        for key in keys:
            self._says(f"Receiving tone {key} from {BOB}")

    def holds(self):
        self._command("pause")
        self._wait("Paused")

    def resumes(self):
        self._command("resume")
        self.is_up()

    def is_held(self, on):
        self._wait("PausedByRemote" if on else "StreamsRunning")

    def writes(self, text):
        self._command(f"chat {BOB} {text}")

    def reads(self, text):
        self._says(text)

    def transfers(self, uri):
        self._command(f"transfer {uri}")

    def transfers_to_call(self, uri):
        """Hold the call that is up, call somebody else, and have the two talk."""
        first = self._number
        self.holds()
        self.calls(uri)
        self._command(f"transfer {first} --to-call {self._number}")

    @property
    def _number(self):
        return re.findall(r"assigned id (\d+)", self._phone.output)[-1]


PHONES = {"baresip": BaresipPhone, "linphonec": LinphonePhone}
