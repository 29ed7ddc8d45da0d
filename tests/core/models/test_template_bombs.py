"""Chat templates that grow without bound: each ends, by an error or with a result, in bounded memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from toolgrammar.core.models import jinja, sandbox

from ...shares import share

#: Bounds for the tests, a small part of the real ones, so that a bomb takes little time even where it is let through.
BOUNDS = {"MAX_TEXT": 1 << 18, "MAX_WORK": 1 << 22, "MAX_VALUES": 1 << 14, "MAX_ROUNDS": 5_000}

#: Values near the bounds.
BASES = [
    "('a' * 250000)",
    "('ж ' * 100000)",
    "('a,b' * 80000)",
    "(range(16000)|list)",
    "([1] * 16000)",
    "([[1] * 120] * 120)",
    "(['ab' * 9000] * 900)",
    "{'k': [1] * 16000}",
    "(2 ** 60)",
    "'ab'.encode()",
    "1.5",
    "[]",
]

#: What is done to a value, ``x``.
STEPS = [
    *(f"x|{name}" for name in (
        "list", "sort", "unique|list", "reverse|list", "upper", "lower", "title", "string", "tojson", "tojson(indent=9)",
        "join(',')", "join('ab' * 9000)", "length", "first", "last", "sum", "sum(start=[])", "min", "max", "batch(2)|list",
        "batch(100000, 1)|list", "slice(100000)|list", "map('upper')|list", "map('list')|list", "map('string')|join(y)",
        "select('in', y)|list", "reject('equalto', y)|list", "groupby('k')", "dictsort", "items|list", "wordcount",
        "replace('a', y)", "e", "urlencode", "indent(9999)", "center(10 ** 6)", "truncate(9)", "pprint", "striptags",
        "round(10 ** 9, 'ceil')", "int(base=16)", "random", "default(y)", "xmlattr", "wordwrap(3)", "format(y)",
        "tojson(separators=('ab' * 9000, ':'))",
    )),
    *(f"x.{name}" for name in (
        "split()", "split('a')", "split('')", "splitlines()", "join(y)", "replace('a', 'bb')", "upper()", "find('zz')",
        "count('zz')", "encode()", "items()|list", "values()|list", "copy()", "index(5)", "append(x)", "ljust(10 ** 7)",
        "format(y)", "title()", "translate({97: y})",
    )),
    "x[1:]", "x[::-1]", "x + x", "x * x", "x * 2", "x ~ x", "x - (0 - x)", "[x, x]", "[x] * 900", "{'k': x, 'l': x}",
    "x == y", "x < y", "y in x", "x in y", "x not in [x, y]", "x is in y", "x is eq(y)", "x is upper", "(x, y)|list",
    "x % y", "dict(k=x)", "x if x else y", "(x|string)[:10]",
]  # fmt: skip

#: What an expression is written into.
FORMS = [
    "{% set y = Y %}{% set x = X %}{{ x }}",
    "{% set y = Y %}{% for i in range(9000) %}{% for j in range(9000) %}{% set x = X %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(x=X, y=Y) %}{% for i in range(99) %}{% set x = ns.x %}{% set y = ns.y %}"
    "{% set ns.x = STEP %}{% endfor %}{{ ns.x }}",
    "{% set y = Y %}{% set z %}{% for i in range(9000) %}{{ X }}{% endfor %}{% endset %}{{ z }}",
    "{% set y = Y %}{% macro m(x) %}{{ x }}{{ STEP }}{% endmacro %}{% for i in range(9000) %}{{ m(X) }}{% endfor %}",
    "{% set y = Y %}{% for x in X %}{{ STEP }}{% endfor %}",
    "{% set y = Y %}{% for x in X if x == y %}{{ x }}{% endfor %}{% filter upper %}{{ X }}{% endfilter %}",
]


def bomb(source: random.Random) -> str:
    """Return a template of a base, up to four steps, and a form."""

    def expression() -> str:
        text = source.choice(BASES)
        for _ in range(source.randrange(5)):
            text = f"({step().replace('x', '§').replace('y', source.choice(BASES)).replace('§', text)})"
        return text

    def step() -> str:
        # Names that hold an x or y of their own are kept.
        return source.choice(
            [each for each in STEPS if not any(word in each for word in ("max", "index", "xml", "dicts"))]
        )

    form = source.choice(FORMS)
    return form.replace("STEP", source.choice(STEPS)).replace("X", expression()).replace("Y", source.choice(BASES))


def outcome(source: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Render a template under small bounds; return the name of its error, or ""."""
    for name, bound in BOUNDS.items():
        monkeypatch.setattr(sandbox, name, bound)
    tracemalloc.start()
    try:
        jinja.compile_template.__wrapped__(source).render()
    except Exception as error:
        return type(error).__name__
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 120 * sandbox.MAX_TEXT, source[:500]  # other threads of the tests allocate, too
    return ""


