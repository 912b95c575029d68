"""The datagrams of many sockets, read in rounds, each with the time at which the system took it.

Own design: a thousand viewers get a hundred thousand packets a second, and to wake up for each
costs more than the work on it.  So all sockets are read in rounds, each by one system call,
recvmmsg of Linux.  The system notes when a datagram came, so that times and jitter are right
however late it is read; elsewhere the time is that of the reading.  Heads are kept apart from the
rest, which is rarely read.
"""

import ctypes
import errno
import os
import struct
import sys
import time
from collections.abc import Callable
from typing import Final

import gevent
from gevent import socket

from rtclab.load.clients.line_count import (
    CONTROL,
    HEAD,
    MESSAGE,
    OCTETS_AT,
    TIME_AT,
    LineCount,
    pass_usual,
)

ROUND, BUSY_ROUND = 0.1, 0.02  # s between two rounds: as a rule, and where much waits in a socket
AT_ONCE: Final = 64  # datagrams of a socket in one call
MUCH: Final = AT_ONCE // 2
SHARE: Final = 20  # sockets that are read before others have a turn
REST: Final = 2048  # octets: those of media are shorter than a frame of Ethernet
BUFFER: Final = 1 << 21  # octets that wait in a socket, if the system grants them
TIMED: Final = 35  # SO_TIMESTAMPNS of Linux

Head = tuple[int, int, int, int, int]
"""The first octet, marker and payload type, sequence, timestamp and SSRC, if it is RTP."""

Take = Callable[["Batch"], None]


class _Piece(ctypes.Structure):
    """The struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("octets", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """The struct mmsghdr of Linux, with its msghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_octets", ctypes.c_uint32),
        ("pieces", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_octets", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("hole", ctypes.c_uint32),  # which ends the msghdr
        ("octets", ctypes.c_uint32),
    )


_HEAD: Final = struct.Struct("!BBHII")
_TIME: Final = struct.Struct(f"={TIME_AT}xqq")
_OCTETS: Final = struct.Struct(f"={OCTETS_AT}xI{MESSAGE - OCTETS_AT - 4}x")


class Batch:
    """What waited in a socket; the buffers are the same for all sockets, until the next `read`."""

    def __init__(self) -> None:
        self.count = 0
        self._heads, self._rest = bytearray(AT_ONCE * HEAD), bytearray(AT_ONCE * REST)
        self._times = bytearray(AT_ONCE * CONTROL)
        self._messages = bytearray(AT_ONCE * MESSAGE)

    def read(self, descriptor: int) -> None:
        """Take up to `AT_ONCE` waiting datagrams.  Raises OSError if an earlier one was refused."""
        reading = socket.socket(fileno=os.dup(descriptor))
        self.count = 0
        try:
            reading.setblocking(False)
            while self.count < AT_ONCE:
                self.keep(self.count, reading.recv(HEAD + REST), time.time_ns())
                self.count += 1
        except BlockingIOError:
            pass
        finally:
            reading.close()

    def keep(self, place: int, data: bytes, moment: int) -> None:
        """Keep a datagram where recvmmsg would have put it; it came at `moment`, in ns."""
        head, rest = place * HEAD, place * REST
        self._heads[head : head + HEAD] = data[:HEAD].ljust(HEAD, b"\0")
        self._rest[rest : rest + REST] = data[HEAD:].ljust(REST, b"\0")
        self._times[place * CONTROL : (place + 1) * CONTROL] = _TIME.pack(*divmod(moment, 10**9))
        self._messages[place * MESSAGE : (place + 1) * MESSAGE] = _OCTETS.pack(len(data))

    def pass_usual(
        self, start: int, lines: "list[LineCount | None]", offset: float
    ) -> tuple[int, int, float]:
        """Have the usual packets from `start` on counted: see `line_count`."""
        buffers = self._heads, self._messages, self._times
        return pass_usual(*buffers, start, self.count, lines, offset)

    def packet(self, place: int) -> tuple[Head, int, float]:
        """The header of one, its octets, and when it came, in Unix time."""
        (octets,) = _OCTETS.unpack_from(self._messages, place * MESSAGE)
        seconds, nanoseconds = _TIME.unpack_from(self._times, place * CONTROL)
        head: Head = _HEAD.unpack_from(self._heads, place * HEAD)
        return head, octets, seconds + nanoseconds * 1e-9

    def datagram(self, place: int, octets: int) -> bytes:
        """The whole of one."""
        head, rest = place * HEAD, place * REST
        first = self._heads[head : head + min(octets, HEAD)]
        return bytes(first + self._rest[rest : rest + max(0, octets - HEAD)])

    @property
    def datagrams(self) -> list[tuple[bytes, float]]:
        """All of them, each with the time in Unix seconds at which it came."""
        found = []
        for place in range(self.count):
            _, octets, at = self.packet(place)
            found.append((self.datagram(place, octets), at))
        return found


