"""Reader of GBNF as llama.cpp reads it (``src/llama-grammar.cpp``, late 2026)."""

from __future__ import annotations

import re

from ..errors import GrammarError, UnsupportedSchemaError
from ..unicode.charset import CharSet
from .dispatch import any_tokens, left_out_of_tokens
from .ebnf import character, character_class
from .expressions import Chars, Control, Expression, Literal, Reference, Repeat, choice, sequence
from .reader import MAX_NESTING, RuleReader
from .rules import ReadGrammar, Rules
from .tokens import Tokens, tokens_of

_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9\-]+")
_INTEGER = re.compile(r"[0-9]+")
_TOKEN = re.compile(r"<(?:\[([0-9]+)\]|([^>\r\n]+))>")
_SLIPS = {
    "_": "a name has letters, digits and '-', and no '_'",
    ":": "a rule is: name ::= ...",
    "=": "a rule is: name ::= ...",
    "'": "a string is in double quotes",
    "//": "a comment begins with '#'",
    "/": "there are no regular expressions: write [a-z]+ and the like",
    ",": "items follow each other without a comma",
    ";": "a rule ends with its line, without a ';'",
}
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_CODES = (
    re.compile(r"\\x([0-9a-fA-F]{2})"),
    re.compile(r"\\u([0-9a-fA-F]{4})"),
    re.compile(r"\\U([0-9a-fA-F]{8})"),
)


def read_gbnf(text: str, root: str = "root", tokens: Tokens | None = None, *, is_exact: bool = False) -> ReadGrammar:
    """Return the rules of a grammar.

    Args:
        text: the grammar.
        root: the name of the start rule.
        tokens: returns the expression of a token; None: there is no vocabulary.
        is_exact: negated tokens (``!<token>``) are an error; else a sequence of them is narrowed to text.

    Raises:
        GrammarError: it is malformed, or has a part that cannot be enforced; with line and column.
    """
    reader = _Reader(text, root, tokens or tokens_of(None), is_exact)
    return ReadGrammar(reader.read(), narrowed=tuple(reader.narrowed))


