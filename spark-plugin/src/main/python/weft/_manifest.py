"""Waits for a saved feed, reads its manifest, and takes the lease of a shard."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union
from uuid import UUID

from ._cuda import HANDLE_BYTES
from ._files import FeedError, FeedTimeout, open_owned
from ._lease import Lease, LeaseLost

_POLL_SECONDS = 0.05
#: The version of the manifest.
_FORMAT = 1
Name = Union[str, "os.PathLike[str]"]
Manifest = Dict[str, Any]
_T = TypeVar("_T")


class NotYet(Exception):
    """What a reader waits for."""


class OtherKind(FeedError):
    """A feed in files was expected, and it is on GPUs, or the other way round."""


def local_ranks(name: Name, *, timeout: float = 60.0, owner: Optional[int] = None) -> List[int]:
    """The ranks whose files or GPUs are on this host, in order; waits until there are any.

    With several hosts, process i of a host takes ``local_ranks(name)[i]``. Parameters and errors
    are those of ``Feed``.
    """
    path = os.fspath(name)

    def attempt() -> List[int]:
        manifest = _read(path, owner)
        found = [s["rank"] for s in _local(manifest)]
        if not found:
            raise NotYet(gone(manifest, 0, "no other rank's is here"))
        return found

    return _retried(path, timeout, attempt)


def _local(manifest: Manifest) -> List[Dict[str, Any]]:
    return [s for s in manifest["shards"] if os.path.exists(s.get("file", s["lease"]))]


def awaited(
    name: str,
    rank: int,
    timeout: float,
    owner: Optional[int],
    on_gpus: bool,
    take: Callable[[Manifest], _T],
    began: Optional[float] = None,
) -> _T:
    """Waits for a manifest that has a rank, and takes its shard.

    :param on_gpus: whether the feed has to be on GPUs, else in files
    :param take: tried again if it raises NotYet, with a new manifest
    :param began: the monotonic time since when the timeout counts; None for now
    """

    def attempt() -> _T:
        manifest = _read(name, owner)
        if _is_on_gpus(manifest) != on_gpus:
            where, reader = ("files", "Feed") if on_gpus else ("GPU memory", "GpuFeed")
            raise OtherKind(f"the feed {name} is in {where}: use weft.{reader}")
        if not 0 <= rank < manifest["ranks"]:
            wrong = f"{name} has the ranks 0 to {manifest['ranks'] - 1}, not {rank}"
            # A killed application leaves its manifest. The next save may have more ranks.
            if rank < 0 or _local(manifest):
                raise ValueError(wrong)
            raise NotYet(wrong)
        return take(manifest)

    return _retried(name, timeout, attempt, began)


def _retried(
    name: str, timeout: float, attempt: Callable[[], _T], began: Optional[float] = None
) -> _T:
    deadline = (time.monotonic() if began is None else began) + timeout
    while True:
        try:
            return attempt()
        except NotYet as e:
            left = deadline - time.monotonic()
            if left <= 0:
                raise FeedTimeout(f"no feed at {name} within {timeout:g} s: {e}") from None
        time.sleep(min(_POLL_SECONDS, left))


def _read(name: str, owner: Optional[int]) -> Manifest:
    path = name[len("file:") :] if name.startswith("file:") else name
    file = os.path.join(path, "manifest.json") if not os.path.isfile(path) else path
    try:
        descriptor = open_owned(file, os.geteuid() if owner is None else owner)
        with open(descriptor, encoding="utf-8") as source:
            manifest = json.load(source)
    except (FileNotFoundError, NotADirectoryError):
        raise NotYet(f"{file} does not exist") from None
    except ValueError as e:
        raise NotYet(f"{file} is not complete: {e}") from None
    if isinstance(manifest, dict) and manifest.get("format", _FORMAT) != _FORMAT:
        raise FeedError(
            f"{file} has the format {manifest['format']}, this package reads {_FORMAT}:"
            " install the package of the Weft that saved it"
        )
    try:
        _require_fields(manifest)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        raise FeedError(f"{file} is not the manifest of a feed that was exported") from None
    return manifest  # type: ignore[no-any-return]


def _is_on_gpus(manifest: Manifest) -> bool:
    return "batchBytes" in manifest


def _require_fields(manifest: Manifest) -> None:
    """Reads what this package uses, which fails if it is not there."""
    int(manifest["batchRows"]), manifest["application"], manifest["export"]
    for rank in range(manifest["ranks"]):
        shard = manifest["shards"][rank]
        int(shard["rows"]), shard["host"], os.fsencode(shard["lease"])
        if _is_on_gpus(manifest):
            int(shard["batches"]), int(shard["bytes"]), int(shard["offset"]), UUID(shard["gpu"])
            if len(bytes.fromhex(shard["handle"])) != HANDLE_BYTES:
                raise ValueError("the handle of the memory is damaged")
        else:
            os.fsencode(shard["file"])
        if shard["rank"] != rank:
            raise ValueError("the shards are not in the order of the ranks")
    if _is_on_gpus(manifest):
        int(manifest["batchBytes"])
        for tensor in manifest["tensors"].values():
            str(tensor["dtype"]), int(tensor["offset"]), [int(size) for size in tensor["shape"]]


def lease_of(manifest: Manifest, rank: int) -> Lease:
    """Locks a rank's lease file."""
    try:
        return Lease(manifest["shards"][rank]["lease"])
    except LeaseLost as e:
        raise NotYet(gone(manifest, rank, str(e))) from None


def gone(manifest: Manifest, rank: int, cause: str) -> str:
    """Why what the manifest names is not there."""
    shard, host = manifest["shards"][rank], socket.gethostname()
    what = "GPU memory" if _is_on_gpus(manifest) else "file"
    return (
        f"the {what} of rank {rank} is on host {shard['host']} (this is {host}), or was freed"
        f" because its lease, its executor or application {manifest['application']} ended: {cause}"
    )
