"""A program that speaks the protocol, one line per case on standard input and output.

Own design: the program is started when it is first asked, and again after it has ended, so that a
crash is an answer about one case.
"""

import os
import select
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Final, Self

from rtclab.command_line.arguments import ConfigError
from rtclab.oracle.compare import Answer, ProtocolError, parse_answer

MAX_LINE: Final = 16 * 1024 * 1024  # octets of one answer
FAREWELL: Final = 2.0  # s, for the program to end when its input has ended


class Program:
    """A command, and its process as long as that answers.  `timeout` is in seconds per case."""

    def __init__(self, words: Sequence[str], timeout: float = 10.0) -> None:
        self.words, self.timeout = list(words), timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._held = b""
        self._has_answered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def ask(self, line: str) -> Answer:
        """Send one line, and give the answer to it.

        Raises ConfigError where the command cannot be started, or has ended or kept silent before
        its first answer, and ProtocolError for an answer that is none.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode("ascii") + b"\n")
            process.stdin.flush()
            answer = self._read(process)
        except BrokenPipeError:
            answer = b""
        except TimeoutError:
            self._stop(0)
            return self._gone(f"gave no answer within {self.timeout:g} s")
        if not answer:
            self._stop()
            return self._gone(f"ended with status {process.returncode}")
        self._has_answered = True
        try:
            return parse_answer(answer.decode("utf-8", "replace"))
        except ProtocolError as error:
            raise ProtocolError(f"{self.words[0]}: {error}") from None

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            self._process = subprocess.Popen(
                self.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,  # Ctrl-C is for us, who end the program
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"cannot run {self.words[0]}: {reason}") from None
        self._held = b""
        return self._process

    def _read(self, process: subprocess.Popen[bytes]) -> bytes:
        """Give the next line, b"" at the end.  Raises TimeoutError."""
        assert process.stdout is not None
        pipe, deadline = process.stdout.fileno(), monotonic() + self.timeout
        pieces = [self._held]
        while b"\n" not in pieces[-1]:
            if not select.select([pipe], [], [], max(0.0, deadline - monotonic()))[0]:
                raise TimeoutError
            piece = os.read(pipe, 1 << 16)
            pieces.append(piece)
            if not piece or sum(map(len, pieces)) > MAX_LINE:
                return b""
        line, _, self._held = b"".join(pieces).partition(b"\n")
        return line + b"\n"

    def _gone(self, what: str) -> Answer:
        if not self._has_answered:
            raise ConfigError(f"{self.words[0]} {what}, before it answered anything")
        return Answer("gone", f"the program {what}")

    def _stop(self, patience: float = FAREWELL) -> None:
        """End the input, and the process where that does not end it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
