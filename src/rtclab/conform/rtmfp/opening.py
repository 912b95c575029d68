"""The opening of a session: hellos, cookies and keyings, in order and out of it.

Implements RFC 7016 §3.5.1, from the initiator's side.
"""

import os
from functools import partial

from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.rtmfp.peer import RtmfpPeer
from rtclab.conform.rtmfp.session import open_session, session_of
from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.wire.chunks import UnknownChunk
from rtmplite.rtmfp.wire.option import Option, encode_option
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    RHelloCookieChange,
)

cases: Cases[RtmfpPeer] = Cases()
must = partial(cases.case, role="responder")
should = partial(cases.case, role="responder", level="SHOULD")

_AT_ONCE = 5  # sessions


@should("RFC 7016 §3.5.1.1.2", "rhello-sent")
def hello_has_an_rhello_with_its_tag(peer: RtmfpPeer) -> None:
    """A hello that selects the target has an RHello that returns the tag (§3.5.1.1.2)."""
    hello = peer.hello_chunk()
    expect_equal("tag", hello.tag, peer.ask(hello, ResponderHello).tag_echo)


@should("RFC 7016 §3.5.1.1.2", "rhello-sent")
def tag_may_be_long(peer: RtmfpPeer) -> None:
    """A tag has any length (§2.3.2)."""
    hello = peer.hello_chunk(tag=os.urandom(200))
    expect_equal("tag", hello.tag, peer.ask(hello, ResponderHello).tag_echo)


@must("RFC 7425 §4.4.3", "ancillary-accepted")
def certificate_accepts_what_selected_it(peer: RtmfpPeer) -> None:
    """A certificate that a URI selects says that it accepts ancillary data (RFC 7425 §4.4.3)."""
    if not _certificate(peer).accepts_ancillary_data:
        raise Unmet("a certificate that accepts ancillary data", "one that does not")


@must("RFC 7425 §4.4.3", "fingerprint-decides")
def its_fingerprint_selects_the_target(peer: RtmfpPeer) -> None:
    """A discriminator with the fingerprint of the certificate is answered (RFC 7425 §4.4.3)."""
    certificate = peer.hello().responder_certificate
    epd = Epd(fingerprint=_certificate(peer).fingerprint).encode()
    expect_equal("certificate", certificate, peer.hello(epd).responder_certificate)


@must("RFC 7425 §4.4.3", "fingerprint-decides")
def foreign_fingerprint_selects_nobody(peer: RtmfpPeer) -> None:
    """With a fingerprint nothing else counts, not the URI beside it (RFC 7425 §4.4.3)."""
    _expect_unselected(peer, Epd(ancillary_data=peer.uri, fingerprint=os.urandom(32)).encode())


@must("RFC 7425 §4.4.3", "one-option-at-least")
def empty_discriminator_selects_nobody(peer: RtmfpPeer) -> None:
    """A discriminator without options has no answer (RFC 7425 §4.4.3)."""
    _expect_unselected(peer, b"")


@must("RFC 7425 §4.4.3", "hostname-identical")
def foreign_hostname_selects_nobody(peer: RtmfpPeer) -> None:
    """A hostname that the certificate does not have is not answered (RFC 7425 §4.4.3)."""
    epd = Epd(required_hostname=b"nobody.has.this.name.invalid", ancillary_data=peer.uri)
    _expect_unselected(peer, epd.encode())


@must("RFC 7425 §3", "error-aborts-element")
def damaged_discriminator_selects_nobody(peer: RtmfpPeer) -> None:
    """An option that is cut off spoils the whole discriminator (RFC 7425 §3)."""
    _expect_unselected(peer, Epd(ancillary_data=peer.uri).encode() + b"\x20cut")


@should("RFC 7016 §3.5.1.1.2", "cookie-of-address")
def cookies_differ_by_address(peer: RtmfpPeer) -> None:
    """Each address has a cookie of its own (§3.5.1.1.2)."""
    cookies = {peer.hello().cookie, peer.another(peer.profile).hello().cookie}
    expect_equal("number of cookies for two addresses", 2, len(cookies))


@must("RFC 7016 §3.5.1.1.2", "bad-cookie-ignored")
def forged_cookie_is_ignored(peer: RtmfpPeer) -> None:
    """A keying with a cookie that the target has not made is not answered (§3.5.1.1.2)."""
    keying = peer.keying(peer.hello())
    forged = os.urandom(len(keying.chunk.cookie_echo) or 16)
    changed = keying.changed(cookie_echo=forged)
    peer.expect_no_session("silence for a forged cookie", changed, RHelloCookieChange)


