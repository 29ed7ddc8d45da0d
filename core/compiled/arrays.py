# cython: language_level=3
"""Growable arrays of numbers for compiled modules, which C code accesses without copying."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from . import standin as cython  # type: ignore[no-redef]

#: One zero of each type; repetition is the fastest way to an array of zeros.
_ZERO = {code: array(code, [0]) for code in "BHIQhiq"}


@cython.cfunc
def grown(old: object, code: str, size: cython.Py_ssize_t) -> object:
    """Return a copy of an array or view with ``size`` items, the new ones zero; of None, zeros only."""
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
