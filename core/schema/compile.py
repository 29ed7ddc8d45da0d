"""Checking and compiling a schema document."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple, TypeVar

from ..basics.cached import cached_property
from ..errors import (
    InvalidSchemaError,
    LimitError,
    Place,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from ..language.nodes import Nodes
from .check.problems import DynamicReferences, Problem, problems
from .check.unsatisfiable import MAX_SECONDS, contradictions, unsatisfiable
from .keywords.shapes import json_name
from .lower.lowering import Lowering
from .lower.nested_arguments import Reading
from .normal.inhabited import Inhabited
from .normal.normalise import Normaliser
from .read.keywords import KEYWORDS
from .read.live import has_values, in_order
from .read.located import Located
from .read.options import SchemaOptions
from .read.resolve import Document
from .read.schema_key import schema_key
from .scalars.value_syntax import Arguments, BareSyntax, Mark, NestedTags

#: Bytes that a document takes in a store (measured): its lowering, and each keyword and name of the document itself.
LOWERING_BYTES, ENTRY_BYTES = 3_500, 200

#: Maximum number of narrowed keywords that are tried one by one, to say which of them leaves no value.
MAX_BLAMED = 20

#: Strings that no reader takes for a value of another type, and that no markup ends.
_PLAIN_STRING = re.compile(r"|(?!(?:[Tt]rue|[Ff]alse|null|None)$)[A-Za-z][A-Za-z0-9_]*")

T = TypeVar("T")


@dataclass(eq=False)  # not frozen: that takes three times as long to make
class CompiledSchema:
    """A schema that can be enforced. Two of them are equal iff their keys are.

    Attributes:
        document: the schema.
        options: how it is read.
        unenforced: keywords that are left out, as pairs of a subschema's key and the keyword.
        problems: the reasons why they are left out.
        narrowed: keywords of which some valid values are left out.
        narrowed_keys: the same, as pairs of a subschema's key and the keyword.
        normalisers: that of the check, until the first store takes it.
    """

    document: Document
    options: SchemaOptions
    unenforced: frozenset[tuple[object, str]] = frozenset()
    problems: tuple[SchemaError | LimitError, ...] = ()
    narrowed: tuple[UnsupportedSchemaError, ...] = ()
    normalisers: list[Normaliser] = field(default_factory=list)
    narrowed_keys: tuple[tuple[object, str], ...] = ()

    def build(self, nodes: Nodes, *, whole: bool = False) -> int:
        """Return the root node in a store; everything below is lowered when a text reaches it.

        Args:
            nodes: the store.
            whole: the grammar is this schema alone: it is refused if its root exceeds a limit. Else, as of every
                subschema, what exceeds the limit is left out.

        Raises:
            LimitError: ``whole`` is set, and the root exceeds a limit.
        """
        # In a shared store, equal schemas are found by their content. A store of one grammar has no equal schemas, and
        # the key would take longer than the rest.
        handle = self.key if nodes.is_shared else _Same(self)
        lowering = nodes.builders.get(handle)
        if lowering is None:
            # The document counts with its grammar, which goes with a store of its own, or with the shared store.
            nodes.weight += self.byte_count() if nodes.is_shared else LOWERING_BYTES
            lowering = nodes.builders[handle] = self._lowering(nodes)
        if whole and self.options.arguments is None:
            lowering.expand(self.document.root)
        root: int = lowering.root()
        return root

    def byte_count(self) -> int:
        """Return the bytes of the schema, as read for lowering (estimated)."""
        document = self.document
        return LOWERING_BYTES + ENTRY_BYTES * (document.entries - document.values) + document.value_bytes

    def _lowering(self, nodes: Nodes) -> Lowering:
        try:
            normaliser = self.normalisers.pop()  # with the memos of the check
            normaliser.steps = 0
        except IndexError:
            normaliser = _normaliser(self.document, self.options, self.unenforced)
        return Lowering(normaliser, self.options, nodes, every_problem)

    def unsatisfiable(self) -> UnsatisfiableSchemaError | UnsupportedSchemaError:
        """Return the error for a schema that no value satisfies, at the innermost subschema that shows it.

        If only values that are left out (see ``narrowed``) satisfy the schema, the error names them.
        """
        without_narrowed = self.unenforced.union(self.narrowed_keys)
        end = thread_time() + MAX_SECONDS
        if self.narrowed and not self._with(without_narrowed, _is_empty):
            for narrowed, key in zip(self.narrowed[:MAX_BLAMED], self.narrowed_keys, strict=False):
                if thread_time() > end:
                    break
                if not self._with(self.unenforced | {key}, _is_empty):
                    return _only_left_out(narrowed)
            return _only_left_out(self.narrowed[0])
        return self._with(without_narrowed, unsatisfiable)

    def is_empty_without_narrowed(self) -> bool:
        """Return True if it is proved that no value satisfies the schema, whatever the narrowed keywords allow."""

        def is_proved(lowering: Lowering, nodes: Nodes) -> bool:
            return nodes.is_empty(lowering.root()) and not nodes.limits

        return self._with(self.unenforced.union(self.narrowed_keys), is_proved)

    def contradictions(self) -> tuple[list[UnsatisfiableSchemaError], list[UnsatisfiableSchemaError]]:
        """Return all reasons why no value can satisfy the schema (none if one can), and why none can satisfy parts of
        it. Keywords that are narrowed count as if they held for all values."""
        return self._with(self.unenforced.union(self.narrowed_keys), contradictions)

    def _with(self, unenforced: frozenset[tuple[object, str]], ask: Callable[[Lowering, Nodes], T]) -> T:
        """Return the result of a function for the schema without some keywords, lowered anew."""
        nodes = Nodes()
        schema = self if unenforced == self.unenforced else CompiledSchema(self.document, self.options, unenforced)
        lowering = schema._lowering(nodes)
        try:
            return ask(lowering, nodes)
        finally:  # they know one another
            lowering.release()
            nodes.clear()

    def is_surely_satisfiable(self) -> bool:
        """Return True if some text is valid and all names can be written, as far as that shows at once (False: perhaps
        not)."""
        inhabited, schema, options = Inhabited(self.document), self.document.schema, self.options
        if options.arguments is not None:
            spelled: Callable[[str], object] = options.arguments.spelled
        elif options.syntax is not None:
            spelled = options.syntax.names
        else:
            return inhabited.is_inhabited(schema)
        # An object that is not JSON: only of a known value is it known whether it can be written.
        if not isinstance(schema, dict) or not schema.keys() <= KEYWORDS.listing or not schema.get("properties"):
            return False
        if schema.get("additionalProperties", options.additional_properties) is not False:
            return False
        found = inhabited.witness(schema) if all(map(spelled, schema["properties"])) else None
        return found is not None and all(
            isinstance(each, dict) and all(map(_is_plain, each.values())) for each in found
        )

    @cached_property
    def member_kinds(self) -> Callable[[str], frozenset[str]]:
        """For ``options.arguments``: which kinds of values (``"string"``, ``"number"``, ``"boolean"``, ``"null"``,
        ``"array"``, ``"object"``) a member of the outermost object may have, by its name."""
        assert isinstance(self.options.arguments, Arguments)
        return self._lowering(Nodes()).arguments_object(self.options.arguments).kinds

    @cached_property
    def reading(self) -> Reading:
        """The reading of the arguments in `NestedTags`; it leads to the readings of all elements."""
        assert isinstance(self.options.arguments, NestedTags)
        return self._lowering(Nodes()).nested_arguments(self.options.arguments).root

    @cached_property
    def controls(self) -> frozenset[str]:
        """The names of the control tokens that the syntax of values uses."""
        syntax, arguments = self.options.syntax, self.options.arguments
        marks: list[Mark] = [(syntax.quote,)] if isinstance(syntax, BareSyntax) else []
        if isinstance(arguments, NestedTags):
            marks.append(arguments.mark)
        elif arguments is not None:
            marks += [arguments.separator, arguments.before_name, arguments.after_name, arguments.after_value]
            marks += [] if arguments.after_name_raw is None else [arguments.after_name_raw]
            marks += [mark for _, mark in arguments.after_name_by_type]
        return frozenset(text for mark in marks for text, control in mark if control)

    @cached_property
    def key(self) -> Hashable:
        """Equal for schemas that say the same (see `schema_key`) under equal options (schemas too deep or cyclic for
        JSON are only equal to themselves)."""
        try:
            return schema_key(self.document.schema), self.options
        except (RecursionError, ValueError, TypeError):
            return _Same(self.document.schema), self.options

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, CompiledSchema) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Of all that the schema says: a set may have thousands of tools whose arguments have the same names.
        return hash(self.key)


class _Same:
    """Equality by identity, for a value that is kept alive."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def every_problem(schema: Any, options: SchemaOptions | None = None) -> list[SchemaError | LimitError]:
    """Return an error for every place of a schema that is malformed or cannot be enforced exactly."""
    options = options or SchemaOptions()
    by_place: dict[Place, SchemaError | LimitError] = {}
    for _, problem in _read(schema, options).problems:
        if not _may_be_narrowed(problem, options):
            by_place.setdefault(problem.place, problem)
    return list(by_place.values())


