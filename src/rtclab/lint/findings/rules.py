"""The rules by name: where each comes from, and what it says.

Own design: a name is for programs that read findings; docs/3-howto/lint.md lists them all.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class LintRule(NamedTuple):
    """One rule; `citation` is the section that a finding names unless the codec names another."""

    citation: str
    summary: str


RULES: Final[Mapping[str, LintRule]] = {
    # SIP: single messages
    "sip-syntax": LintRule("RFC 3261 §25.1", "a start line, header or body that cannot be read"),
    "sip-missing-header": LintRule("RFC 3261 §8.1.1", "a mandatory header is missing"),
    "sip-cseq-method": LintRule("RFC 3261 §8.1.1.5", "the method in CSeq is not the request's"),
    "sip-content-length": LintRule("RFC 3261 §18.3", "Content-Length and the body differ"),
    "sip-no-length": LintRule("RFC 3261 §20.14", "no Content-Length on a stream"),
    "sip-branch": LintRule("RFC 3261 §8.1.1.7", "a branch without the magic cookie"),
    "sip-from-tag": LintRule("RFC 3261 §8.1.1.3", "a request without a tag in From"),
    "sip-contact": LintRule("RFC 3261 §8.1.1.8", "no Contact where a dialog begins"),
    "sip-challenge": LintRule("RFC 3261 §22.2", "401 or 407 without a challenge"),
    "sip-allow": LintRule("RFC 3261 §21.4.6", "405 without Allow"),
    "sip-unsupported": LintRule("RFC 3261 §8.2.2.3", "420 without Unsupported"),
    # SIP: transactions
    "sip-response-alone": LintRule("RFC 3261 §18.1.2", "a response to no request"),
    "sip-response-differs": LintRule(
        "RFC 3261 §8.2.6.2", "From, Call-ID or CSeq of a response are not the request's"
    ),
    "sip-to-tag": LintRule("RFC 3261 §8.2.6.2", "a response without a tag in To"),
    "sip-repeated-early": LintRule(
        "RFC 3261 §17.1.1.2", "a request repeated before the doubled time is over"
    ),
    "sip-repeated-on-stream": LintRule(
        "RFC 3261 §17.1.1.2", "a request repeated on a reliable transport"
    ),
    "sip-repeated-after-response": LintRule(
        "RFC 3261 §17.1.1.2", "an INVITE repeated after its first response"
    ),
    "sip-after-final": LintRule("RFC 3261 §17.2.1", "another response after the final one"),
    "sip-unanswered": LintRule("RFC 3261 §17.2.2", "a request without a response"),
    "sip-bye-unanswered": LintRule("RFC 3261 §15.1.2", "a BYE without a response"),
    "sip-no-ack": LintRule("RFC 3261 §13.2.2.4", "a final response to INVITE without an ACK"),
    "sip-ack-branch": LintRule(
        "RFC 3261 §17.1.1.3", "the ACK of a refusal has another branch, or that of a 2xx the same"
    ),
    "sip-ack-cseq": LintRule("RFC 3261 §13.2.2.4", "the ACK's CSeq is not the INVITE's"),
    "sip-cancel-alone": LintRule("RFC 3261 §9.1", "a CANCEL of no INVITE"),
    "sip-cancel-early": LintRule("RFC 3261 §9.1", "a CANCEL before any response to the INVITE"),
    "sip-cancel-differs": LintRule("RFC 3261 §9.1", "a CANCEL with other headers than the INVITE"),
    # SIP: dialogs
    "sip-cseq": LintRule("RFC 3261 §12.2.1.1", "CSeq does not increase from request to request"),
    "sip-tag-changed": LintRule("RFC 3261 §12.2.1.1", "tags that no dialog of the call has"),
    "sip-route": LintRule("RFC 3261 §12.2.1.1", "Route is not what Record-Route had asked for"),
    "sip-target": LintRule(
        "RFC 3261 §12.2.1.1", "the Request-URI is not the Contact of the other end"
    ),
    "sip-after-bye": LintRule("RFC 3261 §15", "a request in a dialog that has ended"),
    "sip-rseq": LintRule("RFC 3262 §3", "a reliable response without RSeq"),
    "sip-100rel-unasked": LintRule(
        "RFC 3262 §3", "a reliable response to a client that does not support 100rel"
    ),
    "sip-no-prack": LintRule("RFC 3262 §4", "a reliable response without PRACK"),
    # SIP in WebSockets
    "ws-handshake": LintRule("RFC 6455 §4.1", "a WebSocket begins with another handshake"),
    "ws-protocol": LintRule("RFC 7118 §4.1", "SIP where the subprotocol sip was not agreed on"),
    "ws-mask": LintRule("RFC 6455 §5.1", "a client that masks no frames, or a server that does"),
    "ws-frame": LintRule("RFC 6455 §5.2", "a frame that is not as frames must be"),
    "ws-fragments": LintRule("RFC 6455 §5.4", "a message within another, or the rest of none"),
    "ws-after-close": LintRule("RFC 6455 §5.5.1", "data behind Close"),
    "ws-message": LintRule("RFC 7118 §5", "a WebSocket message that is not one SIP message"),
    "ws-via": LintRule("RFC 7118 §5.1", "a Via of another transport than WS or WSS"),
    # Offers and answers
    "sdp-syntax": LintRule("RFC 8866 §5", "a session description that cannot be read"),
    "sdp-no-offer": LintRule("RFC 3261 §13.2.1", "neither INVITE nor 2xx has an offer"),
    "sdp-no-answer": LintRule("RFC 3261 §13.2.1", "an offer without an answer"),
    "sdp-unasked-answer": LintRule("RFC 3261 §13.2.1", "an answer without an offer, in ACK"),
    "sdp-media-count": LintRule("RFC 3264 §6", "the answer has not as many media as the offer"),
    "sdp-media-order": LintRule("RFC 3264 §6", "a medium of the answer is not the offer's"),
    "sdp-formats": LintRule(
        "RFC 3264 §6.1", "the answer accepts a medium, but none of its formats"
    ),
    "sdp-direction": LintRule("RFC 3264 §6.1", "the answer's direction does not fit the offer's"),
    "sdp-times": LintRule("RFC 3264 §6", "the answer has another t= line than the offer"),
    "sdp-zero-port": LintRule("RFC 3264 §8.2", "the answer has a port for a stream that is off"),
    "sdp-media-removed": LintRule("RFC 3264 §8", "fewer media than in the description before"),
    "sdp-version": LintRule("RFC 3264 §8", "another description under the same o= version"),
    "sdp-odd-port": LintRule("RFC 3550 §11", "RTP at an odd port"),
    # RTP
    "rtp-syntax": LintRule("RFC 3550 §5.1", "no RTP where it was agreed on"),
    "rtp-payload-type": LintRule("RFC 3264 §5.1", "a payload type that was not agreed on"),
    "rtp-reserved-type": LintRule("RFC 3551 §6", "a payload type that is reserved or unassigned"),
    "rtp-lost": LintRule("RFC 3550 §6.4.1", "sequence numbers are missing"),
    "rtp-duplicate": LintRule("RFC 3550 §5.1", "a sequence number comes twice"),
    "rtp-reordered": LintRule("RFC 3550 §5.1", "packets out of sequence"),
    "rtp-jitter": LintRule(
        "RFC 3550 §6.4.1", "packets come much more unevenly than they were made"
    ),
    "rtp-ssrc": LintRule("RFC 3550 §8", "the source takes another SSRC"),
    "rtp-timestamp": LintRule("RFC 3550 §5.1", "the timestamp does not grow by what was sent"),
    "rtp-marker-missing": LintRule(
        "RFC 3551 §4.1", "audio begins again, or a frame ends, unmarked"
    ),
    "rtp-marker-extra": LintRule("RFC 3551 §4.1", "the marker within continuous audio"),
    "rtp-one-way": LintRule("RFC 3264 §5.1", "media go one way only, where both were agreed on"),
    "rtp-after-bye": LintRule("RFC 3261 §15", "RTP goes on after the call has ended"),
    # RTCP
    "rtcp-syntax": LintRule("RFC 3550 §6.4", "RTCP that cannot be read"),
    "rtcp-no-report": LintRule("RFC 3550 §6.1", "a compound packet that begins with no report"),
    "rtcp-no-cname": LintRule("RFC 3550 §6.1", "a compound packet without a CNAME"),
    "rtcp-unnamed": LintRule("RFC 3550 §6.5.1", "an SSRC that never has a CNAME"),
    "rtcp-often": LintRule("RFC 3550 §6.2", "reports that come too often"),
    "rtcp-after-bye": LintRule("RFC 3550 §6.3.7", "packets of a source that has said BYE"),
    # SRTP
    "srtp-tag": LintRule("RFC 3711 §3.3", "SRTP or SRTCP with a tag that is wrong"),
    "srtcp-replayed": LintRule("RFC 3711 §3.3.2", "SRTCP that came before"),
    # DTLS
    "dtls-fingerprint": LintRule("RFC 5763 §5", "a certificate that the description does not name"),
    "dtls-no-srtp": LintRule("RFC 5764 §4.1", "a hello that agrees on no profile of SRTP"),
    "dtls-alert": LintRule("RFC 5763 §5", "a handshake that is given up"),
    # TURN
    "turn-channel": LintRule("RFC 8656 §12", "a channel that is not 0x4000 to 0x4FFF"),
    "turn-rebound": LintRule("RFC 8656 §12", "a channel or a peer that is bound to another"),
    "turn-unbound": LintRule("RFC 8656 §12.6", "data on a channel that is not bound"),
    "turn-permission": LintRule("RFC 8656 §11.1", "Send to a peer without a permission"),
    "turn-indication": LintRule("RFC 8656 §11.2", "relayed data that lack a part"),
    # RTMP
    "rtmp-version": LintRule("RTMP 1.0 §5.2.2", "a version that is not 3"),
    "rtmp-echo": LintRule("RTMP 1.0 §5.2.4", "the handshake does not repeat the other's packet"),
    "rtmp-handshake": LintRule("RTMP 1.0 §5.2.1", "a handshake that does not end"),
    "rtmp-syntax": LintRule("RTMP 1.0 §5.3", "chunks or messages that cannot be read"),
    "rtmp-chunk-size": LintRule(
        "RTMP 1.0 §5.4.1", "a chunk size that is not allowed, or too small"
    ),
    "rtmp-control-stream": LintRule("RTMP 1.0 §5.4", "a control message off stream 0"),
    "rtmp-message-type": LintRule("RTMP 1.0 §7.1", "a message type that nobody knows"),
    "rtmp-timestamp": LintRule("RTMP Errata §5.2", "a medium's timestamps go backwards"),
    "rtmp-before-connect": LintRule("RTMP 1.0 §7.2.1.1", "a message before connect"),
    "rtmp-connect-twice": LintRule("RTMP 1.0 §7.2.1.1", "a second connect"),
    "rtmp-no-result": LintRule("RTMP 1.0 §7.2", "a call without a result"),
    "rtmp-result-alone": LintRule("RTMP 1.0 §7.2", "a result of no call"),
    "rtmp-unknown-stream": LintRule("RTMP 1.0 §7.2.1.3", "a message on a stream that is not there"),
    "rtmp-no-create": LintRule("RTMP 1.0 §7.2.2", "publish or play without createStream"),
    "rtmp-no-publish": LintRule("RTMP 1.0 §7.2.2.6", "media without publish"),
    "rtmp-no-header": LintRule("FLV 10.1 §E.4.3.2", "video or audio before its header"),
    "rtmp-window": LintRule("RTMP 1.0 §5.4.4", "the acknowledgement window is exceeded"),
    "rtmp-acknowledged": LintRule("RTMP 1.0 §5.4.3", "more is acknowledged than was sent"),
    "rtmp-ping": LintRule("RTMP 1.0 §6.2", "a ping without a response"),
    # RTMP in HTTP
    "rtmpt-sequence": LintRule('Field §"HTTP tunnel"', "a request's number is not the next one"),
    "rtmpt-interval": LintRule('Field §"HTTP tunnel"', "an answer without its first octet"),
    # RTMFP
    "rtmfp-checksum": LintRule(
        "RFC 7425 §4.7.3.1", "a packet of the startup that does not decrypt"
    ),
    "rtmfp-tag": LintRule("RFC 7016 §3.5.1.1.2", "an answer to no Hello"),
    "rtmfp-cookie": LintRule("RFC 7016 §3.5.1.1.1", "a cookie that nobody gave"),
    "rtmfp-hello-unanswered": LintRule("RFC 7016 §3.5.1.1.2", "a Hello without an answer"),
    "rtmfp-keying-unanswered": LintRule("RFC 7016 §3.5.1.1.2", "keying without an answer"),
    "rtmfp-keying-alone": LintRule("RFC 7016 §3.5.1.1.2", "RIKeying to no IIKeying"),
    "rtmfp-session": LintRule("RFC 7016 §2.2.2", "a session ID that nobody chose"),
    "rtmfp-decrypt": LintRule("RFC 7425 §4.7", "a packet that no key opens"),
    "rtmfp-mode": LintRule("RFC 7016 §2.2.4", "the mode is not that of the sender's end"),
    "rtmfp-lost": LintRule("RFC 7016 §3.6.2", "sequence numbers of a flow never came"),
    "rtmfp-after-final": LintRule("RFC 7016 §3.6.2.11", "data behind the end of a flow"),
    "rtmfp-acknowledged": LintRule("RFC 7016 §3.6.3.4", "what was never sent is acknowledged"),
    "rtmfp-close": LintRule("RFC 7016 §3.5.5", "a session is closed, and nobody agrees"),
}
