"""One rank's batches of a feed in GPU memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Tuple

from . import _cuda
from ._files import FeedError
from ._lease import is_locked
from ._manifest import Manifest, Name, NotYet, awaited, gone, lease_of
from ._rank import RankFeed

if TYPE_CHECKING:
    from torch import Tensor

#: By dtype of the manifest: the type of the array interface, and bytes of an element. The interface
#: has no bfloat16.
_TYPES = {
    "int8": ("|i1", 1),
    "int16": ("<i2", 2),
    "int32": ("<i4", 4),
    "int64": ("<i8", 8),
    "float16": ("<f2", 2),
    "bfloat16": ("<i2", 2),
    "float32": ("<f4", 4),
    "float64": ("<f8", 8),
}


@dataclass(frozen=True)
class GpuField:
    """A column's type.

    :param dtype: of an element: "int64", "float32", "bfloat16"
    :param shape: of one row's value, () for a number
    :param offset: in bytes, from the start of a batch
    """

    name: str
    dtype: str
    shape: Tuple[int, ...]
    offset: int

    def bytes(self, rows: int) -> int:
        """
        :raises KeyError: for an unknown dtype
        """
        return rows * prod(self.shape) * _TYPES[self.dtype][1]


class GpuArray:
    """A column of a batch in GPU memory, in C order without gaps.

    It has the CUDA array interface, by which torch, cupy and numba take it without a copy. The
    memory was complete before the feed was saved, so no stream has to wait. It stays mapped for as
    long as this object, or an array that another library made of it, is referenced.

    Do not write into it: the interface marks it as writable only because PyTorch demands it. A
    write would change the rows of other epochs and of other processes.
    """

    def __init__(self, memory: _cuda.Mapping, at: int, field: GpuField, rows: int) -> None:
        self._memory = memory
        self._at = at
        #: As the column was declared; of bfloat16, the interface gives the bits as int16.
        self.dtype = field.dtype
        self.shape = (rows, *field.shape)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        self._memory.require_own_process()
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": _TYPES[self.dtype][0],
            "data": (self._at, False),
            "stream": None,
        }

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"GpuArray(dtype={self.dtype}, shape={self.shape}, gpu={self._memory.ordinal})"


class GpuFeed(RankFeed["GpuBatch"]):
    """The batches of one rank on the GPU where Spark's executor put them, mapped by CUDA IPC.

    For feeds that were saved with the option ``toGpus``. They have the columns that are numbers or
    tensors of fixed shape. Iteration and epochs are those of ``Feed``. While it is open, or any of
    its arrays is referenced, the end of a lease or an overwrite do not free the memory. The end of
    the executor does, and what is on the GPU is then undefined.

    For one thread, and for this process: a forked one, such as a worker of PyTorch, cannot use it.
    """

    def __init__(
        self,
        name: Name,
        rank: int,
        *,
        timeout: float = 60.0,
        owner: Optional[int] = None,
        library: str = "libcuda.so.1",
        _began: Optional[float] = None,
    ) -> None:
        """Waits until the feed is saved.

        :param name: see ``Feed``, also for ``rank``, ``timeout`` and ``owner``
        :param library: of the NVIDIA driver
        :raises FeedTimeout: if it is not there, or its memory is freed or on another host
        :raises FeedError: if the driver does not work, this process does not see the GPU, or the
            manifest is damaged or of files
        :raises ValueError: if the feed has no such rank
        """
        path = os.fspath(name)

        def take(found: Manifest) -> Tuple[Manifest, _cuda.Mapping]:
            return found, _mapped(found, rank, library)

        manifest, memory = awaited(path, rank, timeout, owner, True, take, _began)
        super().__init__(path, rank, manifest)
        shard = manifest["shards"][rank]
        self._batches = int(shard["batches"])
        self._batch_bytes = int(manifest["batchBytes"])
        self._start = memory.start + int(shard["offset"])
        self._fields = {
            name: GpuField(name, t["dtype"], tuple(t["shape"]), int(t["offset"]))
            for name, t in manifest["tensors"].items()
        }
        _require_inside(path, self, int(shard["offset"]), int(shard["bytes"]), memory.size)
        self._memory: Optional[_cuda.Mapping] = memory
        #: The GPU's number in this process, as in ``torch.device("cuda", gpu)``.
        self.gpu = memory.ordinal

    def __reduce__(self) -> Any:
        raise TypeError(
            "a GpuFeed is for one process: open it in the other one. Loaders of PyTorch need"
            " num_workers=0"
        )

    @property
    def fields(self) -> Mapping[str, GpuField]:
        """The columns' types by name."""
        return self._fields

    def __len__(self) -> int:
        return self._batches

    def _batch(self, position: int) -> "GpuBatch":
        assert self._memory is not None
        self._memory.require_own_process()
        return GpuBatch(self, self._memory, position)

    @property
    def closed(self) -> bool:
        return self._memory is None

    def close(self) -> None:
        """Gives the memory and its lease back, as soon as no array is referenced any more.

        Another thread does so, behind the GPU's work of this process. The one that drops the last
        reference waits for it up to a second. While any thread records a CUDA graph, see
        ``weft.recording``.
        """
        self._memory = None

    def _tensor_names(self, names: Tuple[str, ...]) -> Tuple[str, ...]:
        for name in names:
            self._field(name)
        return names or tuple(self._fields)

    def _field(self, name: str) -> GpuField:
        if name not in self._fields:
            known = ", ".join(self._fields)
            raise KeyError(f"{name}; the columns on the GPU are {known}")
        return self._fields[name]