def compile_schema(schema: Any, options: SchemaOptions | None = None) -> CompiledSchema:
    """Check a schema and make it ready to be lowered.

    Raises:
        InvalidSchemaError: it is malformed.
        UnsupportedSchemaError: it cannot be enforced exactly, and ``options.on_unsupported`` is not ``"validate"``.
        LimitError: it is too large in some respect.
    """
    options = options or SchemaOptions()
    document, problems, normaliser, options = _read(schema, options)
    refused: list[SchemaError | LimitError] = []
    narrowed: list[tuple[Located, UnsupportedSchemaError]] = []
    left_out: list[tuple[Located, UnsupportedSchemaError]] = []
    for located, problem in problems:
        if not isinstance(problem, UnsupportedSchemaError):
            refused.append(problem)
        elif _may_be_narrowed(problem, options):
            narrowed.append((located, problem))
        elif options.on_unsupported == "validate" and problem.place.keyword is not None:
            left_out.append((located, problem))
        else:
            refused.append(problem)
    if refused:
        # An error that a local of this frame held would only be freed by the garbage collector, with its traceback.
        del problems, problem
        raise refused.pop(0)
    unenforced = frozenset((located.key, problem.place.keyword or "") for located, problem in left_out)
    return CompiledSchema(
        document,
        options,
        unenforced,
        problems=tuple(problem for _, problem in left_out),
        narrowed=tuple(problem for _, problem in narrowed),
        normalisers=[] if unenforced else [normaliser],  # that of the check enforces all keywords
        narrowed_keys=tuple((located.key, problem.place.keyword or "") for located, problem in narrowed),
    )


