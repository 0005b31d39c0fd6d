"""Reads an Arrow file in place, without an Arrow library.

Format: https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format. Metadata are
flatbuffers; the buffers of a record batch follow its metadata. Positions that a damaged file
gives lead to an error, because mmap and numpy check them.
"""

from __future__ import annotations

import decimal
import json
import mmap
import struct
from dataclasses import dataclass, field as member
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from ._columns import Column, Ragged, Strings, Struct

#: What the readers of this module raise at damaged metadata.
DAMAGE = (
    ValueError,
    struct.error,
    ArithmeticError,
    LookupError,
    TypeError,
    StopIteration,
    RecursionError,
)

_MAGIC = b"ARROW1"
(_NULL, _INT, _FLOAT, _BINARY, _UTF8, _BOOL, _DECIMAL, _DATE) = range(1, 9)
(_TIMESTAMP, _INTERVAL, _LIST, _STRUCT) = range(10, 14)
(_FIXED_LIST, _MAP, _DURATION) = range(16, 19)
_NONE = np.array(None, object)
_FLOATS = ("float16", "float32", "float64")
_DTYPES = {_INTERVAL: "int32", _DATE: "int32", _TIMESTAMP: "<M8[us]", _DURATION: "<m8[us]"}


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self.data, self.at = data, at
        self._vtable = at - _number(data, "i", at)

    def _field(self, index: int) -> Optional[int]:
        slot = 4 + 2 * index
        inside = slot < _number(self.data, "H", self._vtable)
        offset = _number(self.data, "H", self._vtable + slot) if inside else 0
        return self.at + offset if offset else None

    def number(self, index: int, kind: str) -> int:
        """A number of a kind of the module struct; an absent one is 0."""
        at = self._field(index)
        return 0 if at is None else _number(self.data, kind, at)

    def _target(self, index: int) -> Optional[int]:
        at = self._field(index)
        return None if at is None else at + _number(self.data, "I", at)

    def table(self, index: int) -> "_Table":
        at = self._target(index)
        if at is None:
            raise ValueError(f"metadata at {self.at} lacks field {index}")
        return _Table(self.data, at)

    def vector(self, index: int) -> Tuple[int, int]:
        """The number of elements, and the position of the first."""
        at = self._target(index)
        return (0, 0) if at is None else (_number(self.data, "I", at), at + 4)

    def tables(self, index: int) -> List["_Table"]:
        count, at = self.vector(index)
        places = range(at, at + 4 * count, 4)
        return [_Table(self.data, place + _number(self.data, "I", place)) for place in places]

    def text(self, index: int) -> str:
        count, at = self.vector(index)
        return bytes(self.data[at : at + count]).decode()


def _number(data: mmap.mmap, kind: str, at: int) -> int:
    if at < 0:
        raise ValueError(f"metadata refers to position {at}")
    return int(struct.unpack_from("<" + kind, data, at)[0])


def _root(data: mmap.mmap, at: int) -> _Table:
    return _Table(data, at + _number(data, "I", at))


