"""Examples of a grammar by coverage of what its schema says, and texts one edit outside of it.

What a schema says of values is a list of *goals*: each value of an ``enum``, each optional member present and absent,
each option of a union, each bound. A goal is a schema: its example is the shortest text that satisfies it too.

Arguments that are grammars are of the class `Grammar`, which imports this module.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..automaton.lazy_dfa import Program
from ..basics.options import Whitespace
from ..basics.pauses import pause
from ..errors import GrammarError, ToolGrammarError
from ..json import escape, resolve_local
from ..regex.compile import regex_term
from .comparison import own_program, schema_of, smallest
from .counting import is_plainest, shuffled
from .sampling import random_text, single_bytes

if TYPE_CHECKING:
    from ..schema import CompiledSchema

#: Maximum number of goals of a schema, and of characters or items of an example for an upper bound.
MAX_GOALS, MAX_SIZE = 2_000, 2_000

#: Maximum number of random texts that are drawn for one more example.
ATTEMPTS = 4

#: Maximum number of texts of a finite language that are drawn for one more example: most are in a plain spelling.
MAX_DRAWS = 100

#: Minimum number of edits of an example that are judged, if it has as many.
MIN_EDITS = 100

#: Words for an edit to a value of another type; there are more of them than of all others.
OTHER_TYPE = "is of another type:"

#: Bounds, each with the type that it is of, the bound that is opposite to it, and a shift.
_BOUNDS = {
    "minimum": ("number", "maximum", 0),
    "maximum": ("number", "minimum", 0),
    "exclusiveMinimum": ("number", "maximum", 1),
    "exclusiveMaximum": ("number", "minimum", -1),
    "minLength": ("string", "maxLength", 0),
    "maxLength": ("string", "minLength", 0),
    "minItems": ("array", "maxItems", 0),
    "maxItems": ("array", "minItems", 0),
    "minProperties": ("object", "maxProperties", 0),
    "maxProperties": ("object", "minProperties", 0),
}

#: Any object, also where the options of a grammar close those that do not say otherwise.
_OBJECT = {"type": "object", "additionalProperties": True}

#: A pointer to what a goal is about, what is shown of it, and the schema of the values that show it.
Goal = tuple[str, str, Any]


@dataclass(frozen=True)
class Example:
    """A text, and why it was chosen.

    Attributes:
        text: the text.
        shows: what it shows, or what is wrong with it: a JSON pointer and some words, such as ``/unit is "C"``.
    """

    text: str
    shows: str


def examples_of(grammar: Any, count: int, seed: int, cover: bool = True) -> list[Example]:
    """Return examples of a grammar; see `Grammar.examples`."""
    draw = random.Random(seed)
    found, goals = _covering(grammar, count, draw, cover)
    compiled = schema_of(grammar)
    uniform = _uniform(grammar, compiled, draw) if len(found) < count else None
    if uniform is not None:
        known = {_sorted(text) for text in found} if compiled is not None else found.keys()
        for text in islice(uniform, MAX_DRAWS * (count + 10)):
            if len(found) >= count:
                break
            if (text if compiled is None else _sorted(text)) not in known and grammar.matches(text):
                found[text] = Example(text, "random")
        return list(found.values())
    for _ in range(ATTEMPTS * count):
        if len(found) >= count:
            break
        narrower = None
        if compiled is not None and goals:  # so that random texts show several things together
            chosen = draw.sample(goals, min(len(goals), draw.randint(1, 3)))
            narrower = _narrower(grammar, compiled, {"allOf": [goal for *_, goal in chosen]})
        text = random_text(grammar if narrower is None else narrower, draw)
        if grammar.matches(text):
            found.setdefault(text, Example(text, "random"))
    return list(found.values())


def counterexamples_of(grammar: Any, count: int, seed: int) -> list[Example]:
    """Return texts one edit outside of a grammar; see `Grammar.counterexamples`."""
    draw = random.Random(seed)
    examples, _ = _covering(grammar, count, draw)
    found: dict[str, Example] = {}
    outside = _outside(grammar)
    for example in sorted(examples.values(), key=lambda each: len(each.text)):
        pause()
        edited = list(_edited(example.text, schema_of(grammar) is not None))
        for shows, text in draw.sample(edited, min(len(edited), max(MIN_EDITS, 2 * count))):
            if shows not in found and outside(text):
                found[shows] = Example(text, shows)
    kept = list({each.text: each for each in found.values()}.values())
    if len(kept) > count:  # a random part of them, values of another type last
        kept = sorted(draw.sample(kept, len(kept)), key=lambda each: OTHER_TYPE in each.shows)[:count]
    return kept


def _covering(
    grammar: Any, count: int, draw: random.Random, cover: bool = True
) -> tuple[dict[str, Example], list[Goal]]:
    """Return at most ``count`` examples that show different things, by their texts, and all goals of the schema. Both
    are empty without ``cover``."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise GrammarError(f"the number of examples is {count!r}", hint="give an integer of 0 or more")
    grammar.check()
    if not cover:
        return {}, []
    compiled = schema_of(grammar)
    goals = [] if compiled is None else list(islice(_goals(grammar.schema, grammar.schema), MAX_GOALS))
    found: dict[str, Example] = {}
    text = _shortest(grammar) if count else None
    if text is not None:
        found[text] = Example(text, "the shortest")
    # In their order if there may be an example of each; else in a random order.
    for where, words, goal in goals if count > len(goals) else draw.sample(goals, len(goals)):
        if compiled is None or len(found) >= count:
            break
        text = _shortest(_narrower(grammar, compiled, goal), grammar)
        if text is not None:
            found.setdefault(text, Example(text, f"{where or '(root)'} {words}"))
    return found, goals


