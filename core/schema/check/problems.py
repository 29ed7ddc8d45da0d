"""The check of a schema document in one pass: is each reachable subschema well-formed, and can it be enforced exactly?

A subschema may be required to hold, or not to hold, or both: it is visited once for each. The expansion of alternatives
is only tried where an upper bound of its size is not far from every limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from ...basics.pauses import pause
from ...errors import (
    InvalidSchemaError,
    LimitError,
    Place,
    SchemaError,
    ToolGrammarError,
    UnsupportedSchemaError,
)
from ...text_grammars.strings import string_grammar
from ..keywords.numbers import bounds_of
from ..normal.assertions import CHECK_LATER, NARROW, unsupported
from ..normal.normalise import MAX_COMPOUNDS, MAX_STEPS, MAX_TOTAL, Normaliser, too_deep
from ..read.keywords import (
    APPLICATORS,
    CONSTRAINING,
    KEYWORDS,
    REFERENCES,
    TYPES,
    Draft,
    Role,
    Shape,
    keywords,
    subschemas,
)
from ..read.located import Located, SignedSchema
from ..read.options import SchemaOptions
from ..read.resolve import Document
from ..scalars.bounded_formats import BOUNDED
from ..scalars.common import BOUNDS, FORMATS
from ..scalars.formats import ENFORCED, REFUSED
from ..scalars.numbers import MAX_LISTED, MAX_NEAR, NumberRange, exact, is_long, listed_multiples
from .values import MAX_DEPTH, MAX_INTEGER, is_json, is_small, pattern_problem, type_hint
from .vast import MAX_LEAST_TEXT, LeastSizes

#: Maximum number of arrays and objects in an ``enum``, where they may be written in several ways.
MAX_LOOSE = 1_000

#: How often a reference multiplies what it leads to, at most: 3 on each of n / 3 levels is the most of n references.
#: And the number of parts up to which no value is too long, if each has some 40 bytes.
PER_REFERENCE = 3 ** (1 / 3)
FEW_PARTS = MAX_LEAST_TEXT / 40

#: Values that are left out where ``uniqueItems`` must not hold.
NOT_UNIQUE = 'arrays that repeat no simple value: null, true, false, 0, 1, "", "a", [], {}, or one that items lists'

# Shapes of values.
SCHEMA = int(Shape.SCHEMA)
SCHEMAS = int(Shape.SCHEMAS)
ALTERNATIVES = int(Shape.ALTERNATIVES)
ITEMS = int(Shape.ITEMS)
BY_NAME = int(Shape.BY_NAME)
BY_PATTERN = int(Shape.BY_PATTERN)
DEPENDENCIES = int(Shape.DEPENDENCIES)
REQUIREMENTS = int(Shape.REQUIREMENTS)
TYPE = int(Shape.TYPE)
NAMES = int(Shape.NAMES)
VALUES = int(Shape.VALUES)
VALUE = int(Shape.VALUE)
UPPER_COUNT = int(Shape.UPPER_COUNT)
LOWER_COUNT = int(Shape.LOWER_COUNT)
BOUND = int(Shape.BOUND)
STEP = int(Shape.STEP)
PATTERN = int(Shape.PATTERN)
FORMAT = int(Shape.FORMAT)
FLAG = int(Shape.FLAG)
GRAMMAR = int(Shape.GRAMMAR)
OWN = int(Shape.OWN)
SHAPE = 31
# The rest of what matters of a keyword here.
UNKNOWN = 32  # to the dialect: an annotation
FORKS = 64
NOT_NEGATABLE = 128
REFERS = 256
DEEP = 1024  # more than what a value is must be looked at
UNCOUNTED = 2048
IN_PLACE = 4096

#: Keywords that apply several schemas to the same value, and one.
_IN_PLACE, _BRANCH = keywords(shapes=(Shape.ALTERNATIVES,)), ("not", "if", "then", "else")

#: Keywords that make alternatives in ways that are not counted here.
_UNCOUNTED = APPLICATORS.difference(REFERENCES, _IN_PLACE) | set(REFERENCES) - {"$ref"}


def _table(draft: Draft) -> dict[str, int]:
    """Return the shape and the flags of each keyword in a draft."""
    return {
        row.name: row.shape
        | (0 if row.is_in(draft) else UNKNOWN)
        | (FORKS if row.forks else 0)
        | (0 if row.negatable else NOT_NEGATABLE)
        | (REFERS if row.name in REFERENCES else 0)
        | (DEEP if row.shape <= Shape.DEPENDENCIES or row.forks or row.name in REFERENCES else 0)
        | (0 if row.negatable else DEEP)
        | (UNCOUNTED if row.name in _UNCOUNTED else 0)
        | (IN_PLACE if row.name in _IN_PLACE or row.name == "$ref" else 0)
        for row in KEYWORDS.values()
        if row.name in CONSTRAINING
    }


_TABLES = [_table(draft) for draft in Draft]
_TYPES = frozenset((*TYPES, "integer", "any"))

#: Keywords of Draft 3 that later drafts lack, and what says the same in these.
_REPLACED = {"extends": "allOf", "disallow": "not", "divisibleBy": "multipleOf"}

#: Recursion limit of the estimate of alternatives.
_MAX_COUNTED_DEPTH = 64

#: A subschema, and whether it must hold.
Signed = tuple[Located, bool]

#: A subschema, and what is wrong with it.
Problem = tuple[Located, SchemaError | LimitError]

#: Upper bounds of the steps that the expansion of a subschema takes, and of its alternatives.
Count = tuple[int, int]

#: The count of a schema that makes no alternatives.
_ONE: Count = (1, 1)

#: Formats that have a name of ours, as an error names them.
_FORMAT_NAMES = {"python-json": "of JSON inside of a string"}


class DynamicReferences(Exception):
    """The document uses ``$dynamicRef`` or ``$recursiveRef``: what a subschema means depends on the way to it."""


def problems(document: Document, options: SchemaOptions, normaliser: Normaliser | None = None) -> list[Problem]:
    """Return every problem of the reachable subschemas with its place, in the order in which they are met.

    Args:
        document: the schema; what it knows by its check is set.
        options: how it is read.
        normaliser: expands the alternatives that cannot be counted.

    Raises:
        DynamicReferences: the document uses dynamic references, and was not made to follow them.
    """
    if normaliser is None:
        normaliser = Normaliser(document, formats=options.formats, open_objects=options.additional_properties)
    return _Pass(document, options, normaliser).run()


class _Pass:
    """One pass over a document."""

    def __init__(self, document: Document, options: SchemaOptions, normaliser: Normaliser) -> None:
        self.document = document
        self.options = options
        self.normaliser = normaliser
        self.found: list[Problem] = []
        self.table = _TABLES[document.age]  # codes of keywords in this dialect
        self.address = "$id" if document.age else "id"  # the keyword that gives a schema an address
        self.hides = document.ref_hides_siblings
        # pairs of a subschema and a sign that are still to be visited; keys of the visited ones, by sign
        self.todo: list[Signed] = [(document.root, True)]
        self.holding: set[object] = set()
        self.failing: set[object] = set()
        self.malformed: set[object] = set()  # keys
        # subschemas that make alternatives, and the keys of those that are applied to the same value by others
        self.forks: list[Located] = []
        self.inside: set[object] = set()
        # by key of a subschema with oneOf: the options that may hold beside each
        self.overlaps: dict[object, list[frozenset[int]]] = {}
        self.counts: dict[int, Count | None] = {}  # by the identity of a schema: see `_counted`
        self.is_leaf = True  # the subschema that is checked has no more to look at than its own values
        self.steps = 0  # total of the counts
        self.entries = 0  # see `Document`
        # subschemas that ask for members, or for several items; a bound of how often parts of them are repeated
        self.large: list[Located] = []
        self.product = 1.0

    def run(self) -> list[Problem]:
        """Return all problems, and set what the document knows by its check."""
        clean = True
        visited = 0
        while self.todo:
            visited += 1
            if not visited & 255:
                pause()
            located, positive = self.todo.pop()
            if type(located.schema) is not bool and not self._visit(located, positive):
                clean = False
        self.document.entries = self.entries
        if clean:
            self._expand()
        if self.large and self.product * self.entries > FEW_PARTS and not self.found:
            self._vast()
        return self.found

    def _vast(self) -> None:
        """Note the places whose values are too long for any model, since counts and references multiply."""
        sizes = LeastSizes(self.document)
        for located in self.large:
            size = sizes.least(located)
            if size > MAX_LEAST_TEXT and located.key in self.holding:
                message = f"each value has at least {size:,} bytes, and no model writes more than {MAX_LEAST_TEXT:,}"
                hint = "lower required, minItems and minProperties, of the subschemas that it is made of too"
                self.found.append((located, LimitError(message, hint=hint, place=Place(pointer=located.pointer))))
                return

    def _visit(self, located: Located, positive: bool) -> bool:
        """Check a subschema, and note its own subschemas; False if its alternatives cannot be expanded."""
        schema = located.schema
        if type(schema) is not dict and not isinstance(schema, Mapping):
            self._invalid(located, None, f"a schema must be an object or a boolean, not {type(schema).__name__}")
            return False
        if self.address in schema:
            located = self.document.enter(located)
        seen = self.holding if positive else self.failing
        key = located.key
        if key in seen:
            return True
        seen.add(key)
        if self.malformed and key in self.malformed:
            return False
        seen = self.failing if positive else self.holding
        if not seen or key not in seen:
            before = len(self.found)
            self.entries += len(schema)
            self.is_leaf = True
            refused = self._check(located, schema)
            if len(self.found) > before:
                self.malformed.add(located.key)
                return False
            self.found += refused
            if self.is_leaf:
                return True
        return self._descend(located, schema, positive)

    # -- is it well-formed -------------------------------------------------------------------------------------

    def _invalid(self, located: Located, keyword: str | None, message: str, hint: str | None = None) -> None:
        if keyword is None:
            hint = "see https://json-schema.org/draft/2020-12/json-schema-core section 4.3"
        place = Place(pointer=located.pointer) if keyword is None else Place(pointer=located.pointer, keyword=keyword)
        self.found.append((located, InvalidSchemaError(message, hint=hint, place=place)))

    def _beyond(self, located: Located, keyword: str, message: str, hint: str) -> None:
        place = Place(pointer=located.pointer, keyword=keyword)
        self.found.append((located, LimitError(message, hint=hint, place=place)))

    def _check(self, located: Located, schema: Any) -> list[Problem]:
        """Note what is malformed in a subschema; return what cannot be enforced."""
        refused: list[Problem] = []
        for keyword, value in schema.items():
            code = self.table.get(keyword)
            if code is None:
                if self.document.is_draft_3 and keyword in _REPLACED:
                    refused.append((located, _replaced(located, keyword)))
                continue
            shape = code & SHAPE
            if code & DEEP:
                self.is_leaf = False
            if code & UNKNOWN:  # an annotation, of any shape
                continue
            if shape == TYPE:
                names = (value,) if type(value) is str else value
                if not isinstance(names, (list, tuple)):
                    self._misfit(located, keyword, value)
                    continue
                for name in names:
                    if type(name) is not str or name not in _TYPES:
                        self._invalid(located, "type", f"{name!r} is not a JSON type", type_hint(name))
            elif shape == BY_NAME or shape == BY_PATTERN:
                if not isinstance(value, (dict, Mapping)):
                    self._misfit(located, keyword, value)
                elif not _are_names(value):
                    self._invalid(located, keyword, "property names must be strings")
                elif shape == BY_PATTERN:
                    for pattern in value:
                        self._match(located, keyword, pattern, refused)
            elif shape == SCHEMA:
                if type(value) is not bool and not isinstance(value, (dict, Mapping)):
                    self._misfit(located, keyword, value)
            elif shape == ITEMS:
                if type(value) is not bool and not isinstance(value, (dict, list, tuple, Mapping)):
                    self._misfit(located, keyword, value)
            elif shape == SCHEMAS or shape == ALTERNATIVES:
                if not isinstance(value, (list, tuple)):
                    self._misfit(located, keyword, value)
                elif shape == ALTERNATIVES and not value:
                    self._invalid(located, keyword, f"{keyword} must not be empty")
            elif shape == NAMES:
                if not isinstance(value, (list, tuple)):
                    self._misfit(located, keyword, value)
                elif not _are_names(value):
                    self._invalid(located, keyword, f"{keyword} must list property names")
                else:
                    self.entries += len(value)
                    self.large.append(located)
            elif shape == VALUES or shape == VALUE:
                self._list(located, keyword, value, shape, refused)
            elif shape == UPPER_COUNT or shape == LOWER_COUNT or shape == BOUND or shape == STEP:
                self._number(located, keyword, value, shape)
                if shape == STEP:
                    self._step(located, value, refused)
            elif shape == PATTERN:
                if type(value) is not str:
                    self._misfit(located, keyword, value)
                else:
                    self._match(located, keyword, value, refused)
            elif shape == FORMAT:
                if type(value) is not str:
                    self._misfit(located, keyword, value)
                elif self.options.formats:
                    self._format(located, value, refused)
            elif shape == GRAMMAR:
                self._grammar(located, keyword, value)
            elif shape == FLAG:
                if type(value) is not bool:
                    self._misfit(located, keyword, value)
            elif shape == OWN:
                check = KEYWORDS[keyword].check
                message = check(value) if check is not None else None
                if message is not None:
                    self._invalid(located, keyword, message)
            elif shape == DEPENDENCIES or shape == REQUIREMENTS:
                if not isinstance(value, (dict, Mapping)):
                    self._misfit(located, keyword, value)
                    continue
                for needed in value.values():
                    if isinstance(needed, (list, tuple)):
                        fits = _are_names(needed)
                    else:
                        fits = shape == DEPENDENCIES and isinstance(needed, (dict, Mapping, bool, str))
                    if not fits:
                        self._invalid(located, keyword, f"{keyword} must list property names")
        return refused

    def _misfit(self, located: Located, keyword: str, value: Any) -> None:
        hint = "list the names of the members in the schema of the object" if keyword == "required" else None
        self._invalid(located, keyword, f"{keyword} cannot be {type(value).__name__}", hint)

    def _number(self, located: Located, keyword: str, value: Any, shape: int) -> None:
        """Check a count, a bound of numbers, or a step."""
        if type(value) is int and not -MAX_INTEGER < value < MAX_INTEGER:
            self._beyond(located, keyword, f"{keyword} has more than 600 digits", "use a smaller number")
        elif shape == UPPER_COUNT or shape == LOWER_COUNT:
            if type(value) is bool or not isinstance(value, (int, float)) or not 0 <= value < inf or value % 1:
                self._invalid(located, keyword, f"{keyword} must be a whole number that is not negative")
            elif (most := KEYWORDS[keyword].most) is not None and value > most:
                message = f"{keyword} is {value:,}, and no model writes more than {most:,}"
                self._beyond(located, keyword, message, f"lower {keyword}")
            elif shape == LOWER_COUNT and value > 1:
                self.product *= value
                self.large.append(located)
        elif not isinstance(value, (int, float)):
            self._misfit(located, keyword, value)
        elif shape == STEP:
            if type(value) is bool or not 0 < value < inf:
                self._invalid(located, keyword, f"{keyword} must be a finite number above zero")
        elif not -inf < value < inf:
            self._invalid(located, keyword, f"{keyword} must be a finite number")
        elif keyword == "minimum" and value in BOUNDS:
            self.document.has_common = True

    def _list(self, located: Located, keyword: str, value: Any, shape: int, refused: list[Problem]) -> None:
        """Check the values of ``enum`` and ``const``."""
        compounds = 0
        if shape == VALUE:
            value = (value,)
        elif not isinstance(value, (list, tuple)):
            self._misfit(located, keyword, value)
            return
        else:
            self.entries += len(value)
        for item in value:
            if type(item) is str or item is None or type(item) is bool:
                continue
            compounds += isinstance(item, (dict, list, tuple))
            if not is_json(item):
                self._invalid(located, keyword, f"{keyword} holds something that is not a JSON value")
                return
            if not is_small(item):
                message = f"{keyword} holds a value more than {MAX_DEPTH} deep, or an integer of more than 600 digits"
                self._beyond(
                    located, keyword, message, "describe it with properties and items, or use a smaller number"
                )
                return
        options = self.options
        if compounds > MAX_LOOSE and (options.property_order == "any" or options.whitespace == "flexible"):
            message = f"{keyword} lists {compounds:,} arrays and objects, at most {MAX_LOOSE:,} can be written in any"
            hint = 'list fewer, or write them as they are listed: property_order="schema", whitespace="single"'
            place = Place(pointer=located.pointer, keyword=keyword)
            refused.append((located, LimitError(f"{message} order or spacing", hint=hint, place=place)))

    def _match(self, located: Located, keyword: str, pattern: str, refused: list[Problem]) -> None:
        """Note a pattern that cannot be enforced."""
        problem = pattern_problem(pattern, keyword == "pattern")
        if problem is not None:
            place = Place(pointer=located.pointer, keyword=keyword, offset=problem.place.offset)
            left_out = {"left_out": problem.left_out} if isinstance(problem, UnsupportedSchemaError) else {}
            refused.append((located, type(problem)(problem.message, hint=problem.hint, place=place, **left_out)))

    def _grammar(self, located: Located, keyword: str, value: Any) -> None:
        """Note a grammar of strings that is malformed."""
        try:
            string_grammar(value)
        except ToolGrammarError as error:
            place = replace(error.place, pointer=located.pointer, keyword=keyword)
            self.found.append((located, InvalidSchemaError(error.message, hint=error.hint, place=place)))

    def _step(self, located: Located, value: Any, refused: list[Problem]) -> None:
        """Note a step of which not all multiples can be written."""
        if type(value) is bool or not isinstance(value, (int, float)) or not 0 < value < MAX_INTEGER:
            return
        step = exact(value)
        if not is_long(step):
            return
        what = NumberRange(multiples=(step,))
        for is_lower, bound, _ in bounds_of(located.schema):
            what = what.at_least(bound, False) if is_lower else what.at_most(bound, False)
        listed = listed_multiples(what) if what.least is not None and what.most is not None else None
        if listed is None or len(listed) > MAX_LISTED:
            left_out = f"multiples more than {MAX_NEAR:,} steps from the one nearest to zero"
            refused.append((located, unsupported(located, "multipleOf", left_out=left_out)))

    def _format(self, located: Located, name: str, refused: list[Problem]) -> None:
        """Note a format that cannot be enforced, or must be known and is not."""
        left_out = None
        if name in FORMATS:
            self.document.has_common = True
        if name in REFUSED:
            message = f"the format {_FORMAT_NAMES.get(name, repr(name))} cannot be enforced exactly"
            hint = f"remove it, say it by a pattern, or {CHECK_LATER}"
        elif name in BOUNDED:
            left_out = BOUNDED[name].left_out
            message = f"the format {name!r} cannot be enforced exactly, only without {left_out}"
            hint = f"remove it, say it by a pattern, or {NARROW}"
        elif name not in ENFORCED and self.options.strict_formats:
            message = f"the format {name!r} is not one of the specification"
            hint = "leave strict_formats off to take it for an annotation"
        else:
            return
        place = Place(pointer=located.pointer, keyword="format")
        error = UnsupportedSchemaError(message, hint=hint, place=place, left_out=left_out)
        refused.append((located, error))

    # -- its subschemas ----------------------------------------------------------------------------------------

    def _descend(self, located: Located, schema: Any, positive: bool) -> bool:
        """Note the subschemas to visit, with the sign of each; False if a reference beside a fork leads nowhere."""
        children: list[Signed] = []
        broken = forks = False
        for keyword, value in schema.items():
            code = self.table.get(keyword)
            if code is None:
                continue
            if code & UNKNOWN:
                forks = forks or bool(code & FORKS)
                continue
            forks = forks or bool(code & FORKS)
            shape = code & SHAPE
            if code & REFERS:
                try:
                    target = self._target(located, keyword)
                except SchemaError as error:
                    # The frames of the tracebacks hold what is found here.
                    error.__cause__ = error.__context__ = None
                    self.found.append((located, error.with_traceback(None)))
                    broken = True
                    continue
                if target is not None:
                    # A value of the target is part of each value: see `_vast`.
                    if _refers(target.schema) or (self.large and self.large[len(self.large) - 1] is located):
                        self.product *= PER_REFERENCE
                    if keyword == "$ref" and self.hides:
                        self.todo.append((target, positive))
                        return True
                    children.append((target, positive))
            elif shape == OWN:
                for steps, inner in subschemas(keyword, value):
                    children.append((located.below(inner, (keyword, *steps)), positive))
            elif shape > DEPENDENCIES:
                if code & NOT_NEGATABLE and not positive and value is not False:
                    self.found.append((located, unsupported(located, keyword, "under a negation", NOT_UNIQUE)))
            elif shape == BY_NAME or shape == BY_PATTERN:
                for name, inner in value.items():
                    if type(inner) is not bool:
                        children.append((located.below(inner, (keyword, name)), positive))
                if keyword == "properties" and "required" in schema:
                    for name in schema["required"] if isinstance(schema["required"], (list, tuple)) else ():
                        if name in value and _refers(value[name]):
                            self.product *= PER_REFERENCE
            elif shape == DEPENDENCIES:
                children += [
                    (inner, positive)
                    for inner in located.members(keyword).values()
                    if not isinstance(inner.schema, (list, tuple, str))
                ]
            elif shape == ALTERNATIVES or shape == SCHEMAS or (shape == ITEMS and isinstance(value, (list, tuple))):
                self._note_references(schema, keyword, value)
                if keyword == "oneOf":
                    self._union(located, positive, children)
                else:
                    for inner in located.items(keyword):
                        children.append((inner, positive))
            else:
                if shape == ITEMS or keyword == "additionalItems" or keyword == "contains":
                    self._note_references(schema, keyword, (value,))
                self._one(located, schema, keyword, positive, children)
        if forks:
            if positive and located.key not in self.inside:
                self.forks.append(located)
            self._note_inside(located, schema)
        children.reverse()
        self.todo += children
        return not (broken and forks)

    def _note_references(self, schema: Any, keyword: str, listed: Any) -> None:
        """Note the references in a keyword's schemas that each value has parts by (see `_vast`)."""
        count = sum(map(_refers, listed))
        if keyword == "anyOf" or keyword == "oneOf":  # the option that asks for least
            count = int(count == len(listed))
        elif keyword != "allOf" and keyword != "contains" and not schema.get("minItems"):
            return
        for _ in range(count):
            self.product *= PER_REFERENCE

    def _target(self, located: Located, keyword: str) -> Located | None:
        """Return the subschema that a reference leads to; None: the dialect has no such reference."""
        if not self.document.knows(keyword):
            return None
        if keyword != "$ref" and not self.document.dynamic:
            raise DynamicReferences
        return self.document.resolve(located, keyword)

    def _one(self, located: Located, schema: Any, keyword: str, positive: bool, children: list[Signed]) -> None:
        """Note the schema under a keyword that has one."""
        inner, row = located.under(keyword), KEYWORDS[keyword]
        for sign in (positive,) if row.signs is None else row.signs(schema, positive):
            children.append((inner, sign))
        if row.role is Role.REMAINDER and not positive:  # it may be all that does not hold
            children.append((located, True))

    def _union(self, located: Located, positive: bool, children: list[Signed]) -> None:
        """Note the options of ``oneOf``: those that may hold at once must also fail."""
        options = located.items("oneOf")
        overlaps = self.overlaps.get(located.key)
        if overlaps is None:
            try:
                overlaps = [] if _are_of_different_types(options) else self.normaliser.overlaps(located)
            except ToolGrammarError:
                overlaps = []  # the problem inside an option is reported at its own place
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                overlaps = []  # an option is malformed, which is reported too
            self.overlaps[located.key] = overlaps
            if not any(overlaps):
                self.document.disjoint.add(id(located.schema))
        for index, option in enumerate(options):
            children.append((option, True))
            if not positive or (overlaps and overlaps[index]):
                children.append((option, False))

    def _note_inside(self, located: Located, schema: Any) -> None:
        """Note the subschemas that are applied to the same value."""
        for keyword in _IN_PLACE:
            if keyword in schema:
                for inner in schema[keyword]:
                    self.inside.add(located.inner_key(inner))
        for keyword in _BRANCH:
            if keyword in schema:
                self.inside.add(located.inner_key(schema[keyword]))

    # -- alternatives ------------------------------------------------------------------------------------------

    def _expand(self) -> None:
        """Note the places where the expansion of alternatives comes to a limit."""
        large = []
        for located in self.forks:
            count = self._counted(located.schema, 0) if located.scope is None else None
            if count is None or count[1] > MAX_COMPOUNDS or count[0] + count[1] > MAX_STEPS:
                large.append(located)
            else:
                self.steps += count[0] + count[1]
        failed = self._expanded(large)
        taken = self.normaliser.steps
        if self.steps + taken > MAX_TOTAL:  # the estimates are too large together: try all
            failed = self._expanded(self.forks)
        self.found += failed

    def _expanded(self, forks: list[Located]) -> list[Problem]:
        failed: list[Problem] = []
        for located in forks:
            try:
                goal = (SignedSchema(located),)
                self.normaliser.expanded[goal] = self.normaliser.branches(goal)
            except (SchemaError, LimitError) as error:
                failed.append((located, error.with_traceback(None)))  # whose frames hold all that was found on the way
            except RecursionError:
                failed.append((located, too_deep(goal)))
        return failed

    def _counted(self, schema: Any, depth: int) -> Count | None:
        """Return upper bounds of the steps that the expansion of a subschema takes, and of its alternatives; None: not
        known.

        Expanding alternatives means going on from each with what else must hold.
        """
        if type(schema) is bool:
            return _ONE
        key = id(schema)
        if key in self.counts:
            return self.counts[key]
        if depth > _MAX_COUNTED_DEPTH or (self.address in schema and schema is not self.document.schema):
            return None
        code = 0
        for keyword in schema:
            code |= self.table.get(keyword, 0)
        if code & UNCOUNTED:
            return None
        if not code & IN_PLACE:
            self.counts[key] = _ONE
            return _ONE
        overlaps = self.overlaps.get(id(schema), ()) if "oneOf" in schema else ()
        if any(overlaps):
            return None
        self.counts[key] = None  # while it is in progress: it refers to itself
        steps = alternatives = 1
        parts: list[Count | None] = []
        is_reference = "$ref" in schema
        if is_reference:
            target = self.document.resolve(self.document.root.below(schema, ()), "$ref")
            if target.scope is not None:
                return None
            parts.append(self._counted(target.schema, depth + 1))
        if not is_reference or not self.hides:
            if "allOf" in schema:
                for inner in schema["allOf"]:
                    parts.append(self._counted(inner, depth + 1))
            if "oneOf" in schema:
                parts.append(self._either(schema["oneOf"], depth))
            if "anyOf" in schema:
                parts.append(self._either(schema["anyOf"], depth))
        for part in parts:
            if part is None:
                return None
            steps += alternatives * part[0]
            alternatives *= part[1]
            if steps > MAX_TOTAL or alternatives > MAX_TOTAL:
                return None
        count = (steps, alternatives) if parts else _ONE
        self.counts[key] = count
        if overlaps:  # its options were expanded once, to see that they are disjoint
            self.steps += steps + alternatives
        return count

    def _either(self, options: Any, depth: int) -> Count | None:
        """Return the same for the union of some."""
        steps, alternatives = 1, 0
        is_known = True
        for inner in options:
            option = self._counted(inner, depth + 1)
            if option is None:
                is_known = False  # the others are counted all the same, as their steps are
            else:
                steps += option[0] + 1  # one more where an option of oneOf is a formula of its own
                alternatives += option[1]
        return (steps, alternatives) if is_known else None


