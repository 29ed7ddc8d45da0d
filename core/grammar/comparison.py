"""Comparison of two grammars: inclusion in both directions, each with a smallest text that shows the contrary.

JSON Schemas are compared as sets of values: ``{"allOf": [first, {"not": second}]}`` has no value iff the second allows
all that the first allows. A grammar that is narrowed has fewer texts than its schema has values, so a text of it proves
a difference, and the absence of texts proves nothing, unless none is left without the narrowed keywords either.
Other grammars are compared as sets of texts, by a search of the product of their automata.

Arguments that are grammars are of the class `Grammar`, which imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ..automaton.encoding import REFUSED
from ..automaton.lazy_dfa import LazyAutomaton, Program
from ..basics.pauses import pause
from ..dependent.written import Written
from ..errors import (
    GrammarError,
    LimitError,
    ToolGrammarError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from .firsts import first_terms

if TYPE_CHECKING:
    from ..schema import CompiledSchema, SchemaOptions
    from ..schema.joined import Joined

#: Maximum number of pairs of states that a search visits.
MAX_PAIRS = 50_000

#: The states of two automata after the same text; REFUSED for the second: it does not have the text.
_Pair = tuple[int, int]

#: Relation of a second language to a first one.
Relation = Literal["equal", "narrower", "wider", "overlapping", "disjoint", "undecided"]


@dataclass(frozen=True)
class Witness:
    """Whether a set of texts is empty, with a text of it if it is not.

    Attributes:
        text: the smallest one; None: there is none, or this is not decided.
        undecided: why it is not decided; None: it is.
    """

    text: str | None = None
    undecided: ToolGrammarError | None = None

    @property
    def is_none(self) -> bool:
        """True if it is proved that the set has no text."""
        return self.text is None and self.undecided is None


@dataclass(frozen=True)
class Comparison:
    """Relation of a second language to a first one.

    Attributes:
        lost: texts that only the first has.
        gained: texts that only the second has.
        common: texts that both have; None where one has all texts of the other.
    """

    lost: Witness
    gained: Witness
    common: Witness | None = None

    @property
    def covers(self) -> bool | None:
        """True if the second has every text of the first, False if it lacks `lost`, None if that is not decided."""
        return False if self.lost.text is not None else True if self.lost.is_none else None

    @property
    def relation(self) -> Relation:
        """What the second is, seen from the first: ``"wider"`` has all texts of the first, and more."""
        if self.lost.is_none:
            return "equal" if self.gained.is_none else "wider" if self.gained.text is not None else "undecided"
        if self.gained.is_none and self.lost.text is not None:
            return "narrower"
        common = self.common
        if self.lost.text is None or self.gained.text is None or common is None or common.undecided is not None:
            return "undecided"
        return "disjoint" if common.text is None else "overlapping"

    @property
    def undecided(self) -> tuple[ToolGrammarError, ...]:
        """The reasons why something is not decided; empty if everything is."""
        answers = (self.lost, self.gained, self.common)
        return tuple(each.undecided for each in answers if each is not None and each.undecided is not None)


def compared(first: Any, second: Any) -> Comparison:
    """Return the relation of a second grammar to a first one; see `Grammar.compare`."""
    if not hasattr(second, "_checked_build"):
        raise GrammarError(
            f"a grammar cannot be compared with {type(second).__name__}", hint="Grammar.from_json_schema(...)"
        )
    one, other = schema_of(first), schema_of(second)
    ask: Callable[[int | None], Witness] = partial(_by_text, first, second)
    if one is not None and other is not None:
        ask = _by_value(one, other)
    lost, gained = ask(0), ask(1)
    return Comparison(lost, gained, None if lost.is_none or gained.is_none else ask(None))


# -- schemas -------------------------------------------------------------------------------------------------------


def schema_of(grammar: Any) -> CompiledSchema | None:
    """Return the schema of a grammar of JSON; None if it is another grammar."""
    return None if grammar.schema is None or grammar._key[0] != "schema" else grammar._key[1]


def _by_value(first: CompiledSchema, second: CompiledSchema) -> Callable[[int | None], Witness]:
    """Return the function that gives a smallest value of the first schema alone (0), of the second (1), or of both."""
    from ..schema import SchemaOptions
    from ..schema.joined import Joined

    options = SchemaOptions(formats=first.options.formats)
    try:
        for name in ("formats", "additional_properties"):
            if getattr(first.options, name) != getattr(second.options, name):
                raise GrammarError(f"the grammars were made with different {name}", hint=f"use one {name} for both")
        if not first.options.additional_properties:
            hint = "write that out: toolgrammar.tools.close_objects"
            raise GrammarError("objects are closed by an option, not by their schemas", hint=hint)
        joined = Joined(first.document, second.document)
    except (ToolGrammarError, RecursionError) as error:
        refused = Witness(undecided=_reason(error))
        return lambda _: refused

    def ask(which: int | None) -> Witness:
        if which is not None and joined.are_same:
            return Witness()
        try:
            return _answer(joined.both() if which is None else joined.only(which), options, joined)
        except (ToolGrammarError, RecursionError) as error:
            return Witness(undecided=_reason(error, joined))

    return ask


def _answer(schema: Any, options: SchemaOptions, joined: Joined) -> Witness:
    """Return a smallest value of a schema, as text.

    Raises:
        ToolGrammarError: it is not decided whether there is one.
    """
    from ..schema import compile_schema

    compiled = compile_schema(schema, options)
    nodes_of = partial(compiled.build, whole=True)
    program = Program(nodes_of, LazyAutomaton(seed=first_terms(compiled.document.has_common)))
    if not program.is_empty:
        return Witness(smallest(program))
    if program.store.nodes.limits:
        raise program.store.nodes.limits[0]
    if compiled.narrowed and not compiled.is_empty_without_narrowed():
        raise compiled.narrowed[0]
    if far := joined.far_numbers:
        raise LimitError(
            f"texts have numbers of at most 30 digits, and {far} is larger or finer than that allows to compare",
            hint="give a bound with fewer digits",
        )
    return Witness()


def smallest(program: Program) -> str:
    """Return a smallest text of a program that is not empty."""
    with program.lock:
        parts = program.store.shortest_completion(program.start, Written())
    return b"".join(part if isinstance(part, bytes) else b"" for part in parts).decode("utf-8", "replace")


def _reason(error: ToolGrammarError | RecursionError, joined: Joined | None = None) -> ToolGrammarError:
    """Return why something is not decided, with its place in the schema that was given."""
    if isinstance(error, RecursionError):
        return LimitError("the schemas are nested too deeply", hint="break the nesting with $ref")
    which, place = (None, error.place) if joined is None else joined.place(error.place)
    said = error.message if which is None else f"in the {('first', 'second')[which]}: {error.message}"
    if isinstance(error, UnsupportedSchemaError):
        hint = "compare without it, or write it in another way (a format as a pattern, for example)"
        return UnsupportedSchemaError(said, hint=hint, place=place, left_out=error.left_out)
    return type(error)(said, hint=error.hint, place=place)


# -- texts ---------------------------------------------------------------------------------------------------------


def _by_text(first: Any, second: Any, which: int | None) -> Witness:
    """Return a smallest text of the first grammar alone (0), of the second (1), or of both (None)."""
    has, other = (second, first) if which == 1 else (first, second)
    try:
        program, other_program = own_program(has), own_program(other)
        text = _search(program, other_program, is_in=which is None)
        # A narrowed grammar may lack texts of its language. So its language may have a text where none was found ...
        if text is None:
            _require_exact(has, program)
        # ... and the language of the other may have the text that was found outside of it, or a common one.
        wants_common, is_found = which is None, text is not None
        if is_found != wants_common:
            _require_exact(other, other_program)
    except (ToolGrammarError, RecursionError) as error:
        return Witness(undecided=_reason(error))
    return Witness(text)


def _require_exact(grammar: Any, program: Program | None) -> None:
    """Raise an `UnsupportedSchemaError` if a grammar is narrowed."""
    for narrowed in (*grammar.narrowed, *(() if program is None else program.narrowed)):
        raise narrowed


def own_program(grammar: Any) -> Program | None:
    """Return a program of a grammar, in a store of its own; None if the grammar has no text."""
    if grammar.specials:
        raise GrammarError("grammars with control tokens cannot be compared", hint="compare the parts between them")
    try:
        grammar.check()
    except UnsatisfiableSchemaError:
        return None
    return Program(grammar._checked_build)


def _search(has: Program | None, other: Program | None, *, is_in: bool) -> str | None:
    """Return a shortest text of one program that is, or is not, a text of another; None if there is none.

    Raises:
        LimitError: the search was given up.
        GrammarError: what is allowed depends on the text so far.
    """
    if has is None or (is_in and other is None):
        return None
    begin = has.start, REFUSED if other is None else other.start
    before: dict[_Pair, tuple[_Pair, int] | None] = {begin: None}  # the pair that leads to one, and by which byte
    for pair in (queue := [begin]):
        state, other_state = pair
        pause()
        accepts = other is not None and other_state != REFUSED and other.automaton.accepts(other_state)
        if has.automaton.accepts(state) and accepts == is_in:
            return _path(pair, before)
        for byte in has.automaton.following(state):
            after = has.automaton.step(state, byte)
            other_after = REFUSED
            if other is not None and other_state != REFUSED:
                other_after = other.automaton.step(other_state, byte)
            if after < REFUSED or other_after < REFUSED:  # an open state
                raise GrammarError(
                    "what may be written depends on the text so far", hint="compare the JSON Schemas themselves"
                )
            following = after, other_after
            if after == REFUSED or following in before or (is_in and other_after == REFUSED):
                continue
            if len(before) >= MAX_PAIRS:
                raise LimitError(
                    f"more than {MAX_PAIRS:,} pairs of states", hint="inclusion of recursive grammars is undecidable"
                )
            before[following] = pair, byte
            queue.append(following)
    return None


def _path(pair: _Pair, before: Mapping[_Pair, tuple[_Pair, int] | None]) -> str:
    """Return the text that leads to a pair of states."""
    text = bytearray()
    while (step := before[pair]) is not None:
        pair, byte = step
        text.append(byte)
    return bytes(reversed(text)).decode("utf-8", "replace")
