"""Over-constraint and under-constraint of masks on MaskBench, each proven by a text that two validators judge.

    python -m benchmarks masks/proven_errors --data maskbench-all.jsonl.gz [--peers A,B] [--sheets FILE] [--keep]

An engine *over-constrains* a schema if its masks forbid the text of a valid value, and *under-constrains* it if they
allow the whole text of an invalid one. Each count has such a text:

- The instances of MaskBench, valid and invalid, judged as MaskBench does.
- Along each valid instance, the masks of a peer are compared with ours, byte by byte. Behind a byte that only we allow,
  the shortest completion by our masks; if it is valid, its value is written again as ``json.dumps`` does, in the
  schema's order, and the peer is asked for this text: another spelling or order is no error. Behind a byte that only
  the peer allows, and behind some that it allows, a random text by its masks. The same texts judge our masks.

The validators are the libraries `jsonschema` and `jsonschema-rs`, and share nothing with an engine. A text counts if
both agree, with ``format`` as an assertion for a valid text, and without for an invalid one. Texts in which a name
repeats are not judged, and the character U+007F is not tried: some engines refuse it everywhere. The vocabulary is the
256 bytes: a mask of tokens follows from those of their bytes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY

from benchmarks.masks.mask_verifier import constant, members
from benchmarks.masks.maskbench import reason
from benchmarks.masks.verdicts import asked
from benchmarks.shared.data import MASKBENCH_ALL, rows
from benchmarks.shared.engines import Ours
from benchmarks.shared.peers import single_bytes
from benchmarks.shared.tables import show
from benchmarks.shared.workers import Sheet
from toolgrammar.core import Grammar, UnsatisfiableSchemaError
from toolgrammar.core.masks.budget import Budget

#: The rows: the engine, and its options; those that are not named are its defaults.
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    "toolgrammar": ("toolgrammar", {"whitespace": "flexible", "property_order": "any"}),
    "llguidance": ("llguidance", {}),
    "xgrammar, strict_mode=True (its default)": ("xgrammar", {"strict_mode": True}),
    "xgrammar, strict_mode=False": ("xgrammar", {"strict_mode": False}),
    "glrmask": ("glrmask", {}),
    "outlines-core": ("outlines-core", {}),
}

#: The kinds of errors, and the numbers of texts that look for each behind a difference, and of random ones.
OVER, UNDER, STUCK = "over", "under", "stuck"
DIFFERENT, RANDOM = 10, 4
#: Maximum numbers of bytes of an instance that are compared, and of a random text.
COMPARED, WALKED = 400, 250
#: Bytes, as masks: those that random texts prefer, because others alone would never end one, and line breaks.
ENDING, BREAKS = (sum(1 << byte for byte in some) for some in (b'"}]:,0', b"\t\n\r"))
BLANK = BREAKS | 1 << ord(" ")
#: The control character U+007F, which JSON allows in strings: engines that refuse it do so in every schema.
DELETE = 1 << 0x7F


class Judges:
    """The two validators of a schema.

    Args:
        schema: in the dialect that its ``$schema`` names, else Draft 2020-12.
    """

    def __init__(self, schema: Any) -> None:
        kind = validator_for(schema, default=jsonschema.Draft202012Validator)
        named = {"$schema": kind.META_SCHEMA["$schema"], **schema} if isinstance(schema, dict) else schema
        self._judges: dict[bool, tuple[Any, Any]] = {}
        for formats in (False, True):
            checker = kind.FORMAT_CHECKER if formats else None
            try:
                second = jsonschema_rs.validator_for(named, validate_formats=formats, offline=True)
            except ValueError:
                return
            self._judges[formats] = kind(schema, registry=REGISTRY, format_checker=checker), second

    def verdict(self, text: bytes) -> bool | None:
        """Return True for a proven valid text, False for a proven invalid one, None for any other."""
        try:
            value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
        except (ValueError, RecursionError):
            try:
                json.loads(text, parse_constant=constant)
            except ValueError:
                return False
            except RecursionError:
                pass
            return None  # a name repeats
        try:
            if all(judge.is_valid(value) for judge in self._judges[True]):
                return True
            return None if any(judge.is_valid(value) for judge in self._judges[False]) else False
        except Exception:  # a reference that is not here, a pattern that a library does not know
            return None
        except BaseException as error:  # a recursion within a library of Rust
            if type(error).__name__ != "PanicException":
                raise
            return None


def ordinary(text: bytes) -> bytes | None:
    """Return a JSON text as ``json.dumps`` writes its value, whole numbers without a point; None for huge numbers."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(member) for name, member in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, (int, float)) and not abs(value) < 10**15:
            raise OverflowError
        return int(value) if isinstance(value, float) and value.is_integer() else value

    try:
        return json.dumps(plain(json.loads(text)), ensure_ascii=False).encode()
    except (OverflowError, UnicodeEncodeError):
        return None