def _uniform(grammar: Any, compiled: CompiledSchema | None, draw: random.Random) -> Iterator[str] | None:
    """Return all texts of a finite language in random order, of a schema one text for each value; None if the language
    is infinite, or too large to be counted."""
    fixed = grammar  # with one order of members, and one white space
    try:
        if compiled is not None:
            space: Whitespace = "compact" if compiled.options.whitespace == "flexible" else compiled.options.whitespace
            options = replace(compiled.options, property_order="schema", whitespace=space)
            fixed = grammar._of_schema(grammar.schema, options)
        program = own_program(fixed)
        assert program is not None  # the caller knows that there is a text
        texts = shuffled(program, draw, is_json=compiled is not None)
    except (ToolGrammarError, RecursionError):
        return None
    if texts is None or compiled is None:
        return texts
    return (text for text in texts if is_plainest(text, fixed.matches))


def edits(value: Any, where: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the values one edit away, each after a pointer to the edit and words for it."""
    others: tuple[Any, ...] = (None, True, 0, 0.5, "", [], {})
    for other in others:
        if type(other) is not type(value):
            yield where, f"{OTHER_TYPE} {json.dumps(other)}", other
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        near: list[Any] = [value - 1, value + 1, str(value)]
    elif isinstance(value, str):
        near = [value[:-1], value + (value[-1:] or "x"), value + "!", value.swapcase()]
    elif isinstance(value, list):
        near = [value[:-1], [*value, *(value[-1:] or [0])]]
    else:
        near = []
    for changed in near:
        if changed != value:
            yield where, f"is {_short(changed)}", changed
    if isinstance(value, dict):
        for name in value:
            yield where, f"lacks {name!r}", {key: inner for key, inner in value.items() if key != name}
        yield where, "has an unknown member", {**value, _unused(value): 0}
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        for there, words, changed in edits(inner, f"{where}/{escape(key)}"):
            copied = value.copy()
            copied[key] = changed
            yield there, words, copied


# -- goals ---------------------------------------------------------------------------------------------------------


def _goals(schema: Any, root: Any, seen: frozenset[str] = frozenset()) -> Iterator[Goal]:
    """Yield what the values of a schema can show; references are followed once on each path."""
    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        with suppress(LookupError):  # in another document: its values are shown by the shortest and the random ones
            yield from _goals(resolve_local(root, reference), root, seen | {reference})
    yield from _goals_of_values(schema)
    for keyword in ("anyOf", "oneOf"):
        for index, option in enumerate(_list(schema, keyword)):
            yield "", f"takes option {index + 1} of {keyword}", option
            for where, words, goal in _goals(option, root, seen):
                yield where, words, {"allOf": [option, goal]}
    for part in _list(schema, "allOf"):
        yield from _goals(part, root, seen)
    if (condition := schema.get("if")) is not None:
        for keyword, words, case in (("then", "meets", condition), ("else", "does not meet", {"not": condition})):
            yield "", f"{words} the condition of if", case
            for where, words, goal in _goals(schema.get(keyword), root, seen):
                yield where, words, {"allOf": [case, goal]}
    yield from _goals_of_members(schema, root, seen)
    yield from _goals_of_items(schema, root, seen)


def _goals_of_values(schema: Mapping[str, Any]) -> Iterator[Goal]:
    """Yield what an example can show as a whole: each listed value and type, both truth values, and each bound: for
    ``{"minimum": 3}`` a number of at most 3, so that it is 3."""
    for value in _list(schema, "enum"):
        yield "", f"is {_short(value)}", {"enum": [value]}
    types = schema.get("type")
    if isinstance(types, list):
        for name in types:
            yield "", f"is of type {name}", {"type": name}
    if "enum" not in schema and "boolean" in (types if isinstance(types, list) else [types]):
        yield "", "is false", {"enum": [False]}
        yield "", "is true", {"enum": [True]}
    for keyword, (kind, opposite, shift) in _BOUNDS.items():
        bound = schema.get(keyword)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and (kind == "number" or bound <= MAX_SIZE):
            yield "", f"is at {keyword} {bound}", {"type": kind, opposite: bound + shift}


def _goals_of_members(schema: Mapping[str, Any], root: Any, seen: frozenset[str]) -> Iterator[Goal]:
    """Yield what an example of an object can show: members present and absent, then the goals of each member."""
    declared, required = schema.get("properties"), _list(schema, "required")
    members = dict(declared) if isinstance(declared, Mapping) else {}
    optional = [name for name in members if name not in required]
    if optional:
        yield "", "has all members", {**_OBJECT, "required": list(members)}
    for name in optional:
        yield "", f"lacks {name!r}", {**_OBJECT, "properties": {name: {"not": {}}}}
    by_pattern = schema.get("patternProperties")
    for pattern, inner in by_pattern.items() if isinstance(by_pattern, Mapping) else ():
        if (name := _name_of(pattern)) is not None:
            optional.append(name)
            members.setdefault(name, inner)
    if isinstance(schema.get("additionalProperties"), Mapping):
        unknown = _unused(members)
        optional.append(unknown)
        members[unknown] = schema["additionalProperties"]
    for name, inner in members.items():
        has_it: dict[str, Any] = {**_OBJECT, "required": [name]}
        if name in optional:
            yield "", f"has {name!r}", has_it
        for where, words, goal in _goals(inner, root, seen):
            yield f"/{escape(name)}{where}", words, {**has_it, "properties": {name: goal}}


def _goals_of_items(schema: Mapping[str, Any], root: Any, seen: frozenset[str]) -> Iterator[Goal]:
    """Yield what an example of an array can show: an item, then the goals of each position and of further items."""
    keyword = "prefixItems" if _list(schema, "prefixItems") else "items"  # which is a list in older drafts
    before = _list(schema, keyword)
    for index, inner in enumerate(before):
        for where, words, goal in _goals(inner, root, seen):
            has_it: dict[str, Any] = {
                "type": "array",
                "minItems": index + 1,
                keyword: [*({} for _ in before[:index]), goal],
            }
            yield f"/{index}{where}", words, has_it
    items = schema.get("items")
    if isinstance(items, Mapping):
        has_it = {"type": "array", "minItems": len(before) + 1}
        if before:
            has_it["prefixItems"] = [{} for _ in before]
        yield "", "has an item", has_it
        for where, words, goal in _goals(items, root, seen):
            yield f"/{len(before)}{where}", words, {**has_it, "items": goal}


def _name_of(pattern: Any) -> str | None:
    """Return a shortest name that matches a pattern; None if there is none, or it is not known."""
    try:
        program = Program(lambda nodes: nodes.text(regex_term(nodes.terms, pattern, whole=False)))
        return None if program.is_empty else smallest(program)
    except ToolGrammarError:
        return None


def _unused(members: Mapping[str, Any]) -> str:
    """Return a name that none of the members has."""
    name = "unknown"
    while name in members:
        name += "_"
    return name


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    """Return the value of a keyword if it is a list; else an empty one."""
    value = schema.get(keyword)
    return list(value) if isinstance(value, (list, tuple)) else []


def _sorted(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text):,} characters)"


# -- texts ---------------------------------------------------------------------------------------------------------


def _narrower(grammar: Any, compiled: CompiledSchema, goal: Any) -> Any:
    """Return the texts of a schema that satisfy a goal too; None if there are none, or it cannot be enforced."""
    schema = grammar.schema
    if not isinstance(schema, Mapping):
        return None
    others = dict(schema)
    parts = [{"$ref": others.pop("$ref")}] if "$ref" in others else []  # before Draft 2019-09 it stands alone
    others["allOf"] = [*_list(schema, "allOf"), *parts, goal]
    try:
        narrower = grammar._of_schema(others, compiled.options)
        narrower.check()
    except (ToolGrammarError, RecursionError):
        return None
    return narrower


def _shortest(grammar: Any, whole: Any = None) -> str | None:
    """Return the shortest text of a grammar. Given the ``whole`` grammar of which it is a part: None if the part is
    None, has no text, or its shortest text is none of the whole (with a forbidden spelling, for example)."""
    if grammar is None:
        return None
    try:
        text = grammar.bind(single_bytes()).matcher().shortest_completion().decode("utf-8", "replace")
    except (ToolGrammarError, RecursionError):
        if whole is None:
            raise
        return None
    return text if whole is None or whole.matches(text) else None


def _outside(grammar: Any) -> Callable[[str], bool]:
    """Return a test of texts: True only if a text is outside of a grammar and violates its schema; False if unknown."""
    compiled = schema_of(grammar)
    if compiled is None:
        return lambda text: not grammar.matches(text)
    # An edit may change the order of members, which is no violation of the schema.
    any_order = grammar._of_schema(grammar.schema, replace(compiled.options, property_order="any"))
    if not grammar.narrowed:
        return lambda text: not any_order.matches(text) and not grammar.matches(text)
    from ..schema import SchemaOptions, compile_schema
    from ..schema.joined import Joined

    # A narrowed grammar lacks some valid texts. So a text must be of the complement: of the schema ``true``, and not of
    # this one.
    try:
        options = SchemaOptions(formats=compiled.options.formats)
        joined = Joined(compile_schema(True, options).document, compiled.document)
        complement = grammar._of_schema(joined.only(0), replace(options, property_order="any"))
        complement.check()
    except (ToolGrammarError, RecursionError):
        return lambda text: False
    return lambda text: complement.matches(text) and not any_order.matches(text) and not grammar.matches(text)


def _edited(text: str, is_json: bool) -> Iterator[tuple[str, str]]:
    """Yield edited texts, each after words for the edit: of JSON, a value is changed (`edits`); of another text, a
    character is added, left out or replaced: ``ab`` -> "'a' and one more", ``aab``; "'a' without the next", ``a``."""
    for where, words, value in edits(json.loads(text)) if is_json else ():
        yield f"{where or '(root)'} {words}", json.dumps(value, ensure_ascii=False)
    for index in range(0 if is_json else len(text) + 1):
        start, end = text[:index], text[index:]
        yield f"{start!r} and one more", f"{start}{start[-1:] or 'x'}{end}"
        if end:
            yield f"{start!r} without the next", start + end[1:]
            yield f"{start!r} and another", f"{start}{'x' if end[0] == '~' else '~'}{end[1:]}"
