"""SIP of a capture: messages given to the rules of transactions, dialogs and offers.

Own design: each part judges by itself, and this keeps them in step.
"""

from p2psip.sip.message import Request
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.ladder import Ladder
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.sip_dialogs import SipDialogs
from rtclab.lint.sip_message import HeardMessage, read_message
from rtclab.lint.sip_offers import SipOffers
from rtclab.lint.sip_transactions import SipTransactions
from rtclab.unwrap.srtp import SrtpSessions


class SipCalls:
    """All SIP of a capture; `ended` is when calls were over, by Call-ID.  Own design."""

    def __init__(self, findings: Findings, ladder: Ladder, srtp: SrtpSessions) -> None:
        self._findings, self._ladder = findings, ladder
        self._transactions = SipTransactions(findings)
        self._dialogs = SipDialogs(findings)
        self.offers = SipOffers(findings, srtp)
        self.ended: dict[str, float] = {}

    def heard(self, packet: SeenPacket, data: bytes) -> None:
        """Take a message, whole as it was framed."""
        heard = read_message(packet, data, self._findings)
        if heard is None:
            return
        if not isinstance(heard.message, Request):
            self._response(heard)
        elif heard.message.method == "ACK":
            self._draw(heard)
            invite = self._transactions.ack(heard)
            if invite is None or invite.status < 300:
                self._dialogs.request(heard, is_new=False)
            if invite is not None:
                self.offers.ack(heard, invite)
        else:
            self._request(heard)

    def finish(self, now: float) -> None:
        """Report what had no answer."""
        self._transactions.finish(now)
        self._dialogs.finish(now)

    def _request(self, heard: HeardMessage) -> None:
        transaction = self._transactions.request(heard)
        self._draw(heard, " again" if transaction is None else "")
        if transaction is not None:
            self._dialogs.request(heard)
            self.offers.request(heard, transaction)

    def _response(self, heard: HeardMessage) -> None:
        transaction = self._transactions.response(heard)
        self._draw(heard)
        if transaction is not None:
            self._dialogs.response(heard, transaction)
            self.offers.response(heard, transaction)
            if transaction.request.method == "BYE" and transaction.status:
                self.ended.setdefault(heard.message.call_id, heard.packet.time)

    def _draw(self, heard: HeardMessage, more: str = "") -> None:
        self._ladder.add("call", heard.message.call_id, heard.packet, f"{heard.label}{more}")
