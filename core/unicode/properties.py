r"""Character properties that ``\p{...}`` may name: those of ECMA-262, of one pinned version of Unicode."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from .charset import CharSet

UNICODE_VERSION = "17.0.0"
r"""Version of the Unicode Character Database behind ``\p{...}``, whatever the version of Python.

Python's own tables would make the meaning of a pattern depend on the version of Python.
"""

DATA = Path(__file__).parent / "data" / "properties.txt"

# Groups of General_Category values (UAX #44, table "General_Category Values"), with their names.
_GROUPS = {
    "LC Cased_Letter": ("Lu", "Ll", "Lt"),
    "L Letter": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "M Mark Combining_Mark": ("Mn", "Mc", "Me"),
    "N Number": ("Nd", "Nl", "No"),
    "P Punctuation punct": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
    "S Symbol": ("Sm", "Sc", "Sk", "So"),
    "Z Separator": ("Zs", "Zl", "Zp"),
    "C Other": ("Cc", "Cf", "Cs", "Co", "Cn"),
}


def find_property(text: str) -> CharSet | None:
    r"""Return the characters that have a property, named as inside ``\p{...}``.

    Args:
        text: ``Letter``, ``Lu``, ``Alphabetic``, ``General_Category=Lu`` (``gc=``), ``Script=Greek`` (``sc=``) or
            ``Script_Extensions=Grek`` (``scx=``); case and underscores count, as in ECMA-262.

    Returns:
        The set, or None when ECMA-262 knows no such property.
    """
    name, equals, value = text.partition("=")
    if not equals:
        return _categories()[name] if name in _categories() else _binary().get(name)
    if name in ("General_Category", "gc"):
        return _categories().get(value)
    if name in ("Script", "sc"):
        return _scripts().get(value)
    if name in ("Script_Extensions", "scx"):
        return _script_extensions().get(value)
    return None


@lru_cache(maxsize=1)
def _loose_names() -> Mapping[str, CharSet]:
    """Return categories, binary properties and scripts by names without case, spaces, dashes and underscores."""
    tables = (_scripts(), _binary(), _categories())
    return {_loose(name): charset for table in tables for name, charset in table.items()}


def _loose(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def loose_property(text: str) -> CharSet | None:
    r"""Return the characters that have a property, named as Rust names it inside ``\p{...}``; None: there is none.

    Args:
        text: ``L``, ``letter``, ``Greek``, ``script=greek``, ``sc:Grek``, ``gc=Lu``; loosely matched (UAX 44, LM3).
    """
    kind, separator, value = re.sub(r"\s*(==?|:)\s*", "=", text, count=1).partition("=")
    if not separator:
        name = _loose(text)
        return _loose_names().get(name, _loose_names().get(name.removeprefix("is")))
    tables = {
        **dict.fromkeys(("generalcategory", "gc"), _categories),
        **dict.fromkeys(("script", "sc"), _scripts),
        **dict.fromkeys(("scriptextensions", "scx"), _script_extensions),
    }
    table = tables.get(_loose(kind))
    if table is None:
        return None
    return {_loose(name): charset for name, charset in table().items()}.get(_loose(value))


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, str]:
    """Return the tables of the data file by name."""
    _, *sections = re.split(r"^\[(\w+)\]\n", DATA.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(sections[::2], sections[1::2], strict=True))


def _read(table: str) -> dict[str, CharSet]:
    """Return the properties of a table, under every name of every row.

    A row is ``NAME NAME: DISTANCE DISTANCE ...``: the code points at which membership flips, each by its distance from
    the one before, in base 36.
    """
    properties: dict[str, CharSet] = {}
    for row in _tables()[table].strip().replace("\n ", " ").splitlines():
        names, _, distances = row.partition(":")
        bounds: list[int] = []
        position = 0
        for distance in distances.split():
            position += int(distance, 36)
            bounds.append(position)
        charset = CharSet(zip(bounds[::2], [bound - 1 for bound in bounds[1::2]], strict=True))
        properties.update(dict.fromkeys(names.split(), charset))
    return properties


@lru_cache(maxsize=1)
def _categories() -> Mapping[str, CharSet]:
    properties = _read("CATEGORIES")
    properties["Cn"] = properties["Unassigned"] = CharSet.empty().union(*properties.values()).complement()
    for names, members in _GROUPS.items():
        charset = CharSet.empty().union(*[properties[member] for member in members])
        properties.update(dict.fromkeys(names.split(), charset))
    return properties


@lru_cache(maxsize=1)
def _binary() -> Mapping[str, CharSet]:
    properties = _read("BINARY")
    properties["ASCII"] = CharSet.range(0, 0x7F)
    properties["Any"] = CharSet.full()
    properties["Assigned"] = _categories()["Cn"].complement()
    return properties


@lru_cache(maxsize=1)
def _scripts() -> Mapping[str, CharSet]:
    return _with_unknown(_read("SCRIPTS"))


@lru_cache(maxsize=1)
def _script_extensions() -> Mapping[str, CharSet]:
    properties = _read("SCRIPTS")
    changed = {properties[name]: properties[name] ^ part for name, part in _read("SCRIPT_EXTENSIONS").items()}
    properties = {name: changed.get(charset, charset) for name, charset in properties.items()}
    return _with_unknown(properties)


def _with_unknown(scripts: dict[str, CharSet]) -> dict[str, CharSet]:
    scripts["Unknown"] = scripts["Zzzz"] = CharSet.empty().union(*scripts.values()).complement()
    return scripts
