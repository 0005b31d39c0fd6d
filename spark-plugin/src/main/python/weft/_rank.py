"""What a rank's feeds in files and in GPU memory have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Iterator, Optional, TypeVar

from ._manifest import Manifest
from ._order import file_positions

B = TypeVar("B")
_Self = TypeVar("_Self", bound="RankFeed")  # type: ignore[type-arg]


class RankFeed(ABC, Generic[B]):
    """The batches of one rank, and their order in each epoch."""

    def __init__(self, name: str, rank: int, manifest: Manifest) -> None:
        self.name = name
        self.rank = rank
        self.ranks = int(manifest["ranks"])
        #: Rows of a full batch.
        self.batch_rows = int(manifest["batchRows"])
        #: Rows of this rank in an epoch.
        self.rows = int(manifest["shards"][rank]["rows"])
        #: Names the save. All ranks of a training have to read the same one.
        self.export_id = f"{manifest['application']}/{manifest['export']}"
        self._seed: Optional[int] = manifest.get("shuffleSeed")
        self._next_epoch = 0

    @abstractmethod
    def __len__(self) -> int:
        """The batches of an epoch, equal on all ranks."""

    def __iter__(self) -> Iterator[B]:
        """The batches of the next epoch; the first is 0."""
        epoch = self._next_epoch
        self._next_epoch += 1
        return self.epoch(epoch)

    def epoch(self, epoch: int) -> Iterator[B]:
        """The batches of an epoch, in the order in which a rank inside Spark reads them."""
        if epoch < 0:
            raise ValueError(f"epochs are counted from 0, not {epoch}")
        full = self.rows // self.batch_rows
        for position in file_positions(self._seed, self.rank, epoch, len(self), full):
            yield self.batch(position)

    def batch(self, position: int) -> B:
        """The batch at a position of the shard, which has the order of epoch 0."""
        self._require_open()
        if not 0 <= position < len(self):
            raise IndexError(f"batch {position} of {len(self)}")
        return self._batch(position)

    @abstractmethod
    def _batch(self, position: int) -> B:
        """Creates a batch."""

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError(f"the feed {self.name} is closed")

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether it was closed."""

    @abstractmethod
    def close(self) -> None:
        """Gives the lease back. What batches have given stays valid."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()
