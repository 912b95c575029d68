"""Captures of our own sockets: who may read them, how they end, and that no call minds them."""

import socket

import pytest

import p2psip.net.tap
import rtmplite.net.tap
from p2psip.transaction.flow import Flow
from rtclab.lint.packets import read_capture
from siprtmp.edge import packet_capture
from siprtmp.edge.packet_capture import PacketCapture
from siprtmp.operation.arguments import ConfigError


class Said:
    """A log that keeps what it is told."""

    def __init__(self):
        self.events = []

    def warning(self, what, **values):
        self.events.append((what, str(values.get("reason", ""))))


@pytest.fixture
def capture(tmp_path):
    made = []

    def make(limit=1 << 20):
        made.append(PacketCapture(tmp_path / "a.pcap", Said(), limit))
        return made[-1]

    yield make
    for each in made:
        each.close()


def udp(host="127.0.0.1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.bind((host, 0))
    opened.settimeout(20)
    return opened


def exchanged(bind, host):
    """One datagram to a socket that is looked at, and one back; both addresses."""
    plain, far = udp(bind), udp(host)
    near = p2psip.net.tap.Tapping.current.datagrams(plain)
    with plain, far:
        place = host, near.getsockname()[1]
        far.sendto(b"hello", place)
        data, source = near.recvfrom(2048)
        near.sendto(data + b" again", source)
        assert far.recvfrom(2048)[0] == b"hello again"
        return place, far.getsockname()[:2]


def shown(place):
    return f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"


def packets(path):
    found = read_capture(path.read_bytes())
    assert not found.fault and not found.skipped
    return [(each.source, each.target, each.data) for each in found.packets]


@pytest.mark.parametrize(
    ("bind", "host"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1"), ("::", "::1")],
)
def test_both_directions_are_written_with_real_addresses(capture, tmp_path, bind, host):
    looking = capture()
    near, far = map(shown, exchanged(bind, host))
    looking.close()
    assert packets(tmp_path / "a.pcap") == [(far, near, b"hello"), (near, far, b"hello again")]


def test_an_address_of_ipv4_on_a_socket_for_both_is_one_of_ipv4(capture, tmp_path):
    looking = capture()
    looking.datagram(("::ffff:192.0.2.1", 5), ("::ffff:192.0.2.2", 6), b"x")
    looking.close()
    assert packets(tmp_path / "a.pcap") == [("192.0.2.1:5", "192.0.2.2:6", b"x")]


def test_a_connection_is_told_from_its_first_octets_to_its_end(capture, tmp_path):
    looking = capture()
    one, other = socket.socket(), socket.create_server(("127.0.0.1", 0))
    one.connect(other.getsockname())
    accepted, _ = other.accept()
    tapped, _ = rtmplite.net.tap.Tapping.current.connection(accepted, None)
    with one, other:
        one.sendall(b"hello")
        assert tapped.recv(10) == b"hello"
        assert tapped.sendmsg([b"good", b"bye"]) == 7
        assert tapped.send(b"!") == 1
        one.shutdown(socket.SHUT_WR)
        assert tapped.recv(10) == b""
        tapped.close()
    looking.close()
    found = read_capture((tmp_path / "a.pcap").read_bytes()).packets
    assert [each.data for each in found] == [b"", b"", b"", b"hello", b"goodbye", b"!", b"", b""]
    assert [each.segment.sequence for each in found] == [0, 0, 1, 1, 1, 8, 6, 9]
    assert [each.segment.is_end for each in found][-2:] == [True, True]


def test_nobody_else_may_read_the_files(capture, tmp_path):
    for name in ("a.pcap", "a.pcap.keys"):
        (tmp_path / name).write_text("of yesterday")
        (tmp_path / name).chmod(0o644)
    capture().close()
    for name in ("a.pcap", "a.pcap.keys"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a.pcap.keys").read_text() == ""


def test_a_capture_of_one_call_has_what_it_is_given_and_is_no_tap(tmp_path):
    path, phone = tmp_path / "call.pcap", ("192.0.2.9", 5062)
    made = PacketCapture(path, Said(), is_tap=False)
    assert p2psip.net.tap.Tapping.current is not made
    by_udp = Flow("UDP", phone, ("192.0.2.1", 5060))
    by_tls = Flow("TLS", phone, ("192.0.2.1", 5061))
    made.message(b"one", by_udp, 1.0, is_sent=False)
    made.message(b"two", by_udp, 2.0, is_sent=True)
    made.message(b"three", by_tls, 3.0, is_sent=True)
    made.watched(("127.0.0.1", 4000), ("0.0.0.0", 6000), b"sound")
    made.close()
    assert made.is_over and packets(path)[:2] == [
        ("192.0.2.9:5062", "192.0.2.1:5060", b"one"),
        ("192.0.2.1:5060", "192.0.2.9:5062", b"two"),
    ]
    assert packets(path)[-1] == ("127.0.0.1:4000", "127.0.0.1:6000", b"sound")
    assert b"three" in path.read_bytes()
    assert read_capture(path.read_bytes()).packets[1].time == 1.0  # after the first


def test_a_link_to_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "a.pcap").symlink_to(tmp_path / "precious")
    with pytest.raises(ConfigError, match=r"^--capture "):
        PacketCapture(tmp_path / "a.pcap", Said())
    with pytest.raises(ConfigError, match=r"No such file"):
        PacketCapture(tmp_path / "none" / "a.pcap", Said())


def test_it_ends_at_its_limit_and_says_so_once(capture, tmp_path):
    looking = capture(limit=1000)
    for _ in range(100):
        looking.datagram(("127.0.0.1", 5), ("127.0.0.1", 6), bytes(100))
    assert 1000 <= (tmp_path / "a.pcap").stat().st_size < 1200
    said = looking._log.events
    assert said == [("capturing", ""), ("capture-stopped", "it has reached its limit")]
    exchanged("127.0.0.1", "127.0.0.1")  # sockets go on


def test_a_full_disk_ends_it_and_no_call(capture):
    looking = capture()
    looking._file.close()
    looking._file = looking._pcap._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    exchanged("127.0.0.1", "127.0.0.1")
    assert looking._log.events[-1] == ("capture-stopped", "No space left on device")


def test_without_a_capture_sockets_are_what_they_were(capture):
    capture().close()
    with udp() as plain:
        assert p2psip.net.tap.Tapping.current.datagrams(plain) is plain
        assert rtmplite.net.tap.Tapping.current.datagrams(plain) is plain
        assert p2psip.net.tap.Tapping.current.connection(plain, None) == (plain, None)
        assert rtmplite.net.tap.Tapping.current.connection(plain, None) == (plain, None)


def test_tunnels_of_many_clients_are_written_and_few_of_them_remembered(capture, monkeypatch):
    """A client may open a new connection for each request."""
    monkeypatch.setattr(packet_capture, "_MAX_CONNECTIONS", 3)
    taking = capture()
    for port in range(4000, 4020):
        far = "127.0.0.1", port
        taking.tunnelled(("127.0.0.1", 80), far, ("/idle/1/2", b"\0"), ("200 OK", b"\1"))
        assert len(taking._connections) <= 3 and list(taking._connections)[-1][1] == far
    taking.close()
    octets = taking.keys_path.with_name("a.pcap").read_bytes()
    assert octets.count(b"POST /idle/1/2 HTTP/1.1") == octets.count(b"HTTP/1.1 200 OK") == 20