class _Reader(RuleReader):
    def __init__(self, text: str, root: str, tokens: Tokens, is_exact: bool) -> None:
        super().__init__(text, root, tokens, _SLIPS)
        self._is_exact = is_exact
        self.narrowed: list[UnsupportedSchemaError] = []

    def read(self) -> Rules:
        """Read all rules and return them. A rule ends with its line; one that is defined again replaces the earlier
        one, as in llama.cpp."""
        source = self._source
        source.match(_SPACE_AND_LINES)
        while not source.rest_is_empty:
            name = source.match(_NAME)
            if name is None:
                source.fail("expected the name of a rule: letters, digits and '-'")
            source.match(_SPACE)
            source.expect("::=", f"after the name {name[0]!r}")
            source.match(_SPACE_AND_LINES)
            self._rules[name[0]] = self._choices()  # defined again, a rule is replaced
            if not source.rest_is_empty and source.peek() not in "\r\n":
                source.fail("expected the end of the line, '|', or more of the rule")
            source.match(_SPACE_AND_LINES)
        return self._finished("gbnf")

    def _space(self) -> None:
        """Skip white space, with line feeds inside of brackets."""
        self._source.match(_SPACE_AND_LINES if self._depth else _SPACE)

    def _choices(self) -> Expression:
        items = [self._sequence()]
        while self._source.take("|"):
            self._source.match(_SPACE_AND_LINES)
            items.append(self._sequence())
        return choice(*items)

    def _sequence(self) -> Expression:
        """Read one alternative: elements, each with any number of repetitions after it."""
        source = self._source
        items: list[Expression] = []
        repeated = 0  # how often the last item is
        while True:
            start = source.position
            if source.peek() and source.peek() in "*+?{":
                least, most = self._bounds()
                if not items:
                    source.fail("expected something to repeat", at=start)
                repeated += 1
                if repeated > MAX_NESTING:
                    source.fail(f"more than {MAX_NESTING} repetitions of one item", at=start, hint="write one")
                items[-1] = Repeat(items[-1], least, most)
            else:
                repeated = 0
                item = self._element()
                if item is None:
                    return sequence(*items)
                items.append(item)
            self._space()

    def _bounds(self) -> tuple[int, int | None]:
        """Read a repetition; return the least and the greatest number (None: no maximum)."""
        source = self._source
        start = source.position
        if source.take("*"):
            return 0, None
        if source.take("+"):
            return 1, None
        if source.take("?"):
            return 0, 1
        source.position += 1
        least = self._integer()
        most: int | None = least
        if source.take(","):
            self._space()
            most = None if source.peek() == "}" else self._integer()
        source.expect("}", "after a repetition")
        if most is not None and most < least:
            source.fail(f"the minimum {least} is greater than the maximum {most}", at=start)
        return least, most

    def _integer(self) -> int:
        self._space()
        match = self._source.match(_INTEGER)
        if match is None:
            self._source.fail("expected a number of repetitions")
        self._space()
        return self._source.number(match[0], match.start())

    def _element(self) -> Expression | None:
        """Read an element; return None, with nothing read, if none begins here: the alternative has ended."""
        source = self._source
        start = source.position
        if source.take('"'):
            text = ""
            while not source.take('"'):
                if source.rest_is_empty:
                    source.fail("expected '\"' at the end of the string", at=start)
                text += self._character()
            return Literal(text)
        if source.take("["):
            if source.peek() == "]":
                source.fail("expected a character in the class", hint='write "" for the empty text')
            return Chars(character_class(source, self._character, start))
        if source.take("."):
            return Chars(CharSet.full())
        if source.take("!"):
            return self._other_tokens(start)
        if source.peek() == "<":
            return self._token(start)
        if source.take("("):
            return self._group()
        name = source.match(_NAME)
        if name is None:
            return None
        self._uses.setdefault(name[0], start)
        return Reference(name[0])

    def _group(self) -> Expression:
        """Read the rest of a group, after its bracket. Within groups (``_depth`` > 0), line feeds are white space."""
        source = self._source
        self._depth += 1
        if self._depth > MAX_NESTING:
            source.fail(f"brackets are nested more than {MAX_NESTING} levels deep", hint="give the inner ones a name")
        source.match(_SPACE_AND_LINES)
        inner = self._choices()
        source.expect(")", "at the end of a group")
        self._depth -= 1
        return inner

    def _other_tokens(self, start: int) -> Expression:
        """Read the rest of ``!<token>*`` or ``!<token>+``."""
        source = self._source
        excluded = self._token(start)
        self._space()
        if source.peek() not in ("*", "+"):
            source.fail(
                "a single excluded token cannot be enforced: other tokens may have the same text",
                at=start,
                hint="write !<token>* or !<token>+, which is free text, or a character class",
            )
        if self._is_exact:
            source.fail("tokens are not allowed in a string", at=start, hint="write a character class")
        self.narrowed.append(left_out_of_tokens([excluded], source.place(start)))
        least = 0 if source.take("*") else int(source.take("+"))
        return any_tokens([excluded], least)

    def _token(self, start: int) -> Control | Literal:
        """Read a token, ``<[id]>`` or ``<text>``; return its expression."""
        source = self._source
        match = source.match(_TOKEN)
        if match is None:
            source.fail("expected a token: <[id]> or <text>")
        try:
            # The text of a token includes its angle brackets.
            token = self._tokens(match[0] if match[1] is None else source.number(match[1], start))
        except GrammarError as error:
            source.fail(error.message, at=start, hint=error.hint)
        self._named.append(token)
        return token

    def _character(self) -> str:
        return character(self._source, _CODES, _ESCAPES)
