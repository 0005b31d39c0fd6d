"""Memory of another process's GPU, mapped by the CUDA driver, which is called by ctypes."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import traceback
import uuid
import weakref
from contextlib import contextmanager
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import partial
from queue import SimpleQueue
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from ._files import FeedError
from ._lease import Lease

_LAZY_PEER_ACCESS = 1
#: Of the ways in which CUDA protects recordings of graphs from calls on other threads: none.
_RELAXED = 2
#: What to do, by the code of an error.
_ADVICE = {
    3: "a process that was forked after the use of CUDA cannot use it",
    100: "this host has no GPU, or CUDA_VISIBLE_DEVICES hides all of them",
}
#: How long a thread that drops the last reference to memory waits for work that still reads it.
_SECONDS_AT_END = 1.0
#: The same for the end of the interpreter, which unmaps the rest.
_SECONDS_AT_EXIT = 10.0
#: How long the begin of a recording waits for the work that a feed's end waits for.
_SECONDS_TO_HOLD = 60.0
#: Of a handle of memory.
HANDLE_BYTES = 64


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", c_char * HANDLE_BYTES)]


_SIGNATURES: Dict[str, Tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuGetErrorName": (c_int, c_void_p),
    "cuDeviceGetCount": (c_void_p,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetUuid_v2": (c_void_p, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxGetCurrent": (c_void_p,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuThreadExchangeStreamCaptureMode": (c_void_p,),
    "cuIpcOpenMemHandle_v2": (c_void_p, _IpcHandle, c_uint),
    "cuIpcCloseMemHandle": (c_uint64,),
    "cuMemGetAddressRange_v2": (c_void_p, c_void_p, c_uint64),
}


class CudaError(FeedError):
    """The driver refused a call."""


class NotMapped(CudaError):
    """The memory of a handle is not there."""


class Driver:
    """The driver's functions. Its GPUs have the numbers that they have in torch and cupy."""

    def __init__(self, library: str) -> None:
        """
        :raises FeedError: if there is no driver that works
        """
        try:
            self._library = ctypes.CDLL(library)
            for name, types in _SIGNATURES.items():
                getattr(self._library, name).argtypes = types
        except (OSError, AttributeError) as e:
            raise FeedError(f"the CUDA driver cannot be loaded: {e}") from e
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            text = c_char_p()
            self._library.cuGetErrorName(code, byref(text))
            error = f"{name}: error {code}, {(text.value or b'unknown').decode()}"
            raise CudaError(f"{error}; {_ADVICE[code]}" if code in _ADVICE else error)

    def ordinal(self, gpu: str) -> int:
        """The number of the GPU with this uuid.

        :raises FeedError: if this process does not see it
        """
        count, device, found = c_int(), c_int(), ctypes.create_string_buffer(16)
        self._call("cuDeviceGetCount", byref(count))
        seen = []
        for ordinal in range(count.value):
            self._call("cuDeviceGet", byref(device), ordinal)
            self._call("cuDeviceGetUuid_v2", found, device)
            seen.append(uuid.UUID(bytes=found.raw))
        if uuid.UUID(gpu) not in seen:
            names = ", ".join(f"GPU-{each}" for each in seen) or "none"
            raise FeedError(
                f"the feed is on GPU-{gpu}, and this process sees {names}:"
                " CUDA_VISIBLE_DEVICES has to include it"
            )
        return seen.index(uuid.UUID(gpu))

    def retain(self, ordinal: int) -> c_void_p:
        """The primary context of a GPU, which torch and cupy also use."""
        device, context = c_int(), c_void_p()
        self._call("cuDeviceGet", byref(device), ordinal)
        self._call("cuDevicePrimaryCtxRetain", byref(context), device)
        return context

    def release(self, ordinal: int) -> None:
        device = c_int()
        self._call("cuDeviceGet", byref(device), ordinal)
        self._call("cuDevicePrimaryCtxRelease_v2", device)

    @contextmanager
    def using(self, context: c_void_p) -> Iterator[None]:
        """Makes a context the thread's current one, and restores the one before."""
        before = c_void_p()
        self._call("cuCtxGetCurrent", byref(before))
        self._call("cuCtxSetCurrent", context)
        try:
            yield
        finally:
            self._call("cuCtxSetCurrent", before)

    @contextmanager
    def beside_recordings(self) -> Iterator[None]:
        """Allows calls that may not be in a graph while another thread records one.

        A wait for all work is not among them.
        """
        mode = c_int(_RELAXED)
        self._call("cuThreadExchangeStreamCaptureMode", byref(mode))
        try:
            yield
        finally:
            self._call("cuThreadExchangeStreamCaptureMode", byref(mode))

    def map(self, handle: bytes) -> Tuple[int, int]:
        """Maps memory in the current context: its address, and its size."""
        start, base, size = c_uint64(), c_uint64(), c_size_t()
        struct = _IpcHandle.from_buffer_copy(handle)
        try:
            self._call("cuIpcOpenMemHandle_v2", byref(start), struct, _LAZY_PEER_ACCESS)
        except CudaError as e:
            raise NotMapped(str(e)) from None
        try:
            self._call("cuMemGetAddressRange_v2", byref(base), byref(size), start)
        except BaseException:
            self._call("cuIpcCloseMemHandle", start)
            raise
        return start.value, size.value

    def await_work(self) -> None:
        """Waits for the work of the current context."""
        self._call("cuCtxSynchronize")

    def unmap(self, start: int) -> None:
        """Unmaps memory that no work reads."""
        self._call("cuIpcCloseMemHandle", c_uint64(start))


