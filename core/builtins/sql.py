"""SQL: one SELECT over given tables and columns, with comparisons of like types.

What is written is standard SQL, in capitals and with single spaces: columns or aggregates, up to one join, WHERE,
GROUP BY, ORDER BY, LIMIT and OFFSET. A column is only named where its table is in FROM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations

from ..basics.argument_checks import checked_names
from ..errors import GrammarError
from ..text_grammars.lark import read_lark
from ..text_grammars.rules import ReadGrammar
from .typed import read_grammar

#: Types of columns.
TYPES = ("string", "number", "integer", "boolean")

#: Maximum number of ways to choose tables for FROM.
MAX_SOURCES = 200

_RESERVED = """
ADD ALL ALTER ANALYZE AND ANY ARRAY AS ASC BETWEEN BOTH BY CASE CAST CHECK COLLATE COLUMN CONSTRAINT CREATE CROSS
CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATABASE DEFAULT DELETE DESC DESCRIBE DISTINCT DO DROP
ELSE END ESCAPE EXCEPT EXISTS EXPLAIN FALSE FETCH FILTER FOR FOREIGN FROM FULL GRANT GROUP GROUPS HAVING IF IN
INDEX INNER INSERT INTERSECT INTERVAL INTO IS ISNULL JOIN KEY KEYS LATERAL LEADING LEFT LIKE LIMIT MATCH NATURAL
NOT NOTNULL NULL OFFSET ON OR ORDER OUTER OVER PARTITION PRIMARY RANGE RANK REFERENCES REPLACE RETURNING RIGHT ROW
ROWS SELECT SESSION_USER SET SHOW SOME SYSTEM TABLE THEN TO TRAILING TRANSACTION TRIGGER TRUE UNION UNIQUE UPDATE
USER USING VALUES VIEW WHEN WHERE WINDOW WITH
"""

#: Words that are quoted when they name a table or a column (those that PostgreSQL, SQLite or MySQL reserve).
RESERVED = frozenset(_RESERVED.split())

_COMMON = r"""
INTEGER: /-?(0|[1-9][0-9]{0,17})/
NUMBER: /-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?/
STRING: /'([^'\x00-\x1f\x7f\\]|'')*'/
BOOLEAN: "TRUE" | "FALSE"
OP: "=" | "<>" | "<" | "<=" | ">" | ">="
LIMIT: /[0-9]{1,9}/
AGGREGATE: "SUM" | "AVG" | "MIN" | "MAX"
"""


def sql_grammar(tables: Mapping[str, Sequence[str] | Mapping[str, str]], *, joins: bool) -> ReadGrammar:
    """Return the SELECT statements over some tables."""
    if not isinstance(tables, Mapping) or not tables:
        raise GrammarError("SELECT needs a table", hint='pass {"people": ["name", "age"]}')
    typed = {name: _columns(name, tables[name]) for name in checked_names(tables, "tables")}
    sources = [(name,) for name in typed] + (list(permutations(typed, 2)) if joins else [])
    if len(sources) > MAX_SOURCES:
        raise GrammarError(
            f"{len(sources)} combinations of tables exceed the maximum of {MAX_SOURCES}",
            hint="pass joins=False, or fewer tables",
        )
    lines = [_COMMON, "start: " + " | ".join(f"s{number}" for number in range(len(sources)))]
    for number, source in enumerate(sources):
        lines += _select(f"{number}", source, typed)
    rules = read_lark("\n".join(lines)).rules.rules
    return read_grammar("sql_select", {"tables": typed, "joins": joins}, {**rules, "root": rules["start"]})


def _columns(table: str, columns: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the type of each column of a table, ``string`` if none is given.

    Raises:
        GrammarError: a column has no known type.
    """
    names = checked_names(columns, f"columns of the table {table!r}")
    typed = {name: columns[name] if isinstance(columns, Mapping) else "string" for name in names}
    for column, kind in typed.items():
        if kind not in TYPES:
            raise GrammarError(
                f"column {column!r} of {table!r} has no known type: {kind!r}", hint=f"one of {', '.join(TYPES)}"
            )
    return typed


