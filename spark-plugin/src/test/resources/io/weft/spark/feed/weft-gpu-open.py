"""Opens and ends feeds in GPU memory: weft-gpu-open.py <package> <libcuda.so.1> <task> ...

Prints JSON.
"""
import ctypes
import json
import os
import sys
import threading
import time

from gpu_feeds import DRIVER, NON_BLOCKING, OfLibrary
from gpu_feeds import all_noted, call, error, noted, open_feed, pytorch, weft


def late(manifest):
    """A data set whose manifest appears late, and names memory of an executor that was killed."""
    pytorch()
    from weft.torch import FeedDataset

    weft.torch.GpuFeed = OfLibrary
    with open(manifest) as source:
        described = json.load(source)
    killed = manifest + ".executor"
    os.mkdir(killed)
    for file in "alive", "lease":
        open(os.path.join(killed, file), "w").close()
    described["shards"][0]["lease"] = os.path.join(killed, "lease")
    with open(manifest + ".whole", "w") as target:
        json.dump(described, target)
    late_manifest = manifest + ".late"
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds
        if now[0] > 40 and not os.path.exists(late_manifest):
            os.rename(manifest + ".whole", late_manifest)

    time.monotonic, time.sleep = lambda: now[0], sleep
    return {"error": error(lambda: FeedDataset(late_manifest, 0, timeout=60)), "seconds": now[0]}


def hung(name):
    """The driver does not map the memory of one feed until others of the same process are open."""
    go_on, hangs, opened = threading.Event(), threading.Event(), []
    mapped = weft._cuda.Driver.map

    def map_memory(self, handle):
        if threading.current_thread() is threads[0]:
            hangs.set()
            go_on.wait(60)
        return mapped(self, handle)

    def open_rank(rank):
        with open_feed(name, rank) as feed:
            opened.append(feed.rank)

    weft._cuda.Driver.map = map_memory
    threads = [threading.Thread(target=open_rank, args=(rank,)) for rank in (0, 0, 1)]
    threads[0].start()
    assert hangs.wait(60)
    for other in threads[1:]:
        other.start()
    for other in threads[1:]:
        other.join(20)
    others = list(opened)
    go_on.set()
    for thread in threads:
        thread.join(60)
    return {"others": sorted(others), "all": sorted(opened), "noted": all_noted()}


def recorded(name):
    """While this thread records a graph, another one ends a feed, and opens one."""
    library, graph, stream = DRIVER._library, ctypes.c_void_p(), ctypes.c_void_p()
    library.cudaDoubleAllowGlobalCaptures(1)
    feed = open_feed(name, 0)
    arrays = [feed.batch(0)["id"]]
    feed.close()
    result = {}

    def beside():
        arrays.clear()
        with open_feed(name, 1) as other:
            result["rows"] = other.batch(0).rows

    call("cuCtxSetCurrent", DRIVER.retain(feed.gpu))
    call("cuStreamCreateWithPriority", ctypes.byref(stream), NON_BLOCKING, 0)
    with weft.recording():
        call("cuStreamBeginCapture_v2", stream, 0)
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join(60)
        result["kept"] = "imported memories: 1" in noted("cudaDoubleLive")
        result["end"] = library.cuStreamEndCapture(stream, ctypes.byref(graph))
    if graph:
        call("cuGraphDestroy", graph)
    call("cuStreamDestroy_v2", stream)
    DRIVER.release(feed.gpu)
    result["noted"] = all_noted()
    return result


def ended(name):
    """A feed that has ended. The GPU works for it until the returned event is set."""
    weft._cuda._SECONDS_AT_END = weft._cuda._SECONDS_AT_EXIT = 0.1
    feed = open_feed(name, 0)
    waits, go_on = threading.Event(), threading.Event()

    def await_work(self):
        waits.set()
        go_on.wait(60)

    weft._cuda.Driver.await_work = await_work
    feed.close()
    assert waits.wait(60)
    return go_on


def record():
    with weft.recording():
        pass


def busy(name):
    """The GPU works without end for a feed that has ended: nothing can be recorded."""
    weft._cuda._SECONDS_TO_HOLD = 0.1
    go_on = ended(name)
    result = {"error": error(record)}
    go_on.set()
    weft._cuda._SECONDS_TO_HOLD = 60
    result["later"] = error(record)
    result["noted"] = all_noted()
    return result


def interrupted(name):
    """Ctrl-C ends the wait before a recording. Nothing is recorded, so memory is given back."""
    go_on = ended(name)
    free = weft._cuda.Mapping._worker._free

    def wait_for(predicate, seconds):
        del free.wait_for
        raise KeyboardInterrupt

    free.wait_for = wait_for
    result = {"error": "none"}
    try:
        record()
    except KeyboardInterrupt:
        result["error"] = "interrupted"
    go_on.set()
    result["noted"] = all_noted()
    return result


if __name__ == "__main__":
    json.dump(globals()[sys.argv[3]](*sys.argv[4:]), sys.stdout)
    print(flush=True)