def _replaced(located: Located, keyword: str) -> UnsupportedSchemaError:
    """Return the error for a keyword of Draft 3."""
    return UnsupportedSchemaError(
        f"the keyword {keyword!r} of Draft 3 is not read",
        hint=f"write {_REPLACED[keyword]}, and name Draft 4 or a later one in $schema",
        place=Place(pointer=located.pointer, keyword=keyword),
    )


def _refers(schema: Any) -> bool:
    """Return True if a schema is, or may be, a reference."""
    return (type(schema) is dict or isinstance(schema, Mapping)) and "$ref" in schema


def _are_names(values: Iterable[object]) -> bool:
    """Return True if all values are strings."""
    for value in values:
        if not isinstance(value, str):
            return False
    return True


def _are_of_different_types(options: list[Located]) -> bool:
    """Return True if each of some schemas names its types by itself, and no two of them the same."""
    seen: set[Any] = set()
    for option in options:
        schema = option.schema
        if type(schema) is not dict or "type" not in schema or "$ref" in schema or schema.get("nullable") is True:
            return False
        kinds = schema["type"]
        types = {kinds} if type(kinds) is str else set(kinds) if isinstance(kinds, (list, tuple)) else {"any"}
        if "integer" in types:
            types.add("number")
        if "any" in types or not seen.isdisjoint(types):
            return False
        seen |= types
    return True
