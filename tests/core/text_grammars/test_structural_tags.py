"""`Grammar.from_structural_tag`, with xgrammar as the oracle of acceptance where it is installed."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, GrammarError, SchemaError, ToolGrammarError, Vocabulary
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.text_grammars.tag_styles import STYLES

from .peers import xgrammar

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}, "s": {"type": "string"}}, "required": ["x"]}
ONE = {"type": "const_string", "value": "1"}
TWO = {"type": "const_string", "value": "2"}


def tag(begin: str, content: Any, end: Any) -> dict[str, Any]:
    """Return a tag."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def dispatch(*rules: Any, loop: bool = True, excludes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a dispatch format."""
    return {"type": "dispatch", "rules": list(rules), "loop": loop, "excludes": list(excludes)}


def triggered(**more: Any) -> dict[str, Any]:
    """Return triggered tags."""
    return {"type": "triggered_tags", "triggers": ["<f"], "tags": [tag("<f>", ONE, "</f>")], **more}


TRIGGERED = ["", "x", "<f>1</f>", "x<f>1</f>", "<f>1</f>x", "<f>1</f>x<f>1</f>", "<f>1</f><f>1</f>", "<f", "<f>2</f>"]
SEPARATED = ["", "<a>1</a>", "<a>1</a>;<a>1</a>", "<a>1</a><a>1</a>", ";", "<a>1</a>;"]

