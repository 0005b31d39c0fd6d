"""Weft for Python: help for Spark sessions, and feeds as numpy, pyarrow or torch without a copy.

A feed is saved by ``df.write.format("weft")``. ``Feed`` reads one rank's batches in any process of
the same user on the host of that rank, from memory that Spark's executor shares.
"""

from ._conf import __version__, spark_conf
from ._feed import Batch, Feed, local_ranks
from ._files import FeedError, FeedTimeout
from ._gpu import map_batches, on_device
from ._columns import Column, Ragged, Strings, Struct

__all__ = [
    "Batch",
    "Column",
    "Feed",
    "FeedError",
    "FeedTimeout",
    "Ragged",
    "Strings",
    "Struct",
    "__version__",
    "local_ranks",
    "map_batches",
    "on_device",
    "spark_conf",
]