def _is_plain(value: Any) -> bool:
    """Return True if every syntax can write a value."""
    if isinstance(value, str):
        return _PLAIN_STRING.fullmatch(value) is not None
    return not value or not isinstance(value, (dict, list, tuple))


def _is_empty(lowering: Lowering, nodes: Nodes) -> bool:
    return nodes.is_empty(lowering.root())


def _only_left_out(narrowed: UnsupportedSchemaError) -> UnsupportedSchemaError:
    """Return the error for a narrowed keyword if only the values that it leaves out are valid."""
    return UnsupportedSchemaError(
        f"the only values that satisfy the schema are left out: {narrowed.left_out}",
        hint=f"describe the values by a pattern, or remove {narrowed.place.keyword}",
        place=narrowed.place,
        left_out=narrowed.left_out,
    )


def _may_be_narrowed(problem: SchemaError | LimitError, options: SchemaOptions) -> bool:
    """Return True if some valid values of a keyword may be left out, and the rest is enforced."""
    return (
        options.on_unsupported != "error"
        and isinstance(problem, UnsupportedSchemaError)
        and problem.left_out is not None
    )


def _meant(given: Any) -> str:
    """Return how to give what is no schema as one."""
    if isinstance(given, str) and given.lstrip()[:1] == "{":
        return "json.loads(...) gives the schema of a JSON text"
    if isinstance(given, (str, Path)):
        return "give a dict, or a Pydantic class; json.loads(Path(...).read_text()) gives the schema of a file"
    if isinstance(given, (list, tuple)):
        return "one of some values is {'enum': [...]}"
    return "give a dict, or a Pydantic class"


class _Checked(NamedTuple):
    """A schema that was read and checked.

    Attributes:
        document: the schema.
        problems: each with its subschema.
        normaliser: that of the check.
        options: as given, but for the order of members where values are live.
    """

    document: Document
    problems: list[Problem]
    normaliser: Normaliser
    options: SchemaOptions


def compile_arguments(schema: Any, arguments: Arguments | NestedTags) -> CompiledSchema:
    """Return a schema by which finished arguments are read: what it cannot enforce is left out."""
    return compile_schema(
        schema, SchemaOptions(additional_properties=False, on_unsupported="validate", arguments=arguments)
    )


def _read(schema: Any, options: SchemaOptions) -> _Checked:
    """Read and check a schema. One with live values has its members in order: a callable reads those before its own."""
    if not isinstance(schema, (dict, bool, Mapping)):
        raise InvalidSchemaError(
            f"a schema must be an object or a boolean, not {json_name(schema)}",
            hint=_meant(schema),
            place=Place(pointer=""),
        )
    is_live = has_values(schema)
    if is_live:
        schema, options = in_order(schema), replace(options, property_order="schema")
    try:
        return _checked(Document(schema, options.registry, is_live=is_live), options)
    except DynamicReferences:
        return _checked(Document(schema, options.registry, dynamic=True, is_live=is_live), options)


def _checked(document: Document, options: SchemaOptions) -> _Checked:
    normaliser = _normaliser(document, options)
    return _Checked(document, problems(document, options, normaliser), normaliser, options)


def _normaliser(
    document: Document, options: SchemaOptions, unenforced: Collection[tuple[object, str]] = ()
) -> Normaliser:
    return Normaliser(document, unenforced, options.formats, open_objects=options.additional_properties)
