"""SIGHUP where no terminal is: the users are read again, and nobody is sent away."""

import signal
import sys

from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import Gateway
from support.peers.nursery import finished
from support.peers.process import wait_until
from support.peers.rtmp_servers import Server

from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient


def publishes(url, user, name):
    """Publish as a user, if that is allowed; the client, or None."""
    try:
        client = RtmpClient.connect(f"{url}?user={user}&password={PASSWORD}")
    except RemoteError as error:
        assert "Wrong user or password." in error.description
        return None
    client.create_stream().publish(name)
    return client


def registers(gateway, user):
    """Whether a phone may register there."""
    words = ["register", f"{user}@{gateway.sip}", "--password", PASSWORD, "--seconds", "0.1"]
    return finished([sys.executable, "-m", "p2psip", *words], timeout=30).returncode == 0


def hang_up(server, words):
    """Send the signal, and wait until it has been heard."""
    before = server.output.count(words)
    server.child.send_signal(signal.SIGHUP)
    wait_until(lambda: server.output.count(words) > before, what=words, log=server.log)


def test_the_gateway_reads_its_users_again(tmp_path):
    """For phones, streams of `live` and who calls; all or, of a file with a mistake, nothing."""
    file = users_file(tmp_path, "alice")
    with Gateway(tmp_path / "gateway", "--users", file) as gateway:
        url = gateway.url("live")
        alice = publishes(url, "alice", "a")
        assert alice is not None and publishes(url, "bob", "b") is None
        assert registers(gateway, "alice") and not registers(gateway, "bob")
        users_file(tmp_path, "bob")
        hang_up(gateway, " reloaded option=users\n")
        assert publishes(url, "alice", "c") is None and not registers(gateway, "alice")
        bob = publishes(url, "bob", "b")
        assert bob is not None and registers(gateway, "bob")
        with open(file, "a") as users:
            users.write("\nmallory\n")
        hang_up(gateway, " not-reloaded option=users ")
        [told] = [line for line in gateway.output.splitlines() if "not-reloaded" in line]
        assert "line 3 is not user:realm:HA1" in told and "mallory" not in told
        assert publishes(url, "bob", "d") is not None and registers(gateway, "bob")
        alice.create_stream().publish("e")  # she has proven who she is
        assert gateway.status()["streams"] == 4


def test_without_files_there_is_nothing_to_read(tmp_path):
    """And nothing to end."""
    with Gateway(tmp_path / "gateway") as gateway:
        gateway.child.send_signal(signal.SIGHUP)
        gateway.child.send_signal(signal.SIGUSR1)
        gateway.wait_until(lambda: " status " in gateway.output, what="the status")
        assert "reloaded" not in gateway.output and gateway.child.poll() is None


def test_a_server_without_telephones_reads_its_users_again(tmp_path):
    """It has no line for what went well."""
    file = users_file(tmp_path, "alice")
    with Server(tmp_path / "server", "--users", file) as server:
        url = server.url("").removesuffix("/")
        alice = publishes(url, "alice", "a")
        assert alice is not None and publishes(url, "bob", "b") is None
        with open(file, "a") as users:
            users.write("\nmallory\n")
        hang_up(server, "the users stay as they were: ")
        assert f"{file}: line 3 is not USER:REALM:HA1" in server.output
        users_file(tmp_path, "bob")
        server.child.send_signal(signal.SIGHUP)
        wait_until(lambda: publishes(url, "bob", "b"), what="bob to be known", log=server.log)
        assert publishes(url, "alice", "c") is None
        alice.create_stream().publish("d")
