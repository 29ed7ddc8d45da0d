"""Tool sets share what was derived for their tools, and nothing of what they allow."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import random
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Constraint, Grammar, GrammarError, ToolGrammarError, Vocabulary
from toolgrammar.core.automaton import lazy_dfa as program_module
from toolgrammar.core.automaton.lazy_dfa import Program, Workspace
from toolgrammar.core.schema import CompiledSchema
from toolgrammar.tools import Tool, ToolSet, call_grammars
from toolgrammar.tools.formats import TurnSpec, get_format

WORDS = [b"<tool_call>\n", b'{"name": "', b'", "', b'"}}\n</tool_call>', b"}}", b'": ', b'": "', b"true", b"12", b"ab"]
TOKENS: list[bytes | None] = [*(bytes([each]) for each in range(256)), *WORDS, None, None]
EOS = len(TOKENS) - 1
KINDS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "maxLength": 4},
    {"type": "string", "enum": ["a", "ab", "b"]},
    {"type": "integer", "minimum": 0, "maximum": 300},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "number"}, "maxItems": 2, "uniqueItems": True},
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
]


def tool(number: int, description: str = "") -> Tool:
    """A tool of its own for each number."""
    draw = random.Random(number)
    names = draw.sample(["a", "ab", "b", "c"], 3)
    properties = {name: {**draw.choice(KINDS), "description": description} for name in names}
    return Tool(f"tool_{number}", description, {"type": "object", "properties": properties, "required": names[:2]})


POOL = [tool(number) for number in range(40)]


def vocabulary() -> Vocabulary:
    """A small vocabulary of its own cache."""
    return Vocabulary(TOKENS, eos=[EOS], special={"<go>": EOS - 1})


def alone(grammar: Grammar, known: Vocabulary) -> Constraint:
    """The same grammar in a store of its own."""
    return Constraint(Program(grammar._build), known, lambda: grammar.program, grammar.specials)


def walk(ours: Constraint, other: Constraint, seed: int, steps: int = 60) -> Iterator[tuple[Any, Any]]:
    """What two constraints say along one random text."""
    draw = random.Random(seed)
    one, two = ours.matcher(), other.matcher()
    for _ in range(steps):
        allowed = one.allowed_tokens()
        yield allowed, two.allowed_tokens()
        yield one.forced_bytes(), two.forced_bytes()
        yield len(one.shortest_completion()), len(two.shortest_completion())
        yield one.is_accepting, two.is_accepting
        rest = [token for token in allowed if token != EOS]
        if not rest:
            return
        token = draw.choice([each for each in rest if each > 255] or rest)
        assert one.accept(token) and two.accept(token)


@pytest.mark.parametrize("name", ["hermes", "llama-json", "qwen3-coder", "mistral-v11"])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_shared_and_alone_are_one_language(name: str, choice: str) -> None:
    """Sets of overlapping tools in the shared store give the same masks as grammars with stores of their own."""
    markers = {marker: EOS + 1 + at for at, marker in enumerate(sorted(_specials(name)))}
    known = Vocabulary([*TOKENS, *(None for _ in markers)], eos=[EOS], special=markers)
    for seed in range(6):
        draw = random.Random(seed)
        grammar = ToolSet(draw.sample(POOL, 5)).grammar(name, tool_choice=choice)
        shared, own = grammar.bind(known), alone(grammar, known)
        assert shared.program.store.is_shared and not own.program.store.is_shared
        for one, two in walk(shared, own, seed):
            assert one == two


def _specials(name: str) -> frozenset[str]:
    return ToolSet(POOL[:1]).grammar(name).specials


def test_known_tools_are_not_derived_again() -> None:
    """A new set of tools that were seen lowers no schema, derives no row, and adds few nodes to the store."""
    known, workspace = vocabulary(), Workspace()
    grammars = call_grammars.CallGrammars(workspace)
    for start in range(0, 40, 5):
        chosen = ToolSet(POOL[start : start + 5], grammars=grammars)
        run_to_the_end(chosen.grammar(tool_choice="required").bind(known))
    store = workspace.store()
    before = len(store.nodes.builders), len(store.rows), len(store.nodes.terms), len(grammars)
    nodes = len(store.nodes)
    chosen = ToolSet(random.Random(1).sample(POOL, 20), grammars=grammars)
    constraint = chosen.grammar(tool_choice="required").bind(known)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(matcher.forced_bytes()) and len(matcher.allowed_tokens()) > 0
    assert len(store.nodes) - nodes < 3 * len(chosen)
    run_to_the_end(constraint)
    assert workspace.store() is store
    assert (len(store.nodes.builders), len(store.rows), len(store.nodes.terms), len(grammars)) == before
    assert len(store.nodes) - nodes < 14 * len(chosen)


def run_to_the_end(constraint: Constraint) -> None:
    """One text of each alternative that the names open."""
    first = constraint.matcher()
    assert first.accept_bytes(first.forced_bytes())
    out = np.zeros(constraint.words, dtype=np.uint32)
    for name in sorted(each.name for each in POOL):
        matcher = first.fork()
        if matcher.accept_bytes((name[len("tool_") :] + '", "arguments": {').encode()):
            matcher.fill_mask(out)
            assert matcher.accept_bytes(matcher.shortest_completion()) and matcher.is_accepting


def test_equal_tools_are_one_part() -> None:
    """Tools that differ in descriptions only, or that are made anew, share one grammar in the store."""
    workspace = Workspace()
    grammars = call_grammars.CallGrammars(workspace)
    meet([tool(90)], grammars)
    store = workspace.store()
    before = len(store.nodes.builders)
    meet([tool(90, "now with a description"), tool(91)], grammars)
    assert len(store.nodes.builders) == before + 1
    count = len(grammars)
    meet([tool(90), tool(91)], grammars)
    assert len(grammars) == count
    assert len(store.nodes.builders) == before + 1


def meet(tools: list[Tool], grammars: call_grammars.CallGrammars) -> None:
    """Write as much of a call of each tool as shows that its arguments are in the store."""
    grammar = ToolSet(tools, grammars=grammars).grammar()
    for each in tools:
        assert not grammar.matches(f'<tool_call>\n{{"name": "{each.name}", "arguments": {{')


def test_the_same_name_with_other_arguments_is_another_part() -> None:
    """A tool that changes between two requests is held to what it is now."""
    text = '<tool_call>\n{"name": "f", "arguments": {"x": %s}}\n</tool_call>'

    def grammar(kind: str) -> Grammar:
        parameters = {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
        return ToolSet([Tool("f", "", parameters)]).grammar(tool_choice="required")

    assert grammar("integer").matches(text % "1") and not grammar("integer").matches(text % '"1"')
    assert grammar("string").matches(text % '"1"') and not grammar("string").matches(text % "1")


def test_a_full_store_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the bound new texts begin in a fresh store, texts under way go on in theirs, and then it is freed."""
    # A workspace of its own: the default one may be in use by other tests.
    grammars = call_grammars.CallGrammars(Workspace())
    known = vocabulary()
    grammar = ToolSet(POOL[:4], grammars=grammars).grammar(tool_choice="required")
    constraint = grammar.bind(known)
    old = constraint.matcher()
    assert old.accept_bytes(old.forced_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(program_module, "PROGRAM_MEMORY", 1)
        new = constraint.matcher()
    first = weakref.ref(old._place[0].program)
    assert new._place[0].program is not first()
    assert new.accept_bytes(new.forced_bytes()) and new.allowed_tokens() == old.allowed_tokens()
    assert old.accept_bytes(old.shortest_completion()) and old.is_accepting
    del old
    gc.collect()
    assert first() is None


def test_control_tokens_are_asked_of_each_grammar() -> None:
    """A grammar whose control token the vocabulary lacks is refused, and no other grammar in the store is."""
    known = vocabulary()
    part = Grammar.json().as_part()
    fine = part + Grammar.special("<go>")
    with pytest.raises(GrammarError, match="'<missing>'"):
        (part + Grammar.special("<missing>")).bind(known)
    other = Vocabulary([*TOKENS, None], eos=[EOS], special={"<missing>": EOS + 1})
    lacking = (part + Grammar.special("<missing>")).bind(other).matcher()
    matcher = fine.bind(known).matcher()
    for each, token in ((lacking, EOS + 1), (matcher, EOS - 1)):
        assert each.accept_bytes(b"[]")
        assert each.allowed_tokens() == [token] and each.accept(token) and each.is_accepting


def test_a_tool_beyond_a_limit_harms_no_other() -> None:
    """A tool that is too large for the store raises its own error; other sets go on as before."""
    known = vocabulary()
    wide = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|b)*a(a|b){25}$"}}}
    workspace = Workspace()
    grammars = call_grammars.CallGrammars(workspace)
    good = ToolSet(POOL[:3], grammars=grammars).grammar(tool_choice="required")
    expected = [ours for ours, _ in walk(alone(good, known), alone(good, known), 5)]
    store = workspace.store()
    hostile = ToolSet([Tool("wide", "", wide)], grammars=grammars).grammar(tool_choice="required").bind(known).matcher()
    store.nodes.terms.room = len(store.nodes.terms) + 3_000
    with pytest.raises(ToolGrammarError, match="automaton states"):  # noqa: PT012
        assert hostile.accept_bytes(b'<tool_call>\n{"name": "wide", "arguments": {"x": "')
        draw = random.Random(0)
        while True:
            assert hostile.accept_bytes(draw.choice([b"a", b"b"]))
            hostile.allowed_tokens()
    store.nodes.terms.room += 3_000
    assert [ours for ours, _ in walk(good.bind(known), alone(good, known), 5)] == expected