class _Memory:
    """What a handle refers to. All mappings of a process share an address: the driver counts."""

    def __init__(self, driver: Driver, ordinal: int, handle: bytes) -> None:
        self._driver = driver
        self.ordinal = ordinal
        with driver.beside_recordings():
            self._context = driver.retain(ordinal)
            try:
                with driver.using(self._context):
                    self.start, self.size = driver.map(handle)
            except BaseException:
                driver.release(ordinal)
                raise

    def unmap(self) -> None:
        """Waits for the GPU's work, which may still read it."""
        with self._driver.beside_recordings():
            with self._driver.using(self._context):
                self._driver.await_work()
                self._driver.unmap(self.start)
            self._driver.release(self.ordinal)


class _Worker:
    """Makes calls in a thread of its own, in their order, while nobody holds it."""

    def __init__(self) -> None:
        self._calls: "SimpleQueue[Callable[[], object]]" = SimpleQueue()
        self._free = threading.Condition()
        self._holders = 0
        self._calling = False
        threading.Thread(target=self._run, name="weft-unmap", daemon=True).start()

    def _run(self) -> None:
        while True:
            call = self._calls.get()
            with self._free:
                self._free.wait_for(lambda: self._holders == 0)
                self._calling = True
            try:
                call()
            except Exception:
                traceback.print_exc()  # Later calls are of other feeds.
            with self._free:
                self._calling = False
                self._free.notify_all()

    def hold(self, seconds: float) -> bool:
        """Waits for the end of the present call. Returns whether there is none until ``let_go``."""
        with self._free:
            self._holders += 1
            idle = False
            try:
                idle = self._free.wait_for(lambda: not self._calling, seconds)
            finally:
                if not idle:
                    self._let_go()  # Also if Ctrl-C ends the wait.
            return idle

    def let_go(self) -> None:
        with self._free:
            self._let_go()

    def _let_go(self) -> None:
        self._holders -= 1
        self._free.notify_all()

    def add(self, call: Callable[[], object]) -> None:
        """Never waits, also if the garbage collector calls this inside of this class."""
        self._calls.put(call)

    def drain(self, seconds: float) -> bool:
        """Waits for the calls so far. Returns whether they have ended in time.

        Takes no lock, as ``add``. It does not wait if somebody holds this.
        """
        if self._holders > 0:
            return False
        done = threading.Event()
        self._calls.put(done.set)
        return done.wait(seconds)