class QuickBatch(Batch):
    """The same by recvmmsg, one system call for all."""

    def __init__(self) -> None:
        super().__init__()
        self._call = ctypes.CDLL(None, use_errno=True).recvmmsg
        terms = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p
        self._call.argtypes = terms
        heads, rest, times = map(_address, (self._heads, self._rest, self._times))
        self._pieces = (_Piece * (2 * AT_ONCE))()
        for place in range(AT_ONCE):
            self._pieces[2 * place] = _Piece(heads + place * HEAD, HEAD)
            self._pieces[2 * place + 1] = _Piece(rest + place * REST, REST)
        first, pair = ctypes.addressof(self._pieces), 2 * ctypes.sizeof(_Piece)
        messages = (_Message * AT_ONCE)(
            *(
                _Message(None, 0, first + place * pair, 2, times + place * CONTROL, CONTROL)
                for place in range(AT_ONCE)
            )
        )
        self._fresh = bytes(messages)
        self._messages[:] = self._fresh
        self._at = _address(self._messages)

    def read(self, descriptor: int) -> None:
        used = self.count * MESSAGE
        self._messages[:used] = self._fresh[:used]
        self.count = 0
        found = self._call(descriptor, self._at, AT_ONCE, socket.MSG_DONTWAIT, None)
        if found >= 0:
            self.count = found
        elif (error := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
            raise OSError(error, os.strerror(error))


def _address(buffer: bytearray) -> int:
    """Where a buffer is, which stays there as it keeps its size."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def best_batch() -> Batch:
    """The quick one where the system has it; its structures are laid out for 64 bits."""
    fits = sys.platform == "linux" and sys.maxsize > 1 << 32
    return QuickBatch() if fits else Batch()


def opened(own: str) -> socket.socket:
    """A socket for one flow, at any address of the family of `own`, which notes times if it can."""
    family = socket.AF_INET6 if ":" in own else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    if sys.platform == "linux":
        made.setsockopt(socket.SOL_SOCKET, TIMED, 1)
    made.bind(("::" if ":" in own else "0.0.0.0", 0))  # the way to the server may be any
    return made


class Rounds:
    """All sockets of a process, read in turns by one greenlet."""

    def __init__(self) -> None:
        self._batch = best_batch()
        self._takers: dict[int, Take] = {}
        self._greenlet: gevent.Greenlet[..., None] | None = None

    def add(self, descriptor: int, take: Take) -> None:
        """Read a socket in each round from now on."""
        self._takers[descriptor] = take
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)

    def remove(self, descriptor: int) -> None:
        """Read a socket no more."""
        self._takers.pop(descriptor, None)

    def close(self) -> None:
        """End the rounds."""
        if self._greenlet is not None:
            self._greenlet.kill()

    def _run(self) -> None:
        pause = BUSY_ROUND
        while True:
            gevent.sleep(pause)
            pause = ROUND
            for at, (descriptor, take) in enumerate([*self._takers.items()], 1):
                if descriptor in self._takers and self._read(descriptor, take):
                    pause = BUSY_ROUND
                if at % SHARE == 0:
                    gevent.sleep(0)

    def _read(self, descriptor: int, take: Take) -> bool:
        """Empty a socket; whether much was in it."""
        batch = self._batch
        while True:
            try:
                batch.read(descriptor)
            except OSError:  # of an earlier datagram of ours, which nobody took
                return False
            if count := batch.count:
                take(batch)
            if count < AT_ONCE:
                return count > MUCH
