"""Uses the Python package as a training process does: weft-feed.py <folder of the package> <task> ...

Prints JSON. A task with "hold" in its name prints a line when the feed is open, and goes on after
a line of input.
"""
import decimal
import gc
import json
import multiprocessing
import os
import sys
import time
import warnings

sys.path.insert(0, sys.argv[1])

import numpy as np
import weft


def mapping(file):
    """The addresses where the kernel maps a file."""
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps if line.rstrip().endswith(file)]
    return [tuple(int(end, 16) for end in line[0].split("-")) for line in lines]


def arrays(column):
    """All numpy arrays of a column, with masks as None."""
    if isinstance(column, np.ma.MaskedArray):
        return [column.data]
    if isinstance(column, weft.Ragged):
        return [column.offsets, *arrays(column.values)]
    if isinstance(column, weft.Strings):
        return [column.offsets, column.values]
    if isinstance(column, weft.Struct):
        return [array for child in column.values() for array in arrays(child)]
    return [column]


def inside(array, ends):
    address = array.__array_interface__["data"][0]
    return any(start <= address and address + array.nbytes <= end for start, end in ends)


COPIED = {"flag", "day", "large", "nothing"}


def check_row(batch, row, wrong):
    """Compares a row with what the query makes of its id."""
    i = int(batch["id"][row])
    third = i % 3 == 0
    expected = {
        "flag": i % 2 == 0,
        "i8": i % 100,
        "i16": i,
        "i32": -i,
        "months": i,
        "f32": i / 2,
        "f64": i / 4,
        "small": 100 * i,
        "day": np.datetime64(i, "D"),
        "moment": np.datetime64(i, "us"),
        "plain": np.datetime64("2026-11-23T01:02:03.000004"),
        "text": None if third else f"row {i} \u00e4",
        "raw": b"b%d" % i,
        "texts": [f"t{i}", None],
    }
    for name, value in expected.items():
        found = batch[name][row]
        found = list(found) if name == "texts" else found
        if found != value or (name in ("f32", "f64", "i8") and found.dtype != batch[name].dtype):
            wrong.append(f"{name} of {i}: {found!r}")
    checks = {
        "maybe": (batch["maybe"][row] is np.ma.masked) if third else batch["maybe"][row] == i,
        "large": batch["large"][row] == decimal.Decimal(f"-{i}000000000000000000.25"),
        "x": np.array_equal(batch["x"][row], i + np.arange(6, dtype="f4").reshape(2, 3)),
        "half": np.array_equal(batch["half"][row], np.array([1, i % 2], "f2")),
        "brain": np.array_equal(batch["brain"][row], np.array([16256, 16384], "i2")),
        "four": batch["four"][row].tobytes() == b"abcd" and batch["four"].dtype == "i1",
        "ragged": np.array_equal(
            batch["ragged"][row], np.arange(1, 1 + 2 * (1 + i % 3), dtype="i2").reshape(-1, 2)
        ),
        "list": batch["list"][row] is None if third else list(batch["list"][row]) == list(range(i % 4 + 1)),
        "entries": list(batch["entries"][row]["key"]) == ["a", "b"]
        and list(batch["entries"][row]["value"]) == [i, i + 1],
        "record": (batch["record"]["n"][row] is np.ma.masked or batch["record"]["n"][row] == i)
        and batch["record"]["s"][row] == f"s{i}",
        "nothing": batch["nothing"][row] is np.ma.masked,
    }
    wrong.extend(f"{name} of {i}" for name, right in checks.items() if not right)


def types(name, ranks):
    result = {"ids": [], "wrong": [], "copied": [], "misaligned": [], "writable": [], "batches": 0}
    for rank in range(int(ranks)):
        with weft.Feed(name, rank, timeout=10) as feed:
            ends = mapping(feed._path)
            assert len(ends) == 1, ends
            for batch in feed:
                result["batches"] += 1
                assert list(batch) == list(feed.fields)
                for column in batch if batch.rows else []:
                    for array in arrays(batch[column]):
                        if array.nbytes and column not in COPIED and not inside(array, ends):
                            result["copied"].append(column)
                        address = array.__array_interface__["data"][0]
                        if array.nbytes and column not in COPIED and address % 64:
                            result["misaligned"].append(column)
                        if array.flags.writeable:
                            result["writable"].append(column)
                for row in range(batch.rows):
                    check_row(batch, row, result["wrong"])
                result["ids"] += batch["id"].tolist()
    return result


