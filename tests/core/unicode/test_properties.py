"""Character properties and their generator, against Python's `unicodedata` and `str`."""

from __future__ import annotations

import re
import runpy
import unicodedata
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core.unicode.casefold import fold
from toolgrammar.core.unicode.charset import CharSet
from toolgrammar.core.unicode.properties import DATA, UNICODE_VERSION, find_property, loose_property

GENERATOR = Path(__file__).with_name("generate.py")
TABLES = dict(re.findall(r"^\[(\w+)\]\n([^\[]+\n)(?=\n|\Z)", DATA.read_text(encoding="utf-8"), re.MULTILINE))
SCALARS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]

#: Maximum number of characters whose category a later version of Unicode corrected, of 144,000 that Python knows.
MAX_CORRECTED = 20


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    """The names of the generator's module."""
    return runpy.run_path(str(GENERATOR))


@pytest.fixture(scope="module")
def python_categories() -> list[str]:
    """General_Category of each code point, as the running Python has it."""
    return [unicodedata.category(chr(code)) for code in range(0x110000)]


def rows(table: str) -> list[tuple[str, set[int]]]:
    """The names and code points of each row of a generated table."""
    found = []
    for row in table.strip().replace("\n ", " ").splitlines():
        names, _, distances = row.partition(":")
        bounds, code = [], 0
        for distance in distances.split():
            code += int(distance, 36)
            bounds.append(code)
        codes = {code for low, high in zip(bounds[::2], bounds[1::2], strict=True) for code in range(low, high)}
        found.append((names, codes))
    return found


@pytest.mark.parametrize("name", ["CATEGORIES", "BINARY", "SCRIPTS", "SCRIPT_EXTENSIONS"])
def test_the_generator_writes_the_tables_as_they_are(name: str, generator: dict[str, Any]) -> None:
    """Tables that are read and written again are the same text."""
    assert generator["table"](rows(TABLES[name])) == TABLES[name]


def test_categories_are_those_of_python(python_categories: list[str]) -> None:
    """Each character that the running Python knows has the category that Python says, but for corrections since."""
    corrected = [
        f"U+{code:04X} is {python_categories[code]}"
        for names, codes in rows(TABLES["CATEGORIES"])
        for code in codes
        if python_categories[code] not in ("Cn", names.split()[0])
    ]
    assert len(corrected) <= (0 if unicodedata.unidata_version == UNICODE_VERSION else MAX_CORRECTED), corrected
    named = set().union(*[codes for _, codes in rows(TABLES["CATEGORIES"])])
    assert {code for code in SCALARS if python_categories[code] != "Cn"} <= named