@must("RFC 7016 §3.5.1.1.2", "bad-cookie-ignored")
def changed_cookie_is_ignored(peer: RtmfpPeer) -> None:
    """A cookie with one bit changed in its first byte is forged (§3.5.1.1.2)."""
    keying = peer.keying(peer.hello())
    cookie = keying.chunk.cookie_echo
    changed = bytes((cookie[0] ^ 1,)) + cookie[1:]
    peer.expect_no_session("no session", keying.changed(cookie_echo=changed))


@must("RFC 7016 §2.3.7", "has-cookie")
def keying_without_a_cookie_is_ignored(peer: RtmfpPeer) -> None:
    """An empty cookie opens nothing (§2.3.7, §3.5.1.1.2)."""
    keying = peer.keying(peer.hello()).changed(cookie_echo=b"")
    peer.expect_no_session("silence for no cookie", keying, RHelloCookieChange)


@must("RFC 7016 §3.5.1.1.2", "cookie-recognized")
def earlier_cookie_is_good(peer: RtmfpPeer) -> None:
    """A cookie is good although another hello has been answered since (§3.5.1.1.2)."""
    first = peer.hello()
    peer.hello()
    session_of(peer, peer.keying(first)).ping()


@should("RFC 7016 §3.5.1.2", "cookie-change-sent")
def cookie_from_elsewhere_is_changed(peer: RtmfpPeer) -> None:
    """A cookie that comes from another address than it was made for is exchanged (§3.5.1.2)."""
    keying = peer.keying(peer.another(peer.profile).hello())
    change = peer.ask(keying.chunk, RHelloCookieChange)
    expect_equal("old cookie", keying.chunk.cookie_echo, change.old_cookie)
    session_of(peer, keying.changed(cookie_echo=change.new_cookie)).ping()


@must("RFC 7016 §3.5.1.1.2", "other-address")
def cookie_from_elsewhere_opens_nothing(peer: RtmfpPeer) -> None:
    """A keying with a cookie of another address has no RIKeying (§3.5.1.1.2)."""
    keying = peer.keying(peer.another(peer.profile).hello())
    peer.say(keying.chunk)
    if any(isinstance(each, ResponderInitialKeying) for each in peer.answers_within()):
        raise Unmet("no session with a cookie of another address", "an RIKeying")
    open_session(peer).ping()


@must("RFC 7016 §3.5.1.1.2", "rikeying-sent")
def rikeying_comes_to_our_session(peer: RtmfpPeer) -> None:
    """An RIKeying has the session ID of the IIKeying, and the Default Session Key (§2.3.8)."""
    keying = peer.keying(peer.hello())
    peer.say(keying.chunk)
    for session_id, packet in peer.replies():
        if any(isinstance(chunk, ResponderInitialKeying) for chunk in packet.chunks):
            expect_equal("session ID", keying.chunk.initiator_session_id, session_id)
            break
    session_of(peer, keying).ping()


@must("RFC 7016 §3.3", "zero-is-startup")
def session_id_is_not_0(peer: RtmfpPeer) -> None:
    """The responder's session ID is another than that of startups (§3.3)."""
    if open_session(peer).far_id == 0:
        raise Unmet("a session ID other than 0", "0")


@must("RFC 7016 §3.5.1.1.2", "retransmission-answered")
def repeated_keying_has_the_same_answer(peer: RtmfpPeer) -> None:
    """An IIKeying that comes again has the session's RIKeying again (§3.5.1.1.2)."""
    keying = peer.keying(peer.hello())
    first, second = peer.answer_to(keying), peer.answer_to(keying)
    expect_equal("RIKeying", first.encode().hex(), second.encode().hex())
    session_of(peer, keying).ping()


@must("RFC 7016 §3.5.1.1.2", "retransmission-answered")
def repeated_keying_leaves_the_session_open(peer: RtmfpPeer) -> None:
    """The session of an IIKeying that comes again goes on (§3.5.1.1.2)."""
    keying = peer.keying(peer.hello())
    session = session_of(peer, keying)
    session.ping()
    peer.answer_to(keying)
    session.ping()


