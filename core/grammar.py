"""`Grammar`: an immutable description of a language, independent of any vocabulary."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from .automaton.lazy_dfa import SHARED, Program, Store
from .automaton.shared_terms import Seed
from .errors import GrammarError, LimitError, ToolGrammarError, UnsatisfiableSchemaError
from .language.lookback import Written
from .language.nodes import Nodes
from .masks.matcher import Constraint
from .options import OnUnsupported, PropertyOrder, Whitespace

if TYPE_CHECKING:
    from .vocabulary.vocabulary import Vocabulary


@cache
def _seed() -> Seed:
    """What all stores of this process begin with."""
    from .schema.scalars.whitespace import common_languages

    return Seed(common_languages)


class Grammar:
    """A language: which texts may be written.

    Made by the class methods below and combined with ``+`` (one after the other) and ``|`` (one or the other). Nothing
    is computed until it is needed: `matches` and `bind` derive the automaton lazily, and share it.

    Attributes:
        schema: the JSON Schema that it was made from; None for any other grammar.
        unenforced: what was left out under ``on_unsupported="validate"``, each with its place and reason.
        specials: names of the control tokens that it may ask for.

    Law: ``(a + b).matches(x)`` iff ``x`` splits into a text of ``a`` and a text of ``b``; ``(a | b).matches(x)`` iff
    ``a.matches(x) or b.matches(x)``.
    """

    __slots__ = (
        "__weakref__",
        "_build",
        "_digest",
        "_hash",
        "_is_part",
        "_key",
        "_lock",
        "_program",
        "_program_in_use",
        "_shares",
        "_sure",
        "schema",
        "specials",
        "unenforced",
    )

    def __init__(
        self,
        build: Callable[[Nodes], int],
        key: tuple[Hashable, ...],
        unenforced: Sequence[ToolGrammarError] = (),
        parts: Sequence[Grammar] = (),
        sure: Callable[[], bool] | None = None,
    ) -> None:
        self._build = build
        self._key = key  # what it follows from
        self._hash: int | None = None
        self._digest: str | None = None
        self._is_part = False
        self._sure: Callable[[], bool] | bool | None = sure
        self._shares: bool = any(part._shares for part in parts)
        self.specials: frozenset[str] = frozenset().union(*[part.specials for part in parts])
        self.schema: Any = None
        self.unenforced: tuple[ToolGrammarError, ...] = (
            *unenforced,
            *(problem for part in parts for problem in part.unenforced),
        )
        self._program: Program | None = None
        self._program_in_use: weakref.ref[Program] | None = None
        self._lock = threading.Lock()

    # -- making ------------------------------------------------------------------------------------------------

    @classmethod
    def from_json_schema(
        cls,
        schema: Any,
        *,
        whitespace: Whitespace = "single",
        additional_properties: bool = True,
        property_order: PropertyOrder = "schema",
        on_unsupported: OnUnsupported = "error",
        formats: bool = True,
        strict_formats: bool = False,
        registry: Mapping[str, Any] | None = None,
        plain_integers: bool = False,
    ) -> Grammar:
        """JSON texts that are valid under a schema.

        Args:
            schema: a JSON Schema (a dict, or a bool), or a Pydantic class: then what is written passes its
                ``model_validate_json``, validators that the user wrote apart. Dates that must be past or still to come
                are so for 24 hours from when the grammar is made.
            whitespace: ``"compact"`` writes none, ``"single"`` one space after ``,`` and ``:``, ``"flexible"`` accepts
                bounded runs of whitespace wherever JSON does.
            additional_properties: what an object that does not mention ``additionalProperties`` takes: True, as the
                standard says, or False, as a function's arguments do.
            property_order: ``"schema"``: members are written in the order in which the schema names them, others
                last; ``"any"``: in any order.
            on_unsupported: ``"error"``: a keyword that cannot be enforced exactly is refused; ``"validate"``: it is
                left out, named in `unenforced`, and the finished value is to be validated.
            formats: whether ``format`` is enforced (as for ``format-assertion``), or an annotation only.
            strict_formats: a ``format`` that the specification does not know is refused; else it is an annotation.
            registry: schemas that references may name, by address. Nothing is ever fetched.
            plain_integers: integers, and numbers that the schema lists, have one spelling under ``"flexible"`` too: 1,
                not 1.0, which some readers do not take for an integer. Always so for a Pydantic class.

        Raises:
            InvalidSchemaError: the schema is malformed.
            UnsupportedSchemaError: a keyword cannot be enforced exactly; names its place.
            UnsatisfiableSchemaError: nothing can be valid.
        """
        from .schema import SchemaOptions, compile_schema

        if hasattr(schema, "model_json_schema"):
            from .schema.pydantic.schema import json_schema_of
            from .schema.scalars.dates import of_today

            schema, plain_integers = of_today(json_schema_of(schema)), True
        compiled = compile_schema(
            schema,
            SchemaOptions(
                whitespace,
                additional_properties,
                property_order,
                on_unsupported,
                formats,
                strict_formats,
                registry,
                plain_integers=plain_integers,
            ),
        )
        grammar = cls(
            compiled.build,
            ("schema", compiled),
            compiled.problems,
            sure=lambda: compiled.is_surely_satisfiable,
        )
        grammar.schema = schema
        return grammar

    @classmethod
    def json(cls, *, whitespace: Whitespace = "single") -> Grammar:
        """Any JSON text."""
        return cls.from_json_schema(True, whitespace=whitespace)

    @classmethod
    def from_regex(cls, pattern: str) -> Grammar:
        """Texts that match a regular expression as a whole (ECMA-262 with the ``u`` flag), written as UTF-8.

        Raises:
            PatternError: malformed, or not regular (back-references).
        """
        from .regex.compile import regex_term

        regex_term(Nodes().terms, pattern, whole=True)  # errors now, not at first use
        return cls(lambda nodes: nodes.text(regex_term(nodes.terms, pattern, whole=True)), ("regex", pattern))

    @classmethod
    def literal(cls, text: str | bytes) -> Grammar:
        """Exactly ``text``."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        return cls(lambda nodes: nodes.literal(data), ("literal", data), sure=lambda: True)

    @classmethod
    def special(cls, name: str) -> Grammar:
        """The control token called ``name`` in the vocabulary; text that spells the name does not count."""
        grammar = cls(lambda nodes: nodes.special(name), ("special", name), sure=lambda: True)
        grammar.specials = frozenset((name,))
        return grammar

    @classmethod
    def text(cls, *, excluding: Sequence[str] = (), min_chars: int = 0) -> Grammar:
        """Free text of at least ``min_chars`` characters that contains none of the strings of ``excluding``."""
        words = _words(excluding)

        def build(nodes: Nodes) -> int:
            terms = nodes.terms
            free = terms.not_(_containing(nodes, words)) if words else terms.ALL
            return nodes.text(terms.and_([free, terms.repeat(terms.ANY, min_chars, None)]))

        return cls(build, ("text", words, min_chars))

    @classmethod
    def until(cls, marker: str, *, excluding: Sequence[str] = ()) -> Grammar:
        """Free text up to and including the first occurrence of ``marker``, with none of ``excluding`` before it."""
        if not marker:
            raise GrammarError("the marker of Grammar.until is empty", hint="give the text that ends the free part")
        words = _words(excluding)

        def build(nodes: Nodes) -> int:
            terms = nodes.terms
            # Σ* marker, of which no proper prefix already contains the marker.
            ending = terms.seq(terms.ALL, terms.literal(marker))
            before = terms.seq(terms.not_(_containing(nodes, (marker,))), terms.ANY)
            parts = [ending, before]
            if words:
                parts.append(terms.not_(_containing(nodes, words)))
            return nodes.text(terms.and_(parts))

        return cls(build, ("until", marker, words))

    @classmethod
    def sequence(cls, *parts: Grammar) -> Grammar:
        """The parts, one after the other."""
        return cls(
            lambda nodes: nodes.sequence([part._node(nodes) for part in parts]),
            ("sequence", *parts),
            parts=parts,
            sure=lambda: all(part._is_sure for part in parts),
        )

    @classmethod
    def choice(cls, *parts: Grammar) -> Grammar:
        """Any one of the parts."""
        if not parts:
            raise GrammarError("a choice of nothing", hint="give Grammar.choice at least one part")
        return cls(lambda nodes: nodes.alt([part._node(nodes) for part in parts]), ("choice", *parts), parts=parts)

    @classmethod
    def cases(cls, cases: Mapping[str, Grammar]) -> Grammar:
        """One of the keys, followed by its own part: like a choice, and quick for thousands of keys.

        Keys may be the beginnings of others.
        """
        if not cases:
            raise GrammarError("a choice of nothing", hint="give Grammar.cases at least one part")
        words = {key.encode(): part for key, part in cases.items()}
        key = ("cases", *cases.items())
        name = _name(key)

        def build(nodes: Nodes) -> int:
            def case(word: bytes, part: Grammar) -> int:
                found = nodes.known.get(part)
                if found is None:  # each part is built when a text has come to it
                    known = nodes.EPSILON if part._is_sure else None
                    found = nodes.lazy(("case", name, word), lambda: part._node(nodes), as_empty_as=known)
                return found

            return nodes.words({word: case(word, part) for word, part in words.items()})

        return cls(_once(name, build), key, parts=tuple(cases.values()))

    @classmethod
    def distinct(cls, parts: Sequence[Grammar], separator: Grammar, min: int = 0, max: int | None = None) -> Grammar:
        """Between ``min`` and ``max`` of the parts, each at most once, in any order, ``separator`` between them."""
        most = len(parts) if max is None or max > len(parts) else max
        if min < 0 or most < min:
            raise GrammarError(
                f"between {min} and {most} of {len(parts)} parts", hint="0 <= min <= max <= their number"
            )
        key = ("distinct", separator, min, most, *parts)
        name = _name(key)

        def build(nodes: Nodes) -> int:
            built = [part._node(nodes) for part in parts]
            between = separator._node(nodes)

            def rest(used: frozenset[int]) -> int:
                def expand() -> int:
                    options = [nodes.EPSILON] if len(used) >= min else []
                    lead = between if used else nodes.EPSILON
                    if len(used) < most:
                        unused = [index for index in range(len(parts)) if index not in used]
                        more = [nodes.seq(built[index], rest(used | {index})) for index in unused]
                        options.append(nodes.seq(lead, nodes.alt(more)))
                    return nodes.alt(options)

                return nodes.lazy(("distinct", name, used), expand)

            return rest(frozenset())

        return cls(_once(name, build), key, parts=(*parts, separator))

    @classmethod
    def repeat(cls, part: Grammar, min: int = 0, max: int | None = None) -> Grammar:
        """Between ``min`` and ``max`` copies of a part, one after the other (None: no upper bound)."""
        if min < 0 or (max is not None and max < min):
            raise GrammarError(f"a repetition between {min} and {max} times", hint="0 <= min <= max")
        return cls(lambda nodes: nodes.repeat(part._node(nodes), min, max), ("repeat", part, min, max), parts=(part,))

    def as_part(self) -> Grammar:
        """The same language, as a part of many grammars: what is derived for it is kept for all of them.

        Grammars that hold such parts live in one store of the process, which is renewed when it is full. For the tools
        of an agent, whose sets change from request to request, that is far quicker; for a grammar that is bound
        once, a store of its own is released sooner.
        """
        grammar = Grammar(self._build, self._key, parts=(self,), sure=lambda: self._is_sure)
        grammar.schema = self.schema
        grammar._is_part = grammar._shares = True
        return grammar

    @property
    def _is_sure(self) -> bool:
        """Whether it has a text, as far as that shows at once (False: perhaps not)."""
        if callable(self._sure):
            self._sure = self._sure()
        return self._sure is True

    def check(self) -> None:
        """Return if the language has a text.

        Raises:
            UnsatisfiableSchemaError: it has none; names the place in the schema.
            LimitError: the grammar is nested too deeply.
        """
        if not self._is_sure:
            self.program  # noqa: B018
            self._sure = True

    def _node(self, nodes: Nodes) -> int:
        """The root node in a store."""
        if not self._is_part:
            return self._build(nodes)
        found = nodes.known.get(self)
        if found is None:
            found = nodes.known[self] = self._build(nodes)
        return found

    def __add__(self, other: Grammar) -> Grammar:
        return Grammar.sequence(self, other)

    def __or__(self, other: Grammar) -> Grammar:
        return Grammar.choice(self, other)

    # -- identity ----------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Grammar) and hash(self) == hash(other) and self._key == other._key)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._key)
        return self._hash

    def __repr__(self) -> str:
        return f"Grammar.{self._key[0]}(...)"

    # -- using -------------------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The grammar's automaton, shared by all that is bound to it; a fresh one when the last has grown too large.

        Raises:
            UnsatisfiableSchemaError: the language is empty.
        """
        with self._lock:
            program = self._program
            if self._program_in_use is not None:
                program = self._program_in_use()
            if program is None or program.is_full:
                try:
                    seed = _seed()
                    program = Program(self._build, SHARED.store(seed) if self._shares else Store(seed=seed))
                except RecursionError:
                    raise LimitError(
                        "the grammar is nested too deeply", hint="flatten it, or break the nesting with $ref"
                    ) from None
                if program.is_empty:
                    raise self._unsatisfiable()
                if self._shares:  # grammars that are kept do not keep stores that others have filled
                    self._program_in_use = weakref.ref(program)
                else:
                    self._program = program
            return program

    def _unsatisfiable(self) -> UnsatisfiableSchemaError:
        """Return the error for a grammar without any text."""
        kind, *rest = self._key
        if kind == "schema":
            compiled: Any = rest[0]
            return cast(UnsatisfiableSchemaError, compiled.unsatisfiable())
        for part in rest if kind == "sequence" else ():
            try:
                cast(Grammar, part).check()
            except UnsatisfiableSchemaError as error:
                return error.with_traceback(None)
        return UnsatisfiableSchemaError(
            "no text can satisfy the grammar", hint="look for constraints that contradict each other"
        )

    def _release(self) -> None:
        """Let go of the automaton: it is made again when it is needed."""
        with self._lock:
            self._program = None

    def matches(self, data: bytes | str) -> bool:
        """Whether ``data`` is a text of the language (control tokens cannot be given as text)."""
        program = self.program
        with program.lock:
            state = self._after(program, data)
            return state != -1 and program.automaton.accepts(state)

    def begins(self, data: bytes | str) -> bool:
        """Whether some text of the language begins with ``data`` (control tokens cannot be given as text)."""
        program = self.program
        with program.lock:
            return self._after(program, data) != -1

    @staticmethod
    def _after(program: Program, data: bytes | str) -> int:
        """The state after a text; -1 if no text of the language begins so."""
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
        return program.advance(program.start, raw, Written())

    def bind(self, vocabulary: Vocabulary) -> Constraint:
        """The grammar over a model's tokens: shared, thread-safe; make one `Matcher` per text from it."""
        return Constraint(self.program, vocabulary, lambda: self.program, self.specials)


def _words(texts: Sequence[str]) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise GrammarError("excluding is a string, not a list of strings", hint=f"excluding=[{texts!r}]")
    if "" in texts:
        raise GrammarError("a text that does not contain the empty string", hint="leave out the empty string")
    return tuple(texts)


def _containing(nodes: Nodes, words: tuple[str, ...]) -> int:
    """Every text that contains one of the words."""
    terms = nodes.terms
    return terms.sequence([terms.ALL, terms.words(words), terms.ALL])


def _once(name: Grammar, build: Callable[[Nodes], int]) -> Callable[[Nodes], int]:
    """Build only what is not in the store under an equal name: comparing two names takes as long as they are."""

    def found(nodes: Nodes) -> int:
        node = nodes.known.get(name)
        if node is None:
            node = nodes.known[name] = build(nodes)
        return node

    return found


def _name(key: tuple[Hashable, ...]) -> Grammar:
    """What equals a grammar of that key: for names of its nodes. The grammar in its own ``build`` would hold itself."""
    return Grammar(lambda nodes: nodes.EPSILON, key)
