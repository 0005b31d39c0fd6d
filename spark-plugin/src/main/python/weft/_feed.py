"""One rank's batches of a feed."""

from __future__ import annotations

import json
import mmap
import os
import socket
import time
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from ._arrow import DAMAGE, ArrowFile, Field
from ._columns import Column, Ragged, Strings, Struct
from ._lease import Lease, LeaseLost
from ._order import file_positions

if TYPE_CHECKING:
    import pyarrow
    from torch import Tensor

_POLL_SECONDS = 0.05
#: The version of the manifest.
_FORMAT = 1
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
Name = Union[str, "os.PathLike[str]"]


class FeedError(Exception):
    """A feed cannot be read."""


class FeedTimeout(FeedError, TimeoutError):
    """A feed was not there in time; the message says what was missing."""


class _NotYet(Exception):
    """What a reader waits for."""


class Feed:
    """The batches of one rank, in the memory where Spark's executor wrote them.

    Each ``for batch in feed`` is one epoch, and the next one has another order if the feed was
    saved with a seed; ``epoch(n)`` gives a certain one. While it is open, the file stays, even if
    the application ends. Arrays stay valid for as long as they are referenced, even after ``close``.
    For one thread.
    """

    def __init__(self, name: Name, rank: int, *, timeout: float = 60.0) -> None:
        """Waits until the feed is saved.

        :param name: the path that it is saved to, or the path of a manifest
        :param rank: 0 to ranks - 1
        :param timeout: seconds to wait
        :raises FeedTimeout: if it is not there, or its files are freed or on another host
        :raises FeedError: if its file is damaged
        :raises ValueError: if the feed has no such rank
        """
        self.name = os.fspath(name)
        self.rank = rank
        manifest, self._lease, self._map = _awaited(self.name, rank, timeout)
        self._release = weakref.finalize(self, self._lease.release)
        shard = manifest["shards"][rank]
        self.ranks = int(manifest["ranks"])
        #: Rows of a full batch.
        self.batch_rows = int(manifest["batchRows"])
        #: Rows of this rank in an epoch.
        self.rows = int(shard["rows"])
        self._seed: Optional[int] = manifest.get("shuffleSeed")
        self._path: str = shard["file"]
        self._next_epoch = 0
        self._process = os.getpid()
        self._reader: Any = None
        try:
            self._file = ArrowFile(self._map)
        except DAMAGE as e:
            self._release()
            raise FeedError(f"{self._path} is damaged: {e}") from e

    @property
    def fields(self) -> Mapping[str, Field]:
        """The columns' types by name."""
        return self._file.fields

    def __len__(self) -> int:
        """The batches of an epoch, equal on all ranks."""
        return len(self._file)

    def __iter__(self) -> Iterator["Batch"]:
        """The batches of the next epoch; the first is 0."""
        epoch = self._next_epoch
        self._next_epoch += 1
        return self.epoch(epoch)

    def epoch(self, epoch: int) -> Iterator["Batch"]:
        """The batches of an epoch, in the order in which a rank inside Spark reads them."""
        if epoch < 0:
            raise ValueError(f"epochs are counted from 0, not {epoch}")
        full = self.rows // self.batch_rows
        for position in file_positions(self._seed, self.rank, epoch, len(self), full):
            yield self.batch(position)

    def batch(self, position: int) -> "Batch":
        """The batch at a position of the file, which has the order of epoch 0."""
        if self.closed:
            raise ValueError(f"the feed {self.name} is closed")
        if not 0 <= position < len(self):
            raise IndexError(f"batch {position} of {len(self)}")
        return Batch(self, position)

    @property
    def closed(self) -> bool:
        return not self._release.alive

    def close(self) -> None:
        """Gives the lease back, so that Spark may free the file. Arrays stay valid."""
        self._release()

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _arrow_batch(self, position: int) -> "pyarrow.RecordBatch":
        if self._reader is None:
            import pyarrow

            self._reader = pyarrow.ipc.open_file(pyarrow.py_buffer(self._map))
        return self._reader.get_batch(position)


class Batch(Mapping[str, Column]):
    """A batch's columns by name, each read when it is first asked for.

    Arrays are read-only. They are views of the mapped file, except of booleans, dates, decimals of
    more than 18 digits and masks of nulls, for which numpy has no equal form.
    """

    def __init__(self, feed: Feed, position: int) -> None:
        self._feed = feed
        self._position = position
        try:
            self._places = feed._file.batch(position)
        except DAMAGE as e:
            raise FeedError(f"{feed._path} is damaged in batch {position}: {e}") from e
        self._columns: Dict[str, Column] = {}

    @property
    def rows(self) -> int:
        return self._places.rows

    def __getitem__(self, name: str) -> Column:
        column = self._columns.get(name)
        if column is None:
            column = _read_only(self._read(name))
            self._columns[name] = column
        return column

    def _read(self, name: str) -> Column:
        if name not in self._feed.fields:
            raise KeyError(f"{name}; the columns are {', '.join(self._feed.fields)}")
        try:
            return self._feed._file.column(self._places, name)
        except DAMAGE as e:
            where = f"{self._feed._path} is damaged in batch {self._position}"
            raise FeedError(f"{where}, column {name}: {e}") from e

    def __iter__(self) -> Iterator[str]:
        return iter(self._feed.fields)

    def __len__(self) -> int:
        """The number of columns."""
        return len(self._feed.fields)

    def arrow(self) -> "pyarrow.RecordBatch":
        """The batch as pyarrow has it, on the same memory. Needs pyarrow."""
        return self._feed._arrow_batch(self._position)

    def torch(self, *names: str) -> Dict[str, "Tensor"]:
        """Columns as tensors on the same memory; booleans are copied. Needs torch.

        Do not write into them: PyTorch does not know read-only tensors. A write would change the
        rows of later epochs, in this process only.

        :param names: without them, all columns of numbers, booleans and tensors of fixed shape
        :raises ValueError: if a column has nulls, or was named and is none of these
        """
        wanted = names or [n for n in self if _has_tensor_form(self._feed.fields[n])]
        return {name: self._tensor(name) for name in wanted}

    def _tensor(self, name: str) -> "Tensor":
        import torch

        column = self._read(name)
        if isinstance(column, np.ma.MaskedArray):
            raise ValueError(f"column {name} has nulls: replace them in Spark, as by coalesce")
        field = self._feed.fields[name]
        if not isinstance(column, np.ndarray) or not _has_tensor_form(field):
            raise ValueError(f"column {name} is no number and has no tensor type: {field}")
        tensor = torch.from_numpy(column)
        return tensor.view(torch.bfloat16) if field.tensor_dtype == "bfloat16" else tensor