@pytest.mark.parametrize("seed", share(range(6), 0, 2))
def test_random_templates_end_in_bounded_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any values, filters, methods, operators and loops, one after the other, end."""
    source = random.Random(seed)
    outcomes = [outcome(bomb(source), monkeypatch) for _ in range(30)]
    assert outcomes.count("SecurityError") > 3 and "MemoryError" not in outcomes and "OverflowError" not in outcomes


@pytest.mark.parametrize(
    "source",
    [
        "{{ ('a' * 250000)|sort|length }}",
        "{{ ('a' * 250000)|upper|list|length }}",
        "{{ ([[1] * 9000] * 9000)|sum(start=[])|length }}",
        "{{ ([[1] * 9000] * 9000)|sort|length }}",
        "{{ (['a' * 200000] * 9000)|unique|list|length }}",
        "{{ range(9000)|map('string')|join('a' * 200000)|length }}",
        "{{ ('a' * 200000).join(range(9000)|map('string'))|length }}",
        "{% set x = 'a' * 200000 %}{% for i in range(4000) %}{% set y = x[1:] %}{% endfor %}",
        "{% set x = [1] * 9000 %}{% for i in range(4000) %}{% set y = 0 in x %}{% endfor %}",
        "{% set x = [1] * 9000 %}{% for i in range(4000) %}{% set y = x.count(1) %}{% endfor %}",
        "{% set x = 'a' * 200000 %}{% for i in range(4000) %}{% set y = x.find('b') %}{% endfor %}",
        "{% set x = 'a' * 200000 %}{% for i in range(4000) %}{% set y = 'b' in x %}{% endfor %}",
        "{% set x = 'a' * 200000 %}{% set y %}{% for i in range(4000) %}{{ x }}{% endfor %}{% endset %}",
        "{% set n = namespace(x=10) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "{% set n = namespace(x=10) %}{% for i in range(4000) %}{% set n.x = n.x - (0 - n.x) %}{% set n.x = n.x * 99999 %}{% endfor %}",
        "{{ 1.5|round(999999999, 'ceil') }}",
        "{{ 'a'.encode() % 1 }}{{ '%999999999d'.encode() % 1 }}",
        "{{ ([[[[[[1]]]]]] * 9000)|tojson(indent=99) }}",
        "{{ ([1] * 9000)|tojson(separators=('a' * 9000, ':')) }}",
        "{{ ('a ' * 120000).split()|length }}",
        "".join(f"{{% block b{n} %}}{{{{ self.b{n + 1}() ~ self.b{n + 1}() }}}}{{% endblock %}}" for n in range(40))
        + "{% block b40 %}{% endblock %}",
        "{% for i in range(4000) %}" + "{% set a = 1 %}" * 1_500 + "{% endfor %}",
        "{% set y = [1] * 9000 %}{% for x in y %}{{ y|select('equalto', y)|list|length }}{% endfor %}",
    ],
)
def test_bombs_are_refused(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that no single text shows: lists of texts, comparisons, searches, slices, numbers, blocks, long bodies."""
    assert outcome(source, monkeypatch) in ("SecurityError", "TypeError")


def test_a_long_conversation_is_no_bomb() -> None:
    """A template that looks at all messages for each of a thousand, as real ones do, is within the bounds."""
    source = (
        "{% set ns = namespace(last=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
        "{% endif %}{% endfor %}{% for m in messages %}{% if m.content is string and '</think>' in m.content %}"
        "{{ m.content.split('</think>')[-1].lstrip('\n') }}{% elif m.role in ['user', 'tool'] and m.content != '' %}"
        "{{ m.content|trim }}{% endif %}{% if tools and tools != [] %}{{ messages|selectattr('role', 'equalto', 'tool')|list"
        "|length }}{% endif %}{% if not loop.last and messages[loop.index0 + 1].role == 'tool' %}t{% endif %}{% endfor %}"
    )
    messages = [{"role": role, "content": "word " * 400} for role in ("user", "assistant", "tool", "assistant")] * 250
    tools = [{"name": f"t{number}", "parameters": {"type": "object"}} for number in range(50)]
    assert len(jinja.compile_template(source).render(messages=messages, tools=tools)) > 900_000
