"""Expressions of Lark grammars, in the dialect of llguidance: what stands after the name of a rule or terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from ..errors import GrammarError, LimitError, ToolGrammarError, UnsupportedSchemaError
from ..regex.foreign import to_ecma
from ..unicode.casefold import fold
from ..unicode.charset import CharSet
from .dispatch import read_other_tokens
from .ebnf import MAX_NESTING, character
from .expressions import (
    Buildable,
    Chars,
    Complement,
    Control,
    Expression,
    Intersection,
    Literal,
    Part,
    Reference,
    Repeat,
    choice,
    pattern,
    sequence,
    substring,
)
from .source import Source
from .tokens import Tokens

_COMMENT = r"(?:#|//)[^\n]*"
BLANK = re.compile(rf"(?:[ \t]|{_COMMENT})*")
SPACE = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*")
_NEXT_ALTERNATIVE = re.compile(rf"(?:[ \t\r\n]|{_COMMENT}\n)*\|")
TERMINAL = re.compile(r"_?[A-Z][_A-Z0-9\-]*")
_NAME = re.compile(r"_?(?:[a-z][_a-z0-9\-]*|[A-Z][_A-Z0-9\-]*)")
_REGEX = re.compile(r"/(?![/*])((?:\\.|[^/\\\n])+)/([imslux]*)")
_TOKEN = re.compile(r"<(?:\[([^\]<>]*)\]|[^<>\s]+)>")
_IDS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CODES = (
    re.compile(r"\\x([0-9a-fA-F]{2})"),
    re.compile(r"\\u([0-9a-fA-F]{4})"),
    re.compile(r"\\U([0-9a-fA-F]{8})"),
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "/": "/", "\\": "\\"}
#: What a pattern is made of, as far as needed to find lazy repetitions and word boundaries.
_PIECES = re.compile(
    r"(?P<boundary>\\[bB])|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|(?P<lazy>(?:[*+?]|\{[0-9, ]+\})\?)|.", re.DOTALL
)
#: What decides which directives are a grammar's own: strings and patterns hold none.
_LEXEMES = re.compile(
    r"(?P<nested>%lark[ \t\r\n]*\{)|(?P<directive>%[a-z]+)|(?P<brace>[{}])"
    r"|(?:#|//)[^\n]*|\"(?:\\.|[^\"\\\n])*\"|/(?![/*])(?:\\.|[^/\\\n])+/|<[^<>\s]*>"
)
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")

#: The rule of ignored text. No name in a grammar has a percent sign.
IGNORED = "%ignore"


class JsonLanguage(Buildable, Protocol):
    """The JSON texts of a schema."""

    @property
    def problems(self) -> Sequence[ToolGrammarError]:
        """The keywords that are left out."""

    @property
    def narrowed(self) -> Sequence[UnsupportedSchemaError]:
        """The keywords of which some valid values are left out."""


#: Compiles a JSON Schema, which may be refused.
CompileJson = Callable[[Any], JsonLanguage]


@dataclass
class ExpressionReader:
    """Reads the expressions of one grammar.

    Texts that are ignored between terminals are a part of each terminal that a rule uses (`_lexeme`); within terminals
    (``_in_terminal``) nothing is ignored.
    """

    source: Source
    start: str
    tokens: Tokens
    compile_json: CompileJson | None
    prefix: str = ""  # of all names
    end: str = ""  # what ends the grammar, beside the end of the text
    is_exact: bool = False
    found: dict[str, Expression] = field(default_factory=dict)
    problems: list[ToolGrammarError] = field(default_factory=list)
    narrowed: list[UnsupportedSchemaError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._named: list[Expression] = []  # by tokens
        self._schemas: list[Expression] = []
        self._uses: dict[str, int] = {}
        self._restricted: list[tuple[Expression, int]] = []  # these have to be regular
        self._has_ignores = self._finds_ignore()
        self._in_terminal = False
        self._depth = 0

    def _nested(self, start: int) -> Expression:
        """Read a grammar in braces; by the reader of statements."""
        raise NotImplementedError

    def _finds_ignore(self) -> bool:
        """Return True if the grammar, from the position on, has ``%ignore``; those of grammars nested in it do not
        count."""
        depths = [0]  # the open braces of the grammar, and of each nested one around the place
        for match in _LEXEMES.finditer(self.source.text, self.source.position):
            if match["nested"]:
                depths.append(1)
            elif match["brace"]:
                depths[-1] += 1 if match["brace"] == "{" else -1
                if depths[0] < 0:  # the end of the grammar itself, which is nested in another
                    return False
                if len(depths) > 1 and not depths[-1]:
                    depths.pop()
            elif len(depths) == 1 and match["directive"] and match["directive"].startswith("%ignore"):
                return True
        return False

    def _space(self) -> None:
        """Skip white space, with line feeds inside of brackets."""
        self.source.match(SPACE if self._depth else BLANK)

    def _choices(self) -> Expression:
        """Read alternatives; each but the first may begin on a line of its own."""
        items = [self._conjunction()]
        while self.source.match(_NEXT_ALTERNATIVE):
            self.source.match(BLANK)
            items.append(self._conjunction())
        return choice(*items)

    def _conjunction(self) -> Expression:
        """Read sequences joined by ``&``, which all have to match; only in terminals."""
        source = self.source
        start = source.position
        items = [self._sequence()]
        while source.peek() == "&":
            if not self._in_terminal:
                source.fail("& is only allowed in terminals", hint="give the rule a name in upper case")
            source.position += 1
            self._space()
            items.append(self._sequence())
        if len(items) == 1:
            return items[0]
        both = Intersection(tuple(items))
        self._restricted.append((both, start))
        return both

    def _sequence(self) -> Expression:
        """Read items up to the end of the alternative; its name (``-> name``) has no meaning here."""
        source = self.source
        items: list[Expression] = []
        while not source.rest_is_empty and source.peek() not in "|&)]}\r\n":
            if source.take("->"):
                source.match(BLANK)
                if source.match(_NAME) is None:
                    source.fail("expected the name of the alternative")
                self._space()
                break
            items.append(self._repeated())
            self._space()
        return sequence(*items)

    def _repeated(self) -> Expression:
        """Read an item and its repetition, if there is one: ``*``, ``+``, ``?``, ``~n``, ``~n..m``, or counts in
        braces."""
        source = self.source
        start = source.position
        item = self._complement()
        self._space()
        if source.take("*"):
            return Repeat(item, 0, None)
        if source.take("+"):
            return Repeat(item, 1, None)
        if source.take("?"):
            return Repeat(item, 0, 1)
        bounds = source.match(re.compile(r"~[ \t]*([0-9]+)(?:[ \t]*\.\.[ \t]*([0-9]+))?"))
        if bounds is not None:
            least, most = (source.number(digits, start) for digits in (bounds[1], bounds[2] or bounds[1]))
            return self._bounded(item, least, most, start)
        bounds = source.match(re.compile(r"\{[ \t]*([0-9]*)[ \t]*(,?)[ \t]*([0-9]*)[ \t]*\}"))
        if bounds is not None and bounds[0].strip("{} \t") not in ("", ","):
            last = bounds[3] if bounds[2] else bounds[1]
            upper = source.number(last, start) if last else None
            return self._bounded(item, source.number(bounds[1] or "0", start), upper, start)
        if source.peek() == "{" or bounds is not None:
            source.fail("expected a repetition, {n}, {n,} or {n,m}", at=start)
        return item

    def _bounded(self, item: Expression, least: int, most: int | None, start: int) -> Expression:
        """Return a repetition; an error of its bounds is reported at ``start``."""
        if most is not None and most < least:
            self.source.fail(f"the minimum {least} is greater than the maximum {most}", at=start)
        return Repeat(item, least, most)

    def _complement(self) -> Expression:
        """Read an item, or ``~`` and an item: all texts but its own; only in terminals."""
        source = self.source
        start = source.position
        if not source.take("~"):
            return self._atom()
        if not self._in_terminal:
            source.fail("~ is only allowed in terminals", at=start, hint="give the rule a name in upper case")
        self._space()
        without = Complement(self._atom())
        self._restricted.append((without, start))
        return without

    def _atom(self) -> Expression:
        """Read an item without operators: a group, string, pattern, token, nested grammar or schema, or a name. In a
        rule, terminals are followed by what is ignored."""
        source = self.source
        start = source.position
        if source.take("("):
            return self._group(")")
        if source.take("["):
            return Repeat(self._group("]"), 0, 1)
        first = source.peek()
        if first == '"':
            return self._literal(start)
        if first == "/":
            return self._lexeme(self._regex())
        if first == "<":
            return self._lexeme(self._token(start))
        if source.take("%regex"):
            return self._lexeme(self._structured(start))
        if source.take("%json"):
            return self._lexeme(self._schema(start))
        if source.take("%lark"):
            return self._lexeme(self._nested(start))
        if first == "@":
            source.fail("other grammar files are not read", hint="write it here, as %lark {...} or %json {...}")
        name = source.match(_NAME)
        if name is None:
            source.fail('expected a name, "string", /regex/, <token>, %json, %regex, %lark, ( or [')
        if source.peek(2) == "::":
            source.fail("rules with parameters are not read", at=start, hint="write a rule for each value")
        is_terminal = TERMINAL.fullmatch(name[0]) is not None
        if self._in_terminal and not is_terminal:
            source.fail(
                f"a terminal cannot contain the rule {name[0]!r}", at=start, hint="give the rule a name in upper case"
            )
        if source.peek() == "{" and source.match(re.compile(r"\{(?![ \t]*[0-9,])")):
            source.fail("templates are not read", at=start, hint="write the rules out")
        self._uses.setdefault(self.prefix + name[0], start)
        reference = Reference(self.prefix + name[0])
        return self._lexeme(reference) if is_terminal else reference

    def _group(self, end: str) -> Expression:
        """Read the rest of a group, up to the bracket ``end``. Within groups (``_depth`` above 0), line feeds are white
        space."""
        source = self.source
        self._depth += 1
        if self._depth > MAX_NESTING:
            source.fail(f"brackets are nested more than {MAX_NESTING} levels deep", hint="give the inner ones a name")
        source.match(SPACE)
        inner = self._choices()
        source.expect(end, "at the end of a group")
        self._depth -= 1
        return inner

    def _lexeme(self, expression: Expression) -> Expression:
        """Return a terminal, and after it what is ignored."""
        if self._in_terminal or not self._has_ignores:
            return expression
        return sequence(expression, Reference(self.prefix + IGNORED))

    def _string(self) -> str:
        """Read a string in double quotes; return its text, with escapes decoded (a pair of surrogate escapes as its
        character)."""
        source = self.source
        start = source.position
        source.expect('"', "at the beginning of a string")
        text = ""
        while not source.take('"'):
            if source.rest_is_empty or source.peek() in "\r\n":
                source.fail("expected '\"' at the end of the string", at=start)
            pair = source.match(_PAIR)
            text += json.loads(f'"{pair[0]}"') if pair else character(source, _CODES, _ESCAPES)
        return text

    def _literal(self, start: int) -> Expression:
        """Read a string, a string with ``i`` (in either case), or a range of two characters (``"a".."z"``)."""
        source = self.source
        text = self._string()
        if source.match(re.compile(r"i(?![\w])")):
            return self._lexeme(sequence(*(Chars(fold(CharSet.of(each))) for each in text)))
        if not source.match(re.compile(r"[ \t]*\.\.(?=[ \t]*\")")):
            return self._lexeme(Literal(text)) if text else Literal("")  # after nothing, nothing is ignored
        source.match(BLANK)
        last = self._string()
        if len(text) != 1 or len(last) != 1 or last < text:
            source.fail("expected a range of two characters, the lower one first", at=start)
        return self._lexeme(Chars(CharSet.range(text, last)))

    def _regex(self) -> Expression:
        """Read ``/pattern/flags``. Lazy repetitions and word boundaries are errors: a terminal is matched as a whole,
        in which they have no meaning."""
        source = self.source
        start = source.position
        match = source.match(_REGEX)
        if match is None:
            source.fail("expected a pattern: /.../, and '/' at its end")
        for piece in _PIECES.finditer(match[1]):
            if piece["lazy"]:
                source.fail(
                    "a lazy repetition has no meaning in a terminal",
                    at=match.start(1) + piece.start(),
                    hint="exclude the end in a class, as in [^\"]*, or write the rule's option [lazy]",
                )
            if piece["boundary"]:
                source.fail(
                    "a word boundary has no meaning in a terminal",
                    at=match.start(1) + piece.start(),
                    hint="leave it out",
                )
        if "l" in match[2]:
            source.fail("the flag l is not read", at=start, hint="leave it out")
        return self._pattern(match[1], match[2].replace("u", ""), start)

    def _pattern(self, text: str, flags: str, start: int) -> Expression:
        """Return the texts of a regular expression of Rust's ``regex`` crate."""
        try:
            return pattern(to_ecma(f"(?{flags}:{text})" if flags else text, "rust"))
        except ToolGrammarError as error:
            hint = "write a regular expression of Rust's regex crate: without look-arounds and back-references"
            hint = error.hint if isinstance(error, LimitError) and error.hint else hint
            self.source.fail(f"the pattern is refused: {error.message}", at=start, hint=hint)

    def _token(self, start: int) -> Expression:
        """Read a token by its name or its ids, ``<[1,3-5]>``; or, as ``<[*]>`` and ``<[^...]>``, all or all others,
        which may only be repeated (`read_other_tokens`)."""
        source = self.source
        if self._in_terminal:
            source.fail("a terminal cannot contain a token", hint="name the token in a rule, in lower case")
        match = source.match(_TOKEN)
        if match is None:
            source.fail("expected a token: <name> or <[id]>")
        ids = match[1]  # None: the token is given by its name
        is_other = ids is not None and (ids == "*" or ids.startswith("^"))
        wanted: Iterable[int | str] = [match[0]]
        if ids is not None:
            wanted = () if ids == "*" else self._ids(ids.lstrip("^"), start)
        found: list[Control | Literal] = []
        for token in wanted:  # the first one that does not exist ends this
            try:
                found.append(self.tokens(token))
            except GrammarError as error:
                source.fail(error.message, at=start, hint=error.hint)
        self._named += found
        if not is_other:
            return choice(*found)
        self._space()
        return read_other_tokens(source, found, start, "<[*]>", None if self.is_exact else self.narrowed)

    def _ids(self, text: str, start: int) -> Iterable[int]:
        """Return the ids of tokens in a list such as ``1,3-5``; errors are reported at ``start``."""
        source = self.source
        ranges = []
        for part in text.split(","):
            ids = _IDS.fullmatch(part.strip())
            if ids is None:
                hint = "name the tokens that are meant; for text, write a pattern"
                source.fail("expected ids of tokens: <[1]>, <[1-5]>, <[1,3-5]>", at=start, hint=hint)
            first, last = (source.number(digits, start) for digits in (ids[1], ids[2] or ids[1]))
            if last < first:
                hint = "write the lower end first"
                source.fail(f"the token ids {first} to {last} are out of range", at=start, hint=hint)
            ranges.append(range(first, last + 1))
        return chain.from_iterable(ranges)

    def _json(self) -> Any:
        """Read a JSON value."""
        source = self.source
        source.match(SPACE)
        start = source.position
        try:
            value, source.position = json.JSONDecoder().raw_decode(source.text, start)
        except json.JSONDecodeError as error:
            source.fail(f"expected JSON ({error.msg})", at=min(error.pos, len(source.text)))
        except RecursionError:
            source.fail("the JSON is nested too deeply", at=start)
        return value

    def _schema(self, start: int) -> Expression:
        """Read the rest of ``%json {...}``: the texts of a JSON Schema; what it leaves out or does not enforce is
        noted."""
        if self._in_terminal:
            self.source.fail("a terminal cannot contain %json", at=start, hint="write it in a rule, in lower case")
        if self.compile_json is None:
            self.source.fail("%json is not allowed in a string", at=start, hint="write the rules of the JSON text")
        schema = self._json()
        try:
            compiled = self.compile_json(schema)
        except ToolGrammarError as error:
            place = f" ({error.place})" if error.place else ""
            self.source.fail(f"the schema is refused: {error.message}{place}", at=start, hint=error.hint)
        self.problems += compiled.problems
        self.narrowed += compiled.narrowed
        self._schemas.append(Part(compiled))
        return self._schemas[-1]

    def _structured(self, start: int) -> Expression:
        """Read the rest of ``%regex {...}``, an object such as ``{"substring_words": "to be or not"}``."""
        value = self._json()
        form, chunks = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
        split = _SUBSTRINGS.get(str(form))
        is_list = isinstance(chunks, list) and all(isinstance(chunk, str) for chunk in chunks)
        if split is None or not (is_list if form == "substring_chunks" else isinstance(chunks, str)):
            self.source.fail(f"expected an object with one of {', '.join(_SUBSTRINGS)}", at=start)
        return substring(tuple(split(chunks)))


_SUBSTRINGS: dict[str, Callable[[Any], Sequence[str]]] = {
    "substring_chunks": list,
    "substring_words": _WORDS.findall,
    "substring_chars": list,
}