def test_threads_share_a_store() -> None:
    """Eight threads, each with sets of its own, see what one sees."""
    known = vocabulary()
    failed: list[object] = []

    def work(seed: int) -> None:
        draw = random.Random(seed)
        for turn in range(4):
            grammar = ToolSet(draw.sample(POOL, 6)).grammar(tool_choice="required")
            try:
                for one, two in walk(grammar.bind(known), alone(grammar, known), turn, 25):
                    assert one == two
            except BaseException as error:  # handed to the main thread
                failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_kept_parts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many parts are kept, and the ones used least recently go."""
    monkeypatch.setattr(call_grammars, "MAX_CALL_GRAMMARS", 3)
    parts = call_grammars.CallGrammars()
    made: list[str] = []

    def get(name: str) -> Grammar:
        return parts.get(name, lambda: (made.append(name), Grammar.literal(name))[1])

    for name in "abcadbca":
        get(name)
    # a b c, a again, d (b goes), b (c goes), c (a goes), a (d goes)
    assert "".join(made) == "abcdbca" and len(parts) == 3
    assert get("a") is get("a")


def test_kept_parts_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ever-new tools with long lists are met, what is kept of them stays within its bytes."""
    monkeypatch.setattr(call_grammars, "MAX_CALL_BYTES", 3_000_000)
    parts = call_grammars.CallGrammars(Workspace())
    for number in range(12):
        listed = {"type": "object", "properties": {"x": {"enum": [f"{number} {each}" for each in range(4_000)]}}}
        ToolSet([Tool(f"t{number}", "", listed)], grammars=parts).grammar()
        assert sum(part.byte_count() for part in parts._recent.values()) == parts._bytes <= 3_000_000
    assert 1 <= len(parts) < 12