def bits(engine: Any, state: Any) -> int:
    """Return the mask before the next byte: bit N for the byte N."""
    engine.fill(state)
    return int.from_bytes(engine.bits.tobytes()[:32], "little")


@lru_cache(maxsize=4096)
def bytes_of(mask: int) -> bytes:
    """Return the bytes of a mask."""
    return bytes(byte for byte in range(256) if mask >> byte & 1)


def takes(engine: Any, compiled: Any, text: bytes) -> bool:
    """Return whether an engine takes a whole text."""
    state = engine.start(compiled)
    return engine.read(state, text) and bool(engine.accepts(state))


def walk(engine: Any, compiled: Any, begun: bytes, rng: random.Random) -> tuple[bytes, bool | None]:
    """Return a random text by the masks of an engine after a beginning, and True if it may end there, None if there is
    no next byte either."""
    state, text = engine.start(compiled), bytearray(begun)
    if not engine.read(state, begun):
        return begun, False
    while len(text) < len(begun) + WALKED:
        if engine.accepts(state) and rng.random() < 0.9:
            return bytes(text), True
        mask = bits(engine, state) & ~BREAKS & ~DELETE
        if not mask:
            return bytes(text), True if engine.accepts(state) else None
        byte = rng.choice(bytes_of(mask & ENDING if mask & ENDING and rng.random() < 0.7 else mask))
        if not engine.read(state, bytes((byte,))):
            return bytes(text), False
        text.append(byte)
    return bytes(text), False


@cache
def reference() -> Ours:
    """Return our engine, in the process of a peer."""
    return Ours(*single_bytes(), **ENGINES["toolgrammar"][1])


def differences(engine: Any, compiled: Any, own: Any, in_order: Any, text: bytes) -> Iterator[tuple[bool, int, bytes]]:
    """Yield the bytes that only one of the masks along a text allows: whether it is ours, the place, and the bytes."""
    ours = reference()
    states = [engine.start(compiled), ours.start(own), in_order.matcher()]
    quoted = escaped = False
    for place, byte in enumerate(text[:COMPARED]):
        theirs, asked = bits(engine, states[0]), ~DELETE if quoted else ~BLANK
        for mine, only in (True, bits(ours, states[2]) & ~theirs), (False, theirs & ~bits(ours, states[1])):
            if only & asked:
                yield mine, place, bytes_of(only & asked)
        if not all((engine.read(states[0], text[place : place + 1]), *(s.accept(byte) for s in states[1:]))):
            return
        quoted ^= byte == ord('"') and not escaped
        escaped = byte == ord("\\") and not escaped


def drawn(differ: Mapping[bytes, Sequence[bytes]], rng: random.Random) -> list[tuple[bytes, bytes]]:
    """Return beginnings and a next byte of each, from different sets of bytes first: equal sets have equal reasons."""
    found: list[tuple[bytes, bytes]] = []
    while differ and len(found) < DIFFERENT:
        found += [(rng.choice(begun), bytes((rng.choice(some),))) for some, begun in differ.items()]
    rng.shuffle(found)
    return found[:DIFFERENT]


