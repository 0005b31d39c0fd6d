"""Reads a feed's files with numpy and without an Arrow library: python3 read-feed.py <manifest>

Maps the files, finds every buffer by the format (an Arrow IPC file, whose metadata are
flatbuffers), and reads the tensors in place.
"""
import fcntl
import json
import mmap
import struct
import sys

import numpy

FIXED_SIZE_LIST, UTF8 = 16, 5


class Table:
    """A flatbuffers table."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - number(data, "i", at)

    def field(self, index):
        """The offset of a field; None if it is absent."""
        size = number(self.data, "H", self.vtable)
        slot = 4 + 2 * index
        offset = number(self.data, "H", self.vtable + slot) if slot < size else 0
        return self.at + offset if offset else None

    def long(self, index):
        """A number; an absent field is 0."""
        at = self.field(index)
        return 0 if at is None else number(self.data, "q", at)

    def target(self, index):
        """The offset that a field refers to; None if it is absent."""
        at = self.field(index)
        return None if at is None else at + number(self.data, "I", at)

    def table(self, index):
        return Table(self.data, self.target(index))

    def vector(self, index):
        """The number of elements, and the offset of the first one."""
        at = self.target(index)
        return (0, 0) if at is None else (number(self.data, "I", at), at + 4)

    def tables(self, index):
        count, at = self.vector(index)
        return [Table(self.data, p + number(self.data, "I", p)) for p in range(at, at + 4 * count, 4)]


def number(data, kind, at):
    return struct.unpack_from("<" + kind, data, at)[0]


def root(data, at):
    return Table(data, at + number(data, "I", at))


def text(table, index):
    count, at = table.vector(index)
    return bytes(table.data[at:at + count]).decode()


def columns(fields, buffers):
    """The buffers of each field by name: its own, then those of its children."""
    found = {}
    for field in fields:
        kind = number(field.data, "B", field.field(2))
        own = {FIXED_SIZE_LIST: 1, UTF8: 3}.get(kind, 2)
        mine = [next(buffers) for _ in range(own)]
        for child in columns(field.tables(5), buffers).values():
            mine += child
        found[text(field, 0)] = mine
    return found


def batches(data):
    """Yields for each record batch its rows, and its columns' buffers as (offset in the file, bytes)."""
    assert data[:6] == b"ARROW1" and data[-6:] == b"ARROW1"
    footer = root(data, len(data) - 10 - number(data, "i", len(data) - 10))
    fields = footer.table(1).tables(1)
    count, at = footer.vector(3)
    for block in range(at, at + 24 * count, 24):
        offset, metadata, _ = struct.unpack_from("<qi4xq", data, block)
        batch = root(data, offset + 8).table(2)
        buffers, first = batch.vector(2)
        places = (struct.unpack_from("<qq", data, first + 16 * i) for i in range(buffers))
        body = offset + metadata
        yield batch.long(0), columns(fields, ((body + o, n) for o, n in places))


def address(array):
    return array.__array_interface__["data"][0]


def texts(data, rows, validity, offsets, values):
    for row in range(rows):
        valid = validity[1] == 0 or data[validity[0] + row // 8] >> row % 8 & 1
        start, end = struct.unpack_from("<ii", data, offsets[0] + 4 * row)
        yield bytes(data[values[0] + start:values[0] + end]).decode() if valid else None


def main():
    manifest = json.load(open(sys.argv[1]))
    result = {"ids": [], "batches": 0, "wrong": 0, "misaligned": 0, "elsewhere": 0}
    for shard in manifest["shards"]:
        with open(shard["lease"]) as lease, open(shard["file"], "rb") as file:
            fcntl.lockf(lease, fcntl.LOCK_SH)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            start = address(numpy.frombuffer(data, numpy.uint8))
            for rows, places in batches(data):
                result["batches"] += 1
                if rows == 0:
                    continue
                tensors = {}
                for name, tensor in manifest["tensors"].items():
                    shape = [rows] + tensor["shape"]
                    place, size = places[name][-1]
                    array = numpy.frombuffer(
                        data, tensor["dtype"], int(numpy.prod(shape)), place).reshape(shape)
                    result["wrong"] += array.nbytes != size
                    result["misaligned"] += address(array) % 64 != 0
                    result["elsewhere"] += address(array) != start + place
                    tensors[name] = array
                ids = tensors["id"]
                expected = ids[:, None, None] + numpy.arange(6).reshape(2, 3)
                result["wrong"] += int((tensors["x"] != expected).sum())
                result["wrong"] += int((tensors["group"] != ids % 7).sum())
                said = [None if i % 3 == 0 else f"row {i}" for i in ids]
                result["wrong"] += list(texts(data, rows, *places["text"])) != said
                result["ids"] += ids.tolist()
    json.dump(result, sys.stdout)


main()
