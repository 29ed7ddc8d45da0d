"""The reasons why a schema has no value: the innermost empty subschemas, and the contradicting keywords."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from time import thread_time
from typing import Any

from ...errors import Place, ToolGrammarError, UnsatisfiableSchemaError
from ...language.nodes import Nodes
from ..keywords.numbers import NUMBER_BOUNDS
from ..keywords.objects import undeclared
from ..lower.lowering import Lowering
from ..read.keywords import KEYWORDS, Role, Shape
from ..read.located import Located
from ..scalars.numbers import MAX_BOUND, MAX_DIGITS

#: Maximum number of smaller schemas that are tried to find the contradicting keywords.
MAX_TRIALS = 40

#: Maximum size of a schema for these trials: steps of its expansion so far, and entries.
MAX_STEPS, MAX_ENTRIES = 2_000, 5_000

#: Maximum time of all trials for one error, in seconds of the thread: a request may wait for it.
MAX_SECONDS = 1.0

#: Maximum number of subschemas that are tested for values.
MAX_PLACES = 2_000

#: Maximum length of a keyword's value in an error.
MAX_SHOWN = 40

#: Keywords that may exclude a member although its own schema has values.
_LIMITING = KEYWORDS.applicators | {"maxProperties", "propertyNames"}

#: Rows of the keywords with needed subschemas (see `Keyword.needed`), with that function; first the keywords that apply
#: schemas to the same value.
_NEEDING = [(row, row.needed) for row in KEYWORDS.values() if row.needed is not None]
_NEEDING.sort(key=lambda pair: pair[0].type is not None)


def unsatisfiable(lowering: Lowering, nodes: Nodes) -> UnsatisfiableSchemaError:
    """Return the error for a schema that no value can satisfy.

    Args:
        lowering: of the whole document.
        nodes: the store that it lowers into.
    """
    return _Search(lowering, nodes).errors(lowering.normaliser.document.root)[0]


def contradictions(
    lowering: Lowering, nodes: Nodes
) -> tuple[list[UnsatisfiableSchemaError], list[UnsatisfiableSchemaError]]:
    """Return all reasons why a document has no value (empty if it has one), and the reasons for parts of it.

    Args:
        lowering: of the whole document.
        nodes: the store that it lowers into.
    """
    search = _Search(lowering, nodes)
    root = lowering.normaliser.document.root
    whole = search.errors(root) if search.is_empty(root) else []
    search.subject = "this can never be written"
    parts: list[UnsatisfiableSchemaError] = []
    for located in search.subschemas(root):
        if search.is_empty(located):
            parts += search.errors(located)
        else:
            parts += search.members(located)
    return whole, parts


class _Search:
    """Search from an empty schema down to its needed subschemas, as long as one of these is empty.

    Attributes:
        subject: the beginning of each error: "no value can satisfy the schema", or the like.
    """

    def __init__(self, lowering: Lowering, nodes: Nodes) -> None:
        self.lowering = lowering
        self.document = lowering.normaliser.document
        self.nodes = nodes
        self.subject = "no value can satisfy the schema"
        self._seen: set[object] = set()
        self._trials = 0
        self._end = 0.0
        self._kept: list[Any] = []  # the tried schemas: memos use their ids

    def errors(self, located: Located) -> list[UnsatisfiableSchemaError]:
        """Return the reasons why no value satisfies a subschema, at the innermost subschemas that show them; none if
        all were returned before."""
        found: list[UnsatisfiableSchemaError] = []
        waiting = [located]
        seen_before = self._seen.copy()
        is_known = False  # the reason is in a subschema whose errors were returned before
        self._trials = 0
        while waiting:
            here = self.document.enter(waiting.pop())
            if here.key in self._seen:
                is_known = is_known or here.key in seen_before
                continue
            self._seen.add(here.key)
            schema: Any = here.schema
            if not isinstance(schema, Mapping):
                found.append(self._error("the schema is false", "remove it, or let it have values", here))
                continue
            inner = [needed for needed in self._needed(here) if self.is_empty(needed)]
            missing = self._undeclared(here)
            waiting += reversed(inner)
            for name in missing:
                found.append(
                    self._error(
                        f"{name!r} is required, but is not among the properties, and others are not allowed",
                        f"declare {name!r} under properties, or leave it out of required",
                        here,
                        "required",
                    )
                )
            if not inner and not missing:
                found.append(self._contradiction(here))
            elif self._is_proved_empty(here, _repaired(schema, [each.schema for each in inner], missing)):
                found.append(self._contradiction(here))  # and for another reason too
        if found or is_known:
            return found
        hint = "make the member or item that refers back optional"
        return [self._error("each value must contain another value of the same schema, endlessly", hint, located)]

    def is_empty(self, located: Located) -> bool:
        """Return True if a subschema has no value."""
        return self.nodes.is_empty(self.lowering.subschema(located))

    def subschemas(self, root: Located) -> Iterator[Located]:
        """Yield the subschemas below a schema that are meant to have values: not conditions, for example."""
        waiting = [root]
        seen: set[object] = set()
        while waiting and len(seen) < MAX_PLACES:
            located = self.document.enter(waiting.pop())
            schema: Any = located.schema
            if located.key in seen or not isinstance(schema, Mapping) or schema == {"not": {}}:
                continue
            seen.add(located.key)
            yield located
            inner = []
            for keyword in schema:
                row = KEYWORDS.get(keyword)
                if row is None or not self.lowering.normaliser.asserts(located, keyword):
                    continue
                if row.role is Role.REFERENCE:
                    try:
                        inner.append(self.document.resolve(located, keyword))
                    except ToolGrammarError:
                        continue
                elif not row.negates and keyword not in ("propertyNames", "then", "else", "dependencies", "allOf"):
                    within = KEYWORDS.subschemas(keyword, schema[keyword])
                    inner += [located.child(keyword, *steps) for steps, _ in within]
            waiting += reversed(inner)

    # -- the keywords that contradict --------------------------------------------------------------------------

    def _is_proved_empty(self, located: Located, schema: Mapping[str, Any]) -> bool:
        """Return True if a schema, whose references are those of ``located``, is proved to have no value; False if it
        has one, or if the limit of proofs is reached."""
        if not self._trials:  # the first of an error starts its clock
            self._end = thread_time() + MAX_SECONDS
        is_small = self.lowering.normaliser.steps < MAX_STEPS and self.document.entries < MAX_ENTRIES
        if not is_small or self._trials >= MAX_TRIALS or thread_time() > self._end:
            return False
        self._trials += 1
        self._kept.append(schema)
        try:
            return self.is_empty(located.below(schema, ()))
        except ToolGrammarError:
            return False

    def _contradiction(self, located: Located) -> UnsatisfiableSchemaError:
        """Return the error that names the contradicting keywords of a schema."""
        needed = self._contradicting(located)
        if not needed:
            return self._error("", "look for constraints that contradict each other", located)
        shown = _shown(located.schema, needed)
        first = next((word for word in needed if word != "type"), "type")
        if not needed.keys() - {"type", *NUMBER_BOUNDS} and any(map(_is_beyond_digits, needed.values())):
            most = (
                f"numbers are written with at most {MAX_DIGITS} digits before the point ({MAX_BOUND} if a bound has as "
                f"many) and {MAX_DIGITS} after it, or with the exponent of a finite double"
            )
            return self._error(f"{' and '.join(shown)}: {most}", "give another bound, or leave it out", located, first)
        if len(shown) == 1:
            return self._error(f"{shown[0]} allows no value", f"change or remove {first}", located, first)
        text = f"{', '.join(shown[:-1])} and {shown[-1]}"
        return self._error(f"{text} contradict each other", "change one of them", located)

    def _contradicting(self, located: Located) -> dict[str, Any]:
        """Return keywords of a schema without values, with their values, that contradict each other: a minimal set,
        found by trials without each of them. Empty if no small set was found."""
        schema: Any = located.schema
        words = [word for word in schema if word in KEYWORDS.constraining and self.document.knows(word)]
        needed: dict[str, Any] = {word: schema[word] for word in words}
        if len(words) > 1:
            for word in words:
                less = {other: value for other, value in needed.items() if other != word}
                if less and self._is_proved_empty(located, less):
                    needed = less
        if len(words) > 3 and len(needed) == len(words):  # none could be left out: too many to name
            return {}
        listed = needed.get("allOf")
        if isinstance(listed, list):
            for part in list(listed):
                fewer = [other for other in needed["allOf"] if other is not part]
                if fewer and self._is_proved_empty(located, {**needed, "allOf": fewer}):
                    needed["allOf"] = fewer
        if needed.get("type") == "integer" and self._is_proved_empty(located, {**needed, "type": "number"}):
            needed["type"] = "number"  # not because of the integers
        return needed

    def members(self, located: Located) -> list[UnsatisfiableSchemaError]:
        """Return an error for each declared member that no object can have, although the member's own schema has a
        value: objects that satisfy the schema and have the member are proved not to exist."""
        schema: Any = located.schema
        if not isinstance(schema, Mapping) or located.key in self._seen or _LIMITING.isdisjoint(schema):
            return []
        found: list[UnsatisfiableSchemaError] = []
        self._trials = 0
        declared = schema.get("properties", {})
        for name in declared if self.lowering.normaliser.asserts(located, "properties") else ():
            if declared[name] is False or self.is_empty(located.child("properties", name)):
                continue
            if self._is_proved_empty(located, {"type": "object", "allOf": [schema, {"required": [name]}]}):
                words = [word for word in schema if word in _LIMITING and self.document.knows(word)]
                hint = f"compare it with {' and '.join(words)} beside properties"
                member = located.child("properties", name)
                found.append(self._error("other keywords of the object exclude it", hint, member))
        return found

    def _error(self, reason: str, hint: str, located: Located, keyword: str | None = None) -> UnsatisfiableSchemaError:
        """Return an error about a subschema; ``reason`` empty: none is known."""
        message = f"{self.subject}: {reason}" if reason else self.subject
        return UnsatisfiableSchemaError(message, hint=hint, place=Place(pointer=located.pointer, keyword=keyword))

    # -- needed parts ------------------------------------------------------------------------------------------

    def _needed(self, located: Located) -> list[Located]:
        """Return the subschemas that the schema needs: if one of them has no value, the schema has none."""
        schema, asserts = located.schema, self.lowering.normaliser.asserts
        needed: list[Located] = []
        if asserts(located, "$ref"):
            needed.append(self.document.resolve(located))
            if self.document.ref_hides_siblings:
                return needed
        for row, needed_by in _NEEDING:
            if asserts(located, row.name) and (row.type is None or self._is_only(located, row.type)):
                for group in needed_by(schema, self.document):
                    if len(group) == 1:
                        needed.append(located.child(row.name, *group[0]))
        return needed

    def _undeclared(self, located: Located) -> list[str]:
        """Return the required names that a closed object does not declare."""
        if not self._is_only(located, "object"):
            return []
        return undeclared(self.lowering.normaliser, located.schema, is_open=self.lowering.options.additional_properties)

    @staticmethod
    def _is_only(located: Located, kind: str) -> bool:
        return located.schema.get("type") in (kind, [kind])


def _repaired(schema: Mapping[str, Any], empty: list[Any], undeclared: list[str]) -> dict[str, Any]:
    """Return a schema without some parts that have no values, and without some names that it requires."""
    empty_ids = {id(part) for part in empty}

    def free(value: Any, *_: object) -> Any:
        """Return a subschema, or the schema of all values instead of an empty one."""
        return True if id(value) in empty_ids or value is False else value

    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "$ref" and empty:
            continue
        row = KEYWORDS.get(keyword)
        if row is not None and row.needed is not None:
            changed[keyword] = KEYWORDS.map_subschemas(keyword, value, free)
        elif row is not None and row.shape is Shape.NAMES:
            changed[keyword] = [name for name in value if name not in undeclared]
        else:
            changed[keyword] = value
    return changed


def _is_beyond_digits(value: Any) -> bool:
    """Return True for a bound that no number near it meets, because it would be too long."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and value != 0 and not 10**-MAX_DIGITS <= abs(value) < 10**MAX_BOUND


def _shown(schema: Mapping[str, Any], needed: Mapping[str, Any]) -> list[str]:
    """Return keywords with their values, for an error; ``type`` is left out if all others constrain that type."""
    words = list(needed)
    others = [word for word in words if word != "type"]
    if others and needed.get("type") != "integer" and all(KEYWORDS[word].type is not None for word in others):
        words = others
    shown = []
    for word in words:
        value = schema[word] if word == "type" else needed[word]
        if word == "allOf":
            indices = [index for index, part in enumerate(schema["allOf"]) if any(part is each for each in value)]
            shown += [f"allOf/{index}" for index in indices]
            continue
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            text = ""
        is_short = len(text) <= MAX_SHOWN and (word == "$ref" or KEYWORDS[word].role is not Role.PARTS)
        shown.append(f"{word} {text}" if text and (is_short or text in ("true", "false")) else word)
    return shown
