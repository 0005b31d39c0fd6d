"""Weft for Python: help for Spark sessions, and feeds as numpy, pyarrow or torch without a copy.

A feed is saved by ``df.write.format("weft")``. ``Feed`` reads one rank's batches in any process of
the same user on the host of that rank, from memory that Spark's executor shares. ``GpuFeed`` does
so on the GPU of that rank.
"""

from ._conf import __version__, spark_conf
from ._cuda import recording
from ._feed import Batch, Feed
from ._files import FeedError, FeedTimeout
from ._gpu import map_batches, on_device
from ._gpu_feed import GpuArray, GpuBatch, GpuFeed, GpuField
from ._manifest import local_ranks
from ._columns import Column, Ragged, Strings, Struct

__all__ = [
    "Batch",
    "Column",
    "Feed",
    "FeedError",
    "FeedTimeout",
    "GpuArray",
    "GpuBatch",
    "GpuFeed",
    "GpuField",
    "Ragged",
    "Strings",
    "Struct",
    "__version__",
    "local_ranks",
    "map_batches",
    "on_device",
    "recording",
    "spark_conf",
]