def judge(engine: Any, schema: Any, tests: Sequence[tuple[bool, str]]) -> Sheet:
    """Return the errors of an engine with a schema, each with a text, or ``{"refused": reason}``; under ``ours``, those
    that its masks show of ours."""
    rng, found, ours = random.Random(0), dict[str, str](), dict[str, str]()
    sheet: Sheet = {"errors": found, "ours": ours, "texts": 0}
    try:
        compiled = engine.compile(schema)
    except UnsatisfiableSchemaError:
        refused = [text for valid, text in tests if valid]
        return {**sheet, "errors": {OVER: refused[0]} if refused else {}}
    except BaseException as error:  # a peer may raise anything, also a panic; a refusal is a result
        return {"refused": reason(error)}
    try:
        for valid, text in tests:
            if takes(engine, compiled, text.encode()) != valid:
                found.setdefault(OVER if valid else UNDER, text)
        judges = Judges(schema)
        texts = [text.encode() for valid, text in tests if valid][:3]
        behind = [(text, place) for text in texts for place in range(min(len(text), COMPARED))]
        starts = [(text[:place], b"") for text, place in rng.sample(behind, min(RANDOM, len(behind)))]
        if engine.name != "toolgrammar":
            own = Grammar.from_json_schema(schema, **reference().options).bind(reference().vocabulary)
            in_order = Grammar.from_json_schema(schema, whitespace="flexible").bind(reference().vocabulary)
            differ: dict[tuple[bool, bytes], list[bytes]] = {}
            for text in texts:
                for mine, place, some in differences(engine, compiled, own, in_order, text):
                    differ.setdefault((mine, some), []).append(text[:place])
            starts += drawn({some: begun for (mine, some), begun in differ.items() if not mine}, rng)
            for begun, byte in drawn({some: begun for (mine, some), begun in differ.items() if mine}, rng):
                matcher = in_order.matcher()
                assert matcher.accept_bytes(begun + byte)
                rest = b"" if matcher.is_accepting else bytes(Budget(matcher).completion([]))
                _over(engine, compiled, judges, begun + byte + rest, sheet)
        for begun, first in starts:
            text, ends = walk(engine, compiled, begun + first, rng)
            sheet["texts"] += 1
            if ends is None:
                found.setdefault(STUCK, _shown(text))
            elif ends:
                valid = judges.verdict(text)
                if valid is False:
                    found.setdefault(UNDER, _shown(text))
                elif valid and first:
                    again = ordinary(text)
                    if again is not None and judges.verdict(again) and not takes(reference(), own, again):
                        ours.setdefault(OVER, _shown(again))
    except BaseException as error:
        return {"refused": f"{reason(error)}, in mid-text"}
    return sheet


def _over(engine: Any, compiled: Any, judges: Judges, text: bytes, sheet: Sheet) -> None:
    """Judge a text of ours that a peer forbids."""
    sheet["texts"] += 1
    valid = judges.verdict(text)
    if valid is False:
        sheet["ours"].setdefault(UNDER, _shown(text))
    elif valid:
        again = ordinary(text)
        if again is not None and judges.verdict(again) and not takes(engine, compiled, again):
            sheet["errors"].setdefault(OVER, _shown(again))


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def counted(sheets: Mapping[str, Sheet], others: Sequence[Mapping[str, Sheet]] = ()) -> dict[str, int]:
    """Return the numbers of schemas by kind of error; ``others``: sheets that judge this engine too."""
    counts: Counter[str] = Counter()
    for at, sheet in sheets.items():
        if "refused" in sheet:
            counts["refused"] += 1
            continue
        kinds = set(sheet["errors"]).union(*(other[at].get("ours", ()) for other in others))
        counts.update({"compiled": 1, "clean": not kinds, **dict.fromkeys(kinds, 1)})
        counts["texts"] += sheet["texts"] + sum(other[at].get("texts", 0) for other in others)
    return {key: counts[key] for key in ("compiled", "refused", OVER, UNDER, STUCK, "clean", "texts")}


def main(
    data: Path = MASKBENCH_ALL,
    limit: int = 0,
    peers: str = "llguidance,xgrammar,glrmask,outlines-core",
    deadline: float = 10,
    sheets: Path | None = None,
    keep: bool = False,
) -> int:
    """Run the benchmark; 1 if there is an error of this library."""
    settings, workers, found = asked(__name__, ENGINES, rows(data, limit), peers, deadline, sheets)
    others = [sheets for name, sheets in found.items() if name != "toolgrammar"]
    engines = {}
    for worker in workers:
        counts = counted(found[worker.name], others if worker.name == "toolgrammar" else ())
        engines[worker.name] = {"version": worker.version, **counts}
    show("proven_errors", {**settings, "engines": engines}, keep=keep)
    return 1 if engines["toolgrammar"][UNDER] or engines["toolgrammar"][STUCK] else 0