def test_parts_in_use_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of more tools than are kept makes each of them once, as long as one of its grammars is in use."""
    parts = call_grammars.CallGrammars()
    monkeypatch.setattr(call_grammars, "MAX_CALL_GRAMMARS", 3)
    pool = [tool(100 + number) for number in range(8)]
    made: list[str] = []
    arguments = TurnSpec.arguments
    monkeypatch.setattr(TurnSpec, "arguments", lambda turn, each: (made.append(each.name), arguments(turn, each))[1])
    auto = ToolSet(pool, grammars=parts).grammar()
    assert len(made) == len(pool) and len(parts) == 3
    required = ToolSet([replace(each) for each in pool], grammars=parts).grammar(tool_choice="required")
    assert len(made) == len(pool) and auto != required
    del auto, required
    gc.collect()
    ToolSet(pool, grammars=parts).grammar()
    assert len(made) == 2 * len(pool)


def test_thousands_of_tools_with_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grammars over many tools whose members have the same names are built with few comparisons, the second too."""
    compared = 0

    def counted(kind: type[Grammar] | type[CompiledSchema]) -> None:
        equal = kind.__eq__

        def compare(one: object, other: object) -> bool:
            nonlocal compared
            compared += 1
            return equal(one, other)

        monkeypatch.setattr(kind, "__eq__", compare)

    count = 5_000
    monkeypatch.setattr(call_grammars, "MAX_CALL_GRAMMARS", count // 2)
    pool = [
        Tool(f"many_{at}", "", {"type": "object", "properties": {"x": {"const": at}}, "required": ["x"]})
        for at in range(count)
    ]
    counted(Grammar)
    counted(CompiledSchema)
    last = f'<tool_call>\n{{"name": "many_{count - 1}", "arguments": {{"x": {count - 1}}}}}\n</tool_call>'
    for choice in ("auto", "required", f"many_{count - 1}", "required"):
        made = [replace(each) for each in pool]
        assert ToolSet(made).grammar(tool_choice=choice).matches(last)
    assert compared < 10 * count


def many_of(word: str, times: int = 2, /, *more: str) -> str:
    """Repeat a word."""
    return " ".join([word] * times + [*more])


def test_tools_of_functions_can_be_copied_and_pickled() -> None:
    """Their calls run with arguments of the function's own types."""
    tools = ToolSet([many_of, Tool("other", "", {"type": "object"})])
    call = {"name": "many_of", "arguments": {"word": "a", "more": ["b"]}}
    for same in (copy.deepcopy(tools), pickle.loads(pickle.dumps(tools))):
        assert same == tools and same.call(call) == "a a b"


def test_tools_can_be_copied_and_pickled() -> None:
    """What is remembered with a tool, and with a set of tools, does not hinder copies."""
    tools = ToolSet(POOL[:1], max_calls=3)
    grammar = tools.grammar()
    for same in (copy.copy(tools), copy.deepcopy(tools), pickle.loads(pickle.dumps(tools))):
        assert same == tools and same.grammar() == grammar
        with pytest.raises(ToolGrammarError):
            same.validate({"name": tools.names[0], "arguments": {"no such argument": 1}})
    one = POOL[0]
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))
    assert copy.deepcopy(one).identity == one.identity
    assert json.dumps(one.parameters)
    assert one.renamed("other").identity != one.identity
    assert Tool(one.name, "another", copy.deepcopy(one.parameters)).identity == one.identity
    other = copy.deepcopy(one.parameters)
    other["properties"] = dict(reversed(other["properties"].items()))
    assert Tool(one.name, "", other).identity != one.identity


