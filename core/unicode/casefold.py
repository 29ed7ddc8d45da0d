"""Simple case folding: characters that differ in case only (Unicode Standard, section 3.13; CaseFolding.txt, C and S).

Made of what Python knows of single characters. Characters without a partner of one character (``İ``) stay alone, as
simple folding has it.
"""

from __future__ import annotations

from functools import cache

from .charset import CharSet

#: No cased character lies beyond (Unicode 16: U+1E943).
_END = 0x1F000


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """Return every character that has partners, with all of them, itself included."""
    groups: dict[int, set[int]] = {}
    for code in range(_END):
        character = chr(code)
        for other in (character.lower(), character.casefold()):
            if len(other) == 1 and other != character:
                one, two = groups.setdefault(code, {code}), groups.setdefault(ord(other), {ord(other)})
                if one is not two:
                    one |= two
                    for member in two:
                        groups[member] = one
    return {code: tuple(sorted(group)) for code, group in groups.items()}


def fold(charset: CharSet, *, ascii_only: bool = False) -> CharSet:
    """Return the characters of a set, and all that differ from one of them in case only.

    Args:
        charset: the set.
        ascii_only: only the letters of ASCII have partners, among themselves.
    """
    codes: list[int] = []
    for code, group in _orbits().items():
        if code in charset and not (ascii_only and code > 0x7F):
            codes += [code for code in group if not (ascii_only and code > 0x7F)]
    return charset | CharSet((code, code) for code in codes)
