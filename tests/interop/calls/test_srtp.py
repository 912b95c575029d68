"""Calls by SRTP with real phones: each hears the other, and nothing is dropped on the way."""

import pytest
from support.certificates import certificate
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone
from support.peers.peers import LASTING, Ffmpeg, RtmpDump, decode_audio
from support.peers.tones import tone_fraction, trimmed

SECONDS = 5
OURS, THEIRS = 440, 900
SECURE, MANDATORY = "media_encryption=srtp", "media_encryption_mandatory=1"


@pytest.fixture
def server(gateway, tmp_path, request):
    made = certificate(tmp_path / "certificate")
    return gateway(
        *("--users", users_file(tmp_path, "bob")),
        *("--sips", "127.0.0.1:0", "--tls-cert", str(made.file), "--tls-key", str(made.key)),
        *("--srtp", request.param),
    )


def is_secure(server, suite):
    """Whether the only call is encrypted by this suite, as the gateway and its log have it."""
    return server.status()["calls_srtp"] == 1 and f"srtp={suite}" in server.output


def well_heard(server, samples, rate, file, enough=0.95):
    """Both ends have heard the other's tone for the whole call, and no audio was refused."""
    heard = decode_audio(file)
    assert tone_fraction(trimmed(samples, rate), rate, OURS) > enough
    assert tone_fraction(heard, 8000, THEIRS) > 0.95
    assert len(trimmed(samples, rate)) / rate > 0.8 * SECONDS < len(heard) / 8000
    # baresip begins with reports in clear: Field §"First packets that are no media"
    assert server.status()["srtp_refused"] <= 2


@pytest.mark.parametrize(
    ("server", "word", "transport", "suite"),
    [
        ("any", "srtp", "udp", "AES_CM_128_HMAC_SHA1_80"),
        ("always", "srtp-mand", "udp", "AES_CM_128_HMAC_SHA1_80"),
        ("always", "srtp-mand", "tls", "AEAD_AES_256_GCM"),
        ("auto", "srtp", "tls", "AEAD_AES_256_GCM"),
    ],
    indirect=["server"],
)
@pytest.mark.needs("baresip", "ffmpeg", "rtmpdump", "openssl")
def test_a_stream_calls_baresip(start, server, tmp_path, word, transport, suite):
    """Covers RFC 8643 §3.1 and RFC 4568 §5.1.1.

    With srtp-mandf it answers no line but one of RTP/SAVPF, which we offer to nobody.
    """
    phone = start(
        Baresip,
        "bob",
        registrar=server.sips if transport == "tls" else server.sip,
        password=PASSWORD,
        hz=THEIRS,
        transport=transport,
        ca=tmp_path / "certificate" / "certificate.pem" if transport == "tls" else None,
        srtp=word,
    )
    name = f"bob@{server.sip}"
    player = start(RtmpDump, server.url("call", name))
    publisher = start(Ffmpeg.publish, server.url("call", name), hz=OURS, seconds=SECONDS)
    phone.wait_event("CALL_ESTABLISHED")
    publisher.wait_until(lambda: is_secure(server, suite), what="a call by SRTP")
    assert publisher.finish() == 0
    phone.wait_event("CALL_CLOSED")
    assert f"SRTP is Enabled (cryptosuite={suite})" in phone.output
    player.finish()
    well_heard(server, *phone.heard(), player.file)
    server.wait_status({"calls": 0, "calls_srtp": 0, "media_legs": 0})


@pytest.mark.parametrize("server", ["auto"], indirect=True)
@pytest.mark.parametrize("word", ["srtp", "srtp-mand", "srtp-mandf"])
@pytest.mark.needs("baresip", "ffmpeg", "rtmpdump", "openssl")
def test_baresip_calls_a_stream(start, server, word):
    """Covers RFC 8643 §3.2 and RFC 4568 §5.1.2."""
    url = server.url("call", "studio")
    publisher = start(Ffmpeg.publish, url, hz=OURS, seconds=LASTING)
    player = start(RtmpDump, url)
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=THEIRS, srtp=word)
    server.wait_status({"names": 1, "players": 1})
    phone.dial(f"sip:studio@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    suite = "AES_CM_128_HMAC_SHA1_80"  # which it prefers
    publisher.wait_until(lambda: is_secure(server, suite), what="a call by SRTP")
    recording = next(phone.folder.glob("dump-*-dec.wav"))
    phone.wait_until(lambda: recording.stat().st_size > SECONDS * 16000, what="sound")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    publisher.stop()
    player.finish()
    well_heard(server, *phone.heard(), player.file)


@pytest.fixture
def linphone(start, server):
    """`linphone(SECURE, MANDATORY)`: linphonec with these lines among its settings."""

    def run(*lines):
        return start(
            Linphone,
            "bob",
            codec="PCMU/8000",
            registrar=server.sip,
            password=PASSWORD,
            hz=THEIRS,
            sip="\n".join(lines),
        )

    return run


@pytest.mark.alone  # this phone drops sound when it has to wait for a core
@pytest.mark.parametrize(
    ("server", "lines", "suite"),
    [
        ("always", (SECURE,), "AES_CM_128_HMAC_SHA1_80"),
        ("always", (SECURE, MANDATORY), "AES_CM_128_HMAC_SHA1_80"),
        ("any", (SECURE,), ""),  # it passes over keys beside RTP/AVP
    ],
    indirect=["server"],
)
@pytest.mark.needs("ffmpeg", "linphonec", "rtmpdump", "openssl")
def test_a_stream_calls_linphone(start, server, linphone, watch, lines, suite):
    """Covers RFC 8643 §3.3 and RFC 4568 §5.1.1."""
    phone = linphone(*lines)
    url = server.url("call", f"bob@{server.sip}")
    player = start(RtmpDump, url)
    publisher = start(Ffmpeg.publish, url, hz=OURS, seconds=SECONDS)
    phone.wait_for("LinphoneCallStreamsRunning")
    watch.begin()
    server.wait_status({"calls": 1, "calls_srtp": int(bool(suite))})
    assert publisher.finish() == 0
    assert ("srtp=" in server.output) == bool(suite) and f"srtp={suite}" in f"srtp={server.output}"
    phone.wait_for("LinphoneCallReleased")
    player.finish()
    well_heard(server, *phone.heard(), player.file, phone.enough(watch))


@pytest.mark.alone  # this phone drops sound when it has to wait for a core
@pytest.mark.parametrize("server", ["auto"], indirect=True)
@pytest.mark.parametrize("lines", [(SECURE,), (SECURE, MANDATORY)], ids=["srtp", "mandatory"])
@pytest.mark.needs("ffmpeg", "linphonec", "rtmpdump", "openssl")
def test_linphone_calls_a_stream(start, server, linphone, watch, lines):
    """Covers RFC 8643 §3.2 and RFC 4568 §5.1.2."""
    url = server.url("call", "studio")
    publisher = start(Ffmpeg.publish, url, hz=OURS, seconds=LASTING)
    player = start(RtmpDump, url)
    phone = linphone(*lines)
    server.wait_status({"names": 1, "players": 1})
    phone.command(f"call sip:studio@{server.sip}")
    phone.wait_for("LinphoneCallStreamsRunning")
    watch.begin()
    server.wait_status({"calls": 1, "calls_srtp": 1})
    size = 2 * 8000 * SECONDS  # in octets
    phone.wait_until(lambda: phone.recording.stat().st_size > size, what="sound")
    phone.command("terminate")
    phone.wait_for("LinphoneCallReleased")
    publisher.stop()
    player.finish()
    well_heard(server, *phone.heard(), player.file, phone.enough(watch))