class Mapping:
    """Keeps a shard's memory mapped, and its lease, for as long as it is referenced.

    Afterwards a thread of this class waits for the work of the GPU, unmaps the memory, and only
    then gives the lease back. Thread-safe. No lock is held over a call of the driver, which may
    hang.
    """

    _guard = threading.Lock()
    _drivers: Dict[str, Driver] = {}
    #: Of all mappings in use.
    _live: "weakref.WeakSet[Mapping]" = weakref.WeakSet()
    _worker: Optional[_Worker] = None
    _forked = False

    def __init__(self, library: str, gpu: str, handle: bytes, lease: Lease) -> None:
        """
        :param handle: HANDLE_BYTES of the driver
        :param lease: this object's, unless there is an error
        :raises NotMapped: if the memory cannot be mapped, as after the end of its process
        :raises FeedError: if no driver works, or this process does not see the GPU
        """
        if Mapping._forked:
            raise FeedError(
                "this process was forked from one that uses CUDA, and CUDA does not work in it:"
                " start it by spawn, or open the feed only there"
            )
        self._process = os.getpid()
        worker = Mapping._started()
        driver = Mapping._loaded(library)
        memory = _Memory(driver, driver.ordinal(gpu), handle)
        self.ordinal = memory.ordinal
        self.start = memory.start
        self.size = memory.size
        end = partial(Mapping._unmap, memory, lease)
        self._end = weakref.finalize(self, Mapping._later, worker, self._process, end)
        Mapping._live.add(self)

    def require_own_process(self) -> None:
        """
        :raises ValueError: in a forked process, where the addresses mean nothing
        """
        if self._process != os.getpid():
            raise ValueError("the feed was opened before this process was forked: open it here")

    @classmethod
    def _started(cls) -> _Worker:
        with cls._guard:
            if cls._worker is None:
                cls._worker = _Worker()
            return cls._worker

    @classmethod
    def _loaded(cls, library: str) -> Driver:
        """The driver, which two threads may load at the same time."""
        if library not in cls._drivers:
            cls._drivers.setdefault(library, Driver(library))
        return cls._drivers[library]

    @staticmethod
    def _later(worker: _Worker, process: int, end: Callable[[], object]) -> None:
        """Does nothing in a forked process, whose mappings these are not.

        The wait is short, because the garbage collector may call this in a thread that the other
        one waits for. It is there because a program may next record a CUDA graph, which a wait for
        all work would break. See ``recording``.
        """
        if process == os.getpid():
            worker.add(end)
            worker.drain(_SECONDS_AT_END)

    @staticmethod
    def _unmap(memory: _Memory, lease: Lease) -> None:
        try:
            memory.unmap()
        except CudaError:
            # As after a failed kernel. What may still be read keeps its lease until this process
            # ends.
            return
        lease.release()

    @classmethod
    def drain(cls, seconds: float) -> bool:
        """Waits until ended mappings are unmapped. Returns whether they are."""
        return cls._worker is None or cls._worker.drain(seconds)

    @classmethod
    def _end_all(cls) -> None:
        """At the end of the interpreter, which must not wait forever for a kernel that hangs."""
        for mapping in list(cls._live):
            mapping._end()
        cls.drain(_SECONDS_AT_EXIT)

    @classmethod
    def _forget(cls) -> None:
        """In a new child process, where the driver does not work if the parent has used it."""
        cls._guard = threading.Lock()
        cls._forked = cls._forked or bool(cls._drivers)
        cls._drivers = {}
        cls._live, cls._worker = weakref.WeakSet(), None


@contextmanager
def recording() -> Iterator[None]:
    """For the time in which a thread of this process records a CUDA graph.

    The end of a feed in GPU memory, which is that of its last array, waits for the GPU's work. CUDA
    breaks a recording if any thread does so meanwhile. Within this context such waits are put off::

        with weft.recording(), torch.cuda.graph(graph):
            step()

    Feeds can be opened and ended in any thread. The memory of those that have ended is given back
    behind this context.

    :raises FeedError: if the GPU still works for a feed that has ended, and does not stop
    """
    process, worker = os.getpid(), Mapping._started()
    if not worker.hold(_SECONDS_TO_HOLD):
        raise FeedError(
            f"the GPU still has work after {_SECONDS_TO_HOLD:g} s, and a feed that has ended waits"
            " for its end: record later"
        )
    try:
        yield
    finally:
        if process == os.getpid():
            worker.let_go()


os.register_at_fork(after_in_child=Mapping._forget)
atexit.register(Mapping._end_all)