def test_the_generator_reads_what_python_knows(
    generator: dict[str, Any], python_categories: list[str], tmp_path: Path
) -> None:
    """From files in the form of the UCD, written from Python's own tables, come tables that say what Python says."""
    (tmp_path / "extracted").mkdir()
    (tmp_path / "emoji").mkdir()

    def write(name: str, lines: list[str]) -> None:
        title = f"# {Path(name).stem}-{unicodedata.unidata_version}.txt"
        (tmp_path / name).write_text("\n".join([title, "", *lines]), encoding="utf-8")

    def spans(values: list[str]) -> list[str]:
        runs = [(value, list(run)) for value, run in groupby(range(0x110000), key=values.__getitem__)]
        return [f"{run[0]:04X}..{run[-1]:04X} ; {value} # [{len(run)}]" for value, run in runs if value]

    mirrored = [bool(unicodedata.mirrored(chr(code))) for code in range(0x110000)]
    binary = [entry.split()[0] for entry in generator["BINARY"].replace("\n", " ").split(",")]
    for name in generator["BINARY_FILES"]:
        write(name, [])
    write("extracted/DerivedGeneralCategory.txt", spans(python_categories))
    write("extracted/DerivedBinaryProperties.txt", spans(["Bidi_Mirrored" if flag else "" for flag in mirrored]))
    write("DerivedCoreProperties.txt", [f"0041 ; {name} # L&" for name in binary if name != "Bidi_Mirrored"])
    write("DerivedNormalizationProps.txt", ["0041 ; NFKC_CF; 0061"])
    write("Scripts.txt", ["0041..005A;Latin # A", "0370 ; Greek", "00B7;Common"])
    write("ScriptExtensions.txt", ["00B7 ; Latn Grek # both", "0370 ; Grek"])
    aliases = [f"gc ; {' ; '.join(names.split())}" for names, _ in rows(TABLES["CATEGORIES"])]
    aliases += ["sc ; Latn ; Latin", "sc ; Grek ; Greek", "sc ; Zyyy ; Common"]
    write("PropertyValueAliases.txt", aliases)
    made = generator["tables"](tmp_path)
    assert made["VERSION"] == unicodedata.unidata_version
    for names, codes in rows(made["CATEGORIES"]):
        category = names.split()[0]
        assert codes == {code for code in SCALARS if python_categories[code] == category}, names
    assert dict(rows(made["BINARY"]))["Bidi_Mirrored Bidi_M"] == {code for code in SCALARS if mirrored[code]}
    assert [codes for names, codes in rows(made["BINARY"]) if names != "Bidi_Mirrored Bidi_M"] == [{0x41}] * 49
    assert dict(rows(made["SCRIPTS"])) == {
        "Latin Latn": set(range(0x41, 0x5B)),
        "Greek Grek": {0x370},
        "Common Zyyy": {0xB7},
    }
    assert dict(rows(made["SCRIPT_EXTENSIONS"])) == {"Latin": {0xB7}, "Greek": {0xB7}, "Common": {0xB7}}
    source = DATA.read_text(encoding="utf-8")
    assert generator["rendered"]({"VERSION": UNICODE_VERSION, **TABLES}, source) == source
    other = generator["rendered"](made, source)
    assert f"of Unicode {made['VERSION']}: " in other and made["SCRIPTS"] in other


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("Lu", lambda char: unicodedata.category(char) == "Lu"),
        ("L", lambda char: unicodedata.category(char)[0] == "L"),
        ("LC", lambda char: unicodedata.category(char) in ("Lu", "Ll", "Lt")),
        ("Punctuation", lambda char: unicodedata.category(char)[0] == "P"),
        ("gc=Nd", str.isdecimal),
        ("General_Category=Zs", lambda char: unicodedata.category(char) == "Zs"),
        ("ASCII", str.isascii),
        ("Any", lambda char: True),
        ("White_Space", lambda char: char.isspace() and not "\x1c" <= char <= "\x1f"),
        ("XID_Start", lambda char: char.isidentifier() and char != "_"),
        ("Uppercase", str.isupper),
        ("Lowercase", str.islower),
        ("Bidi_M", lambda char: bool(unicodedata.mirrored(char))),
    ],
)
def test_properties_are_those_of_python(name: str, holds: Callable[[str], bool], python_categories: list[str]) -> None:
    """A property has the characters that `str` and `unicodedata` say, as far as the running Python knows them."""
    charset = find_property(name)
    assert charset is not None
    known = [code for code in SCALARS if python_categories[code] != "Cn"]
    differing = [code for code in known if (code in charset) != holds(chr(code))]
    assert len(differing) <= (0 if unicodedata.unidata_version == UNICODE_VERSION else MAX_CORRECTED), differing


@pytest.mark.parametrize(
    "name", ["lu", "Letter_", "sc", "sc=", "gc=Greek", "Script=greek", "Block=Basic_Latin", "Zzzz", ""]
)
def test_names_are_exact(name: str) -> None:
    """ECMA-262 knows no other spelling of a name, and no property that it does not list."""
    assert find_property(name) is None


@pytest.mark.parametrize(
    ("loose", "exact"),
    [("letter", "L"), ("isLetter", "L"), ("script = greek", "sc=Grek"), ("sc:Grek", "Script=Greek"), ("GC==l u", "Lu")],
)
def test_loose_names_of_rust(loose: str, exact: str) -> None:
    """Rust's names are matched without case, spaces and underscores (UAX 44, LM3)."""
    assert loose_property(loose) == find_property(exact) is not None
    assert loose_property("no such property") is None and loose_property("block=basiclatin") is None


def test_complements_and_scripts() -> None:
    """Unassigned is what no category has; Unknown, what no script has; extensions hold more than one script."""
    categories = [find_property(names.split()[0]) for names, _ in rows(TABLES["CATEGORIES"])]
    assigned = CharSet.empty().union(*[each for each in categories if each is not None])
    assert find_property("Cn") == ~assigned and find_property("Assigned") == assigned
    assert find_property("Cs") == CharSet.empty()
    latin, danda = find_property("scx=Latn"), find_property("sc=Zyyy")
    assert latin is not None and danda is not None
    assert 0x0964 in danda and 0x0964 not in latin and 0x41 in latin
    devanagari = find_property("scx=Deva")
    assert devanagari is not None and 0x0964 in devanagari


def test_folding_is_that_of_python() -> None:
    """Characters that differ in case only fold to one another: those with equal simple case folding."""
    groups: dict[str, str] = {}
    for code in range(0x2000):
        folded = chr(code).casefold()
        if len(folded) == 1:
            groups[folded] = groups.get(folded, "") + chr(code)
    for group in groups.values():
        if len(group) > 1:
            assert all(CharSet.of(group) <= fold(CharSet.of(char)) for char in group[:2]), group
    assert fold(CharSet.of("k")).ranges == ((0x4B, 0x4B), (0x6B, 0x6B), (0x212A, 0x212A))
    assert fold(CharSet.of("k"), ascii_only=True) == CharSet.of("kK")
    assert fold(CharSet.of("1ß")) >= CharSet.of("1ß")
