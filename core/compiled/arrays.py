# cython: language_level=3
"""Arrays of numbers that grow, for what is compiled: memory that C reads where it is."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from . import standin as cython  # type: ignore[no-redef]

#: To be repeated, which is the quickest way to an array of zeros.
_ZERO = {code: array(code, [0]) for code in "BHIQhiq"}


@cython.cfunc
def grown(old: object, code: str, size: cython.Py_ssize_t) -> object:
    """Return a copy of an array, or of a view of one, with room for ``size`` items, zero-filled; None: nothing but
    zeros."""
    new = _ZERO[code] * size
    if old is not None:
        memoryview(new)[: len(old)] = memoryview(old)
    return new


@cython.cfunc
def copied(code: str, view: object) -> object:
    """Return a view's items as an array."""
    found = array(code)
    found.frombytes(memoryview(view).cast("B"))
    return found