#: Formats, and texts of which each says whether it is one of the format.
CASES: list[tuple[dict[str, Any], dict[str, bool]]] = [
    (ONE, {"1": True, "": False, "11": False}),
    ({"type": "any_text", "excludes": ["ab"]}, {"": True, "a": True, "xab": False, "aab": False}),
    ({"type": "any_text", "max_chars": 2}, {"é1": True, "123": False}),
    ({"type": "any_text", "max_tokens": 0}, {"": True, "1": False}),
    ({"type": "regex", "pattern": "a[0-9]+|b"}, {"a12": True, "b": True, "xb": False, "a": False}),
    ({"type": "grammar", "grammar": 'root ::= "a" root "b" | ""'}, {"aabb": True, "aab": False}),
    ({"type": "sequence", "elements": [ONE, TWO]}, {"12": True, "1": False}),
    ({"type": "or", "elements": [ONE, TWO]}, {"1": True, "2": True, "12": False}),
    ({"type": "optional", "content": ONE}, {"": True, "1": True, "11": False}),
    ({"type": "plus", "content": ONE}, {"": False, "1": True, "11": True}),
    ({"type": "star", "content": ONE}, {"": True, "111": True, "2": False}),
    ({"type": "repeat", "min": 1, "max": 2, "content": ONE}, {"": False, "1": True, "11": True, "111": False}),
    ({"type": "repeat", "min": 2, "max": -1, "content": ONE}, {"1": False, "11": True, "1111": True}),
    (
        tag("<a>", {"type": "any_text"}, "aba"),
        {"<a>aba": True, "<a>ababa": True, "<a>xaba": True, "<a>xabaaba": False, "<a>ab": False},
    ),
    (
        tag("(", {"type": "sequence", "elements": [{"type": "any_text"}, ONE, {"type": "any_text"}]}, ")"),
        {"(a1b)": True, "(a)1b)": False, "(a1b)c)": False, "(a1)": True},
    ),
    (tag("(", {"type": "any_text"}, [")", "]"]), {"(a)": True, "(a]": True, "(a]b)": False, "(": False}),
    (tag("(", triggered(), ")"), {"(a<f>1</f>b)": True, "()": True, "(a)b)": False}),
    (triggered(), dict(zip(TRIGGERED, [1, 1, 1, 1, 1, 1, 1, 0, 0], strict=True))),
    (triggered(at_least_one=True), dict(zip(TRIGGERED, [0, 0, 1, 0, 1, 1, 1, 0, 0], strict=True))),
    (triggered(stop_after_first=True), dict(zip(TRIGGERED, [1, 1, 1, 1, 0, 0, 0, 0, 0], strict=True))),
    (
        triggered(at_least_one=True, stop_after_first=True),
        dict(zip(TRIGGERED, [0, 0, 1, 0, 0, 0, 0, 0, 0], strict=True)),
    ),
    (triggered(excludes=["no"]), {"n<f>1</f>o": True, "<f>1</f>no": False, "no": False}),
    (
        {"type": "tags_with_separator", "tags": [tag("<a>", ONE, "</a>")], "separator": ";"},
        dict(zip(SEPARATED, [1, 1, 1, 0, 0, 0], strict=True)),
    ),
    (
        {"type": "tags_with_separator", "tags": [tag("<a>", ONE, "</a>")], "separator": "", "at_least_one": True},
        dict(zip(SEPARATED, [0, 1, 0, 1, 0, 0], strict=True)),
    ),
    (
        {"type": "tags_with_separator", "tags": [tag("<a>", ONE, "</a>")], "separator": ";", "stop_after_first": True},
        dict(zip(SEPARATED, [1, 1, 0, 0, 0, 0], strict=True)),
    ),
    (
        dispatch(["ab<f", ONE], ["<f", TWO]),
        {
            "ab<f1": True,
            "ab<f2": False,
            "x<f2": True,
            "ab<f": False,
            "b<f2": True,
            "b<f1": False,
            "": True,
            "ab<": True,
        },
    ),
    (
        dispatch(["<f", ONE], excludes=("end",)),
        {"end": False, "en": True, "<f1en": True, "<f1end": False, "aend<f1": False, "e<f1nd": True},
    ),
    (dispatch(["ab", ONE], excludes=("xabc",)), {"ab1": True, "xab1": True, "xabc": False, "xab1c": True}),
    (dispatch(["ab", ONE], ["ab", TWO]), {"ab1": True, "ab2": True, "ab": False}),
    (dispatch(["ab", ONE], loop=False), {"xxab1": True, "xxab1y": False, "xx": True, "": True}),
    (
        {"type": "json_schema", "json_schema": SCHEMA},
        {
            '{"x":1}': True,
            '{ "x" :1,\n"s": "a"}': True,
            '{"x":1,"z":2}': False,
            '{"s":"a","x":1}': False,
            '{"x":1.0}': False,
            '{"s":"a"}': False,
            ' {"x":1}': False,
        },
    ),
    ({"type": "json_schema", "json_schema": SCHEMA, "max_whitespace_cnt": 2}, {'{"x": 1}': True, '{"x":   1}': False}),
    (
        {"type": "json_schema", "json_schema": SCHEMA, "any_order": True},
        {'{"s":"a","x":1}': True, '{"x":1,"s":"a"}': True},
    ),
    (
        {"type": "json_schema", "json_schema": SCHEMA, "style": "qwen_xml"},
        {
            "<parameter=x>\n1\n</parameter>\n<parameter=s>\nab\n</parameter>": True,
            "<parameter=x>1</parameter><parameter=s>a</parameter>": True,
            "<parameter=x>a</parameter>": False,
            "<parameter=s>a</parameter>": False,
        },
    ),
    *(
        (
            tag(begin, {"type": "json_schema", "json_schema": SCHEMA, "style": style}, end),
            {
                f"<f=w>\n{one}\n{two}\n</f>": True,
                f"<f=w>\n{one}\n</f>": True,
                f"<f=w>\n{two}\n</f>": False,
            },
        )
        for begin in ("<f=w>", "<f=w>\n")
        for end in ("</f>", "\n</f>")
        for style, one, two in (
            ("qwen_xml", "<parameter=x>\n1\n</parameter>", "<parameter=s>\nab\n</parameter>"),
            ("minimax_xml", '<parameter name="x">1</parameter>', '<parameter name="s">ab</parameter>'),
            (
                "glm_xml",
                "<arg_key>x</arg_key>\n<arg_value>1</arg_value>",
                "<arg_key>s</arg_key>\n<arg_value>a</arg_value>",
            ),
            (
                "deepseek_xml",
                '<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>',
                '<｜DSML｜parameter name="s" string="true">ab</｜DSML｜parameter>',
            ),
        )
    ),
    (
        tag("<a>", {"type": "json_schema", "json_schema": {"type": "string"}, "style": "qwen_xml"}, "</a>"),
        {"<a>b\n<c></a>": True, "<a></a>": True, "<a></parameter></a>": False},
    ),
    (
        {"type": "json_schema", "json_schema": {"type": "integer"}, "style": "qwen_xml"},
        {"12": True, '"12"': False},
    ),
    ({"type": "qwen_xml_parameter", "json_schema": SCHEMA}, {"<parameter=x>\n-1\n</parameter>": True}),
    (
        {"type": "json_schema", "json_schema": SCHEMA, "style": "glm_xml"},
        {"<arg_key>x</arg_key>\n<arg_value>1</arg_value>": True, "<arg_key>x</arg_key><arg_value>a</arg_value>": False},
    ),
]


