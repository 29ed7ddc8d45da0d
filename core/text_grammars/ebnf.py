"""Reader of EBNF: the union of GBNF, as llama.cpp reads it (``src/llama-grammar.cpp``, late 2026), and the EBNF of
xgrammar (0.2.8), which extends it.

A text that both read has the meaning of GBNF: a dot is any character unless a rule has it in its name, a code ``\\x``
has two digits, a rule that is defined again replaces the first, an alternative may be empty, and what is the name of a
rule is no macro.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..errors import GrammarError, UnsupportedSchemaError
from ..unicode.charset import CharSet
from .dispatch import read_other_tokens
from .expressions import (
    Chars,
    Control,
    Expression,
    Literal,
    Reference,
    Repeat,
    choice,
    sequence,
)
from .rules import ReadGrammar, Rules
from .source import Source
from .tokens import Tokens, tokens_of

#: Maximum nesting of brackets, and of repetitions of one item.
MAX_NESTING = 100

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[\w.\-]+", re.ASCII)
_PLAIN_NAME = re.compile(r"[\w\-]+", re.ASCII)
_DEFINITION = re.compile(r"([\w.\-]+)(\[[^\]\n]*\])?[ \t\r\n]*::=", re.ASCII)
_DEFINED = re.compile(r"^[ \t]*([\w.\-]+)(?:\[[^\]\n]*\])?[ \t\r\n]*::=", re.ASCII | re.MULTILINE)
_SLIPS = {
    "=": "a rule is: name ::= ...",
    ":": "a rule is: name ::= ...",
    "'": "a string is in double quotes",
    "//": "a comment begins with '#'",
    "/": "there are no regular expressions: write [a-z]+ and the like",
    ",": "items follow each other without a comma",
    ";": "a rule ends without a ';'",
}
_TOKEN = re.compile(r"<(?:\[([0-9]+)\]|([^>\r\n]+))>")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_IDS = re.compile(r"\s*\(\s*[0-9]+\s*(?:,\s*[0-9]+\s*)*\)")
_OPTION = re.compile(r'[ \t]*(\w+)[ \t]*(?:=[ \t]*("[^"\\\n]*"|[^\s,\]]+))?[ \t]*(,|$)')

ESCAPES = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "0": "\0",
    "e": "\x1b",
    '"': '"',
    "'": "'",
    "?": "?",
    "/": "/",
    "\\": "\\",
    "[": "[",
    "]": "]",
    "-": "-",
}
_CLASS_ESCAPES = {**ESCAPES, **dict(zip("^$.*+()[]{}|-", "^$.*+()[]{}|-", strict=True))}
_CODES = (
    re.compile(r"\\x([0-9a-fA-F]{1,2})"),
    re.compile(r"\\u([0-9a-fA-F]{4})"),
    re.compile(r"\\U([0-9a-fA-F]{8})"),
)

#: Options of rules that say something about captures or sampling, and nothing about texts.
_IDLE_OPTIONS = ("capture", "stop_capture", "temperature")


def character(source: Source, codes: tuple[re.Pattern[str], ...], escapes: dict[str, str]) -> str:
    """Read a character, escaped or not.

    Args:
        source: the text.
        codes: the forms of escapes by code point, whose group is hexadecimal: ``\\x41``.
        escapes: the other escapes: by the character after the backslash, what it stands for.
    """
    start = source.position
    if source.peek() != "\\":
        source.position += 1
        return source.text[start]
    for form in codes:
        match = source.match(form)
        if match is not None:
            code = int(match[1], 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                source.fail(f"U+{code:04X} is not a character", at=start)
            return chr(code)
    letter = source.peek(2)[1:]
    if letter not in escapes or not letter:
        known = " ".join("\\" + each for each in [*escapes, "x", "u", "U"])
        source.fail(f"expected an escape, one of {known}", at=start)
    source.position += 2
    return escapes[letter]


def character_class(source: Source, read: Callable[[], str], opened: int) -> CharSet:
    """Read the rest of a character class, after its bracket.

    Args:
        source: the text.
        read: reads one character.
        opened: where the class begins.
    """
    negated = source.take("^")
    charset = CharSet.empty()
    while not source.take("]"):
        if source.rest_is_empty:
            source.fail("the character class is not closed", at=opened, hint="write ']' at its end")
        start = source.position
        first = last = read()
        if source.peek() == "-" and source.peek(2) not in ("-]", "-"):  # a hyphen at the end is itself
            source.position += 1
            last = read()
        if last < first:
            source.fail(f"the range {first!r} to {last!r} is empty", at=start, hint="write the lower end first")
        charset = charset.union(CharSet.range(first, last))
    return charset.complement() if negated else charset


def read_ebnf(text: str, root: str = "root", tokens: Tokens | None = None, *, is_exact: bool = False) -> ReadGrammar:
    """Return the rules of a grammar.

    Args:
        text: the grammar.
        root: the name of the start rule.
        tokens: returns the expression of a token; None: there is no vocabulary.
        is_exact: negated tokens (``!<token>``) are an error; else a sequence of them is narrowed to text.

    Raises:
        GrammarError: it is malformed, or has a part that cannot be enforced; with line and column.
    """
    reader = _EbnfReader(text, root, tokens or tokens_of(None), is_exact)
    return ReadGrammar(reader.read(), narrowed=tuple(reader.narrowed))


class _EbnfReader:
    """Reader of the rules of one text."""

    def __init__(self, text: str, root: str, tokens: Tokens, is_exact: bool) -> None:
        self._source = Source(text, _SLIPS)
        self._root = root
        self._tokens = tokens
        self._is_exact = is_exact
        self._defined = {match[1] for match in _DEFINED.finditer(text)}
        self._named: list[Expression] = []  # by tokens
        self._depth = 0
        self._rules: dict[str, Expression] = {}
        self._uses: dict[str, int] = {}
        self.narrowed: list[UnsupportedSchemaError] = []

    def read(self) -> Rules:
        """Read all rules and return them. Raise GrammarError for what is malformed, or for a rule that is not
        defined."""
        source = self._source
        source.match(_SPACE)
        while not source.rest_is_empty:
            start = source.position
            match = source.match(_DEFINITION)
            if match is None:
                source.match(_NAME)
                source.fail("expected a rule: name ::= ...", at=start if source.position == start else None)
            if source.text[source.text.rfind("\n", 0, start) + 1 : start].strip():
                source.fail(f"rule {match[1]!r} does not begin its line", at=start, hint="write one rule on a line")
            source.match(_SPACE)
            self._check_options(match[2] or "", start + len(match[1]))
            self._rules[match[1]] = self._body()
        return self._finished()

    def _finished(self) -> Rules:
        """Return the rules, all of which were read.

        Raises:
            GrammarError: a rule is not defined, or the root has no finite text.
        """
        source = self._source
        if self._root not in self._rules:
            source.fail(f"expected a rule {self._root!r}, the start rule")
        for name, at in self._uses.items():
            if name not in self._rules:
                source.fail(f"rule {name!r} is not defined", at=at, hint=f"known rules: {', '.join(self._rules)}")
        rules = Rules(("ebnf", source.text, self._root, tuple(self._named)), self._rules, self._root)
        rules.check()
        return rules

    # -- rules -----------------------------------------------------------------------------------------------------

    def _check_options(self, options: str, at: int) -> None:
        """Raise an error for an option of a rule (``[capture, temperature=0.5]``) that has an effect on the texts."""
        text = options[1:-1]
        position = 0
        while position < len(text):
            match = _OPTION.match(text, position)
            if match is None:
                self._source.fail("expected options of a rule: name=value, ...", at=at + 1 + position)
            position = match.end()
            if match[1] not in _IDLE_OPTIONS and not match[1].startswith("capture_hidden_"):
                hint = "leave it out, or write the grammar in Lark, which has lazy rules"
                self._source.fail(f"the option {match[1]!r} cannot be enforced", at=at + 1, hint=hint)

    def _body(self) -> Expression:
        """Read the right-hand side of a rule, up to the next rule."""
        source = self._source
        start = source.position
        body = self._choices()
        if source.position == start and not source.rest_is_empty:
            source.fail("expected what the rule is", hint='write "" for the empty text')
        return body

    def _choices(self) -> Expression:
        """Read alternatives, up to a closing bracket or the next rule."""
        source = self._source
        self._depth += 1
        if self._depth > MAX_NESTING:
            source.fail(f"brackets are nested more than {MAX_NESTING} levels deep", hint="give the inner ones a name")
        items = [self._sequence()]
        while source.take("|"):
            source.match(_SPACE)
            items.append(self._sequence())
        self._depth -= 1
        return choice(*items)

    def _sequence(self) -> Expression:
        """Read one alternative. The next rule ends it too, which is recognised by its ``::=``; a lookahead assertion at
        its end is skipped."""
        source = self._source
        items: list[Expression] = []
        while not source.rest_is_empty and source.peek() not in "|)":
            if source.peek(2) == "(=":
                self._lookahead()
                break
            here = source.position
            if source.match(_DEFINITION):
                source.position = here
                break
            items.append(self._repeated())
        return sequence(*items)

    def _lookahead(self) -> None:
        """Skip a lookahead assertion: xgrammar takes it for a hint, and so does not enforce it."""
        source = self._source
        source.position += 2
        source.match(_SPACE)
        self._choices()
        source.expect(")", "after a lookahead assertion")
        source.match(_SPACE)

    def _repeated(self) -> Expression:
        """Read an element and the repetitions after it."""
        source = self._source
        if source.peek() in "*+?{":
            source.fail("expected something to repeat")
        item = self._element()
        source.match(_SPACE)
        for _ in range(MAX_NESTING):
            start = source.position
            if source.take("*"):
                item = Repeat(item, 0, None)
            elif source.take("+"):
                item = Repeat(item, 1, None)
            elif source.take("?"):
                item = Repeat(item, 0, 1)
            elif source.peek() == "{":
                bounds = self._bounds()
                item = item if bounds == (1, 1) else Repeat(item, *bounds)
            else:
                return item
            source.match(_SPACE)
        source.fail(f"more than {MAX_NESTING} repetitions of one item", at=start, hint="write one")

    def _bounds(self) -> tuple[int, int | None]:
        """Read ``{n}``, ``{n,}`` or ``{n,m}``; return the least and the greatest number (None: no maximum)."""
        source = self._source
        start = source.position
        source.expect("{", "before a repetition")
        least = self._integer("the least number of repetitions")
        most: int | None = least
        if source.take(","):
            source.match(_SPACE)
            most = None if source.peek() == "}" else self._integer("the greatest number of repetitions")
            most = None if most == -1 else most  # as xgrammar prints it
        source.expect("}", "after a repetition")
        if least < 0 or (most is not None and most < least):
            source.fail(f"the minimum {least} is greater than the maximum {most}", at=start)
        return least, most

    def _integer(self, meaning: str) -> int:
        """Read an integer; ``meaning`` is what it is, for the error."""
        source = self._source
        source.match(_SPACE)
        match = source.match(_INTEGER)
        if match is None:
            source.fail(f"expected {meaning}")
        source.match(_SPACE)
        return self._source.number(match[0], match.start())

    def _element(self) -> Expression:
        """Read a group, a character class, a string, a token, a macro, or a reference to a rule."""
        source = self._source
        start = source.position
        if source.take("("):
            source.match(_SPACE)
            inner = self._choices()
            source.expect(")", "at the end of a group")
            return inner
        if source.take("["):
            if source.peek() == "]":
                source.fail("expected a character in the class", hint='write "" for the empty text')
            return Chars(character_class(source, lambda: character(source, _CODES, _CLASS_ESCAPES), start))
        if source.peek() == '"':
            return Literal(self._string())
        if source.take("!"):
            excluded = [self._token_named(start)]  # !<token>* or !<token>+
            source.match(_SPACE)
            return read_other_tokens(source, excluded, start, "!<token>", None if self._is_exact else self.narrowed)
        if source.peek() == "<":
            return self._token_named(start)
        match = _NAME.match(source.text, start)
        if match is not None and match[0] not in self._defined:  # a macro, a dot, or a name that a dot ends
            if match[0] in _MACROS:
                source.position = match.end()
                return self._macro(match[0], start)
            if source.take("."):
                return Chars(CharSet.full())
            match = _PLAIN_NAME.match(source.text, start)
        if match is None:
            source.fail("expected a string, a character class, the name of a rule, or '('")
        source.position = match.end()
        self._uses.setdefault(match[0], start)
        return Reference(match[0])

    def _string(self) -> str:
        """Read a string in double quotes; return its text, with escapes decoded."""
        source = self._source
        start = source.position
        source.position += 1
        text = ""
        while not source.take('"'):
            if source.rest_is_empty:
                source.fail("the string is not closed", at=start, hint="write '\"' at its end")
            text += character(source, _CODES, ESCAPES)
        return text

    # -- tokens ----------------------------------------------------------------------------------------------------

    def _token_named(self, start: int) -> Control | Literal:
        """Read a token, ``<[id]>`` or ``<text>``; return its expression."""
        match = self._source.match(_TOKEN)
        if match is None:
            self._source.fail("expected a token: <[id]> or <text>")
        # The text of a token includes its angle brackets.
        return self._token_at(match[0] if match[1] is None else self._source.number(match[1], start), start)

    def _token_at(self, token: int | str, start: int) -> Control | Literal:
        """Return the expression of a token; errors are reported at ``start``."""
        try:
            expression = self._tokens(token)
        except GrammarError as error:
            self._source.fail(error.message, at=start, hint=error.hint)
        self._named.append(expression)
        return expression

    # -- macros ----------------------------------------------------------------------------------------------------

    def _macro(self, name: str, start: int) -> Expression:
        """Read the arguments of a macro: ``Token(1, 2)`` is any of these tokens, and the others are refused."""
        source = self._source
        if name != "Token":
            source.fail(f"the macro {name} is not read", at=start, hint=_MACROS[name])
        match = source.match(_IDS)
        if match is None:
            source.fail("tokens are given by their ids, numbers", at=start)
        return choice(*(self._token_at(source.number(each, start), start) for each in re.findall("[0-9]+", match[0])))


#: The macros of xgrammar, and what to write instead of those that are refused.
_MACROS = {
    "Token": "",
    "Regex": "write the expression as classes and repetitions, or use Grammar.regex",
    "Substring": "write its parts as optional rules, or use %regex in Lark",
    "ExcludeToken": "one token of any kind cannot be enforced: write a class, or the Token(...)s that are meant",
    "TagDispatch": "write a structural tag, with triggered_tags or dispatch",
    "TokenTagDispatch": "write a structural tag, with token_triggered_tags or token_dispatch",
}
