"""A feed as a data set of PyTorch. Needs torch."""

from __future__ import annotations

import time
from typing import Dict, Iterator, Optional, Union

import torch
from torch.utils.data import IterableDataset, get_worker_info

from ._feed import Batch, Feed
from ._gpu_feed import GpuBatch, GpuFeed
from ._manifest import Name, OtherKind


class FeedDataset(IterableDataset):  # type: ignore[type-arg]
    """The batches of one rank as dictionaries of tensors.

    Batches are complete, so a loader must not make its own::

        loader = DataLoader(FeedDataset("features", rank), batch_size=None)

    Each iteration is one epoch. Without workers nothing is copied. Workers read the file that this
    process has open, and share an epoch's batches. PyTorch copies what they send, and
    ``set_epoch`` must then name each epoch, also for persistent workers. A feed in GPU memory
    gives tensors on that GPU, without workers only.
    """

    def __init__(
        self,
        name: Name,
        rank: int,
        *columns: str,
        timeout: float = 60.0,
        owner: Optional[int] = None,
    ) -> None:
        """Opens the feed, and checks the columns in all batches.

        :param columns: see ``Batch.torch``, also for errors
        :param timeout: see ``Feed``, also for errors
        :param owner: see ``Feed``
        """
        self._columns = columns
        #: In shared memory, so that persistent workers see it.
        self._epoch = torch.zeros((), dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]
        self._feed: Union[Feed, GpuFeed] = _opened(name, rank, timeout, owner)
        try:
            self._feed._tensor_names(columns)
        except BaseException:
            self._feed.close()
            raise

    @property
    def export_id(self) -> str:
        """Names the save, as ``Feed.export_id`` does."""
        return self._feed.export_id

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        """The batches of an epoch."""
        return len(self._feed)

    def __iter__(self) -> Iterator[Dict[str, torch.Tensor]]:
        epoch = int(self._epoch)
        worker = get_worker_info()  # type: ignore[no-untyped-call]
        if worker and isinstance(self._feed, GpuFeed):
            raise ValueError("a feed in GPU memory cannot be read by workers: use num_workers=0")
        if worker:
            return self._tensors(epoch, worker.id, worker.num_workers)
        self.set_epoch(epoch + 1)
        return self._tensors(epoch, 0, 1)

    def _tensors(self, epoch: int, first: int, step: int) -> Iterator[Dict[str, torch.Tensor]]:
        batches: Iterator[Union[Batch, GpuBatch]] = self._feed.epoch(epoch)
        for number, batch in enumerate(batches):
            if number % step == first:
                yield batch.torch(*self._columns)

    def close(self) -> None:
        """Gives the lease back, and ends iterations."""
        self._feed.close()


def _opened(
    name: Name, rank: int, timeout: float, owner: Optional[int]
) -> Union[Feed, GpuFeed]:
    began = time.monotonic()
    try:
        return Feed(name, rank, timeout=timeout, owner=owner)
    except OtherKind:
        # The wait for the manifest counts.
        return GpuFeed(name, rank, timeout=timeout, owner=owner, _began=began)
