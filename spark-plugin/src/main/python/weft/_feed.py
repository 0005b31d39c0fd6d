"""One rank's batches of a feed."""

from __future__ import annotations

import json
import mmap
import os
import socket
import time
import weakref
from multiprocessing.reduction import DupFd
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple
from typing import TypeVar, Union

import numpy as np

from ._arrow import DAMAGE, ArrowFile, Field
from ._columns import Column, Ragged, Strings, Struct
from ._files import FeedError, FeedTimeout, open_owned
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
_T = TypeVar("_T")


class _NotYet(Exception):
    """What a reader waits for."""


class Feed:
    """The batches of one rank, in the memory where Spark's executor wrote them.

    Each ``for batch in feed`` is one epoch, and the next one has another order if the feed was
    saved with a seed; ``epoch(n)`` gives a certain one. While it is open, the end of a lease, an
    overwrite or a killed executor do not remove the file; the orderly end of an executor does.
    What is open stays readable in any case: arrays are valid for as long as they are referenced,
    even after ``close``.

    For one thread. A forked process can go on with it. A process that ``multiprocessing`` starts
    can get it as an argument and maps the same file.
    """

    def __init__(
        self, name: Name, rank: int, *, timeout: float = 60.0, owner: Optional[int] = None
    ) -> None:
        """Waits until the feed is saved.

        :param name: the path that it is saved to, or the path of a manifest
        :param rank: 0 to ranks - 1
        :param timeout: seconds to wait
        :param owner: the user id that owns the manifest; without it, this process's. For file
            systems that have other user ids. The other files are always this user's
        :raises FeedTimeout: if it is not there, or its files are freed or on another host
        :raises FeedError: if a file is damaged, or belongs to another user
        :raises ValueError: if the feed has no such rank
        """
        self._begin(os.fspath(name), rank, *_awaited(os.fspath(name), rank, timeout, owner))

    def _begin(
        self, name: str, rank: int, manifest: Dict[str, Any], lease: Optional[Lease], file: int
    ) -> None:
        self._release = weakref.finalize(self, _end, lease, file)
        self.name = name
        self.rank = rank
        self._manifest = manifest
        self._descriptor = file
        shard = manifest["shards"][rank]
        self.ranks = int(manifest["ranks"])
        #: Rows of a full batch.
        self.batch_rows = int(manifest["batchRows"])
        #: Rows of this rank in an epoch.
        self.rows = int(shard["rows"])
        #: Names the save. All ranks of a training have to read the same one.
        self.export_id = f"{manifest['application']}/{manifest['export']}"
        self._seed: Optional[int] = manifest.get("shuffleSeed")
        self._path: str = shard["file"]
        self._next_epoch = 0
        self._reader: Any = None
        self._checked: Dict[Tuple[str, ...], Tuple[str, ...]] = {}
        try:
            # Private, so that a write into a tensor changes neither the file nor other readers.
            flags = mmap.MAP_PRIVATE | _NO_RESERVE
            self._map = mmap.mmap(file, 0, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            self._file = ArrowFile(self._map)
        except DAMAGE as e:
            self._release()
            raise FeedError(f"{self._path} is damaged: {e}") from e
        except BaseException:
            self._release()
            raise

    def __getstate__(self) -> Dict[str, Any]:
        """For another process of ``multiprocessing``, which gets the open file."""
        self._require_open()
        return {
            "name": self.name,
            "rank": self.rank,
            "manifest": self._manifest,
            "file": DupFd(self._descriptor),
            "epoch": self._next_epoch,
        }

    def __setstate__(self, state: Dict[str, Any]) -> None:
        file = state["file"].detach()
        self._begin(state["name"], state["rank"], state["manifest"], None, file)
        self._next_epoch = state["epoch"]

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
        self._require_open()
        if not 0 <= position < len(self):
            raise IndexError(f"batch {position} of {len(self)}")
        return Batch(self, position)

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError(f"the feed {self.name} is closed")

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

    def _tensor_names(self, names: Tuple[str, ...]) -> Tuple[str, ...]:
        """Checks the columns for ``Batch.torch`` in all batches, once."""
        checked = self._checked.get(names)
        if checked is None:
            checked = names or tuple(n for n, f in self.fields.items() if not f.tensor_obstacle)
            for name in checked:
                self._require_tensor(name)
            self._checked[names] = checked
        return checked

    def _require_tensor(self, name: str) -> None:
        field = self._field(name)
        if field.tensor_obstacle:
            raise ValueError(f"column {name} {field.tensor_obstacle}")
        try:
            has_nulls = field.nullable and self._file.has_nulls(name)
        except DAMAGE as e:
            raise FeedError(f"{self._path} is damaged, column {name}: {e}") from e
        if has_nulls:
            raise ValueError(f"column {name} has nulls: replace them in Spark, as by coalesce")

    def _field(self, name: str) -> Field:
        if name not in self.fields:
            raise KeyError(f"{name}; the columns are {', '.join(self.fields)}")
        return self.fields[name]

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
        self._feed._field(name)
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

        :param names: without them, all columns of numbers, booleans and tensors of fixed shape;
            decimals and intervals are none of these
        :raises ValueError: if a column has nulls in any batch, or was named and is none of these
        """
        return {name: self._tensor(name) for name in self._feed._tensor_names(names)}

    def _tensor(self, name: str) -> "Tensor":
        import torch

        tensor = torch.from_numpy(self._read(name))
        bfloat16 = self._feed.fields[name].tensor_dtype == "bfloat16"
        return tensor.view(torch.bfloat16) if bfloat16 else tensor


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


def local_ranks(name: Name, *, timeout: float = 60.0, owner: Optional[int] = None) -> List[int]:
    """The ranks whose files are on this host, in order; waits until there are any.

    With several hosts, process i of a host takes ``local_ranks(name)[i]``. Parameters and errors
    are those of ``Feed``.
    """
    path = os.fspath(name)

    def attempt() -> List[int]:
        manifest = _manifest(path, owner)
        found = [s["rank"] for s in _local(manifest)]
        if not found:
            raise _NotYet(_gone(manifest["shards"][0], manifest, "no other rank's file is here"))
        return found

    return _retried(path, timeout, attempt)


def _local(manifest: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [shard for shard in manifest["shards"] if os.path.exists(shard["file"])]


def _awaited(
    name: str, rank: int, timeout: float, owner: Optional[int]
) -> Tuple[Dict[str, Any], Lease, int]:
    def attempt() -> Tuple[Dict[str, Any], Lease, int]:
        manifest = _manifest(name, owner)
        if not 0 <= rank < manifest["ranks"]:
            wrong = f"{name} has the ranks 0 to {manifest['ranks'] - 1}, not {rank}"
            # A killed application leaves its manifest. The next save may have more ranks.
            if rank < 0 or _local(manifest):
                raise ValueError(wrong)
            raise _NotYet(wrong)
        return (manifest, *_opened(manifest, rank))

    return _retried(name, timeout, attempt)


def _retried(name: str, timeout: float, attempt: Callable[[], _T]) -> _T:
    deadline = time.monotonic() + timeout
    while True:
        try:
            return attempt()
        except _NotYet as e:
            left = deadline - time.monotonic()
            if left <= 0:
                raise FeedTimeout(f"no feed at {name} within {timeout:g} s: {e}") from None
        time.sleep(min(_POLL_SECONDS, left))


def _manifest(name: str, owner: Optional[int]) -> Dict[str, Any]:
    path = name[len("file:") :] if name.startswith("file:") else name
    file = os.path.join(path, "manifest.json") if not os.path.isfile(path) else path
    try:
        descriptor = open_owned(file, os.geteuid() if owner is None else owner)
        with open(descriptor, encoding="utf-8") as source:
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
        _require_fields(manifest)
    except (KeyError, TypeError, IndexError, ValueError):
        raise FeedError(
            f"{file} is not the manifest of a feed that was exported to files"
        ) from None
    return manifest  # type: ignore[no-any-return]


def _require_fields(manifest: Dict[str, Any]) -> None:
    """Reads what this module uses, which fails if it is not there."""
    int(manifest["batchRows"]), manifest["application"], manifest["export"]
    for rank in range(manifest["ranks"]):
        shard = manifest["shards"][rank]
        int(shard["rows"]), shard["host"], os.fsencode(shard["file"]), os.fsencode(shard["lease"])
        if shard["rank"] != rank:
            raise ValueError("the shards are not in the order of the ranks")


def _opened(manifest: Dict[str, Any], rank: int) -> Tuple[Lease, int]:
    """The lease of a rank's shard, and a descriptor of the file."""
    shard = manifest["shards"][rank]
    try:
        lease = Lease(shard["lease"])
    except LeaseLost as e:
        raise _NotYet(_gone(shard, manifest, str(e))) from None
    try:
        return lease, open_owned(shard["file"], os.geteuid())
    except FileNotFoundError as e:
        lease.release()
        raise _NotYet(_gone(shard, manifest, str(e))) from None
    except BaseException:
        lease.release()
        raise


def _end(lease: Optional[Lease], file: int) -> None:
    """Also runs in a forked process, where it closes that process's descriptor only."""
    os.close(file)
    if lease is not None:
        lease.release()


def _gone(shard: Dict[str, Any], manifest: Dict[str, Any], cause: str) -> str:
    """Why a file that the manifest names is not there."""
    host = socket.gethostname()
    return (
        f"the file of rank {shard['rank']} is on host {shard['host']} (this is {host}), or was freed"
        f" because its lease, its executor or application {manifest.get('application', '')} ended:"
        f" {cause}"
    )