def accepts_in_xgrammar(document: Any) -> Any:
    """Return a function that tells whether xgrammar accepts a text of a structural tag; skips without xgrammar."""
    compiled = xgrammar().Grammar.from_structural_tag(document)
    from xgrammar.testing import _is_grammar_accept_string

    return lambda text: _is_grammar_accept_string(compiled, text)


@pytest.mark.parametrize(("form", "texts"), CASES, ids=[f"{n}-{form['type']}" for n, (form, _) in enumerate(CASES)])
def test_texts(form: dict[str, Any], texts: dict[str, bool]) -> None:
    """Each format has exactly its texts, and every beginning of a text can be finished."""
    grammar = Grammar.from_structural_tag({"type": "structural_tag", "format": form})
    for text, expected in texts.items():
        assert grammar.matches(text) == expected, text
        if expected:
            assert all(grammar.begins(text[:size]) for size in range(len(text)))


@pytest.mark.parametrize(("form", "texts"), CASES, ids=[f"{n}-{form['type']}" for n, (form, _) in enumerate(CASES)])
def test_texts_in_xgrammar(form: dict[str, Any], texts: dict[str, bool]) -> None:
    """The texts that are written down here are those of xgrammar."""
    accepts = accepts_in_xgrammar({"type": "structural_tag", "format": form})
    assert {text: accepts(text) for text in texts} == {text: bool(expected) for text, expected in texts.items()}


# -- random formats --------------------------------------------------------------------------------------------------


def drawn(draw: random.Random, depth: int = 3) -> dict[str, Any]:
    """Draw a format."""
    leaves = ["const_string", "regex", "any_text", "grammar", "json_schema"]
    kind = draw.choice(
        leaves
        + (
            ["sequence", "or", "optional", "star", "repeat", "tag", "triggered", "separated", "dispatch"] * 2
            if depth
            else []
        )
    )

    def tags(begins: list[str]) -> list[dict[str, Any]]:
        return [tag(begin, drawn(draw, depth - 1), draw.choice(["</a>", ")", "!"])) for begin in begins]

    if kind == "const_string":
        return {"type": kind, "value": draw.choice(["a", "bb", "<f", "é", ")"])}
    if kind == "regex":
        return {"type": kind, "pattern": draw.choice(["[ab]+", "a|bc", "[0-9]{1,3}", "(ab)*c"])}
    if kind == "any_text":
        return {"type": kind, "excludes": draw.choice([[], ["a"], ["!", "bb"]])}
    if kind == "grammar":
        return {
            "type": kind,
            "grammar": draw.choice(['root ::= "(" root ")" | "x"', 'root ::= [a-c]{2,3} | "b" x\nx ::= "c"*']),
        }
    if kind == "json_schema":
        return {"type": kind, "json_schema": draw.choice([SCHEMA, {"type": "integer"}, {"enum": ["a", 1]}])}
    if kind in ("sequence", "or"):
        return {"type": kind, "elements": [drawn(draw, depth - 1) for _ in range(draw.randrange(1, 4))]}
    if kind in ("optional", "star"):
        return {"type": kind, "content": drawn(draw, depth - 1)}
    if kind == "repeat":
        return {"type": kind, "min": 1, "max": draw.choice([1, 3, -1]), "content": drawn(draw, depth - 1)}
    if kind == "tag":
        return tags(["<a>"])[0]
    flags = {"at_least_one": draw.random() < 0.5, "stop_after_first": draw.random() < 0.5}
    if kind == "triggered":
        return {"type": "triggered_tags", "triggers": ["<f", "[g"], "tags": tags(["<f>", "<fa>", "[g]"]), **flags}
    if kind == "separated":
        return {
            "type": "tags_with_separator",
            "tags": tags(["<f>", "["]),
            "separator": draw.choice([",", "", "ab"]),
            **flags,
        }
    rules = [[trigger, drawn(draw, depth - 1)] for trigger in ("<f", "[g")]
    return dispatch(*rules, loop=draw.random() < 0.7, excludes=draw.choice([(), ("b",), ("!!", "é")]))


def mutated(draw: random.Random, text: str) -> str:
    """Return a text with one change."""
    at = draw.randrange(len(text) + 1)
    piece = draw.choice(["", "a", "b", "<f", "<f>", "[g]", "</a>", ")", "!", "1", "é", '"', ","])
    return text[:at] + piece + text[at + draw.randrange(2) :]