def epochs(name, rank, count):
    """The ids of each batch of each epoch, first by iteration and then by number."""
    with weft.Feed(name, int(rank), timeout=10) as feed:
        by_iteration = [[b["id"].tolist() for b in feed] for _ in range(int(count))]
        by_number = [[b["id"].tolist() for b in feed.epoch(e)] for e in range(int(count))]
        assert by_iteration == by_number
        assert all(len(epoch) == len(feed) for epoch in by_number)
    return by_number


def hold(name, rank):
    """Reads all ids after the go-ahead; arrays live on after the feed is closed."""
    with weft.Feed(name, int(rank), timeout=60) as feed:
        kept = feed.batch(0)["id"]
        print("open", flush=True)
        sys.stdin.readline()
        ids = [i for batch in feed for i in batch["id"].tolist()]
    assert feed.closed
    return {"ids": ids, "kept": kept.tolist()}


def lost(name, rank, timeout):
    start = time.monotonic()
    try:
        weft.Feed(name, int(rank), timeout=float(timeout)).close()
        return {"error": "none"}
    except (weft.FeedError, ValueError) as e:
        kind = type(e).__name__
        return {"error": kind, "message": str(e), "seconds": time.monotonic() - start}


def hold_by_two(name, rank):
    """Two feeds of one file in one process: the lock stays until both are closed."""
    first, second = weft.Feed(name, int(rank)), weft.Feed(name, int(rank))
    if os.fork() == 0:  # A child that uses and closes what it inherited releases nothing.
        list(first)
        first.close()
        second.close()
        os._exit(0)
    os.wait()
    first.close()
    first.close()
    print("open", flush=True)
    sys.stdin.readline()
    second.close()
    print("closed", flush=True)
    sys.stdin.readline()
    try:
        list(second)
        return {"error": "none"}
    except ValueError as e:
        return {"error": str(e)}


def send_ids(feed, connection):
    connection.send([i for batch in feed for i in batch["id"].tolist()])


def passed(folder):
    """Other processes read what this one has open, although its name and manifest are gone."""
    result = {}
    with weft.Feed(folder, 0, timeout=10) as feed:
        os.unlink(feed._path)
        os.unlink(os.path.join(folder, "manifest.json"))
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            here, there = context.Pipe()
            child = context.Process(target=send_ids, args=(feed, there), daemon=True)
            child.start()
            result[method] = here.recv() if here.poll(60) else "no answer"
            child.join(60)
        result["here"] = [i for batch in feed for i in batch["id"].tolist()]
    return result


def collected(name):
    """The garbage collector ends a feed while another one takes its lease."""
    gc.disable()
    cycle = [weft.Feed(name, 0)]
    cycle.append(cycle)
    del cycle
    locked = weft._lease._locked

    def collecting(path):
        gc.collect()
        return locked(path)

    weft._lease._locked = collecting
    with weft.Feed(name, 1) as feed:
        assert list(weft._lease.Lease._open) == [feed._manifest["shards"][1]["lease"]]
    return {"left": len(weft._lease.Lease._open)}


def untrusted(folder):
    """The errors for manifests and files that another user may have made."""
    result = {}

    def attempt(name, path, **options):
        try:
            weft.Feed(path, 0, timeout=0, **options).close()
            result[name] = "read"
        except weft.FeedError as e:
            result[name] = str(e)

    manifest = os.path.join(folder, "manifest.json")
    with open(manifest) as source:
        described = json.load(source)
    pipe, link, other = (manifest + end for end in (".pipe", ".link", ".other"))
    os.mkfifo(pipe)
    os.symlink(manifest, link)
    attempt("own", folder, owner=os.geteuid())
    attempt("foreign", folder, owner=os.geteuid() + 1)
    os.rename(manifest, other)
    os.rename(pipe, manifest)
    attempt("pipe", folder)
    os.rename(manifest, pipe)
    os.rename(other, manifest)
    attempt("link", link)
    for field in ("file", "lease"):
        shards = [{**described["shards"][0], field: "/dev/null"}, described["shards"][1]]
        with open(other, "w") as target:
            json.dump({**described, "shards": shards}, target)
        attempt(field, other)
    return result


def nulls(name):
    """A null in the last batch is an error in the first one."""
    with weft.Feed(name, 0) as feed:
        try:
            next(iter(feed)).torch("late")
            return {"error": "none"}
        except ValueError as e:
            return {"error": str(e)}


