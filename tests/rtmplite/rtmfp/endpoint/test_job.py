"""Slow work of a startup."""

import pytest

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.endpoint.initiator import Job


def test_a_job_hands_its_result_over():
    """Own design: work in a thread, what follows where machines are called."""
    heard = []
    job = Job(lambda: 42, lambda result, now: heard.append((result, now)))
    job.run()
    assert heard == []
    job.finish(3.0)
    assert heard == [(42, 3.0)]


def refuse():
    raise RemoteError("no")


def crash():
    raise ValueError("a bug")


def test_a_job_that_fails_has_a_result_too():
    """Own design: whatever happens to it, the machines go on."""
    heard = []
    for work in (refuse, crash, None):
        job = Job(work, lambda result, now: heard.append(str(result)))
        if work is crash:
            with pytest.raises(ValueError, match="a bug"):
                job.run()
        elif work is not None:
            job.run()
        job.finish(0.0)
    assert "no" in heard[0]
    assert "did not end" in heard[1]
    assert "did not end" in heard[2]