def test_random_formats_as_in_xgrammar(pytestconfig: pytest.Config) -> None:
    """For random formats, xgrammar accepts the same of random texts and of their mutations."""
    draw = random.Random(5)
    accepted, refused, compared = 0, 0, 0
    for _ in range(400 if pytestconfig.getoption("--slow") else 60):
        document = {"type": "structural_tag", "format": drawn(draw)}
        try:
            grammar = Grammar.from_structural_tag(document)
            accepts = accepts_in_xgrammar(document)
        except (GrammarError, RuntimeError):  # a trigger that can never be written; an end that xgrammar wants
            refused += 1
            continue
        compared += 1
        for _ in range(4):
            text = random_text(grammar, draw, 40)
            for candidate in [text, *(mutated(draw, text) for _ in range(6))]:
                ours = grammar.matches(candidate)
                assert ours == accepts(candidate), (candidate, ours, json.dumps(document))
                accepted += ours
    assert refused < compared / 3
    assert accepted > 4 * compared


# -- the legacy form, and what is refused ----------------------------------------------------------------------------


def test_legacy_form() -> None:
    """The legacy form is read as its translation to the present one."""
    legacy = {
        "type": "structural_tag",
        "structures": [
            {"begin": "<f=a>", "schema": SCHEMA, "end": "</f>"},
            {"begin": "<f=b>", "schema": "{}", "end": "!"},
        ],
        "triggers": ["<f="],
    }
    tags = [tag("<f=a>", {"type": "json_schema", "json_schema": SCHEMA}, "</f>")]
    tags.append(tag("<f=b>", {"type": "json_schema", "json_schema": {}}, "!"))
    present = {"format": {"type": "triggered_tags", "triggers": ["<f="], "tags": tags}}
    old, new = Grammar.from_structural_tag(legacy), Grammar.from_structural_tag(json.dumps(present))
    assert old == new and hash(old) == hash(new)
    assert old.matches('so: <f=a>{"x": 1}</f> and <f=b>[]!') and not old.matches("<f=c>")


@pytest.mark.parametrize(
    ("form", "pointer", "hint"),
    [
        ({"type": "any_text", "max_tokens": 5}, "/format/max_tokens", "max_chars"),
        ({"type": "exclude_token", "exclude_tokens": ["a"]}, "/format", "any_tokens"),
        ({"type": "json_schema", "json_schema": SCHEMA, "style": "cohere_xml"}, "/format/style", "ToolSet.grammar"),
        ({"type": "json_schema", "json_schema": SCHEMA, "excludes": ["a"]}, "/format/excludes", "pattern"),
        ({"type": "sequence", "elements": [ONE, {"type": "nothing"}]}, "/format/elements/1", "known types"),
        ({"type": "const_string", "value": "a", "valeu": "b"}, "/format/valeu", "known here"),
        ({"type": "regex", "pattern": "a("}, "/format/pattern", ""),
        ({"type": "grammar", "grammar": "root ::= x"}, "/format/grammar", "known rules"),
        ({"type": "token", "token": 7}, "/format/token", "vocabulary"),
        ({**triggered(), "triggers": ["<g"]}, "/format/tags/0/begin", "triggers"),
        (dispatch(["<f", ONE], ["x<fy", TWO]), "/format", "longer"),
        ({"type": "sequence", "elements": []}, "/format/elements", ""),
        ({"type": "optional"}, "/format", ""),
    ],
)
def test_errors_name_the_place(form: dict[str, Any], pointer: str, hint: str) -> None:
    """What is malformed or cannot be enforced is an error with its JSON pointer and a way out."""
    with pytest.raises(GrammarError) as caught:
        Grammar.from_structural_tag({"format": form})
    assert caught.value.place.pointer == pointer
    assert hint in (caught.value.hint or "")


def test_schemas_are_judged_where_they_are() -> None:
    """Errors and narrowed keywords of a JSON Schema have pointers into the whole tag."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": -1}}}
    with pytest.raises(SchemaError) as caught:
        Grammar.from_structural_tag({"format": tag("<a>", {"type": "json_schema", "json_schema": schema}, "")})
    assert caught.value.place.pointer == "/format/content/json_schema/properties/a"
    with pytest.raises(ToolGrammarError) as unsatisfiable:
        Grammar.from_structural_tag({"format": {"type": "json_schema", "json_schema": {"not": {}}}})
    assert (unsatisfiable.value.place.pointer or "").startswith("/format/json_schema")


def test_styles_without_names() -> None:
    """A schema that names no argument, of a tool without parameters, is closed in a style that needs the names."""
    for schema in ({}, True, {"type": "object"}):
        form = {"type": "json_schema", "json_schema": schema, "style": "glm_xml"}
        grammar = Grammar.from_structural_tag({"format": form})
        assert grammar.matches("") and not grammar.begins("<")
        (problem,) = grammar.narrowed
        assert problem.place.pointer == "/format/json_schema" and problem.left_out


# -- control tokens --------------------------------------------------------------------------------------------------

VOCABULARY = Vocabulary(
    [*(bytes((byte,)) for byte in range(128)), b"12", None, None, None],
    eos=[131],
    special={"<call>": 129, "</call>": 130, "<eos>": 131},
)


def walk(grammar: Grammar, *pieces: str | int) -> bool:
    """Return True if a vocabulary's tokens, given as text or by ids, are accepted to the end."""
    matcher = grammar.bind(VOCABULARY).matcher()
    for piece in pieces:
        tokens = [piece] if isinstance(piece, int) else list(piece.encode())
        if not all(matcher.accept(token) for token in tokens):
            return False
    return matcher.is_accepting


