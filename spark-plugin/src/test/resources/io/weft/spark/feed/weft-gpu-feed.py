"""Reads feeds in GPU memory by the Python package: weft-gpu-feed.py <package> <libcuda.so.1> <task> ...

Prints JSON. A task with "hold" in its name prints a line when the feed is open, and goes on after
a line of input.
"""
import atexit
import ctypes
import gc
import json
import os
import sys

#: What is called at the very end, after the finalizers of the package.
AT_THE_END = []
atexit.register(lambda: [call() for call in AT_THE_END])

import numpy as np
from gpu_feeds import DRIVER, LIBRARY, NON_BLOCKING, PORTABLE, OfLibrary
from gpu_feeds import all_noted, call, error, noted, on_host, open_feed, pytorch, weft


def check(feed, batch, result):
    """Compares a batch with what the query makes of its ids."""
    ids = on_host(batch["id"], feed.gpu)
    x, group = on_host(batch["x"], feed.gpu), on_host(batch["group"], feed.gpu)
    result["wrong"] += int((x != ids[:, None, None] + np.arange(6).reshape(2, 3)).sum())
    result["wrong"] += int((group != ids % 7).sum())
    result["wrong"] += list(batch) != ["id", "x", "group"] or x.dtype != np.float32
    result["wrong"] += any(batch[c].__cuda_array_interface__["data"][0] % 256 for c in batch)
    result["ids"] += ids.tolist()
    result["rows"].append(batch.rows)


def read(name, ranks):
    result = {"ids": [], "wrong": 0, "rows": []}
    for rank in range(int(ranks)):
        with open_feed(name, rank) as feed:
            assert len(list(feed.epoch(1))) == len(feed)
            for batch in feed:
                check(feed, batch, result)
            batch = None
    result["ranks"] = weft.local_ranks(name)
    result["noted"] = all_noted()
    return result


def epochs(name, rank, count):
    with open_feed(name, rank) as feed:
        ids = lambda batch: on_host(batch["id"], feed.gpu).tolist()
        by_iteration = [[ids(b) for b in feed] for _ in range(int(count))]
        by_number = [[ids(b) for b in feed.epoch(e)] for e in range(int(count))]
        assert by_iteration == by_number
    return by_number


def hold(name, rank):
    """Two feeds of a rank: what is mapped ends with the last array of the last one."""
    first, second = open_feed(name, rank), open_feed(name, rank)
    assert first.batch(0)["id"].__cuda_array_interface__ == second.batch(0)["id"].__cuda_array_interface__
    current = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(current))
    result = {"ids": [], "wrong": int(current.value is not None), "rows": []}
    print("open", flush=True)
    sys.stdin.readline()
    for batch in first:
        check(first, batch, result)
    gpu = first.gpu
    first.close()
    kept = second.batch(0)["id"]
    second.close()
    assert first.closed and second.closed
    del batch
    gc.collect()
    result["kept"] = on_host(kept, gpu).tolist()
    print("closed", flush=True)
    sys.stdin.readline()
    # Unmapping waits for work that still reads the memory.
    with DRIVER.using(DRIVER.retain(gpu)):
        host, stream, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(80)
        call("cuMemHostAlloc", ctypes.byref(host), size, PORTABLE)
        call("cuStreamCreateWithPriority", ctypes.byref(stream), NON_BLOCKING, 0)
        address = ctypes.c_void_p(kept.__cuda_array_interface__["data"][0])
        for _ in range(200):
            call("cuMemcpyDtoHAsync_v2", host, address, size, stream)
        del kept
        assert weft._cuda.Mapping.drain(30)
        call("cuStreamDestroy_v2", stream)
        call("cuMemFreeHost", host)
    DRIVER.release(gpu)
    result["noted"] = all_noted()
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
    try:
        second.batch(0)
    except ValueError as e:
        return {"error": str(e)}


def left_open(name):
    """The interpreter ends with an open feed and an array."""
    global LEFT
    LEFT = [open_feed(name, 0), open_feed(name, 1)]
    LEFT.append(LEFT[0].batch(0)["id"])
    noted_then = lambda: noted("cudaDoubleViolations") + noted("cudaDoubleLive")
    AT_THE_END.append(lambda: print(json.dumps({"noted": noted_then()})))


