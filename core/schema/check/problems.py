"""The check of a schema document in one pass: is each reachable subschema well-formed, and can it be enforced exactly?

A subschema may be required to hold, to fail, or both: it is visited once for each sign. Alternatives are expanded here
only if the upper bound of their number is near a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...basics.pauses import pause
from ...errors import (
    InvalidSchemaError,
    LimitError,
    PatternError,
    Place,
    SchemaError,
    ToolGrammarError,
    UnsupportedSchemaError,
)
from ...language.least_text import MAX_LEAST_TEXT
from ..keywords.any_value import are_of_different_types
from ..keywords.other import LATER, REPLACED
from ..keywords.refusals import unsupported
from ..keywords.row import Check, Join, Keyword
from ..keywords.shapes import CHECKS, json_name
from ..normal.exclusive import too_deep
from ..normal.normalise import MAX_COMPOUNDS, MAX_STEPS, MAX_TOTAL, Normaliser
from ..read.keywords import KEYWORDS, Draft, Role, Shape
from ..read.located import Located, SignedSchema
from ..read.options import SchemaOptions
from ..read.resolve import Document
from .vast import MostParts

#: How often a reference multiplies what it leads to, at most: 3 on each of n / 3 levels is the most of n references.
#: And the number of parts up to which no value is too long, if each has some 40 bytes.
PER_REFERENCE = 3 ** (1 / 3)
MANY_REFERENCES = 100  # beyond FEW_PARTS by themselves
FEW_PARTS = MAX_LEAST_TEXT / 40

# Flags of a keyword in a dialect.
UNKNOWN = 1  # the dialect lacks it: an annotation
FORKS = 2
NARROWED = 4  # where it must fail, some values are left out
REFERS = 8
HOLDS_SCHEMAS = 16
DEEP = 32  # the subschema has more to look at than its own values
COUNTED = 64  # its alternatives are counted here (see `_Pass._counted`)
UNCOUNTED = 128  # it makes alternatives that are not

#: Rows of the keywords that list schemas of the same value.
_JOINED = tuple(row for row in KEYWORDS.values() if row.join is not None)

_UPPER_COUNTS = tuple(row.name for row in KEYWORDS.values() if row.shape is Shape.UPPER_COUNT)

#: Keywords with schemas of the same value that do not depend on a member's name.
_IN_PLACE = KEYWORDS.named(shapes=(Shape.ALTERNATIVES, Shape.SCHEMA), roles=(Role.SAME_VALUE,))

#: The flags of a keyword, its row, and the check of its value; None: nothing is checked.
_Entry = tuple[int, Keyword, "Callable[[Check, Located, str, Any], None] | None"]


def _entry(row: Keyword, draft: Draft) -> _Entry:
    """Return the entry of a keyword in a draft."""
    holds_schemas = row.shape <= Shape.DEPENDENCIES
    refers = row.role is Role.REFERENCE
    is_counted = row.join is not None or row.name == "$ref"
    is_known = row.is_in(draft)
    flags = (
        (0 if is_known else UNKNOWN)
        | (FORKS if row.forks else 0)
        | (NARROWED if row.narrowed else 0)
        | (REFERS if refers else 0)
        | (HOLDS_SCHEMAS if holds_schemas else 0)
        | (DEEP if holds_schemas or row.forks or refers or row.narrowed else 0)
        | (COUNTED if is_counted else UNCOUNTED if row.name in KEYWORDS.applicators else 0)
    )
    return flags, row, (row.check or CHECKS.get(row.shape)) if is_known else None


_TABLES = [
    {name: _entry(row, draft) for name, row in KEYWORDS.items() if name in KEYWORDS.constraining} for draft in Draft
]

#: Recursion limit of the estimate of alternatives.
_MAX_COUNTED_DEPTH = 64

#: A subschema, and whether it must hold.
Signed = tuple[Located, bool]

#: A subschema, and what is wrong with it.
Problem = tuple[Located, SchemaError | LimitError]


class Count(NamedTuple):
    """Upper bounds of the steps that the expansion of a subschema takes, and of its alternatives."""

    steps: int
    alternatives: int


#: The count of a schema that makes no alternatives.
_ONE = Count(1, 1)


class DynamicReferences(Exception):
    """The document uses ``$dynamicRef`` or ``$recursiveRef``: the meaning of a subschema depends on the path to it."""


def problems(document: Document, options: SchemaOptions, normaliser: Normaliser | None = None) -> list[Problem]:
    """Return every problem of the reachable subschemas with its location, in the order of the visit.

    Args:
        document: the schema. Its attributes ``entries``, ``has_common`` and ``disjoint`` are set.
        options: how it is read.
        normaliser: expands the alternatives that cannot be counted.

    Raises:
        DynamicReferences: the document uses dynamic references, and ``document.dynamic`` is not set.
    """
    if normaliser is None:
        normaliser = Normaliser(document, formats=options.formats, open_objects=options.additional_properties)
    return _Pass(document, options, normaliser).run()


class _Pass:
    """One pass over a document."""

    def __init__(self, document: Document, options: SchemaOptions, normaliser: Normaliser) -> None:
        self.document = document
        self.formats = options.formats
        self.strict_formats = options.strict_formats
        self.respells = options.property_order == "any" or options.whitespace == "flexible"
        self.normaliser = normaliser
        self.found: list[Problem] = []
        self.table = _TABLES[document.age]
        self.address = "$id" if document.age else "id"  # the keyword that gives a schema an address
        self.hides = document.ref_hides_siblings
        self.todo: list[Signed] = [(document.root, True)]  # still to be visited
        # Keys of visited subschemas: those that may have to hold, to fail, and those that are malformed.
        self.holding: set[object] = set()
        self.failing: set[object] = set()
        self.malformed: set[object] = set()
        self.forks: list[Located] = []  # subschemas that make alternatives
        self.applied: set[object] = set()  # keys of subschemas that another subschema applies to its own value
        # by the key of a subschema with oneOf: for each option, the options that may hold together with it
        self.overlaps: dict[object, list[frozenset[int]]] = {}
        self.counts: dict[int, Count | None] = {}  # by the identity of a schema: see `_counted`
        self.is_leaf = True  # the checked subschema has no subschemas, references or forks
        self.steps = 0  # total of the counts
        self.entries = self.values = self.value_bytes = 0
        self.has_common = False
        self.refused: list[Problem] = []  # keywords of the checked subschema that cannot be enforced
        # Values may be too long for any model, as counts and references multiply: see `run`.
        self.most_parts = 1.0  # the product of all counts: no value needs more parts, but for references
        self.references = 0

    def run(self) -> list[Problem]:
        """Return all problems, and set what the document knows by its check."""
        can_expand = True
        visited = 0
        while self.todo:
            visited += 1
            if not visited & 255:
                pause()
            located, positive = self.todo.pop()
            if type(located.schema) is not bool and not self._visit(located, positive):
                can_expand = False
        document = self.document
        document.entries, document.values, document.value_bytes = self.entries, self.values, self.value_bytes
        document.has_common = self.has_common
        if can_expand:
            self._expand()
        # Of the parts of a value: counts and references multiply them.
        bound = self.most_parts * PER_REFERENCE ** min(self.references, MANY_REFERENCES)
        if can_expand and not self.found and bound > 1 and bound * self.entries > FEW_PARTS:
            document.may_be_vast = MostParts(document, self.failing).of(document.root) > FEW_PARTS
        return self.found

    def _visit(self, located: Located, positive: bool) -> bool:
        """Check a subschema, and note its own subschemas; False if its alternatives cannot be expanded.

        Args:
            located: the subschema.
            positive: it must hold; else it must fail.
        """
        schema = located.schema
        if type(schema) is not dict and not isinstance(schema, Mapping):
            message = f"a schema must be an object or a boolean, not {json_name(schema)}"
            hint = "see https://json-schema.org/draft/2020-12/json-schema-core section 4.3"
            error = InvalidSchemaError(message, hint=hint, place=Place(pointer=located.pointer))
            self.found.append((located, error))
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
        otherwise = self.failing if positive else self.holding
        if not otherwise or key not in otherwise:  # else it was checked already, with the other sign
            before = len(self.found)
            self.entries += len(schema)
            self.is_leaf = True
            self.refused = []
            self._check(located, schema)
            if len(self.found) > before:
                self.malformed.add(located.key)
                return False
            self.found += self.refused
            if self.is_leaf and positive:
                return True
        if not positive:
            self._need_more(schema)
        return self._descend(located, schema, positive)

    def _need_more(self, schema: Any) -> None:
        """Raise ``most_parts`` for the upper counts of a subschema that may fail: then a value has more parts than they
        allow."""
        for keyword in _UPPER_COUNTS:
            if keyword in schema and not self.table[keyword][0] & UNKNOWN:
                self.most_parts *= 1 + min(schema[keyword], MAX_LEAST_TEXT)

    # -- is it well-formed (see `Check`) -----------------------------------------------------------------------

    def _check(self, located: Located, schema: Any) -> None:
        """Note the malformed keywords of a subschema, and the keywords that cannot be enforced."""
        table = self.table
        for keyword, value in schema.items():
            entry = table.get(keyword)
            if entry is None:
                if self.document.is_draft_3 and keyword in REPLACED:
                    self.refused.append((located, _replaced(located, keyword)))
                elif keyword == LATER and self.document.age == Draft.DRAFT_2020_12:
                    self.invalid(located, keyword, f"{keyword} is of no published draft", "write if and then")
                continue
            flags, _, check = entry
            if flags & DEEP:
                self.is_leaf = False
            if check is not None:
                check(self, located, keyword, value)

    def malformed_by(self, located: Located, error: SchemaError | LimitError) -> None:
        """Note a problem because of which a schema is not read any further."""
        self.found.append((located, error))

    def invalid(self, located: Located, keyword: str, message: str, hint: str | None = None) -> None:
        """Note that the value of a keyword is malformed."""
        place = Place(pointer=located.pointer, keyword=keyword)
        self.found.append((located, InvalidSchemaError(message, hint=hint, place=place)))

    def beyond(self, located: Located, keyword: str, message: str, hint: str) -> None:
        """Note that the value of a keyword exceeds a limit."""
        place = Place(pointer=located.pointer, keyword=keyword)
        self.found.append((located, LimitError(message, hint=hint, place=place)))

    def refuse(self, located: Located, error: SchemaError | LimitError) -> None:
        """Note that a well-formed keyword cannot be enforced."""
        self.refused.append((located, error))

    # -- its subschemas ----------------------------------------------------------------------------------------

    def _descend(self, located: Located, schema: Any, positive: bool) -> bool:
        """Add the subschemas of a subschema to ``todo``, with their signs; return False if it makes alternatives and a
        reference of it leads nowhere."""
        children: list[Signed] = []
        has_broken_reference = False
        all_flags = 0
        for keyword, value in schema.items():
            entry = self.table.get(keyword)
            if entry is None:
                continue
            flags, row, _ = entry
            all_flags |= flags
            if flags & UNKNOWN:
                continue
            if flags & REFERS:
                try:
                    target = self._target(located, keyword)
                except SchemaError as error:
                    # The frames of the tracebacks hold what is found here.
                    error.__cause__ = error.__context__ = None
                    self.found.append((located, error.with_traceback(None)))
                    has_broken_reference = True
                    continue
                if target is not None:
                    self.references += 1
                    if keyword == "$ref" and self.hides:
                        self.todo.append((target, positive))
                        return True
                    children.append((target, positive))
            elif row.join is Join.ONE:
                self._union(located, keyword, positive, children)
            elif flags & HOLDS_SCHEMAS:
                signs = (positive,) if row.signs is None else row.signs(schema, positive)
                if row.role is Role.REMAINDER and not positive:  # the schema may hold, and another keyword fail
                    signs = (*signs, True)
                for steps, inner in KEYWORDS.subschemas(keyword, value):
                    if type(inner) is not bool:
                        child = located.below(inner, (keyword, *steps))
                        for sign in signs:
                            children.append((child, sign))
            elif flags & NARROWED and not positive and value is not False:
                self.found.append((located, unsupported(located, keyword, "under a negation", row.narrowed)))
        forks = bool(all_flags & FORKS)
        if forks:
            if positive and located.key not in self.applied:
                self.forks.append(located)
            self._note_applied(located, schema)
        children.reverse()
        self.todo += children
        return not (has_broken_reference and forks)

    def _target(self, located: Located, keyword: str) -> Located | None:
        """Return the subschema that a reference leads to; None: the dialect has no such reference."""
        if not self.document.knows(keyword):
            return None
        if keyword != "$ref" and not self.document.dynamic:
            raise DynamicReferences
        return self.document.resolve(located, keyword)

    def _union(self, located: Located, keyword: str, positive: bool, children: list[Signed]) -> None:
        """Add the options of ``oneOf``: options that may hold together are also visited as ones that must fail."""
        options = located.items(keyword)
        overlaps = self.overlaps.get(located.key)
        if overlaps is None:
            try:
                signed = [SignedSchema(option) for option in options]
                overlaps = [] if are_of_different_types(options) else self.normaliser.overlaps(located, signed)
            except ToolGrammarError:
                overlaps = []  # the problem inside an option is reported with the option's own pointer
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                overlaps = []  # an option is malformed, which is reported too
            self.overlaps[located.key] = overlaps
            if not any(overlaps):
                self.document.disjoint.add(id(located.schema))
        for index, option in enumerate(options):
            children.append((option, True))
            if not positive or (overlaps and overlaps[index]):
                children.append((option, False))

    def _note_applied(self, located: Located, schema: Any) -> None:
        """Note the keys of the subschemas that a subschema applies to its own value."""
        for keyword in _IN_PLACE:
            if keyword in schema:
                for _, inner in KEYWORDS.subschemas(keyword, schema[keyword]):
                    self.applied.add(located.inner_key(inner))

    # -- alternatives ------------------------------------------------------------------------------------------

    def _expand(self) -> None:
        """Note the subschemas of which the expansion of alternatives exceeds a limit."""
        uncounted = []
        for located in self.forks:
            count = self._counted(located.schema, 0) if located.scope is None else None
            if count is None or count.alternatives > MAX_COMPOUNDS or sum(count) > MAX_STEPS:
                uncounted.append(located)
            else:
                self.steps += sum(count)
        failed = self._expanded(uncounted)
        if self.steps + self.normaliser.steps > MAX_TOTAL:  # the estimates are too large together: try all
            failed = self._expanded(self.forks)
        self.found += failed

    def _expanded(self, forks: list[Located]) -> list[Problem]:
        """Expand the alternatives of subschemas, and keep them for the lowering; return the problems of those that
        cannot be."""
        failed: list[Problem] = []
        for located in forks:
            try:
                goal = (SignedSchema(located),)
                self.normaliser.expanded[goal] = self.normaliser.branches(goal)
            except (SchemaError, LimitError) as error:
                failed.append((located, error.with_traceback(None)))  # the frames would keep the expansion alive
            except RecursionError:
                failed.append((located, too_deep(goal)))
            except PatternError:
                pass  # a problem of the subschema that has it, which is noted at its own place
        return failed

    def _counted(self, schema: Any, depth: int) -> Count | None:
        """Return the count of a subschema, nested in ``depth`` others that are counted; None: not known.

        The rest of a conjunction is expanded once for each alternative so far, so the bounds multiply.
        """
        if type(schema) is bool:
            return _ONE
        key = id(schema)
        if key in self.counts:
            return self.counts[key]
        if depth > _MAX_COUNTED_DEPTH or (self.address in schema and schema is not self.document.schema):
            return None
        all_flags = 0
        for keyword in schema:
            entry = self.table.get(keyword)
            if entry is not None:
                all_flags |= entry[0]
        if all_flags & UNCOUNTED:
            return None
        if not all_flags & COUNTED:
            self.counts[key] = _ONE
            return _ONE
        overlaps = self.overlaps.get(id(schema), ())
        if any(overlaps):
            return None
        self.counts[key] = None  # while it is in progress: it refers to itself
        steps = alternatives = 1
        for part in self._conjuncts(schema, depth):
            if part is None:
                return None
            steps += alternatives * part.steps
            alternatives *= part.alternatives
            if steps > MAX_TOTAL or alternatives > MAX_TOTAL:
                return None
        count = self.counts[key] = Count(steps, alternatives)
        if overlaps:  # its options were expanded already, by the test for overlaps
            self.steps += sum(count)
        return count

    def _conjuncts(self, schema: Any, depth: int) -> list[Count | None]:
        """Return `_counted` of the schemas that all hold of the same value as a schema: what it refers to, what it
        joins with ``allOf``, and each union."""
        counts: list[Count | None] = []
        is_reference = "$ref" in schema
        if is_reference:
            target = self.document.resolve(self.document.root.below(schema, ()), "$ref")
            if target.scope is not None:
                return [None]
            counts.append(self._counted(target.schema, depth + 1))
        for row in _JOINED if not (is_reference and self.hides) else ():
            if row.name in schema:
                listed = schema[row.name]
                if row.join is Join.EVERY:
                    counts += [self._counted(inner, depth + 1) for inner in listed]
                else:
                    counts.append(self._either(listed, depth))
        return counts

    def _either(self, options: Any, depth: int) -> Count | None:
        """Return `_counted` of the union of some schemas."""
        steps, alternatives = 1, 0
        is_known = True
        for inner in options:
            option = self._counted(inner, depth + 1)
            if option is None:
                is_known = False  # the others are still counted, for the total of steps
            else:
                steps += option.steps + 1  # one more where an option of oneOf is a formula of its own
                alternatives += option.alternatives
        return Count(steps, alternatives) if is_known else None


def _replaced(located: Located, keyword: str) -> UnsupportedSchemaError:
    """Return the error for a keyword of Draft 3."""
    return UnsupportedSchemaError(
        f"the keyword {keyword!r} of Draft 3 is not read",
        hint=f"write {REPLACED[keyword]}, and name Draft 4 or a later one in $schema",
        place=Place(pointer=located.pointer, keyword=keyword),
    )