@pytest.mark.parametrize(
    "form",
    [
        {"type": "triggered_tags", "triggers": ["<ca"], "tags": [tag("<call>a", ONE, "</call>")]},
        {"type": "triggered_tags", "triggers": ["<call>a"], "tags": [tag("<call>a", ONE, "</call>")]},
        {
            "type": "token_triggered_tags",
            "trigger_tokens": ["<call>"],
            "tags": [
                {
                    "begin": {"token": "<call>"},
                    "content": {"type": "const_string", "value": "a1"},
                    "end": {"token": 130},
                }
            ],
        },
        {"type": "token_dispatch", "rules": [[129, {"type": "const_string", "value": "a1</call>"}]]},
        dispatch(["<call>", {"type": "const_string", "value": "a1</call>"}]),
    ],
    ids=["part of a token", "more than a token", "token tags", "token dispatch", "dispatch"],
)
def test_control_tokens(form: dict[str, Any]) -> None:
    """Names of control tokens in a tag are these tokens; their text does not count."""
    grammar = Grammar.from_structural_tag({"format": form}, vocabulary=VOCABULARY)
    assert grammar.specials == {"<call>", "</call>"}
    assert walk(grammar, "x", 129, "a1", 130, "y")
    assert walk(grammar, "x") and walk(grammar)
    assert not walk(grammar, "x", 129, "a1</call>")
    assert not walk(grammar, "x", 129, "b")


def test_tokens_that_are_text() -> None:
    """A token that is text is text, and cannot be excluded from what spells it otherwise."""
    assert Grammar.from_structural_tag({"format": {"type": "token", "token": 128}}, vocabulary=VOCABULARY).matches("12")
    free = {"type": "any_tokens", "exclude_tokens": ["12", "<call>"]}
    grammar = Grammar.from_structural_tag({"format": free}, vocabulary=VOCABULARY)
    assert grammar.matches("1 2") and not grammar.matches("a12") and not grammar.specials  # excluded only
    with pytest.raises(GrammarError, match="no token"):
        Grammar.from_structural_tag({"format": {"type": "token", "token": "none"}}, vocabulary=VOCABULARY)


@pytest.mark.parametrize("style", sorted(STYLES))
def test_styles_as_in_xgrammar(style: str) -> None:
    """xgrammar accepts every text that is written in a style, whatever the layout; its integers have no -0."""
    document = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": SCHEMA, "style": style}}
    accepts, grammar, source = accepts_in_xgrammar(document), Grammar.from_structural_tag(document), random.Random(3)
    texts = {random_text(grammar, source, 80) for _ in range(40)}
    assert len(texts) > 20
    assert [text for text in texts if not accepts(text) and "-0" not in text] == []


@pytest.mark.parametrize("value", ["", "a", {}, {"a": 1}, 5, True, 1.5, -1, float("inf"), float("nan"), [[]], [1]])
@pytest.mark.parametrize("name", ["excludes", "tags", "triggers", "at_least_one", "min", "max"])
def test_members_of_other_types_are_refused(name: str, value: Any) -> None:
    """Whatever stands in a member, the error is ours, and has the place."""
    form = triggered() if name not in ("min", "max") else {"type": "repeat", "content": ONE, "min": 0, "max": 2}
    is_valid = value is True if name == "at_least_one" else name in ("min", "max") and value in (5, -1)
    if is_valid and (name, value) != ("min", -1):
        return
    with pytest.raises(GrammarError) as caught:
        Grammar.from_structural_tag({"type": "structural_tag", "format": {**form, name: value}})
    assert (caught.value.place.pointer or "").startswith(f"/format/{name}")
