"""Cases about what an answer says of ICE and of the certificate.

Implements RFC 8839 §5 and RFC 8445 §5.3, from the side of a page.
"""

from functools import partial

from p2psip.nat.ice_candidate import CandidateType
from rtclab.conform.case import Cases, Unmet
from rtclab.conform.checks import expect_equal
from rtclab.conform.ice.peer import IcePeer, credentials

cases: Cases[IcePeer] = Cases()
_must = partial(cases.case, level="MUST", role="agent")
_LEAST_UFRAG, _LEAST_PASSWORD, _MOST_UFRAG = 4, 22, 32  # characters
_MOST_PREFERENCE = 126


@_must("RFC 8445 §5.3", "credentials-are-random")
def user_name_has_24_bits(peer: IcePeer) -> None:
    """A user name has four characters, of six bits, at least (RFC 8445 §5.3)."""
    if len(peer.ufrag) < _LEAST_UFRAG:
        raise Unmet(f"{_LEAST_UFRAG} characters", repr(peer.ufrag))


@_must("RFC 8445 §5.3", "credentials-are-random")
def password_has_128_bits(peer: IcePeer) -> None:
    """A password has 22 characters, of six bits, at least (RFC 8445 §5.3)."""
    if len(peer.password) < _LEAST_PASSWORD:
        raise Unmet(f"{_LEAST_PASSWORD} characters", f"{len(peer.password)}")


@_must("RFC 8839 §5.4", "ufrag-of-32-at-most")
def user_name_has_32_characters_at_most(peer: IcePeer) -> None:
    """A user name has no more than 32 characters (§5.4)."""
    if len(peer.ufrag) > _MOST_UFRAG:
        raise Unmet(f"{_MOST_UFRAG} characters at most", f"{len(peer.ufrag)}")


@_must("RFC 8839 §5.4", "drawn-at-the-beginning")
def sessions_have_credentials_of_their_own(peer: IcePeer) -> None:
    """The next session has another user name and another password (§5.4)."""
    peer.web.ask("DELETE", peer.session.url)
    ufrag, password = credentials(peer.web.begin())
    if ufrag == peer.ufrag or password == peer.password:
        raise Unmet("other credentials", f"{ufrag}, {password}")


@_must("RFC 8839 §5.4", "credentials-for-each")
def lines_have_credentials(peer: IcePeer) -> None:
    """All bundled lines have the same user name and password, or the session has them (§5.4)."""
    for name, value in (("ice-ufrag", peer.ufrag), ("ice-pwd", peer.password)):
        found = set(peer.session.attributes(name)) - {None}
        expect_equal(name, {value}, found)


@_must("RFC 8839 §5.1", "no-names")
def candidates_have_addresses(peer: IcePeer) -> None:
    """No candidate of the answer has the name of a host (§5.1)."""
    if wrong := [each.host for each in peer.candidates if not each.version]:
        raise Unmet("addresses", ", ".join(wrong))


@_must("RFC 8839 §5.1", "component-1-for-rtp")
def candidates_are_of_component_1(peer: IcePeer) -> None:
    """All candidates are of component 1, as RTCP is multiplexed (§5.1)."""
    expect_equal("components", {1}, {each.component for each in peer.candidates})


@_must("RFC 8839 §5.1", "host-has-no-related")
def hosts_have_nothing_related(peer: IcePeer) -> None:
    """A candidate of the host names no related address (§5.1)."""
    hosts = [each for each in peer.candidates if each.type == CandidateType.HOST]
    if wrong := [str(each) for each in hosts if each.related]:
        raise Unmet("no raddr", ", ".join(wrong))


@_must("RFC 8445 §5.1.2.1", "priority-by-formula")
def priority_has_type_and_component(peer: IcePeer) -> None:
    """A priority has the preference of a type, and a component (RFC 8445 §5.1.2.1)."""
    for each in peer.candidates:
        expect_equal(f"the end of {each.priority}", 256 - each.component, each.priority & 255)
        if not each.priority >> 24 <= _MOST_PREFERENCE:
            raise Unmet("a type preference of 0 to 126", str(each.priority >> 24))


@_must("RFC 8445 §5.1.2.1", "local-preferences-are-unique")
def candidates_differ_in_priority(peer: IcePeer) -> None:
    """No two candidates have the same priority (RFC 8445 §5.1.2.1)."""
    found = [each.priority for each in peer.candidates]
    expect_equal("priorities", len(found), len(set(found)))


@_must("RFC 5763 §5", "fingerprint-is-said")
def answer_has_a_fingerprint(peer: IcePeer) -> None:
    """Each line has the hash of the certificate, or the session has it (RFC 5763 §5)."""
    if None in (found := peer.session.attributes("fingerprint")):
        raise Unmet("a fingerprint", str(found))


@_must("RFC 5763 §5", "answers-active-or-passive")
def answer_says_who_begins_dtls(peer: IcePeer) -> None:
    """Each line of the answer is active or passive, to an offer of actpass (RFC 5763 §5)."""
    found = set(peer.session.attributes("setup"))
    if not found <= {"active", "passive"}:
        raise Unmet("setup:active or setup:passive", str(found))


@_must("RFC 9725 §4.3.3", "restart-is-200")
def restarted_credentials_are_answered(peer: IcePeer) -> None:
    """After a restart, checks with the new credentials are answered (RFC 9725 §4.3.3)."""
    restarted = peer.web.restart(peer.session).expect(200).body.decode(errors="replace")
    values = dict(line.partition(":")[::2] for line in restarted.splitlines())
    peer.ufrag, peer.password = values.get("a=ice-ufrag", ""), values.get("a=ice-pwd", "")
    attributes = peer.attributes()
    attributes[0] = attributes[0][0], f"{peer.ufrag}:anew".encode()
    peer.succeed(peer.check(attributes=attributes))


@_must("RFC 9725 §4.2", "ends-at-once")
def ended_session_answers_no_check(peer: IcePeer) -> None:
    """A session that was deleted answers no check with success (RFC 9725 §4.2)."""
    peer.succeed(peer.check())
    peer.web.ask("DELETE", peer.session.url).expect(2)
    answer = peer.heard(peer.check())
    if answer is not None and answer.kind.name == "SUCCESS":
        raise Unmet("no success", "a success")