def stuck(name):
    """The GPU never ends its work: neither closing a feed nor the interpreter's end waits for it.

    The lease stays also if another feed has the same memory mapped.
    """
    global LEFT
    weft._cuda._SECONDS_AT_END = weft._cuda._SECONDS_AT_EXIT = 0.1
    closed, LEFT = open_feed(name, 0), open_feed(name, 1)
    assert closed._memory.start == LEFT._memory.start
    array = closed.batch(0)["id"]
    address = ctypes.c_void_p(array.__cuda_array_interface__["data"][0])
    call("cuCtxSetCurrent", DRIVER.retain(closed.gpu))
    host, stream, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(80)
    call("cuMemHostAlloc", ctypes.byref(host), size, PORTABLE)
    call("cuStreamCreateWithPriority", ctypes.byref(stream), NON_BLOCKING, 0)
    DRIVER._library.cudaDoublePause(1)
    call("cuMemcpyDtoHAsync_v2", host, address, size, stream)
    closed.close()
    del array
    given_back = weft._cuda.Mapping.drain(0.1)
    with open_feed(name, 0) as feed:
        return {"rows": feed.batch(0).rows, "givenBack": given_back}


def failing_hold(name):
    """The GPU's work of this process fails. A feed that is opened later does not use its mapping."""
    feed = open_feed(name, 0)

    def fail(self):
        raise weft._cuda.CudaError("cuCtxSynchronize: error 719, CUDA_ERROR_LAUNCH_FAILED")

    await_work, weft._cuda.Driver.await_work = weft._cuda.Driver.await_work, fail
    feed.close()
    assert weft._cuda.Mapping.drain(30)
    weft._cuda.Driver.await_work = await_work
    maps = []
    mapped = weft._cuda.Driver.map
    weft._cuda.Driver.map = lambda self, handle: maps.append(handle) or mapped(self, handle)
    with open_feed(name, 0) as feed:
        result = {"maps": len(maps), "rows": feed.batch(0).rows}
    print(json.dumps(result), flush=True)
    sys.stdin.readline()
    return result


def errors(name):
    import pickle

    with open_feed(name, 0) as feed:
        batch = feed.batch(0)
        result = {
            "column": error(lambda: batch["text"]),
            "tensor": error(lambda: batch.torch("text")),
            "position": error(lambda: feed.batch(len(feed))),
            "pickled": error(lambda: pickle.dumps(feed)),
        }
    result["closed"] = error(lambda: feed.batch(0))
    result["rank"] = error(lambda: open_feed(name, 7))
    result["file"] = error(lambda: weft.Feed(name, 0))
    result["driver"] = error(lambda: weft.GpuFeed(name, 0, library="libnone.so.1"))
    if hasattr(DRIVER._library, "cudaDoubleDriver"):
        DRIVER._library.cudaDoubleDriver(12080, 0)
        result["hidden"] = error(lambda: weft._cuda.Driver(LIBRARY))
    return result


def lost(name, timeout):
    return {"error": error(lambda: open_feed(name, 0, timeout=float(timeout)))}


def damaged(manifest):
    """Manifests whose batches are outside of the memory, or not of this process's GPUs."""
    with open(manifest) as source:
        described = json.load(source)
    shard, first = described["shards"][0], next(iter(described["tensors"]))

    def attempt(changes, **of_shard):
        changed = {**described, **changes}
        changed["shards"] = [{**shard, **of_shard}, *described["shards"][1:]]
        with open(manifest + ".changed", "w") as target:
            json.dump(changed, target)
        return error(lambda: open_feed(manifest + ".changed", 0, timeout=0))

    tensors = described["tensors"]
    outside = {**tensors, first: {**tensors[first], "offset": described["batchBytes"]}}
    wide = {**tensors, first: {**tensors[first], "shape": [1 << 40]}}
    unknown = {**tensors, first: {**tensors[first], "dtype": "complex64"}}
    broken = "7" + shard["handle"][1:-2] + "00"
    killed = manifest + ".executor"
    os.mkdir(killed)
    for file in "alive", "lease":
        open(os.path.join(killed, file), "w").close()
    return {
        "none": attempt({}),
        "rows": attempt({}, rows=10**9),
        "batches": attempt({}, batches=10**6),
        "bytes": attempt({}, batches=10**6, bytes=10**6 * described["batchBytes"]),
        "offset": attempt({}, offset=1 << 40),
        "negative": attempt({}, offset=-256),
        "odd": attempt({"batchBytes": described["batchBytes"] - 1}),
        "column": attempt({"tensors": outside}),
        "shape": attempt({"tensors": wide}),
        "dtype": attempt({"tensors": unknown}),
        "handle": attempt({}, handle="00"),
        "killed": attempt({}, lease=os.path.join(killed, "lease")),
        "gpu": attempt({}, gpu="00000000-0000-0000-0000-000000000001"),
        "dead": attempt({}, handle=broken) if hasattr(DRIVER._library, "cudaDoubleLive") else "FeedTimeout",
    }


