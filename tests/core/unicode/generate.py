r"""Generator of ``core/unicode/data/properties.txt`` from the text files of the Unicode Character Database.

For a new version of Unicode, unpack its ``UCD.zip`` (https://www.unicode.org/Public/VERSION/ucd/) and run::

    python tests/core/unicode/generate.py FOLDER

It lies among the tests, which run it, because it is no part of the library and not shipped with it. A property that a
later ECMA-262 adds to ``\p{...}`` goes into `BINARY`, a new version into `UNICODE_VERSION` of ``properties.py``.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "core" / "unicode" / "data" / "properties.txt"

#: The binary properties of ECMA-262 (table 67), with their short names; ASCII, Any and Assigned need no table.
BINARY = """\
ASCII_Hex_Digit AHex, Alphabetic Alpha, Bidi_Control Bidi_C, Bidi_Mirrored Bidi_M, Case_Ignorable CI, Cased,
Changes_When_Casefolded CWCF, Changes_When_Casemapped CWCM, Changes_When_Lowercased CWL,
Changes_When_NFKC_Casefolded CWKCF, Changes_When_Titlecased CWT, Changes_When_Uppercased CWU, Dash,
Default_Ignorable_Code_Point DI, Deprecated Dep, Diacritic Dia, Emoji, Emoji_Component EComp, Emoji_Modifier EMod,
Emoji_Modifier_Base EBase, Emoji_Presentation EPres, Extended_Pictographic ExtPict, Extender Ext, Grapheme_Base Gr_Base,
Grapheme_Extend Gr_Ext, Hex_Digit Hex, IDS_Binary_Operator IDSB, IDS_Trinary_Operator IDST, ID_Continue IDC,
ID_Start IDS, Ideographic Ideo, Join_Control Join_C, Logical_Order_Exception LOE, Lowercase Lower, Math,
Noncharacter_Code_Point NChar, Pattern_Syntax Pat_Syn, Pattern_White_Space Pat_WS, Quotation_Mark QMark, Radical,
Regional_Indicator RI, Sentence_Terminal STerm, Soft_Dotted SD, Terminal_Punctuation Term, Unified_Ideograph UIdeo,
Uppercase Upper, Variation_Selector VS, White_Space space, XID_Continue XIDC, XID_Start XIDS"""

#: The files in which binary properties are listed.
BINARY_FILES = (
    "DerivedCoreProperties.txt",
    "DerivedNormalizationProps.txt",
    "PropList.txt",
    "emoji/emoji-data.txt",
    "extracted/DerivedBinaryProperties.txt",
)

_SURROGATES = range(0xD800, 0xE000)

Sets = Mapping[str, set[int]]


def fields(path: Path) -> Iterator[list[str]]:
    """Yield the fields of each line of a UCD file, without comments."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if content := line.partition("#")[0].strip():
            yield [field.strip() for field in content.split(";")]


def property_sets(path: Path) -> dict[str, set[int]]:
    """Return the code points of each value in a file of lines such as ``0041..005A ; Lu``, without surrogates.

    A value may be several, separated by spaces, as in ``ScriptExtensions.txt``.
    """
    found: dict[str, set[int]] = {}
    for codes, values, *rest in fields(path):
        if rest and rest != [""]:
            continue  # a property that is not binary: NFKC_CF; 0061
        first, _, last = codes.partition("..")
        span = set(range(int(first, 16), int(last or first, 16) + 1)).difference(_SURROGATES)
        for value in values.split():
            found.setdefault(value, set()).update(span)
    return found


def names_of(folder: Path, kind: str) -> dict[str, list[str]]:
    """Return all names of each value of a property (``gc`` or ``sc``) by its short name, the short name first."""
    lines = fields(folder / "PropertyValueAliases.txt")
    return {row[1]: list(dict.fromkeys(row[1:])) for row in lines if row[0] == kind}


def table(rows: Iterable[tuple[str, set[int]]]) -> str:
    """Return rows of names and code points in the notation of the data file, in the order of the names."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"

    def base36(number: int) -> str:
        rest, digit = divmod(number, 36)
        return (base36(rest) if rest else "") + digits[digit]

    lines: list[str] = []
    for names, codes in sorted(rows, key=lambda row: row[0]):
        flips = sorted(
            code for code in {*codes, *(code + 1 for code in codes)} if (code in codes) != (code - 1 in codes)
        )
        distances = [base36(after - before) for before, after in pairwise([0, *flips])]
        lines += textwrap.wrap(f"{names}: {' '.join(distances)}", 118, subsequent_indent=" ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def tables(folder: Path) -> dict[str, str]:
    """Return the version and the four tables of a folder with the files of the UCD."""
    title = (folder / "PropList.txt").read_text(encoding="utf-8").splitlines()[0]
    version = re.search(r"-([0-9.]+)\.txt", title)
    if version is None:
        raise SystemExit(f"{folder / 'PropList.txt'} does not name its version in its first line")
    categories = property_sets(folder / "extracted" / "DerivedGeneralCategory.txt")
    binary: dict[str, set[int]] = {}
    for name in BINARY_FILES:
        binary |= property_sets(folder / name)
    scripts = {value: codes for value, codes in property_sets(folder / "Scripts.txt").items() if value != "Unknown"}
    short = names_of(folder, "sc")
    extensions = extension_sets(scripts, property_sets(folder / "ScriptExtensions.txt"), short)
    aliases = {names[1] if len(names) > 1 else names[0]: names for names in short.values()}
    groups = {"C", "L", "LC", "M", "N", "P", "S", "Z", "Cn"}
    listed = [entry.split() for entry in BINARY.replace("\n", " ").split(",")]
    return {
        "VERSION": version[1],
        "CATEGORIES": table(
            (" ".join(names), categories.get(value, set()))
            for value, names in names_of(folder, "gc").items()
            if value not in groups
        ),
        "BINARY": table((" ".join(names), binary[names[0]]) for names in listed),
        "SCRIPTS": table((" ".join(_long_first(aliases[script])), codes) for script, codes in scripts.items()),
        "SCRIPT_EXTENSIONS": table(
            (script, scripts[script] ^ codes) for script, codes in extensions.items() if scripts[script] != codes
        ),
    }


def _long_first(names: list[str]) -> list[str]:
    """Return a script's names with the long one before the short one."""
    return [*names[1:2], names[0], *names[2:]]


def extension_sets(scripts: Sets, listed: Sets, short: Mapping[str, list[str]]) -> dict[str, set[int]]:
    """Return Script_Extensions by the long names of scripts: the script itself where no extensions are listed (UAX 24).

    Args:
        scripts: Script, by long names.
        listed: what ScriptExtensions.txt lists, by short names.
        short: all names of each script by its short one.
    """
    covered = set().union(*listed.values())
    extensions = {script: codes - covered for script, codes in scripts.items()}
    for name, codes in listed.items():
        long = _long_first(short[name])[0]
        extensions[long] = extensions.get(long, set()) | codes
    return extensions


def rendered(parts: Mapping[str, str], source: str) -> str:
    """Return the data file with other tables and their version; its other prose stays."""
    prose = re.sub(r"(?<=can name, of Unicode )[0-9.]+(?=:)", parts["VERSION"], source.partition("\n[")[0])
    return prose + "".join(f"\n[{name}]\n{text}" for name, text in parts.items() if name != "VERSION")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tests/core/unicode/generate.py FOLDER-OF-THE-UCD")
    DATA.write_text(rendered(tables(Path(sys.argv[1])), DATA.read_text(encoding="utf-8")), encoding="utf-8")
