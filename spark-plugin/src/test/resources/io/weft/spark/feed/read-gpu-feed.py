"""Maps a feed's batches in GPU memory, with only the driver's library, and compares them with numpy.

python3 read-gpu-feed.py <libcuda.so.1> <manifest>

Prints the rows that it read, then holds the leases until the end of its input.
"""
import ctypes
import fcntl
import json
import os
import sys
import uuid

import numpy

LAZY_PEER_ACCESS = 1
NON_BLOCKING = 1
NOT_READY = 600


class IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


class Driver:
    """Calls functions of libcuda and checks their results."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        assert result == 0, f"{name} returned {result}"

    def use(self, wanted):
        """Makes the GPU with this uuid the current one."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for ordinal in range(count.value):
            device, found = ctypes.c_int(), ctypes.create_string_buffer(16)
            self.call("cuDeviceGet", ctypes.byref(device), ordinal)
            self.call("cuDeviceGetUuid_v2", found, device)
            if uuid.UUID(bytes=found.raw) == uuid.UUID(wanted):
                context = ctypes.c_void_p()
                self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
                self.call("cuCtxSetCurrent", context)
                return
        raise AssertionError(f"this process does not see GPU {wanted}")

    def map(self, handle):
        start = ctypes.c_void_p()
        struct = IpcHandle.from_buffer_copy(bytes.fromhex(handle))
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(start), struct, LAZY_PEER_ACCESS)
        return start

    def read(self, address, size):
        """Copies device memory to the host."""
        host, stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(size), 0)
        self.call("cuStreamCreateWithPriority", ctypes.byref(stream), NON_BLOCKING, 0)
        self.call("cuMemcpyDtoHAsync_v2", host, ctypes.c_void_p(address), ctypes.c_size_t(size), stream)
        while self.library.cuStreamQuery(stream) == NOT_READY:
            pass
        self.call("cuStreamDestroy_v2", stream)
        data = ctypes.string_at(host, size)
        self.call("cuMemFreeHost", host)
        return data


def tensors(manifest, data, batch, rows):
    """The tensors of a batch, by name, in the copied bytes of a shard."""
    found = {}
    for name, tensor in manifest["tensors"].items():
        shape = [rows] + tensor["shape"]
        at = batch * manifest["batchBytes"] + tensor["offset"]
        array = numpy.frombuffer(data, tensor["dtype"], int(numpy.prod(shape)), at)
        found[name] = array.reshape(shape)
    return found


def main():
    driver = Driver(sys.argv[1])
    manifest = json.load(open(sys.argv[2]))
    result = {"ids": [], "batches": 0, "wrong": 0}
    leases, mapped = [], []
    for shard in manifest["shards"]:
        lease = open(shard["lease"])
        fcntl.lockf(lease, fcntl.LOCK_SH)
        if os.fstat(lease.fileno()).st_nlink == 0:
            sys.exit(f"{shard['lease']} was removed before it was locked: the feed is closed")
        leases.append(lease)
        driver.use(shard["gpu"])
        start = driver.map(shard["handle"])
        mapped.append(start)
        data = driver.read(start.value + shard["offset"], shard["bytes"])
        left = shard["rows"]
        for batch in range(shard["batches"]):
            rows = min(left, manifest["batchRows"])
            left -= rows
            found = tensors(manifest, data, batch, rows)
            ids = found["id"]
            expected = ids[:, None, None] + numpy.arange(6).reshape(2, 3)
            result["wrong"] += int((found["x"] != expected).sum())
            result["wrong"] += int((found["group"] != ids % 7).sum())
            result["ids"] += ids.tolist()
            result["batches"] += 1
        result["wrong"] += left
    json.dump(result, sys.stdout)
    print(flush=True)
    sys.stdin.read()
    for start in mapped:
        driver.call("cuIpcCloseMemHandle", start)
    for lease in leases:
        lease.close()


main()
