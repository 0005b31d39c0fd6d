"""Locks that keep a shard's file."""

from __future__ import annotations

import fcntl
import os
import threading
from typing import Dict, List


class LeaseLost(Exception):
    """The lease file is gone, or its owner removes it."""


class Lease:
    """A shared lock on a shard's lease file, until ``release`` or the end of this process.

    The kernel keeps such locks per process and drops all of a file's when any descriptor of the
    file is closed. So the leases of a process share one descriptor per file. Thread-safe. A child
    process does not inherit a lease.
    """

    _guard = threading.Lock()
    #: By path: the descriptor, and the number of leases that use it.
    _open: Dict[str, List[int]] = {}

    def __init__(self, path: str) -> None:
        """:raises LeaseLost: if the file is removed or about to be"""
        self._path = path
        self._process = os.getpid()
        self._held = True
        with Lease._guard:
            entry = Lease._open.get(path)
            if entry is None:
                Lease._open[path] = [_locked(path), 1]
            else:
                entry[1] += 1

    def release(self) -> None:
        """Gives the lease back. Does nothing if it was, or in another process."""
        if self._process != os.getpid():
            return
        with Lease._guard:
            if self._held:
                self._held = False
                entry = Lease._open[self._path]
                entry[1] -= 1
                if entry[1] == 0:
                    del Lease._open[self._path]
                    os.close(entry[0])

    @classmethod
    def _forget(cls) -> None:
        """In a new child process, whose locks these are not."""
        cls._guard = threading.Lock()
        for descriptor, _ in cls._open.values():
            os.close(descriptor)
        cls._open = {}


def _locked(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise LeaseLost(f"{path} is gone") from None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # The owner may have removed it between the two calls.
        if os.fstat(descriptor).st_nlink > 0:
            return descriptor
    except BlockingIOError:
        pass  # The owner has it while it removes the shard.
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    raise LeaseLost(f"{path} is being removed")


os.register_at_fork(after_in_child=Lease._forget)
