"""The definition of the grammar of programs: which result fits which parameter, and the literals of each.

A value fits a parameter if its schema is a subset of the parameter's, which is proved (`Grammar.compare`), and if it
has the parameter's named type (``x-type``, a `NewType`; see `policy.grounded`). What is not proved does not fit.

The types of parameters are *slots* in the definition: equal ones are one slot, with the types of results that fit, and
the grammar of the literals that may stand there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.grammar import Grammar

from .signatures import SAID, Function, Type

#: Maximum number of pairs of a result and a parameter that are proved; the others do not fit.
MAX_PROOFS = 500
#: Number of values of a result that are tried in a parameter before a proof.
TRIED = 3
#: Maximum number of characters of a literal's rules that are tried as a regular expression.
MAX_RULES = 1_500
#: A word that may be an id: it has a digit or a mark.
_LIKE_ID = r"[!#-&(-\[\]-~]*[0-9_@/#:-][!#-&(-\[\]-~]*"
#: What ``name = literal`` may bind.
_CONSTANTS = tuple(Type({"type": kind}) for kind in ("string", "integer", "boolean"))


class Definition:
    """The grammar of programs over some functions, for any conversation.

    Args:
        functions: by name.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._types: dict[str, tuple[str, Type]] = {}  # by keys of types: the name in the definition, and the type
        self._slots: dict[str, tuple[str, Type]] = {}  # likewise
        self._proofs_left = MAX_PROOFS
        self._constants = [(literal_grammar(kind.schema), self._type(kind)) for kind in _CONSTANTS]
        self._functions = {
            name: {
                "parameters": [[one.name, self._slot(one.type), one.is_required] for one in function.parameters],
                "result": self._type(function.result),
            }
            for name, function in functions.items()
        }
        self._filled = {name: self._filling(wanted) for name, wanted in self._slots.values()}

    def text(self, words: Sequence[str] | None, *, statements: int, nested: int) -> str:
        """Return the definition, as ``read_programs`` takes it.

        Args:
            words: the ids that a program may write as literals; None: any word that may be one.
            statements: greatest number of statements.
            nested: greatest number of calls inside of each other.
        """
        parts = {name: self._parts(kind) for name, kind in self._types.values()}
        literals = {name: _literal(wanted, words) for name, wanted in self._slots.values()}
        data = {
            "functions": self._functions,
            "slots": {name: {"literal": literals[name], **filled} for name, filled in self._filled.items()},
            "types": {name: inner for name, inner in parts.items() if inner},
            "constants": self._constants,
            "statements": statements,
            "nested": nested,
        }
        return json.dumps(data)

    def _type(self, kind: Type) -> str:
        """Return the name of a type; those inside of it get names too."""
        if kind.key not in self._types:
            self._types[kind.key] = f"t{len(self._types)}", kind
            self._parts(kind)
        return self._types[kind.key][0]

    def _parts(self, kind: Type) -> dict[str, str]:
        """Return the names of the types in a type: by the fields of an object, or of a list's items under ``"[]"``."""
        parts = {name: self._type(one) for name, one in kind.fields.items()}
        return parts if kind.items is None else {"[]": self._type(kind.items)}

    def _slot(self, wanted: Type) -> str:
        """Return the name of the slot of a parameter's type; the items of a list get a slot, too."""
        key = json.dumps([wanted.name, wanted.schema, wanted.items and wanted.items.key], sort_keys=True, default=str)
        if key not in self._slots:
            self._slots[key] = f"s{len(self._slots)}", wanted
            if _is_list(wanted) and wanted.items is not None:
                self._slot(wanted.items)
        return self._slots[key][0]

    def _filling(self, wanted: Type) -> dict[str, Any]:
        """Return what fills a slot: the names of the types that fit, and the slot of the items of a list, or None."""
        items = self._slot(wanted.items) if _is_list(wanted) and wanted.items is not None else None
        return {"takes": [name for name, kind in self._types.values() if self._fits(kind, wanted)], "items": items}

    def _fits(self, given: Type, wanted: Type) -> bool:
        """Return True if it is proved that each value of a type may be given where another type is wanted."""
        if wanted.name:
            return given.name == wanted.name and self._is_subset(given.schema, {"not": {"type": "null"}})
        if not wanted.schema.keys() - SAID:  # anything
            return True
        if not given.schema or _has_objects(given):
            return False
        if given.items is not None and wanted.items is not None and _is_list(wanted) and _is_list(given):
            return self._fits(given.items, wanted.items)
        return self._is_subset(given.schema, wanted.schema)

    def _is_subset(self, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        """Return True if it is proved that a schema allows no more than another one."""
        given_text, wanted_text = _canonical(given), _canonical(wanted)
        if given_text == wanted_text:
            return True
        grammar = _grammar(wanted_text)
        # Some values refute most pairs, in less time than a proof.
        if grammar is None or not all(map(grammar.matches, _some_values(given_text))):
            return False
        self._proofs_left -= 1
        return self._proofs_left >= 0 and _is_proved(given_text, wanted_text)


def _is_list(kind: Type) -> bool:
    """Return True for lists of any length, without conditions but on their items."""
    return kind.items is not None and not kind.schema.keys() - {"type", "items", "$defs", "definitions"}


def _has_objects(kind: Type) -> bool:
    """Return True for objects of a class, and for lists of them."""
    return bool(kind.fields) or (kind.items is not None and _has_objects(kind.items))


def _canonical(schema: Mapping[str, Any]) -> str:
    """Return the text of a schema, the same for equal schemas."""
    return json.dumps(schema, sort_keys=True, default=str)


# Shared by the process and bounded: pure functions of a schema's text.


@lru_cache(maxsize=4_096)
def _grammar(schema: str) -> Grammar | None:
    """Return the grammar of a schema; None if it has none."""
    try:
        return Grammar.from_json_schema(json.loads(schema))
    except ToolGrammarError:
        return None


@lru_cache(maxsize=4_096)
def _some_values(schema: str) -> tuple[str, ...]:
    """Return some texts of a schema; none if it has no grammar."""
    grammar = _grammar(schema)
    with suppress(ToolGrammarError):
        return tuple(one.text for one in grammar.examples(TRIED)) if grammar is not None else ()
    return ()


@lru_cache(maxsize=8_192)
def _is_proved(given: str, wanted: str) -> bool:
    """Return True if the values of a schema are proved to be values of another one; False may mean undecided."""
    given_grammar, wanted_grammar = _grammar(given), _grammar(wanted)
    with suppress(ToolGrammarError):
        if given_grammar is not None and wanted_grammar is not None:
            return given_grammar.compare(wanted_grammar).covers is True
    return False


# -- literals --------------------------------------------------------------------------------------------------------


def _literal(wanted: Type, words: Sequence[str] | None) -> dict[str, str] | None:
    """Return the grammar of the literals of a parameter; None: it has none, or they cannot be written exactly.

    A parameter of a named type takes ids only: of these words, or (None) what looks like an id.
    """
    if _is_list(wanted):
        return None  # lists are made of values
    if not wanted.name:
        return literal_grammar(wanted.schema)
    is_text = wanted.schema.get("type") == "string"
    if words is None:
        is_id: dict[str, Any] = {"pattern": f"^(?:{_LIKE_ID})$"} if is_text else {"minimum": 0}
    else:
        ids = [word for word in words if is_text or re.fullmatch(r"0|[1-9]\d{0,17}", word)]
        is_id = {"enum": [word if is_text else int(word) for word in ids]}
    return literal_grammar({"allOf": [wanted.schema, is_id]})


def literal_grammar(schema: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the grammar of the values of a schema as literals of Python, as ``x-grammar`` takes it; None if no grammar
    has exactly these."""
    written = _literal_text(_canonical(schema))
    return None if written is None else {"syntax": written[0], "definition": written[1]}


@lru_cache(maxsize=1_024)
def _literal_text(schema: str) -> tuple[str, str] | None:
    """Return syntax and definition of the literals of a schema; None if no grammar says exactly these."""
    try:
        grammar = Grammar.python_literal(json.loads(schema))
        rules = grammar.to_gbnf()
        if grammar.unenforced or grammar.narrowed or rules.unsaid:
            return None
    except ToolGrammarError:
        return None
    if len(rules.text) <= MAX_RULES:
        with suppress(ToolGrammarError):
            return "regex", grammar.to_regex().text  # one term, of which masks know more than of rules
    return "gbnf", rules.text