def test_a_tool_of_unusual_data_is_a_tool() -> None:
    """Parameters that are no plain data (a subclass of str, say) have no identity, and work all the same."""

    class Name(str):
        """A string of another class."""

    odd = Tool("odd", "", {"type": "object", "properties": {"x": {"enum": [Name("a")]}}, "required": ["x"]})
    assert odd.identity is None
    grammar = ToolSet([odd]).grammar(tool_choice="required")
    assert grammar.matches('<tool_call>\n{"name": "odd", "arguments": {"x": "a"}}\n</tool_call>')


#: Values that some syntax cannot write, or that its readers take for another type.
VALUES: list[Any] = [
    {},
    True,
    False,
    {"not": {}},
    {"type": "string"},
    {"type": ["string", "null"]},
    {"type": ["null", "number"]},
    {"enum": ["null"], "type": ["string", "null"]},
    {"enum": ["true", "x"]},
    {"enum": ["true", True]},
    {"enum": [1]},
    {"const": "a</parameter></arg_value>"},
    {"const": "<|"},
    {"enum": ['<|"|>', "</a>"]},
    {"const": {"b c": 1}},
    {"type": "string", "pattern": "^<[|/]"},
    {"type": "string", "minLength": 3},
    {"type": "number", "minimum": 2.5},
    {"type": "integer", "minimum": 2, "maximum": 1},
    {"type": "integer", "exclusiveMinimum": 10**30},
    {"type": "array"},
    {"type": ["array", "string"]},
    {"type": "array", "minItems": 1, "items": {"const": "]<]"}},
    {"type": "object"},
    {"type": "object", "required": ["b c"], "properties": {"b c": True}},
    {"$ref": "#/$defs/a"},
    {"anyOf": [{"const": "true"}, {"type": "boolean", "not": {"enum": [True, False]}}]},
]
NAMES = ["a", "b c", "\u00fc", "x-y", "", "a.b", "class", "</x", "item", '"q"']


@pytest.mark.parametrize(
    "name", ["qwen3-coder", "pythonic", "minimax-m3", "gemma-4", "deepseek-v3.2", "lfm2", "glm-4.5"]
)
def test_what_is_surely_callable_can_be_called(name: str) -> None:
    """Arguments that count as writable without a look at their grammar have a text in the format, and no error."""
    wire, sure = get_format(name), 0
    for number, value in enumerate(VALUES):
        for required in (["p"], [], [NAMES[number % 10]]):
            properties = {"p": value, NAMES[number % 10]: {"enum": ["b", "c"]}}
            schema = {
                "type": "object",
                "properties": properties,
                "required": required,
                "$defs": {"a": {"type": "null"}},
            }
            for additional in (False, True) if number % 3 else (False,):
                turn = TurnSpec((made := Tool("t", "", schema),), additional_properties=additional)
                try:
                    grammar = wire._arguments(made, turn)  # type: ignore[attr-defined]
                except ToolGrammarError:
                    continue
                if grammar._is_sure:
                    sure += 1
                    assert not Program(grammar._build, Workspace().store()).is_empty
    assert sure >= 15


@pytest.mark.parametrize("name", ["hermes", "qwen3-coder", "pythonic", "minimax-m3", "gemma-4", "harmony", "lfm2"])
def test_a_plain_tool_is_lowered_when_its_name_is_written(name: str) -> None:
    """In every format, a grammar of tools with plain parameters lowers none of them before a text comes to it."""
    workspace = Workspace()
    plain = {"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}, "required": ["x"]}
    tools = ToolSet([Tool(f"t{n}", "", plain) for n in range(20)], grammars=call_grammars.CallGrammars(workspace))
    grammar = tools.grammar(name, tool_choice="required")
    assert len(workspace.store().nodes.builders) == 0 and grammar.begins(b"") and not grammar.matches(b"x")
    assert len(workspace.store().nodes.builders) == 0
