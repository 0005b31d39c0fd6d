"""Locks that keep a shard's file."""

from __future__ import annotations

import fcntl
import os
import threading
from collections import deque
from typing import Deque, Dict, List

from ._files import open_owned


class LeaseLost(Exception):
    """The lease file was deleted, or its owner removes it."""


class Lease:
    """A shared lock on a shard's lease file, until ``release`` or the end of this process.

    The kernel keeps such locks per process and drops all of a file's when any descriptor of the
    file is closed. So the leases of a process share one descriptor per file. Thread-safe. A child
    process does not inherit a lease.
    """

    _guard = threading.Lock()
    #: By path: the descriptor, and the number of leases that use it.
    _open: Dict[str, List[int]] = {}
    #: Released leases whose locks are still to be given back. See ``release``.
    _released: Deque["Lease"] = deque()

    def __init__(self, path: str) -> None:
        """
        :raises LeaseLost: if the file is removed or about to be
        :raises FeedError: if it is no regular file of this user
        """
        self._path = path
        self._process = os.getpid()
        self._held = True
        try:
            with Lease._guard:
                entry = Lease._open.get(path)
                if entry is None:
                    Lease._open[path] = [_locked(path), 1]
                else:
                    entry[1] += 1
        finally:
            Lease._unlock_released()

    def release(self) -> None:
        """Gives the lease back. Does nothing if it was, or in another process.

        The garbage collector may call this in a thread that is inside of this class. So it never
        waits for the guard: the thread that has it unlocks what was released meanwhile.
        """
        if self._process == os.getpid():
            Lease._released.append(self)
            Lease._unlock_released()

    @classmethod
    def _unlock_released(cls) -> None:
        while cls._released and cls._guard.acquire(blocking=False):
            try:
                cls._released.popleft()._unlock()
            except IndexError:
                pass  # Another thread was faster.
            finally:
                cls._guard.release()

    def _unlock(self) -> None:
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
        cls._released = deque()
        for descriptor, _ in cls._open.values():
            os.close(descriptor)
        cls._open = {}


def is_locked(path: str) -> bool:
    """Whether another process has an exclusive lock on a file, which may be missing.

    :raises FeedError: if it is no regular file of this user
    """
    try:
        descriptor = open_owned(path, os.geteuid())
    except FileNotFoundError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def _locked(path: str) -> int:
    try:
        descriptor = open_owned(path, os.geteuid())
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
