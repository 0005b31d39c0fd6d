"""Opens files that another process names, and the errors of this package."""

from __future__ import annotations

import os
import stat


class FeedError(Exception):
    """A feed cannot be read."""


class FeedTimeout(FeedError, TimeoutError):
    """A feed was not there in time; the message says what was missing."""


def open_owned(path: str, owner: int) -> int:
    """Opens a file for reading, without waiting for a writer of a pipe.

    :param owner: the user id that the file must belong to
    :return: a descriptor
    :raises FileNotFoundError: if it does not exist
    :raises FeedError: if it cannot be opened, is no regular file, or belongs to another user
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as e:
        raise FeedError(f"{path} cannot be opened: {e.strerror}") from e
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_uid == owner:
        return file
    os.close(file)
    if not stat.S_ISREG(found.st_mode):
        raise FeedError(f"{path} is no regular file")
    raise FeedError(f"{path} belongs to user {found.st_uid}, not to {owner}")