def forked(name):
    """A child can neither use nor end what its parent has open."""
    feed = open_feed(name, 0)
    batch = feed.batch(0)
    array = batch["id"]
    reader, writer = os.pipe()
    if os.fork() == 0:
        result = {
            "batch": error(lambda: feed.batch(0)),
            "array": error(lambda: array.__cuda_array_interface__),
            "tensor": error(lambda: batch.torch("id")),
            "open": error(lambda: open_feed(name, 0)),
        }
        feed.close()
        del feed, batch, array
        gc.collect()
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.wait()
    os.close(writer)
    result = json.loads(os.read(reader, 65536))
    result["ids"] = on_host(array, feed.gpu).tolist()
    feed.close()
    del batch, array
    gc.collect()
    result["noted"] = all_noted()
    return result


DTYPES = {
    "id": "int64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "f32": "float32",
    "f64": "float64",
    "x": "float32",
    "half": "float16",
    "brain": "bfloat16",
}


def expected(column, i):
    """The value of a column in the row with an id."""
    return {
        "id": i,
        "i8": i % 100,
        "i16": i,
        "i32": -i,
        "f32": i / 2,
        "f64": i / 4,
        "x": [[i, i + 1, i + 2], [i + 3, i + 4, i + 5]],
        "half": [1, i % 2],
        "brain": [1, 2],
    }[column]


def tensors(name, rank):
    """Checks device, type, place and values of all columns, then reads by a data set."""
    torch = pytorch()
    if not torch.cuda.is_available():
        return {"unavailable": "this torch does not see the GPU"}
    from weft.torch import FeedDataset

    result = {"ids": [], "wrong": [], "copied": [], "sum": 0}
    feed = open_feed(name, rank)
    for batch in feed:
        found = batch.torch()
        assert list(found) == list(DTYPES), list(found)
        ids = found["id"].tolist()
        for column, tensor in found.items():
            if str(tensor.device) != f"cuda:{feed.gpu}":
                result["wrong"].append(f"{column} on {tensor.device}")
            if str(tensor.dtype) != f"torch.{DTYPES[column]}":
                result["wrong"].append(f"{column} of {tensor.dtype}")
            if tensor.data_ptr() != batch[column].__cuda_array_interface__["data"][0]:
                result["copied"].append(column)
            if tensor.tolist() != [expected(column, i) for i in ids]:
                result["wrong"].append(f"{column}: {tensor.tolist()} for {ids}")
        result["sum"] += int(found["id"].sum())
        result["ids"] += ids
    kept = feed.batch(0).torch("brain")["brain"]
    feed.close()
    del batch, found, tensor
    gc.collect()
    result["kept"] = kept.tolist()
    del kept
    weft.torch.GpuFeed = OfLibrary
    data = FeedDataset(name, int(rank), "id", "x")
    assert len(data) == len(result["ids"]) // 10
    result["epochs"] = [[batch["id"].tolist() for batch in data] for _ in range(2)]
    if not hasattr(DRIVER._library, "cudaDoubleLive"):
        from torch.utils.data import DataLoader

        loader = DataLoader(data, batch_size=None)
        data.set_epoch(0)
        assert [batch["id"].tolist() for batch in loader] == result["epochs"][0]
        result["workers"] = error(lambda: next(iter(DataLoader(data, batch_size=None, num_workers=1))))
    data.close()
    return result


def train(name, rank):
    """Steps of a small model on the GPU, straight from the mapped memory."""
    torch = pytorch()
    if not torch.cuda.is_available():
        return {"unavailable": "this torch does not see the GPU"}
    torch.manual_seed(17)
    losses = []
    with open_feed(name, rank) as feed:
        device = torch.device("cuda", feed.gpu)
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        ).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(3):
            for batch in feed:
                columns = batch.torch("x", "f32")
                optimizer.zero_grad()
                wanted = columns["f32"].unsqueeze(1) / 100
                loss = torch.nn.functional.mse_loss(model(columns["x"] / 100), wanted)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        losses = [loss.item() for loss in losses]
    return {"losses": losses, "device": str(loss.device)}


if __name__ == "__main__":
    json.dump(globals()[sys.argv[3]](*sys.argv[4:]), sys.stdout)
    print(flush=True)
