# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Hash table of integers (open addressing, Fibonacci hashing), for all hash-consing and memoised steps."""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from . import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from .memory import free, ints, twin, ulongs

_MIXER = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio (Knuth, 6.4)


@cython.cclass
class IntMap:
    """A map from 64-bit keys (not 0) to 32-bit values; entries are never removed.

    A key may have several values: hash-consing uses the hash of an item as the key, and the numbers of the items with
    that hash as the values. A search takes no lock: the compiled form lets no other thread run during it.
    """

    def __init__(self) -> None:
        self._make_room(6)
        self.count = 0

    def __dealloc__(self) -> None:
        free(self.keys)
        free(self.values)

    @cython.cfunc
    def _make_room(self, bits: cython.int) -> object:
        self.keys = ulongs(1 << bits)
        self.values = ints(1 << bits)
        self.shift = 64 - bits
        self.mask = (1 << bits) - 1
        return None

    @cython.cfunc
    def copy(self) -> IntMap:
        """Return a copy."""
        other: IntMap = IntMap.__new__(IntMap)
        other.keys = twin(self.keys, self.mask + 1, self.mask + 1)
        other.values = twin(self.values, self.mask + 1, self.mask + 1)
        other.shift, other.mask, other.count = self.shift, self.mask, self.count
        return other

    @cython.cfunc
    @cython.exceptval(check=False)
    def _slot(self, key: cython.ulonglong) -> cython.int:
        """Return the slot at which the search for a key begins."""
        mixed: cython.ulonglong = key * _MIXER
        if not cython.compiled:
            mixed &= 0xFFFFFFFFFFFFFFFF
        return cython.cast(cython.int, mixed >> self.shift)

    @cython.cfunc
    @cython.exceptval(check=False)
    def first(self, key: cython.ulonglong) -> cython.int:
        """Return the slot of the first value of a key; -1 if it has none."""
        slot: cython.int = self._slot(key)
        while self.keys[slot] != key:
            if self.keys[slot] == 0:
                return -1
            slot = (slot + 1) & self.mask
        return slot

    @cython.cfunc
    @cython.exceptval(check=False)
    def after(self, slot: cython.int) -> cython.int:
        """Return the slot of the next value of the same key; -1 if there is none."""
        key: cython.ulonglong = self.keys[slot]
        slot = (slot + 1) & self.mask
        while self.keys[slot] != key:
            if self.keys[slot] == 0:
                return -1
            slot = (slot + 1) & self.mask
        return slot

    @cython.cfunc
    @cython.exceptval(check=False)
    def get(self, key: cython.ulonglong, default: cython.int) -> cython.int:
        """Return the first value of a key, or the default."""
        slot: cython.int = self.first(key)
        return default if slot < 0 else self.values[slot]

    @cython.cfunc
    def add(self, key: cython.ulonglong, value: cython.int) -> object:
        """Add a value of a key, after its other values."""
        i: cython.int
        size: cython.int = self.mask + 1
        if 2 * self.count >= size:
            keys: cython.p_ulonglong = self.keys
            values: cython.p_int = self.values
            self._make_room(64 - self.shift + 1)
            for i in range(size):
                if keys[i]:
                    self._enter(keys[i], values[i])
            free(keys)
            free(values)
        self._enter(key, value)
        self.count += 1
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _enter(self, key: cython.ulonglong, value: cython.int) -> cython.void:
        slot: cython.int = self._slot(key)
        while self.keys[slot]:
            slot = (slot + 1) & self.mask
        self.values[slot] = value
        self.keys[slot] = key

    @cython.cfunc
    @cython.exceptval(check=False)
    def byte_count(self) -> cython.longlong:
        """Return the size of the table in bytes."""
        return 12 * (cython.cast(cython.longlong, self.mask) + 1)