def _quoted(name: str) -> str:
    if name.isascii() and name.isidentifier() and name.upper() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _any_of(texts: Sequence[str]) -> str:
    return " | ".join(map(_literal, texts))


def _select(n: str, source: tuple[str, ...], typed: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the rules of statements from one or two tables, such as ``where0: " WHERE " any0``.

    Args:
        n: the number that ends the names of these rules; ``s0`` is that of a statement.
        source: the names of the tables.
        typed: the type of each column, by table.
    """
    by_type: dict[str, list[str]] = {kind: [] for kind in TYPES}
    names = {
        (table, column): _quoted(column) if len(source) == 1 else f"{_quoted(table)}.{_quoted(column)}"
        for table in source
        for column in typed[table]
    }
    for (table, column), name in names.items():
        by_type[typed[table][column]].append(name)
    numeric = by_type["number"] + by_type["integer"]
    tables = _literal(" FROM " + _quoted(source[0]))  # what follows the columns
    if len(source) == 2:
        pairs = [  # of columns of one type
            f"{names[source[0], one]} = {names[source[1], two]}"
            for one, kind in typed[source[0]].items()
            for two, other in typed[source[1]].items()
            if kind == other
        ]
        if not pairs:
            return [f"s{n}: /[^\\s\\S]/"]  # nothing: no columns to join by
        tables += f" {_literal(f' JOIN {_quoted(source[1])} ON ')} ({_any_of(pairs)})"
    tests = _tests(n, by_type)
    aggregates = ['"COUNT(*)"', f'"COUNT(" C{n} ")"'] + ([f'AGGREGATE "(" C{n}_NUMERIC ")"'] if numeric else [])
    grouped = [
        f"{_literal(name + ', ')} aggregates{n} from{n} where{n}? {_literal(f' GROUP BY {name}')}"
        for name in names.values()
    ]
    lines = [
        f's{n}: "SELECT " (plain{n} | distinct{n} | aggregates{n} from{n} where{n}? | grouped{n}) ";"?',
        f"plain{n}: items{n} from{n} where{n}? order{n}? limit{n}?",
        f'distinct{n}: "DISTINCT " items{n} from{n} where{n}? limit{n}?',
        f'items{n}: "*" | C{n} (", " C{n})*',
        f"from{n}: {tables}",
        f'where{n}: " WHERE " any{n}',
        f'any{n}: all{n} (" OR " all{n})*',
        f'all{n}: one{n} (" AND " one{n})*',
        f'one{n}: "NOT "? (test{n} | "(" any{n} ")")',
        f"test{n}: {' | '.join(tests)}",
        f'order{n}: " ORDER BY " C{n} (" ASC" | " DESC")? (", " C{n} (" ASC" | " DESC")?)*',
        f'limit{n}: " LIMIT " LIMIT (" OFFSET " LIMIT)?',
        f'aggregates{n}: aggregate{n} (", " aggregate{n})*',
        f"aggregate{n}: {' | '.join(aggregates)}",
        f"grouped{n}: {' | '.join(grouped)}",
        f"C{n}: {_any_of(list(names.values()))}",
    ]
    lines += [f"C{n}_{kind.upper()}: {_any_of(columns)}" for kind, columns in by_type.items() if columns]
    return [*lines, f"C{n}_NUMERIC: {_any_of(numeric)}"] if numeric else lines


def _tests(n: str, by_type: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the comparisons of columns, such as ``C0_STRING " NOT"? " LIKE " STRING``.

    Args:
        n: the number that ends the names of the rules of columns.
        by_type: the columns by their type.
    """
    tests = [f'C{n} " IS " "NOT "? "NULL"']
    for kind, columns in by_type.items():
        if not columns:
            continue
        value, label = kind.upper(), f"C{n}_{kind.upper()}"
        tests.append(f'{label} " " OP " " {value}')
        tests.append(f'{label} " NOT"? " IN (" {value} (", " {value})* ")"')
        if len(columns) > 1:
            tests.append(f'{label} " " OP " " {label}')
        if kind == "string":
            tests.append(f'{label} " NOT"? " LIKE " STRING')
        elif kind != "boolean":
            tests.append(f'{label} " NOT"? " BETWEEN " {value} " AND " {value}')
    return tests
