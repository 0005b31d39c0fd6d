"""Columns of a batch. All are views of the mapped file, except where a comment says otherwise."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt


class Ragged(Sequence[Any]):
    """A column of lists: the elements of all rows, and where each row's begin.

    ``ragged[i]`` is a view of the elements of row i, or None if the row is null.
    """

    def __init__(
        self,
        offsets: npt.NDArray[np.int32],
        values: "Column",
        mask: Optional[npt.NDArray[np.bool_]] = None,
        shape: Tuple[int, ...] = (),
    ) -> None:
        """
        :param offsets: one more than rows; row i is values[offsets[i]:offsets[i + 1]]
        :param mask: True where a row is null; None if none is
        :param shape: of the elements, without the first dimension of each row; () for numbers
        """
        self.offsets = offsets
        self.values = values
        self.mask = mask
        self.shape = shape

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            start, stop = _range(row, len(self))
            return Ragged(
                self.offsets[start : stop + 1], self.values, _cut(self.mask, start, stop), self.shape
            )
        row = _index(row, len(self))
        if self.mask is not None and self.mask[row]:
            return None
        found = self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]
        return found.reshape(-1, *self.shape) if self.shape else found


class Strings(Sequence[Any]):
    """A column of texts or bytes. ``strings[i]`` makes a str or bytes, or None for a null."""

    def __init__(
        self,
        offsets: npt.NDArray[np.int32],
        values: npt.NDArray[np.uint8],
        text: bool,
        mask: Optional[npt.NDArray[np.bool_]] = None,
    ) -> None:
        """
        :param offsets: one more than rows; row i is values[offsets[i]:offsets[i + 1]]
        :param values: the bytes of all rows; texts are UTF-8
        """
        self.offsets = offsets
        self.values = values
        self.text = text
        self.mask = mask

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            start, stop = _range(row, len(self))
            return Strings(
                self.offsets[start : stop + 1], self.values, self.text, _cut(self.mask, start, stop)
            )
        row = _index(row, len(self))
        if self.mask is not None and self.mask[row]:
            return None
        value = self.values[self.offsets[row] : self.offsets[row + 1]].tobytes()
        return value.decode() if self.text else value


class Struct(Mapping[str, "Column"]):
    """A column of structs: one column per field."""

    def __init__(
        self,
        rows: int,
        fields: Mapping[str, "Column"],
        mask: Optional[npt.NDArray[np.bool_]] = None,
    ) -> None:
        self.rows = rows
        self.fields = fields
        self.mask = mask

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop = _range(key, self.rows)
            fields = {name: column[start:stop] for name, column in self.fields.items()}
            return Struct(stop - start, fields, _cut(self.mask, start, stop))
        return self.fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


#: A masked array has nulls where its mask is True.
Column = Union[npt.NDArray[Any], "np.ma.MaskedArray[Any, Any]", Ragged, Strings, Struct]


def _index(row: int, rows: int) -> int:
    if not -rows <= row < rows:
        raise IndexError(f"row {row} of {rows}")
    return row % rows


def _range(rows: slice, count: int) -> Tuple[int, int]:
    start, stop, step = rows.indices(count)
    if step != 1:
        raise ValueError("a slice of rows has the step 1")
    return start, max(start, stop)


def _cut(
    mask: Optional[npt.NDArray[np.bool_]], start: int, stop: int
) -> Optional[npt.NDArray[np.bool_]]:
    return None if mask is None else mask[start:stop]