@dataclass(frozen=True)
class Field:
    """A column's type.

    :param dtype: of an element, where numpy has one: "int64", "float32", "<M8[us]"; else ""
    :param shape: of one row's value of a tensor of fixed shape, else ()
    :param metadata: such as ``weft.tensor`` and ``weft.decimal``
    :param nullable: whether Spark's schema allows nulls
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    metadata: Dict[str, str]
    nullable: bool
    children: Tuple["Field", ...] = member(repr=False)
    kind: int = member(repr=False)
    scale: int = member(repr=False)
    nodes: int = member(repr=False)
    buffers: int = member(repr=False)

    @property
    def tensor_dtype(self) -> str:
        """As the column was declared: bfloat16 has the dtype int16, because numpy lacks it."""
        declared = self.metadata.get("weft.tensor")
        return str(json.loads(declared)["dtype"]) if declared else self.dtype

    @property
    def tensor_obstacle(self) -> str:
        """Why the column can be no torch tensor, as the end of a sentence; else ""."""
        if "weft.decimal" in self.metadata:
            return f"is a decimal({self.metadata['weft.decimal']}): cast it in Spark, as to double"
        if self.kind == _INTERVAL:
            return "is an interval: cast it in Spark, as to int"
        if self.kind == _DATE:
            return "is a date: make it a number in Spark, as by unix_date"
        is_number = self.dtype.startswith(("int", "float", "bool"))
        if is_number and (self.shape or not self.children):
            return ""
        return f"is no number and has no tensor type of fixed shape: {self}"


def _field(table: _Table) -> Field:
    kind = table.number(2, "B")
    children = tuple(_field(child) for child in table.tables(5))
    metadata = {pair.text(0): pair.text(1) for pair in table.tables(6)}
    own = {_NULL: 0, _FIXED_LIST: 1, _STRUCT: 1, _UTF8: 3, _BINARY: 3}.get(kind, 2)
    shape: Tuple[int, ...] = ()
    if kind == _FIXED_LIST:
        declared = metadata.get("ARROW:extension:metadata")
        size = table.table(3).number(0, "i")
        shape = tuple(json.loads(declared)["shape"]) if declared else (size,)
    return Field(
        table.text(0),
        children[0].dtype if kind == _FIXED_LIST else _dtype(kind, table),
        shape,
        metadata,
        bool(table.number(1, "B")),
        children,
        kind,
        table.table(3).number(1, "i") if kind == _DECIMAL else 0,
        1 + sum(child.nodes for child in children),
        own + sum(child.buffers for child in children),
    )


def _dtype(kind: int, table: _Table) -> str:
    if kind == _INT:
        return f"int{table.table(3).number(0, 'i')}"
    if kind == _FLOAT:
        return _FLOATS[table.table(3).number(0, "h")]
    return "bool" if kind == _BOOL else _DTYPES.get(kind, "")


def _masked(values: "np.ndarray[Any, Any]", mask: "np.ndarray[Any, Any]") -> Column:
    array: Any = np.ma.MaskedArray
    return array(values, mask, copy=False)  # type: ignore[no-any-return]


class ArrowFile:
    """The schema of a mapped file, and where its record batches are. Immutable."""

    def __init__(self, data: mmap.mmap) -> None:
        """:raises DAMAGE: if the file is damaged or not complete"""
        self._data = data
        if data[: len(_MAGIC)] != _MAGIC or data[-len(_MAGIC) :] != _MAGIC:
            raise ValueError("the file is not a complete Arrow file")
        end = len(data) - len(_MAGIC) - 4
        footer = _root(data, end - _number(data, "i", end))
        self.fields = {f.name: f for f in map(_field, footer.table(1).tables(1))}
        count, at = footer.vector(3)
        self._blocks = np.frombuffer(data, "<i8", 3 * count, at).reshape(-1, 3)
        #: Of each column, the numbers of nodes and buffers before it.
        self._starts: Dict[str, Tuple[int, int]] = {}
        nodes = buffers = 0
        for name, field in self.fields.items():
            self._starts[name] = (nodes, buffers)
            nodes, buffers = nodes + field.nodes, buffers + field.buffers

    def __len__(self) -> int:
        return len(self._blocks)

    def batch(self, index: int) -> "RecordBatch":
        # A block is its offset, the bytes of its metadata (4 bytes, and 4 unused), and its body's.
        offset, metadata, _ = (int(part) for part in self._blocks[index])
        message = _root(self._data, offset + 8).table(2)
        return RecordBatch(self._data, message, offset + (metadata & 0x7FFFFFFF))

    def has_nulls(self, name: str) -> bool:
        """Whether a column has a null in any batch; reads metadata only."""
        node, _ = self._starts[name]
        return any(self.batch(index).nulls(node) for index in range(len(self)))

    def column(self, batch: "RecordBatch", name: str) -> Column:
        node, buffer = self._starts[name]
        return batch.column(self.fields[name], node, buffer)


class RecordBatch:
    """Where the buffers of a record batch are."""

    def __init__(self, data: mmap.mmap, message: _Table, body: int) -> None:
        self._data = data
        self._body = body
        self.rows = message.number(0, "q")
        self._nodes = self._pairs(message, 1)
        self._buffers = self._pairs(message, 2)

    def _pairs(self, message: _Table, index: int) -> "np.ndarray[Any, Any]":
        count, at = message.vector(index)
        return np.frombuffer(self._data, "<i8", 2 * count, at).reshape(-1, 2)

    def nulls(self, node: int) -> int:
        return int(self._nodes[node][1])

    def column(self, field: Field, node: int, buffer: int) -> Column:
        nodes = iter(self._nodes[node : node + field.nodes].tolist())
        buffers = iter(self._buffers[buffer : buffer + field.buffers].tolist())
        return self._read(field, nodes, buffers)

    def _array(self, dtype: str, count: int, buffer: List[int]) -> "np.ndarray[Any, Any]":
        if count == 0:
            return np.empty(0, dtype)
        if count < 0 or np.dtype(dtype).itemsize * count > buffer[1]:
            raise ValueError(f"a buffer has {buffer[1]} bytes for {count} values of {dtype}")
        return np.frombuffer(self._data, dtype, count, self._body + buffer[0])

    def _bits(self, count: int, buffer: List[int]) -> "np.ndarray[Any, Any]":
        """Copies: numpy has no array of bits."""
        packed = self._array("uint8", (count + 7) // 8, buffer)
        return np.unpackbits(packed, count=count, bitorder="little").astype(bool)

    def _offsets(self, count: int, buffer: List[int]) -> "np.ndarray[Any, Any]":
        return np.zeros(1, "int32") if count == 0 else self._array("int32", count + 1, buffer)

    def _read(self, field: Field, nodes: Iterator[List[int]], buffers: Iterator[List[int]]) -> Column:
        count, nulls = next(nodes)
        if field.kind == _NULL:
            return _masked(np.broadcast_to(_NONE, count), np.broadcast_to(True, count))
        validity = next(buffers)
        mask = ~self._bits(count, validity) if nulls else None
        if field.kind == _FIXED_LIST:
            elements, _ = next(nodes)
            next(buffers)  # Elements of a tensor are never null.
            return self._array(field.dtype, elements, next(buffers)).reshape(count, *field.shape)
        if field.kind == _STRUCT:
            return Struct(count, self._children(field, nodes, buffers), mask)
        if field.kind in (_LIST, _MAP):
            return self._list(field, count, mask, nodes, buffers)
        if field.kind in (_UTF8, _BINARY):
            offsets = self._offsets(count, next(buffers))
            values = self._array("uint8", int(offsets[-1]), next(buffers))
            return Strings(offsets, values, field.kind == _UTF8, mask)
        values = self._fixed(field, count, next(buffers))
        return values if mask is None else _masked(values, mask)

    def _children(
        self, field: Field, nodes: Iterator[List[int]], buffers: Iterator[List[int]]
    ) -> Dict[str, Column]:
        return {child.name: self._read(child, nodes, buffers) for child in field.children}

    def _list(
        self,
        field: Field,
        count: int,
        mask: "Optional[np.ndarray[Any, Any]]",
        nodes: Iterator[List[int]],
        buffers: Iterator[List[int]],
    ) -> Ragged:
        offsets = self._offsets(count, next(buffers))
        values = self._read(field.children[0], nodes, buffers)
        tensor = field.metadata.get("weft.tensor")
        shape = tuple(json.loads(tensor)["shape"][1:]) if tensor else ()
        return Ragged(offsets, values, mask, shape)

    def _fixed(self, field: Field, count: int, buffer: List[int]) -> "np.ndarray[Any, Any]":
        if field.kind == _BOOL:
            return self._bits(count, buffer)
        if field.kind == _DECIMAL:
            return self._decimals(field.scale, count, buffer)
        if not field.dtype:
            raise ValueError(f"column {field.name}: Arrow's type {field.kind} is none of a feed's")
        values = self._array(field.dtype, count, buffer)
        # Copies: a numpy date has 8 bytes.
        return values.astype("<M8[D]") if field.kind == _DATE else values

    def _decimals(self, scale: int, count: int, buffer: List[int]) -> "np.ndarray[Any, Any]":
        """Copies: numpy has no integers of 16 bytes."""
        data = self._array("uint8", 16 * count, buffer).tobytes()
        found = np.empty(count, object)
        # The default context would round to 28 digits.
        context = decimal.Context(prec=40)
        for row in range(count):
            unscaled = int.from_bytes(data[16 * row : 16 * row + 16], "little", signed=True)
            found[row] = decimal.Decimal(unscaled).scaleb(-scale, context)
        return found
