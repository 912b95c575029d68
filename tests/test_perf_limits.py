"""What breaks first: the number of calls grows until a row is void, and the cause is told."""

from pathlib import Path

import pytest

PERF = Path(__file__).resolve().parent.parent / "perf"


@pytest.fixture(autouse=True)
def perf_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(PERF))


def test_the_cause_is_what_was_full():
    from bench_limits import Window, cause

    good, late = Window(0.0, 5.0, 0.2), Window(0.0, 50.0, 0.2)
    assert good.is_good and not late.is_good
    assert cause(late, late) == "generator"  # what the reference cannot do either
    assert cause(late, good) == cause(late, None) == "delay"
    assert cause(Window(0.1, 5.0, 0.95, waiting=0.2), good) == "machine"
    assert cause(Window(0.1, 5.0, 0.2), good) == "loss"
    assert cause(Window(0.1, 5.0, 0.95), good) == "CPU"
    assert cause(Window(0.1, 5.0, 0.95, files=990, limit=1000), good) == "descriptors"
    assert cause(Window(100.0, 0.0, 0.0, fault="ports"), None) == "ports"


def test_the_number_grows_until_it_breaks():
    import bench_limits

    def reference(count):
        return bench_limits.Window(0.0, 1.0, 0.1)

    def ours(count):
        return bench_limits.Window(0.0 if count < 100 else 2.0, 5.0, count / 100)

    found = list(bench_limits.climb("plain", (1, 50, 100, 200), ours, ("relay", reference)))
    assert [(row.subject, row.count) for row in found] == [
        *((subject, count) for count in (1, 50, 100) for subject in ("relay", "siprtmp")),
        ("siprtmp", 100),
    ]
    assert found[-1].load == "plain: CPU" and found[-1].void and not found[3].void
    assert found[3].figures["ratio"] == pytest.approx(5.0)


def test_a_call_is_counted_with_its_descriptors(monkeypatch):
    import bench_limits
    from bench_calls import SPEEX_8K
    from cpu import two_cores
    from gateway import Gateway

    monkeypatch.setattr(bench_limits, "WARM_UP", 0.1)
    found = bench_limits.calls(
        lambda: Gateway(two_cores()[0]), lambda server: server.call_legs(2, SPEEX_8K), 0.3
    )
    assert not found.fault and found.share > 0 and found.megabytes > 10
    assert 10 < found.files < found.limit
