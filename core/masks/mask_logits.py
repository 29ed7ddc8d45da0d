# cython: language_level=3, boundscheck=False, wraparound=False
"""Masking of logits: minus infinity for forbidden tokens, in one pass, without the GIL.

Logits are passed as their bits, so that both kinds of half precision need no arithmetic: a bit pattern is written.

Compiled where that is possible (Cython in pure-Python mode). Without a compiler `batch` uses NumPy; only tests, which
compare both, run this module interpreted.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

#: True if this module is compiled.
COMPILED: bool = bool(cython.compiled)


#: The bits of one logit; a function is compiled for each type.
Bits = cython.fused_type(cython.uint, cython.ushort)


def forbid(logits: Bits[:, ::1], masks: cython.uint[:, ::1], rows: cython.int[::1], pattern: Bits) -> None:
    """Write ``pattern`` over the forbidden logits, of 32 or 16 bits.

    Args:
        logits: the bits of the logits, ``[n, V]``.
        masks: as `Matcher.fill_mask` writes them, ``[m, W]``; logits beyond ``32 * W`` are forbidden.
        rows: for each row of the logits, the row of its mask.
        pattern: the bits of minus infinity.

    Raises:
        IndexError: a row number is out of bounds.
    """
    row: cython.Py_ssize_t
    word: cython.Py_ssize_t
    token: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    source: cython.Py_ssize_t
    bits: cython.uint
    everything: cython.uint = 0xFFFFFFFF
    size: cython.Py_ssize_t = logits.shape[1]
    words: cython.Py_ssize_t = min(masks.shape[1], (size + 31) // 32)
    count: cython.Py_ssize_t = logits.shape[0]
    if rows.shape[0] < count:
        raise IndexError("fewer row numbers than rows of logits")
    for row in range(count):
        if rows[row] < 0 or rows[row] >= masks.shape[0]:
            raise IndexError("a row number beyond the masks")
    with cython.nogil:
        for row in range(count):
            source = rows[row]
            for word in range(words):
                bits = masks[source, word]
                start = word * 32
                stop = start + 32 if start + 32 < size else size
                if bits == 0:
                    for token in range(start, stop):
                        logits[row, token] = pattern
                elif bits != everything:
                    for token in range(start, stop):
                        if bits >> (token - start) & 1 == 0:
                            logits[row, token] = pattern
            for token in range(words * 32, size):
                logits[row, token] = pattern
