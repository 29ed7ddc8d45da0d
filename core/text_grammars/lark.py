r"""Reader of Lark grammars, in the dialect of llguidance (1.9), which OpenAI's custom tools take.

Terminals are regular languages, joined without a lexer: a text belongs to the grammar if any division into terminals
does. Text that ``%ignore`` names may follow every terminal, JSON value and token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..errors import LimitError
from ..language.terms import Terms
from .expressions import (
    EMPTY_TEXT,
    Expression,
    Lazy,
    Literal,
    Reference,
    Repeat,
    Stopped,
    choice,
    sequence,
)
from .lark_expressions import BLANK, IGNORED, SPACE, TERMINAL, CompileJson, ExpressionReader
from .rules import ReadGrammar, Rules
from .source import Source
from .tokens import Tokens, tokens_of

_RULE = re.compile(r"_?[a-z][_a-z0-9\-]*")
_PRIORITY = re.compile(r"\.-?[0-9]+")
_SLIPS = {
    "=": "a rule is: name: ...",
    ":": "a rule is: name: ...",
    "'": "a string is in double quotes",
    ",": "items follow each other without a comma",
    ";": "a rule ends with its line, without a ';'",
}
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")

#: Options of ``%llguidance``; ``no_forcing`` says something about tokens, and nothing about texts.
_GRAMMAR_OPTIONS = ("allow_initial_skip", "ignore_once", "no_forcing", "allow_invalid_utf8")

#: Maximum nesting of grammars.
MAX_NESTED = 20

#: Options of rules that say something about captures or sampling, and nothing about texts.
_IDLE_OPTIONS = ("capture", "capture_name", "stop_capture", "temperature")

#: Lark's terminals for ``%import common``. Strings and comments end at the first end, as Lark's lazy patterns do.
_COMMON = r"""
DIGIT: "0".."9"
HEXDIGIT: "a".."f" | "A".."F" | DIGIT
INT: DIGIT+
SIGNED_INT: ["+" | "-"] INT
DECIMAL: INT "." INT? | "." INT
_EXP: ("e" | "E") SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: ["+" | "-"] FLOAT
NUMBER: FLOAT | INT
SIGNED_NUMBER: ["+" | "-"] NUMBER
_STRING_INNER: /.*/
_STRING_ESC_INNER: /([^"\\\n]|\\[^\n])*/
ESCAPED_STRING: "\"" _STRING_ESC_INNER "\""
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: UCASE_LETTER | LCASE_LETTER
WORD: LETTER+
CNAME: ("_" | LETTER) ("_" | LETTER | DIGIT)*
WS_INLINE: /[ \t]+/
WS: /[ \t\f\r\n]+/
CR: /\r/
LF: /\n/
NEWLINE: (CR? LF)+
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: "/*" /([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
"""


def read_lark(
    text: str,
    start: str = "start",
    tokens: Tokens | None = None,
    compile_json: CompileJson | None = None,
    *,
    is_exact: bool = False,
) -> ReadGrammar:
    """Return the rules of a grammar.

    Args:
        text: the grammar.
        start: the name of the start rule.
        tokens: returns the expression of a token; None: there is no vocabulary.
        compile_json: compiles the schemas of ``%json``; None: ``%json`` is an error.
        is_exact: exclusions of tokens (``<[^5]>*``) are an error; else they are narrowed to text.

    Raises:
        GrammarError: it is malformed, or has a part that cannot be enforced; with line and column.
    """
    reader = _LarkReader(Source(text, _SLIPS), start, tokens or tokens_of(None), compile_json, is_exact=is_exact)
    reader.statements()
    return ReadGrammar(reader.rules(), tuple(reader.problems), tuple(reader.narrowed))


@cache
def _common() -> Mapping[str, Expression]:
    """Return the terminals of ``common``, whose names begin so."""
    reader = _LarkReader(Source(_COMMON), "", tokens_of(None), None, prefix="common.")
    reader.statements()
    return reader.found


@dataclass
class _Options:
    """The options of a rule that say something about its texts."""

    is_lazy: bool = False
    suffix: Expression | None = None
    stop: Expression | None = None

    @property
    def is_terminal(self) -> bool:
        """True if the rule is made of terminals."""
        return self.is_lazy or self.suffix is not None or self.stop is not None

    def restricted(self, item: Expression) -> Expression:
        """Return the texts of a rule. A stop that is the empty text is the end of the model's turn: it ends no text."""
        if self.suffix is not None:
            return Lazy(sequence(item, self.suffix))
        if self.stop is not None and self.stop != Literal(""):
            return Stopped(item, self.stop)
        return Lazy(item) if self.is_lazy else item


@dataclass
class _LarkReader(ExpressionReader):
    """The reader of one grammar. A grammar in braces has a reader of its own on the same source.

    Names carry the ``prefix`` of their grammar, so that rules of all grammars are in one dictionary.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._places: dict[str, int] = {}
        self._ignores: list[Expression] = []
        self._initial_skip = False
        self._ignores_once = False
        self._inner_count = 0

    # -- statements ------------------------------------------------------------------------------------------------

    def statements(self) -> None:
        """Read all statements."""
        source = self.source
        source.match(SPACE)
        while not (source.rest_is_empty or source.peek() == self.end):
            start = source.position
            if source.peek() == "%":
                self._directive(start)
            else:
                self._definition(start)
            source.match(BLANK)
            if not (source.rest_is_empty or source.peek() in "\r\n" or source.peek() == self.end):
                expected = (
                    "'|', an operator or more of the terminal" if self._in_terminal else "'|' or more of the rule"
                )
                source.fail(f"expected the end of the line, {expected}")
            source.match(SPACE)

    def rules(self) -> Rules:
        """Return the rules that were read, checked: all names are defined, terminals are not recursive, restricted
        rules are regular."""
        source = self.source
        root = self.rule_of_texts()
        key = ("lark", source.text, root, tuple(self._named), tuple(self._schemas))
        rules = Rules(key, self.found, root)
        for name, at in self._places.items():
            own = name.rpartition(".")[2]  # without the prefix
            if TERMINAL.fullmatch(own) and name in rules.recursive:
                source.fail(f"the terminal {own!r} contains itself", at=at, hint="write a rule, in lower case")
        rules.check()
        for expression, at in self._restricted:
            if not rules.is_regular(expression):
                source.fail("the operand of &, ~, lazy, suffix or stop is too large", at=at, hint="write it shorter")
            if isinstance(expression, Stopped):
                self._check_stop(rules, expression, at)
        return rules

    def _check_stop(self, rules: Rules, expression: Stopped, at: int) -> None:
        """Check the stop of a rule: raise an error if it may be empty, or if its texts exceed a limit. ``at``: where to
        report it."""
        terms = Terms()
        stop = rules.term(terms, expression.stop)
        if stop is None or terms.nullable(stop):
            self.source.fail("the stop of a rule may be empty", at=at, hint='exclude the empty text, or write stop=""')
        try:
            rules.term(terms, expression)
        except LimitError as error:
            self.source.fail(error.message, at=at, hint="write a shorter stop, or suffix=...")

    def rule_of_texts(self) -> str:
        """Return the name of the rule that whole texts are of: the start rule, or one that allows ignored text before
        it. Define that rule, and the rule of ignored text, where they are needed.

        Raises:
            GrammarError: the start rule, or a name that is used, is not defined.
        """
        self._check_names()
        if not self._has_ignores:
            return self.prefix + self.start
        ignored = self.prefix + IGNORED
        self.found[ignored] = Repeat(choice(*self._ignores), 0, 1 if self._ignores_once else None)
        if not self._initial_skip:
            return self.prefix + self.start
        root = f"{self.prefix}%start"
        self.found[root] = sequence(Reference(ignored), Reference(self.prefix + self.start))
        return root

    def _check_names(self) -> None:
        """Raise an error if the start rule, or a name that is used, is not defined."""
        source, length = self.source, len(self.prefix)
        if self.prefix + self.start not in self.found:
            source.fail(f"expected a rule {self.start!r}, the start rule")
        for name, at in self._uses.items():
            if name not in self.found:
                own = name[length:]
                hint = f"known names: {', '.join(each[length:] for each in self._places if '.' not in each[length:])}"
                if f"common.{own}" in _common():
                    hint = f"write %import common.{own}"
                source.fail(f"{own!r} is not defined", at=at, hint=hint)

    def _nested(self, start: int) -> Expression:
        """Read a grammar in braces, with names and ignored text of its own."""
        source = self.source
        if self._in_terminal:
            source.fail("a terminal cannot contain a grammar", at=start, hint="write it in a rule, in lower case")
        source.match(SPACE)
        source.expect("{", "after %lark")
        depth = self.prefix.count(".") + 1
        if depth > MAX_NESTED:
            source.fail(f"grammars are nested more than {MAX_NESTED} levels deep", at=start, hint="write rules")
        self._inner_count += 1
        prefix = f"{self.prefix}{self._inner_count}."
        inner = _LarkReader(
            source, "start", self.tokens, self.compile_json, prefix=prefix, end="}", is_exact=self.is_exact
        )
        inner.statements()
        source.expect("}", "at the end of a nested grammar")
        root = inner.rule_of_texts()
        self.found |= inner.found
        self._places |= inner._places
        self._named += inner._named
        self._schemas += inner._schemas
        self._restricted += inner._restricted
        self.problems += inner.problems
        self.narrowed += inner.narrowed
        return Reference(root)

    def _directive(self, start: int) -> None:
        """Read ``%ignore``, ``%import`` or the options ``%llguidance``; ``start`` is its offset."""
        source = self.source
        if source.take("%ignore"):
            source.match(BLANK)
            self._in_terminal = True
            self._ignores.append(self._choices())
            self._in_terminal = False
        elif source.take("%import"):
            self._import()
        elif source.take("%llguidance"):
            at = source.position
            options = self._json()
            if not isinstance(options, dict):
                source.fail("expected an object of options", at=at)
            for name, value in options.items():
                if name not in _GRAMMAR_OPTIONS:
                    source.fail(f"unknown option {name!r}", at=at, hint=f"known ones: {', '.join(_GRAMMAR_OPTIONS)}")
                if not isinstance(value, bool):
                    source.fail(f"the option {name!r} is {json.dumps(value)}", at=at, hint="write true or false")
            if options.get("allow_invalid_utf8"):
                source.fail("texts are UTF-8, so allow_invalid_utf8 cannot be true", at=at, hint="leave it out")
            self._initial_skip |= options.get("allow_initial_skip", False)
            self._ignores_once |= options.get("ignore_once", False)
        else:
            source.fail(
                "expected a rule, a terminal, %ignore, %import or %llguidance",
                at=start,
                hint="%declare, %override and %extend are not read; write the rules out",
            )

    def _import(self) -> None:
        """Read ``common.NAME``, ``common.NAME -> ALIAS`` or ``common (NAME, ...)``, and define the names in this
        grammar."""
        source = self.source
        source.match(BLANK)
        start = source.position
        if not source.take("common"):
            source.fail("expected common, the only library", at=start, hint="copy other rules into the grammar")
        if source.take("."):
            name, at = self._imported()
            source.match(BLANK)
            alias = name
            if source.take("->"):
                source.match(BLANK)
                match = source.match(TERMINAL)
                if match is None:
                    source.fail("expected a name of the terminal, in upper case")
                alias = match[0]
            self._define(self.prefix + alias, Reference(f"common.{name}"), at)
            return
        source.match(BLANK)
        source.expect("(", "or '.' after common")
        source.match(SPACE)
        while not source.take(")"):
            name, at = self._imported()
            self._define(self.prefix + name, Reference(f"common.{name}"), at)
            source.match(SPACE)
            if source.peek() != ")":
                source.expect(",", "between names")
                source.match(SPACE)

    def _imported(self) -> tuple[str, int]:
        """Read the name of a terminal of ``common``, whose terminals are added to the grammar; return it and its
        offset."""
        source = self.source
        start = source.position
        match = source.match(TERMINAL)
        if match is None or f"common.{match[0]}" not in _common():
            known = ", ".join(name.removeprefix("common.") for name in _common())
            source.fail("expected a terminal of common", at=start, hint=f"known ones: {known}")
        self.found |= _common()
        return match[0], start

    def _define(self, name: str, expression: Expression, at: int) -> None:
        """Define a name, with its prefix. Raise an error, at ``at``, if it is defined already."""
        if name in self.found:
            own = name[len(self.prefix) :]
            self.source.fail(f"{own!r} is defined twice", at=at, hint="rename one of them")
        self.found[name] = expression
        self._places[name] = at

    def _definition(self, start: int) -> None:
        """Read a rule or terminal and define it. A rule with options such as ``lazy`` is read as a terminal, because
        its texts are restricted as a whole: nothing in it is ignored, and it must be regular, which is checked when all
        rules are known."""
        source = self.source
        source.match(re.compile(r"[!?]*"))
        at = source.position
        match = source.match(_RULE)
        self._in_terminal = match is None
        match = match or source.match(TERMINAL)
        if match is None:
            source.fail("expected a rule (lower case), a terminal (upper case) or a directive", at=start)
        if source.peek() == "{":
            source.fail("templates are not read", hint="write the rules out")
        if source.peek(2) == "::":
            source.fail("rules with parameters are not read", hint="write a rule for each value")
        source.match(_PRIORITY)
        source.match(BLANK)
        options_at = source.position
        options = _Options() if self._in_terminal else self._options()
        source.match(BLANK)
        source.expect(":", f"after the name {match[0]!r}")
        source.match(BLANK)
        self._in_terminal |= options.is_terminal
        name = self.prefix + match[0]
        self._define(name, EMPTY_TEXT, at)  # now, so that the error of a second definition comes first
        expression = self._choices()
        if options.is_terminal:
            expression = options.restricted(expression)
            self._restricted.append((expression, options_at))
            self._in_terminal = False
            expression = self._lexeme(expression)
        self.found[name] = expression

    def _options(self) -> _Options:
        """Read the options of a rule in brackets, if any; those without an effect on the texts are skipped."""
        source, options = self.source, _Options()
        if not source.take("["):
            return options
        while not source.take("]"):
            source.match(BLANK)
            start = source.position
            match = source.match(_RULE)
            if match is None:
                source.fail("expected an option: lazy, suffix=..., stop=..., capture, temperature=...")
            option = match[0]
            source.match(BLANK)
            has_value = source.take("=")
            source.match(BLANK)
            if option == "lazy" and not has_value:
                options.is_lazy = True
            elif option in ("suffix", "stop") and has_value:
                self._in_terminal = True
                setattr(options, option, self._atom())
                self._in_terminal = False
            elif option in _IDLE_OPTIONS:
                if has_value and source.peek() == '"':
                    self._string()
                elif has_value and source.match(_NUMBER) is None:
                    source.fail("expected a number or a string")
            elif option == "max_tokens":
                hint = "bound the characters, as in /.{0,200}/, or the whole answer by the budget of the request"
                source.fail("a token budget is not a property of the text", at=start, hint=hint)
            else:
                known = ", ".join(("lazy", "suffix", "stop", *_IDLE_OPTIONS))
                source.fail(f"unknown option {option!r}", at=start, hint=f"known ones: {known}")
            source.match(BLANK)
            if source.peek() != "]":
                source.expect(",", "or ']' after an option")
        if options.suffix is not None and options.stop is not None:
            source.fail("a rule has a suffix or a stop, not both", at=source.position - 1, hint="leave one of them out")
        return options
