"""The supervisor, where the system refuses it something: the rest is in interop/streams."""

import errno
import os
import signal

import pytest

from siprtmp.edge.workers.place import close_places
from siprtmp.edge.workers.supervisor import Supervisor
from siprtmp.settings.table import ListenerSettings

NOTHING = ListenerSettings(rtmp=None, rtmfp=None, sip=(), http=None)


@pytest.fixture
def supervisor():
    made = Supervisor(NOTHING, 2, 0.0, lambda *place: 0)
    yield made
    close_places(made._places)
    for each in (made._life, made._held, made._woken, made._waking):
        os.close(each)


def descriptors():
    return {*os.listdir("/proc/self/fd")}


@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_a_worker_that_cannot_be_started_is_tried_again(supervisor, monkeypatch, caplog, call):
    """Too many processes for a moment cost the other workers nothing."""

    def refuse():
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, call, refuse)
    supervisor._is_ready, worker = True, supervisor._workers[0]
    before, masked = descriptors(), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for wait in (0.4, 0.8):
        assert supervisor._start(worker) is None
        assert worker.pid == 0 and worker.again_at is not None and worker.wait == wait
    assert descriptors() == before and signal.pthread_sigmask(signal.SIG_BLOCK, ()) == masked
    assert caplog.text.count("worker-died") == 2
