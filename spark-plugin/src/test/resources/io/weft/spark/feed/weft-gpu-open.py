"""Opens and ends feeds in GPU memory: weft-gpu-open.py <package> <libcuda.so.1> <task> ...

Prints JSON.
"""
import json
import os
import sys
import threading
import time

from gpu_feeds import OfLibrary, all_noted, error, open_feed, pytorch, weft


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


if __name__ == "__main__":
    json.dump(globals()[sys.argv[3]](*sys.argv[4:]), sys.stdout)
    print(flush=True)
