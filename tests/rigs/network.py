"""A loopback network for each process that runs tests, and the way back for what has to be installed."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

_CLONE_NEWNET = 0x40000000  # sched.h
_outer = -1


def enter_own_network() -> None:
    """Move this thread, and what it starts from now on, into a network of its own. Linux, as root.

    Raises:
        OSError: It is not permitted.
    """
    global _outer
    outer = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    _check(ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET), "unshare")
    _outer = outer
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0x1)  # struct ifreq: IFF_UP, netdevice(7)
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS
    # jupyter_client takes the ports of kernels from here, ipykernel those of its pipes from 49152 on. In one range, a kernel's
    # pipe now and then takes a port that was chosen for another kernel, or for itself.
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("16384 49151")


def enter_outer_network() -> None:
    """In a child before its program: back to the machine's network. Does nothing where this process never left it."""
    if _outer >= 0:
        _check(ctypes.CDLL(None, use_errno=True).setns(_outer, _CLONE_NEWNET), "setns")


def _check(answer: int, call: str) -> None:
    if answer != 0:
        raise OSError(ctypes.get_errno(), call)
