"""Programs that speak the protocol: those that crash, hang, babble, or do not exist."""

import sys

import pytest

from rtclab.command_line.arguments import ConfigError
from rtclab.oracle.compare import Answer, ProtocolError, parse_answer
from rtclab.oracle.program import Program

PATIENCE = 20.0  # s


def python(code, timeout=PATIENCE):
    """A program that does `code` for each `line`."""
    loop = f"import os, sys, time\nfor line in sys.stdin:\n {code}\n sys.stdout.flush()"
    return Program([sys.executable, "-c", loop], timeout)


def test_one_process_answers_all_lines():
    with python("print('value', os.getpid())") as program:
        assert program.ask("decode 00") == program.ask("decode 01")


def test_a_program_that_ends_is_started_again():
    with python("print('skip', line.strip()) if 'good' in line else os._exit(3)") as program:
        assert program.ask("good") == Answer("skip", "good")
        assert program.ask("bad") == Answer("gone", "the program ended with status 3")
        assert program.ask("good") == Answer("skip", "good")


def test_a_program_that_hangs_is_ended():
    with python("print('skip') if 'good' in line else time.sleep(1000)") as program:
        assert program.ask("good") == Answer("skip")
        program.timeout = 0.1
        assert program.ask("bad") == Answer("gone", "the program gave no answer within 0.1 s")


def test_a_program_that_never_answers_cannot_be_compared():
    with (
        python("os._exit(4)") as program,
        pytest.raises(ConfigError, match="ended with status 4, before"),
    ):
        program.ask("decode 00")
    with (
        python("time.sleep(1000)", 0.1) as program,
        pytest.raises(ConfigError, match="no answer within"),
    ):
        program.ask("decode 00")


def test_a_program_that_does_not_exist_cannot_be_started():
    with Program(["/nowhere/at-all"]) as program, pytest.raises(ConfigError, match="No such file"):
        program.ask("decode 00")


@pytest.mark.parametrize("line", ["hello", "value", "value {", "", "values 1"])
def test_what_is_no_answer_is_named(line):
    with pytest.raises(ProtocolError):
        parse_answer(line)


def test_a_long_answer_is_read_whole():
    with python("print('error', 'x' * 1_000_000)") as program:
        assert len(program.ask("decode 00").content) == 1_000_000
