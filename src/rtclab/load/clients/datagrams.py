"""The datagrams of many sockets, read in rounds, each with the time at which the system took it.

Own design: a thousand viewers get a hundred thousand packets a second, and to wake up for each
costs more than all that is done with it.  So all sockets are read in rounds, and each by one system
call, recvmmsg of Linux.  The system notes when a datagram came, so that times and jitter are right
however late it is read; elsewhere the time is that of the reading.  Heads are kept apart from the
rest, which nobody reads of most, so that all heads of a batch are read at once.
"""

import ctypes
import errno
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import gevent
from gevent import socket

ROUND, BUSY_ROUND = 0.1, 0.02  # s between two rounds: as a rule, and where much waits in a socket
AT_ONCE: Final = 64  # datagrams of a socket in one call
MUCH: Final = AT_ONCE // 2
SHARE: Final = 20  # sockets that are read before others have a turn
HEAD: Final = 12  # octets: the fixed header of RTP
REST: Final = 2048  # octets: those of media are shorter than a frame of Ethernet
BUFFER: Final = 1 << 21  # octets that wait in a socket, if the system grants them
TIMED: Final = 35  # SO_TIMESTAMPNS of Linux
_CONTROL: Final = 32  # octets: a header of 16 and a time of 16

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
_TIME: Final = struct.Struct("=16xqq")
_MESSAGE: Final = ctypes.sizeof(_Message)
_AT: Final = _Message.octets.offset
_OCTETS: Final = struct.Struct(f"={_AT}xI{_MESSAGE - _AT - 4}x")


class Batch:
    """What waited in a socket; the buffers are the same for all sockets, until the next `read`."""

    def __init__(self) -> None:
        self.count = 0
        self._heads, self._rest = bytearray(AT_ONCE * HEAD), bytearray(AT_ONCE * REST)
        self._times, self._messages = bytearray(AT_ONCE * _CONTROL), bytearray()

    def read(self, descriptor: int) -> None:
        """Take up to `AT_ONCE` waiting datagrams.  Raises OSError if an earlier one was refused."""
        reading = socket.socket(fileno=os.dup(descriptor))
        self.count = 0
        try:
            reading.setblocking(False)
            while self.count < AT_ONCE:
                self._note(self.count, reading.recv(HEAD + REST))
                self.count += 1
        except BlockingIOError:
            pass
        finally:
            reading.close()

    def _note(self, place: int, data: bytes) -> None:
        """Keep a datagram where recvmmsg would have put it."""
        head, rest = place * HEAD, place * REST
        self._heads[head : head + HEAD] = data[:HEAD].ljust(HEAD, b"\0")
        self._rest[rest : rest + REST] = data[HEAD:].ljust(REST, b"\0")
        moment = time.time_ns()
        self._times[place * _CONTROL : (place + 1) * _CONTROL] = _TIME.pack(*divmod(moment, 10**9))
        self._messages[place * _MESSAGE : (place + 1) * _MESSAGE] = _OCTETS.pack(len(data))

    @property
    def heads(self) -> Iterator[Head]:
        """The RTP header of each datagram; one shorter than a header gives meaningless numbers."""
        return _HEAD.iter_unpack(memoryview(self._heads)[: self.count * HEAD])

    @property
    def sizes(self) -> Iterator[tuple[int]]:
        """How many octets each has."""
        return _OCTETS.iter_unpack(memoryview(self._messages)[: self.count * _MESSAGE])

    @property
    def times(self) -> Iterator[tuple[int, int]]:
        """When each came: seconds and nanoseconds of Unix time."""
        return _TIME.iter_unpack(memoryview(self._times)[: self.count * _CONTROL])

    def datagram(self, place: int, octets: int) -> bytes:
        """The whole of one."""
        head, rest = place * HEAD, place * REST
        first = self._heads[head : head + min(octets, HEAD)]
        return bytes(first + self._rest[rest : rest + max(0, octets - HEAD)])

    @property
    def datagrams(self) -> list[tuple[bytes, float]]:
        """All of them, each with the time in Unix seconds at which it came."""
        return [
            (self.datagram(place, octets), seconds + nanoseconds / 1e9)
            for place, ((octets,), (seconds, nanoseconds)) in enumerate(
                zip(self.sizes, self.times, strict=True)
            )
        ]


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
                _Message(None, 0, first + place * pair, 2, times + place * _CONTROL, _CONTROL)
                for place in range(AT_ONCE)
            )
        )
        self._fresh = bytes(messages)
        self._messages[:] = self._fresh
        self._at = _address(self._messages)

    def read(self, descriptor: int) -> None:
        used = self.count * _MESSAGE
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
