"""Rules as text: GBNF, xgrammar's EBNF, Lark, and regular expressions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass

from ..errors import GrammarError, LimitError
from ..text_grammars.expressions import (
    EMPTY_TEXT,
    Chars,
    Choice,
    Control,
    Expression,
    Literal,
    Reference,
    Repeat,
    Sequence,
    children,
    choice,
    sequence,
    walk,
)
from ..text_grammars.rules import circles_of
from ..unicode.charset import CharSet
from .lexing import ambiguous_literals
from .rules import ExportedRules

#: Maximum number of repetitions that llama.cpp takes; a larger bound is left out.
MAX_REPETITIONS = 2_000

#: Maximum length of a regular expression, in characters.
MAX_PATTERN = 1_000_000


@dataclass(frozen=True)
class Exported:
    """A grammar in another notation.

    Attributes:
        text: the grammar.
        unsaid: the constraints of the grammar that the text lacks; empty: both have the same texts.
    """

    text: str
    unsaid: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


#: Where an expression stands, in the order of binding: an expression that binds weaker is grouped there.
_WHOLE, _ALTERNATIVE, _ITEM, _REPEATED = range(4)


class _Writer(ABC):
    """Writer of expressions; alternatives bind weakest, then sequences, then repetitions."""

    def __init__(self, exported: ExportedRules, tokens: Mapping[str, int]) -> None:
        self.unsaid: dict[str, None] = dict.fromkeys(exported.unsaid)
        self._tokens = tokens
        self._exported = exported
        order = sorted(exported.rules, key=lambda name: name != exported.root)  # the root first
        self._names = {name: exported.root if name == exported.root else f"r{n}" for n, name in enumerate(order)}

    def expression(self, expression: Expression, place: int = _WHOLE) -> str:
        """Return the text of an expression at a place, such as `_ITEM` of a sequence, in brackets if it needs them."""
        if isinstance(expression, Choice):
            empty = [item for item in expression.items if item == EMPTY_TEXT]
            others = [item for item in expression.items if item != EMPTY_TEXT]
            if empty and len(others) == 1:
                return self.expression(Repeat(others[0], 0, 1), place)
            written = self.between.join(self.expression(item, _ALTERNATIVE) for item in (*others, *empty))
            return self.group(written) if place > _WHOLE else written
        if isinstance(expression, Sequence):
            if not expression.items:
                return self.empty
            written = self.space.join(self.expression(item, _ITEM) for item in expression.items)
            return self.group(written) if place > _ALTERNATIVE else written
        if isinstance(expression, Repeat):
            return self._repeat(expression)
        if isinstance(expression, Literal):
            return self.literal(expression.text, place)
        if isinstance(expression, Chars):
            if expression.charset.size == 1:
                return self.literal(chr(expression.charset.first), place)
            return self.chars(expression.charset)
        if isinstance(expression, Control):
            return self.control(expression.name)
        assert isinstance(expression, Reference)
        return self._names[expression.name]

    between, space, empty = " | ", " ", '""'

    def group(self, written: str) -> str:
        """Return an expression in brackets."""
        return f"({written})"

    def repeated(self, written: str, count: int) -> str:
        """Return the operand of a repetition of several parts, in the notation.

        Args:
            written: the parts, without brackets.
            count: the largest number that the repetition has: its maximum, or its minimum if it has no maximum.
        """
        return self.group(written)

    def _repeat(self, expression: Repeat) -> str:
        """Return a repetition in the notation. A count above the target's maximum becomes "or more", and is noted in
        ``unsaid``."""
        least, most = expression.least, expression.most
        if (least, most) == (1, 1):
            return self.expression(expression.item, _ITEM)
        count = max(least, most or 0)
        if isinstance(expression.item, (Repeat, Sequence, Choice)):
            item = self.repeated(self.expression(expression.item), count)
        else:
            item = self.expression(expression.item, _REPEATED)
        if sign := {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most)):
            return item + sign
        if self.most_repetitions is not None and count > self.most_repetitions:
            self.unsaid[f"repetitions of more than {self.most_repetitions:,}"] = None
            least, most = min(least, self.most_repetitions), None
        if most is None:
            return f"{item}{{{least},}}"
        return f"{item}{{{least}}}" if least == most else f"{item}{{{least},{most}}}"

    most_repetitions: int | None = None

    @abstractmethod
    def literal(self, text: str, place: int) -> str:
        """Return a fixed text that stands at a place."""

    @abstractmethod
    def chars(self, charset: CharSet) -> str:
        """Return one character of a set."""

    @abstractmethod
    def control(self, name: str) -> str:
        """Return a control token."""


def _code(char: str) -> str:
    """Return a character as ``\\u`` and four digits, or ``\\U`` and eight."""
    return f"\\u{ord(char):04X}" if char <= "\uffff" else f"\\U{ord(char):08X}"


def _bracketed(charset: CharSet, *, negated: bool = False) -> str:
    """Return a class of characters, such as ``[a-z]``."""

    def written(code: int) -> str:
        return chr(code) if chr(code).isascii() and chr(code).isalnum() else _code(chr(code))

    pieces = [written(low) if low == high else f"{written(low)}-{written(high)}" for low, high in charset.ranges]
    return f"[{'^' if negated else ''}{''.join(pieces)}]"


class _Bnf(_Writer):
    """GBNF, EBNF and Lark, which share strings and classes."""

    def literal(self, text: str, place: int) -> str:
        """Return a string."""
        short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
        return '"' + "".join(short.get(c) or (c if c.isprintable() else _code(c)) for c in text) + '"'

    def chars(self, charset: CharSet) -> str:
        """Return a class, a wide one by the ASCII characters that it leaves out.

        Only ASCII may be negated: where a token ends inside a UTF-8 character, llama.cpp refuses a negated class if the
        bytes so far could become a character that it excludes.
        """
        others = charset.complement()
        if others.ranges and others.ranges[-1][1] < 0x80:
            return _bracketed(others, negated=True)
        return _bracketed(charset)

    def text(self) -> str:
        """Return all rules."""
        rules = self._exported.rules
        lines = [f"{name} ::= {self.expression(rules[rule])}" for rule, name in self._names.items()]
        return "\n".join(lines) + "\n"

    def control(self, name: str) -> str:
        """Return the text of a control token: that it is the token has no form."""
        self.unsaid[f"that {name!r} is a control token"] = None
        return self.literal(name, _ITEM)


class _Gbnf(_Bnf):
    """GBNF as llama.cpp reads it."""

    most_repetitions = MAX_REPETITIONS

    def text(self) -> str:
        """Return all rules."""
        self._repeated: dict[str, str] = {}
        text = super().text()
        return text + "".join(f"{name} ::= {written}\n" for written, name in self._repeated.items())

    def repeated(self, written: str, count: int) -> str:
        """Return the name of a rule with what is counted.

        llama.cpp multiplies a count by the groups and names in what is counted, and refuses a product of 2,000.
        """
        if count < 2:
            return super().repeated(written, count)
        return self._repeated.setdefault(written, f"n{len(self._repeated)}")

    def control(self, name: str) -> str:
        """Return a control token in angle brackets, by its id if its name has none."""
        if name in self._tokens:
            return f"<[{self._tokens[name]}]>"
        return name if re.fullmatch(r"<[^<>\s]+>", name) else super().control(name)


class _Ebnf(_Bnf):
    """EBNF as xgrammar reads it."""

    def control(self, name: str) -> str:
        """Return a control token by its id."""
        return f"Token({self._tokens[name]})" if name in self._tokens else super().control(name)


def _in_pattern(char: str) -> str:
    """Return a character as every dialect of regular expressions reads it, in a class or outside."""
    if char.isascii():
        return char if char.isalnum() or char in " _\"'<>=!@%&~`,;:" else f"\\x{ord(char):02x}"
    return char if char.isprintable() else _code(char)


class _Regex(_Writer):
    """Regular expressions that Python's ``re``, ECMA-262 (flag ``u`` or ``v``) and Rust's ``regex`` read alike."""

    between, space, empty = "|", "", ""

    def group(self, written: str) -> str:
        """Return an expression in brackets that capture nothing."""
        return f"(?:{written})"

    def literal(self, text: str, place: int) -> str:
        """Return a fixed text."""
        written = "".join(map(_in_pattern, text))
        return self.group(written) if place == _REPEATED and len(text) > 1 else written

    def chars(self, charset: CharSet) -> str:
        """Return a class."""
        if charset == CharSet.full():
            return r"[\s\S]"
        negated = bool(charset.ranges) and charset.ranges[-1][1] == 0x10FFFF  # its complement is short, as a rule
        pieces = []
        for low, high in (charset.complement() if negated else charset).ranges:
            one = _in_pattern(chr(low))
            pieces.append(one if low == high else f"{one}-{_in_pattern(chr(high))}")
        return f"[{'^' if negated else ''}{''.join(pieces)}]"

    def control(self, name: str) -> str:
        """Refuse a control token."""
        raise GrammarError(f"the control token {name!r} has no form in a regular expression", hint="leave it out")


class _Lark(_Bnf):
    """Lark, in the dialect of llguidance, with terminals that its lexer cuts in one way only."""

    def text(self) -> str:
        """Return all rules."""
        rules = self._exported.rules
        self._split = ambiguous_literals(rules, self._exported.root)
        names = {rule: "start" if rule == self._exported.root else name for rule, name in self._names.items()}
        self._names = names
        self._words: dict[str, str] = {}
        lines = [f"{name}: {self.expression(rules[rule])}" for rule, name in names.items()]
        lines += [f"{name}: {self._characters(text)}" for text, name in self._words.items()]
        return "\n".join(lines) + "\n"

    def _characters(self, text: str) -> str:
        """Return a text as a string for each character: ``"a" "b"``."""
        return " ".join(super(_Lark, self).literal(char, _ITEM) for char in text)

    def literal(self, text: str, place: int) -> str:
        """Return a string, or the name of a rule with its single characters, if the lexer would divide it wrongly."""
        if text not in self._split:
            return super().literal(text, place)
        return self._words.setdefault(text, f"w{len(self._words)}")

    def chars(self, charset: CharSet) -> str:
        """Return a pattern of one character."""
        return f"/{super().chars(charset)}/"

    def control(self, name: str) -> str:
        """Return a control token in angle brackets, by its id if its name has none."""
        if re.fullmatch(r"<[^<>\s\[\]]+>", name):
            return name
        return f"<[{self._tokens[name]}]>" if name in self._tokens else super().control(name)


_WRITERS = {"gbnf": _Gbnf, "ebnf": _Ebnf, "lark": _Lark}


def written_as(notation: str, exported: ExportedRules, tokens: Mapping[str, int]) -> Exported:
    """Return rules in a notation.

    Args:
        notation: ``"gbnf"``, ``"ebnf"`` or ``"lark"``.
        exported: the rules.
        tokens: the ids of the vocabulary's control tokens, by their names.
    """
    writer = _WRITERS[notation](exported, tokens)
    return Exported(writer.text(), tuple(writer.unsaid))


def written_as_regex(exported: ExportedRules) -> Exported:
    """Return rules as one regular expression, which matches whole texts.

    Raises:
        GrammarError: the recursion of the rules is not regular.
        LimitError: it is longer than `MAX_PATTERN`, or nested too deeply.
    """
    try:
        rules = _without_right_recursion(exported)
        whole = _substituted(exported.root, rules)
        text = _Regex(ExportedRules({exported.root: whole}, exported.root, ()), {}).expression(whole)
    except RecursionError:
        raise LimitError("the pattern is nested too deeply", hint="export it as GBNF") from None
    return Exported(text, exported.unsaid)


def _substituted(root: str, rules: Mapping[str, Expression]) -> Expression:
    """Return the expression of a rule, with the bodies of rules in place of their names.

    Raises:
        GrammarError: a rule refers to itself.
        LimitError: the pattern would be longer than `MAX_PATTERN`.
    """
    done: dict[str, Expression] = {}
    sizes: dict[str, int] = {}  # of their patterns, in characters, about
    in_progress: set[str] = set()

    def rewritten(expression: Expression) -> tuple[Expression, int]:
        """Return an expression without references, and the length of its pattern in characters, about.

        A repetition has 3 characters more than what is repeated, and a class has 4.
        """
        if isinstance(expression, Reference):
            return finished(expression.name), sizes[expression.name]
        if isinstance(expression, (Sequence, Choice)):
            found = [rewritten(item) for item in expression.items]
            join = sequence if isinstance(expression, Sequence) else choice
            return join(*(item for item, _ in found)), sum(size for _, size in found) + 1
        if isinstance(expression, Repeat):
            item, size = rewritten(expression.item)
            return Repeat(item, expression.least, expression.most), size + 3
        return expression, len(expression.text) if isinstance(expression, Literal) else 4

    def finished(name: str) -> Expression:
        """Return the body of a rule without references, computed once."""
        if name in in_progress:
            raise _recursive()
        if name not in done:
            in_progress.add(name)
            done[name], sizes[name] = rewritten(rules[name])
            in_progress.discard(name)
            if sizes[name] > MAX_PATTERN:
                raise _too_long()
        return done[name]

    return finished(root)


def _without_right_recursion(exported: ExportedRules) -> dict[str, Expression]:
    """Return rules without right recursion, such as that of the states of automata, as Arden's rule solves it (1961).

    ``X = aX | bY | c`` has the solution ``X = a* (bY | c)``, which then replaces ``X`` at the ends of the other rules.

    Raises:
        GrammarError: a rule refers to itself before the end of an alternative.
        LimitError: a solution is longer than `MAX_PATTERN`, or all of them take too many steps.
    """
    rules = dict(exported.rules)
    edges = {name: [part.name for part in walk(body) if isinstance(part, Reference)] for name, body in rules.items()}
    total = 0  # the sizes of all rules that were replaced: a bound on the work
    for cycle in circles_of(edges):
        if any(_refers_inside(rules[name], set(cycle)) for name in cycle):
            raise _recursive()
        for name in cycle:
            loops, others = _split_at_end(rules[name], name)
            if loops:
                rules[name] = sequence(Repeat(choice(*loops), 0, None), choice(*others))
            for user in cycle:
                heads, others = _split_at_end(rules[user], name)
                if user == name or not heads:
                    continue
                size = _size(rules[name]) * len(heads) + sum(map(_size, heads)) + sum(map(_size, others))
                total += size
                # Parts of a tenth of the maximum: each has several characters in the pattern.
                if size > MAX_PATTERN // 10 or total > MAX_PATTERN:
                    raise _too_long()
                rules[user] = choice(*(sequence(head, rules[name]) for head in heads), *others)
    return rules


def _too_long() -> LimitError:
    return LimitError(f"the pattern is longer than {MAX_PATTERN:,} characters", hint="export it as GBNF")


def _recursive() -> GrammarError:
    return GrammarError(
        "the grammar is recursive, and has no form as a regular expression", hint="export it as GBNF, EBNF or Lark"
    )


def _size(expression: Expression) -> int:
    """Return the number of parts of an expression: one that stands at several locations counts at each."""
    return 1 + sum(map(_size, children(expression)))


def _refers_inside(expression: Expression, names: Set[str]) -> bool:
    """Return True if an expression refers to one of the rules before the end of an alternative: ``Xa``, not ``aX``."""
    for item in expression.items if isinstance(expression, Choice) else (expression,):
        *before, last = item.items if isinstance(item, Sequence) and item.items else (item,)
        if isinstance(last, Choice):
            if _refers_inside(last, names):
                return True
        elif not isinstance(last, Reference):
            before.append(last)
        if any(isinstance(part, Reference) and part.name in names for each in before for part in walk(each)):
            return True
    return False


def _split_at_end(expression: Expression, name: str) -> tuple[list[Expression], list[Expression]]:
    """Split the alternatives of an expression by their ends: ``aX | b(cX | d)``, with X the rule ``name``, gives ``[a,
    bc]``, the parts before a final rule, and ``[bd]``, the alternatives that do not end with it."""
    heads: list[Expression] = []
    others: list[Expression] = []
    for item in expression.items if isinstance(expression, Choice) else (expression,):
        parts = item.items if isinstance(item, Sequence) and item.items else (item,)
        *before, last = parts
        if last == Reference(name):
            heads.append(sequence(*before))
        elif isinstance(last, Choice):
            inner_heads, inner_others = _split_at_end(last, name)
            heads += [sequence(*before, head) for head in inner_heads]
            others += [sequence(*before, other) for other in inner_others]
        else:
            others.append(item)
    return heads, others