class GpuBatch(Mapping[str, GpuArray]):
    """A batch's columns by name, in GPU memory."""

    def __init__(self, feed: GpuFeed, memory: _cuda.Mapping, position: int) -> None:
        self._feed = feed
        self._memory = memory
        self._start = feed._start + position * feed._batch_bytes
        #: The batches before this one are full.
        self.rows = max(0, min(feed.batch_rows, feed.rows - position * feed.batch_rows))

    def __getitem__(self, name: str) -> GpuArray:
        field = self._feed._field(name)
        return GpuArray(self._memory, self._start + field.offset, field, self.rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._feed.fields)

    def __len__(self) -> int:
        """The number of columns."""
        return len(self._feed.fields)

    def torch(self, *names: str) -> Dict[str, "Tensor"]:
        """Columns as tensors on the same memory. Needs torch with CUDA.

        Do not write into them, see ``GpuArray``.

        :param names: without them, all columns
        """
        return {name: self._tensor(name) for name in self._feed._tensor_names(names)}

    def _tensor(self, name: str) -> "Tensor":
        # PyTorch would only say that it does not know the type of an array without interface.
        self._memory.require_own_process()
        import torch

        array = self[name]
        tensor = torch.as_tensor(array, device=f"cuda:{self._feed.gpu}")
        return tensor.view(torch.bfloat16) if array.dtype == "bfloat16" else tensor


def _mapped(manifest: Manifest, rank: int, library: str) -> _cuda.Mapping:
    """Locks the lease of a rank's shard before it maps the memory, which may be freed without."""
    shard = manifest["shards"][rank]
    lease = lease_of(manifest, rank)
    try:
        # A killed executor leaves its lease, and its handle may name memory of another process.
        if not is_locked(os.path.join(os.path.dirname(shard["lease"]), "alive")):
            raise NotYet(gone(manifest, rank, "its executor does not run"))
        return _cuda.Mapping(library, shard["gpu"], bytes.fromhex(shard["handle"]), lease)
    except _cuda.NotMapped as e:
        lease.release()
        raise NotYet(gone(manifest, rank, str(e))) from None
    except BaseException:
        lease.release()
        raise


def _require_inside(path: str, feed: GpuFeed, offset: int, size: int, mapped: int) -> None:
    """
    :raises FeedError: if a manifest names bytes outside of the shard's memory
    """
    try:
        starts = [field.offset for field in feed.fields.values()]
        ends = [field.offset + field.bytes(feed.batch_rows) for field in feed.fields.values()]
        numbers = [offset, size, len(feed), feed.rows, feed.batch_rows - 1, *starts]
        numbers += [size for field in feed.fields.values() for size in field.shape]
        is_inside = (
            min(numbers) >= 0
            and offset + size <= mapped
            and len(feed) * feed._batch_bytes <= size
            and feed.rows <= len(feed) * feed.batch_rows
            and max(ends) <= feed._batch_bytes
            and not any(n % 8 for n in (offset, feed._batch_bytes, *starts))
        )
    except (KeyError, TypeError, ValueError) as e:
        raise FeedError(f"the manifest of {path} is damaged: {e!r}") from e
    if not is_inside:
        raise FeedError(f"the manifest of {path} is damaged: a batch is outside of its memory")
