"""What the scripts that read feeds in GPU memory share: <script> <package> <libcuda.so.1> <task> ..."""
import ctypes
import sys

sys.path.insert(0, sys.argv[1])
LIBRARY = sys.argv[2]

import numpy as np
import weft

DRIVER = weft._cuda.Driver(LIBRARY)
PORTABLE = 1
NON_BLOCKING = 1


def call(name, *arguments):
    result = getattr(DRIVER._library, name)(*arguments)
    assert result == 0, f"{name} returned {result}"


def on_host(array, gpu):
    """Copies what has the array interface into a numpy array."""
    interface = array.__cuda_array_interface__
    address, read_only = interface["data"]
    assert interface["version"] == 3 and not read_only and "strides" not in interface
    found = np.zeros(interface["shape"], interface["typestr"])
    if found.nbytes == 0:
        return found
    host, stream, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(found.nbytes)
    with DRIVER.using(DRIVER.retain(gpu)):
        call("cuMemHostAlloc", ctypes.byref(host), size, PORTABLE)
        call("cuStreamCreateWithPriority", ctypes.byref(stream), NON_BLOCKING, 0)
        call("cuMemcpyDtoHAsync_v2", host, ctypes.c_void_p(address), size, stream)
        call("cuStreamSynchronize", stream)
        call("cuStreamDestroy_v2", stream)
        found[...] = np.frombuffer(ctypes.string_at(host, found.nbytes), found.dtype).reshape(found.shape)
        call("cuMemFreeHost", host)
    DRIVER.release(gpu)
    return found


def noted(function):
    """What the double of the driver notes in this process; nothing on a real one."""
    if not hasattr(DRIVER._library, function):
        return ""
    text = ctypes.create_string_buffer(16384)
    getattr(DRIVER._library, function)(text, len(text))
    return text.value.decode()


def all_noted():
    """What the double notes once everything that has ended is unmapped."""
    assert weft._cuda.Mapping.drain(30)
    return noted("cudaDoubleViolations") + noted("cudaDoubleLive")


class OfLibrary(weft.GpuFeed):
    """For ``weft.torch.FeedDataset``, which takes the usual library."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, library=LIBRARY, **options)


def open_feed(name, rank, **options):
    return weft.GpuFeed(name, int(rank), library=LIBRARY, **{"timeout": 30, **options})


def error(attempt):
    try:
        attempt()
        return "none"
    except (weft.FeedError, ValueError, TypeError, KeyError, IndexError) as e:
        return f"{type(e).__name__}: {e}"


def pytorch():
    """PyTorch, or a stand-in of it where the driver is a double."""
    if hasattr(DRIVER._library, "cudaDoubleLive"):
        import torch_double

        torch_double.install(on_host)
    import torch

    return torch
