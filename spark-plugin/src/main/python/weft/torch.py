"""A feed as a data set of PyTorch. Needs torch."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Optional

import torch
from torch.utils.data import IterableDataset, get_worker_info

from ._feed import Feed, Name


class FeedDataset(IterableDataset):  # type: ignore[type-arg]
    """The batches of one rank as dictionaries of tensors.

    Batches are complete, so a loader must not make its own::

        loader = DataLoader(FeedDataset("features", rank), batch_size=None)

    Each iteration is one epoch. Without workers nothing is copied. Workers share an epoch's
    batches; PyTorch copies what they send, and ``set_epoch`` must then name each epoch.
    """

    def __init__(self, name: Name, rank: int, *columns: str, timeout: float = 60.0) -> None:
        """
        :param columns: see ``Batch.torch``
        :param timeout: seconds to wait for the feed, when it is first needed
        """
        self._name = os.fspath(name)
        self._rank = rank
        self._columns = columns
        self._timeout = timeout
        self._epoch = 0
        self._feed: Optional[Feed] = None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self._epoch = epoch

    def __len__(self) -> int:
        """The batches of an epoch."""
        return len(self._opened())

    def __iter__(self) -> Iterator[Dict[str, torch.Tensor]]:
        feed = self._opened()
        worker = get_worker_info()  # type: ignore[no-untyped-call]
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        epoch = self._epoch
        self._epoch += 1
        return self._tensors(feed, epoch, first, step)

    def _tensors(
        self, feed: Feed, epoch: int, first: int, step: int
    ) -> Iterator[Dict[str, torch.Tensor]]:
        for number, batch in enumerate(feed.epoch(epoch)):
            if number % step == first:
                yield batch.torch(*self._columns)

    def _opened(self) -> Feed:
        # A forked worker needs a lease of its own.
        if self._feed is None or self._feed._process != os.getpid():
            self._feed = Feed(self._name, self._rank, timeout=self._timeout)
        return self._feed

    def close(self) -> None:
        """Gives the lease back; a further iteration takes it again."""
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_feed": None}
