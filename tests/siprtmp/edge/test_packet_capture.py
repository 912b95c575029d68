"""Captures of our own sockets: who may read them, how they end, and that nothing is lost by them."""

import errno
import io
import socket

import pytest
from support.sockets import REACH  # noqa: F401
