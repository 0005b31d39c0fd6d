"""One rank's batches of a feed."""

from __future__ import annotations

import mmap
import os
import weakref
from multiprocessing.reduction import DupFd
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Tuple

import numpy as np

from ._arrow import DAMAGE, ArrowFile, Field
from ._columns import Column, Ragged, Strings, Struct
from ._files import FeedError, open_owned
from ._lease import Lease
from ._manifest import Manifest, Name, NotYet, awaited, gone, lease_of
from ._rank import RankFeed

if TYPE_CHECKING:
    import pyarrow
    from torch import Tensor

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class Feed(RankFeed["Batch"]):
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
        path = os.fspath(name)
        taken = awaited(path, rank, timeout, owner, False, lambda found: _opened(found, rank))
        self._begin(path, rank, *taken)

    def _begin(
        self, name: str, rank: int, manifest: Manifest, lease: Optional[Lease], file: int
    ) -> None:
        self._release = weakref.finalize(self, _end, lease, file)
        super().__init__(name, rank, manifest)
        self._manifest = manifest
        self._descriptor = file
        self._path: str = manifest["shards"][rank]["file"]
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
        return len(self._file)

    def _batch(self, position: int) -> "Batch":
        return Batch(self, position)

    @property
    def closed(self) -> bool:
        return not self._release.alive

    def close(self) -> None:
        """Gives the lease back, so that Spark may free the file. Arrays stay valid."""
        self._release()

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


def _opened(manifest: Manifest, rank: int) -> Tuple[Manifest, Lease, int]:
    """The manifest, the lease of a rank's shard, and a descriptor of the file."""
    lease = lease_of(manifest, rank)
    try:
        return manifest, lease, open_owned(manifest["shards"][rank]["file"], os.geteuid())
    except FileNotFoundError as e:
        lease.release()
        raise NotYet(gone(manifest, rank, str(e))) from None
    except BaseException:
        lease.release()
        raise


def _end(lease: Optional[Lease], file: int) -> None:
    """Also runs in a forked process, where it closes that process's descriptor only."""
    os.close(file)
    if lease is not None:
        lease.release()