@must("RFC 7016 §3.5.1.1.2", "no-override-ignored")
def keying_of_another_identity_is_ignored(peer: RtmfpPeer) -> None:
    """Where there is a session, another identity gets none at that address (§3.5.1.1.2)."""
    session = open_session(peer)
    session.ping()
    stranger = peer.another()
    keying = peer.keying(peer.hello(), profile=stranger.profile)
    peer.expect_no_session("silence for another identity at the address of a session", keying)
    session.ping()


@must("RFC 7016 §3.5.1.1.2", "override-closes")
def new_keying_of_the_same_identity_replaces_the_session(peer: RtmfpPeer) -> None:
    """Where the same identity begins anew, its former session is closed (§3.5.1.1.2)."""
    former = open_session(peer)
    former.ping()
    new = open_session(peer)
    former.ended = True
    new.ping()
    former.expect_dead("no reply in the session that was replaced")


@must("RFC 7016 §3.5.1.1.2", "unique-near-id")
def several_sessions_open_at_once(peer: RtmfpPeer) -> None:
    """Each of several hosts that open at the same time gets its own session (§3.5.1.1.2)."""
    peers = [peer, *(peer.another() for _ in range(_AT_ONCE - 1))]
    keyings = [each.keying(each.hello()) for each in peers]
    for each, keying in zip(peers, keyings, strict=True):
        each.say(keying.chunk)
    sessions = [session_of(each, keying) for each, keying in zip(peers, keyings, strict=True)]
    for session in reversed(sessions):
        session.ping()
    expect_equal("number of session IDs", _AT_ONCE, len({each.far_id for each in sessions}))


@should("RFC 7016 §3.5.1.1.2", "no-state")
def hellos_without_keying_cost_nothing(peer: RtmfpPeer) -> None:
    """After hellos that nobody went on with, a session opens (§3.5.1.1.2)."""
    for other in [peer.another(peer.profile) for _ in range(10)]:
        other.say(other.hello_chunk())
    open_session(peer).ping()


@must("RFC 7425 §4.3.5", "any-valid-if-not-required")
def empty_signature_is_as_good_as_an_x(peer: RtmfpPeer) -> None:
    """What is no signature counts as an empty one, an X among it (RFC 7425 §4.3.5)."""
    other = peer.another()
    session_of(other, other.keying(other.hello())).ping()  # with an X
    session_of(peer, peer.keying(peer.hello()).changed(signature=b"")).ping()


@must("RFC 7425 §3", "error-aborts-element")
def damaged_certificate_has_no_session(peer: RtmfpPeer) -> None:
    """A certificate with an option that is cut off is not authentic (RFC 7425 §4.3.4)."""
    keying = peer.keying(peer.hello())
    certificate = keying.chunk.initiator_certificate + b"\x20cut"
    changed = keying.changed(initiator_certificate=certificate)
    peer.expect_no_session("silence for a certificate that is cut off", changed)


@must("RFC 7425 §4.3.3", "unknown-ignored")
def unknown_option_of_a_certificate_is_passed_by(peer: RtmfpPeer) -> None:
    """A certificate may have options that nobody knows (RFC 7425 §4.3.3)."""
    keying = peer.keying(peer.hello())
    certificate = encode_option(Option(0x3B, b"?")) + keying.chunk.initiator_certificate
    session_of(peer, keying.changed(initiator_certificate=certificate)).ping()


@must("RFC 7016 §2.3", "damaged-ignored")
def damaged_keying_has_no_session(peer: RtmfpPeer) -> None:
    """A keying that is cut off behind its cookie is passed by (§2.3)."""
    keying = peer.keying(peer.hello())
    peer.say(UnknownChunk(InitiatorInitialKeying.type_id, keying.chunk.encode()[:60]))
    if any(isinstance(each, ResponderInitialKeying) for each in peer.answers_within()):
        raise Unmet("silence for a keying that is cut off", "an answer")
    session_of(peer, keying).ping()


def _certificate(peer: RtmfpPeer) -> Certificate:
    try:
        return Certificate.parse(peer.hello().responder_certificate)
    except RemoteError as error:
        raise Unmet("a certificate that can be read", str(error)) from None


def _expect_unselected(peer: RtmfpPeer, epd: bytes) -> None:
    """Unmet if an RHello comes for a discriminator."""
    hello = peer.hello_chunk(epd)
    peer.say(hello)
    peer.expect_no_answer("no RHello", hello)