def local(name, timeout):
    try:
        return {"ranks": weft.local_ranks(name, timeout=float(timeout))}
    except weft.FeedTimeout as e:
        return {"ranks": [], "message": str(e)}


def damaged(manifest):
    """Reads truncated and overwritten copies of a file: an error, or other values, but no crash."""
    with open(manifest) as source:
        described = json.load(source)
    shard = described["shards"][0]
    with open(shard["file"], "rb") as source:
        whole = source.read()
    copy, copied = manifest + ".arrow", manifest + ".json"
    shard["file"] = copy
    with open(copied, "w") as target:
        json.dump(described, target)
    random = np.random.default_rng(17)
    result = {"truncated": [0, 0], "overwritten": [0, 0]}
    for attempt in range(400):
        data = bytearray(whole)
        kind = "overwritten"
        if attempt % 4 == 0:
            kind = "truncated"
            data = data[: random.integers(0, len(data))] if attempt else b""
        else:
            # Most of the metadata are in the footer.
            tail = 6 + int(random.integers(0, min(len(data), 6000) - 6))
            data[len(data) - tail - 1] = random.integers(0, 256)
        with open(copy, "wb") as target:
            target.write(data)
        try:
            with weft.Feed(copied, 0, timeout=0) as feed:
                for batch in feed:
                    for name in batch:
                        len(batch[name])
            result[kind][0] += 1
        except weft.FeedError:
            result[kind][1] += 1
    return result


def torch(name, rank):
    import torch as pytorch
    from torch.utils.data import DataLoader

    from weft.torch import FeedDataset

    result = {"wrong": [], "copied": []}
    with weft.Feed(name, int(rank)) as feed:
        ends = mapping(feed._path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for batch in feed:
                numbers = ["id", "i8", "x", "brain", "half"]
                tensors = batch.torch(*numbers)
                for column in numbers:
                    address = tensors[column].data_ptr()
                    if not any(start <= address < end for start, end in ends):
                        result["copied"].append(column)
                if tensors["brain"].dtype != pytorch.bfloat16 or tensors["brain"][0].tolist() != [1, 2]:
                    result["wrong"].append("brain")
                if tensors["id"].tolist() != batch["id"].tolist():
                    result["wrong"].append("id")
        for column in ("maybe", "text", "small", "months"):
            try:
                batch.torch(column)
            except ValueError as e:
                result[column] = str(e)
        # A write stays in this process.
        changed = next(iter(feed.epoch(0))).torch("id")["id"]
        changed += 1
        expected = [batch["id"].tolist() for batch in weft.Feed(name, int(rank)).epoch(0)]
        result["private"] = changed.tolist() == [i + 1 for i in expected[0]]
    data = FeedDataset(name, int(rank), "id", "x")
    loader = DataLoader(data, batch_size=None)
    result["epochs"] = [[b["id"].tolist() for b in loader] for _ in range(2)]
    result["length"] = len(loader)
    # What is open does not depend on its names.
    os.unlink(os.path.join(name, "manifest.json"))
    os.unlink(data._feed._path)
    for method in ("fork", "spawn"):
        for persistent in (False, True):
            workers = DataLoader(
                data,
                batch_size=None,
                num_workers=2,
                persistent_workers=persistent,
                multiprocessing_context=method,
                timeout=60,
            )
            epochs = []
            for epoch in (1, 0):
                data.set_epoch(epoch)
                epochs.append([b["id"].tolist() for b in workers])
            result[f"{method} {persistent}"] = epochs
    data.close()
    return result


def defaults(name):
    """The columns of a data set without names, or why there is none."""
    from weft.torch import FeedDataset

    try:
        return {"columns": sorted(next(iter(FeedDataset(name, 0))))}
    except ValueError as e:
        return {"columns": [], "error": str(e)}


def arrow(name, rank):
    wrong = 0
    with weft.Feed(name, int(rank)) as feed:
        for batch in feed:
            record = batch.arrow()
            wrong += record.column("id").to_numpy().tolist() != batch["id"].tolist()
            wrong += record.column("text").to_pylist() != list(batch["text"])
    return {"wrong": wrong}


if __name__ == "__main__":
    json.dump(globals()[sys.argv[2]](*sys.argv[3:]), sys.stdout, default=str)