def _has_tensor_form(field: Field) -> bool:
    return field.dtype.startswith(("int", "float", "bool")) and (
        bool(field.shape) or not field.children
    )


def _read_only(column: Column) -> Column:
    if isinstance(column, (Ragged, Strings)):
        column.offsets.flags.writeable = False
        _read_only(column.values)
    elif isinstance(column, Struct):
        for child in column.values():
            _read_only(child)
    else:
        column.flags.writeable = False
    return column


def local_ranks(name: Name, *, timeout: float = 60.0) -> List[int]:
    """The ranks whose files are on this host, in order; waits until the feed is saved.

    With several hosts, process i of a host takes ``local_ranks(name)[i]``.
    """

    def attempt() -> List[int]:
        manifest = _manifest(os.fspath(name))
        return [s["rank"] for s in manifest["shards"] if os.path.exists(s["file"])]

    return _retried(os.fspath(name), timeout, attempt)  # type: ignore[no-any-return]


def _awaited(name: str, rank: int, timeout: float) -> Tuple[Dict[str, Any], Lease, mmap.mmap]:
    def attempt() -> Tuple[Dict[str, Any], Lease, mmap.mmap]:
        manifest = _manifest(name)
        if not 0 <= rank < manifest["ranks"]:
            raise ValueError(f"{name} has the ranks 0 to {manifest['ranks'] - 1}, not {rank}")
        return (manifest, *_mapped(manifest, rank))

    return _retried(name, timeout, attempt)  # type: ignore[no-any-return]


def _retried(name: str, timeout: float, attempt: Any) -> Any:
    deadline = time.monotonic() + timeout
    while True:
        try:
            return attempt()
        except _NotYet as e:
            left = deadline - time.monotonic()
            if left <= 0:
                raise FeedTimeout(f"no feed at {name} within {timeout:g} s: {e}") from None
        time.sleep(min(_POLL_SECONDS, left))


def _manifest(name: str) -> Dict[str, Any]:
    path = name[len("file:") :] if name.startswith("file:") else name
    file = os.path.join(path, "manifest.json") if not os.path.isfile(path) else path
    try:
        with open(file, encoding="utf-8") as source:
            manifest = json.load(source)
    except (FileNotFoundError, NotADirectoryError):
        raise _NotYet(f"{file} does not exist") from None
    except ValueError as e:
        raise _NotYet(f"{file} is not complete: {e}") from None
    if isinstance(manifest, dict) and manifest.get("format", _FORMAT) != _FORMAT:
        raise FeedError(
            f"{file} has the format {manifest['format']}, this package reads {_FORMAT}:"
            " install the package of the Weft that saved it"
        )
    try:
        if all(isinstance(shard["file"], str) for shard in manifest["shards"]):
            return manifest  # type: ignore[no-any-return]
    except (KeyError, TypeError):
        pass
    raise FeedError(f"{file} is not the manifest of a feed that was exported to files")


def _mapped(manifest: Dict[str, Any], rank: int) -> Tuple[Lease, mmap.mmap]:
    shard = manifest["shards"][rank]
    try:
        lease = Lease(shard["lease"])
    except LeaseLost as e:
        raise _NotYet(_gone(shard, manifest, str(e))) from None
    try:
        with open(shard["file"], "rb") as file:
            # Private, so that a write into a tensor changes neither the file nor other readers.
            flags = mmap.MAP_PRIVATE | _NO_RESERVE
            prot = mmap.PROT_READ | mmap.PROT_WRITE
            return lease, mmap.mmap(file.fileno(), 0, flags=flags, prot=prot)
    except FileNotFoundError as e:
        lease.release()
        raise _NotYet(_gone(shard, manifest, str(e))) from None
    except BaseException:
        lease.release()
        raise


def _gone(shard: Dict[str, Any], manifest: Dict[str, Any], cause: str) -> str:
    """Why a file that the manifest names is not there."""
    host = socket.gethostname()
    return (
        f"the file of rank {shard['rank']} is on host {shard['host']} (this is {host}), or was freed"
        f" because its lease, its executor or application {manifest.get('application', '')} ended:"
        f" {cause}"
    )
