"""Programs of calls: the language, its values and budgets, the interpreter, and the tool in a conversation."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, NewType

import pytest
from pydantic import BaseModel

from toolgrammar.core import (
    Grammar,
    GrammarError,
    Message,
    ModelError,
    SchemaError,
    ToolCall,
    ToolCallError,
    ToolGrammarError,
)
from toolgrammar.core.language.nodes import Nodes
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.core.text_grammars import string_grammar
from toolgrammar.core.text_grammars.programs import Programs, Values
from toolgrammar.tools import Tool, ToolSet, program_tool
from toolgrammar.tools.formats import format_names, get_format
from toolgrammar.tools.programs.interpreter import Interpreter

from .law import generated, program_tools, random_tools, run_against_fakes, vocabulary, walk
from .typed import judge

CustomerId = NewType("CustomerId", str)
OrderId = NewType("OrderId", str)


class Customer(BaseModel):
    """A customer."""

    id: CustomerId
    name: str


class Order(BaseModel):
    """An order."""

    id: OrderId
    customer: CustomerId
    total: float


def find_customer(name: str) -> Customer:
    """Find a customer."""
    if name == "Nobody":
        raise LookupError("nothing found")
    return Customer(id=CustomerId("C-1"), name=name)


def orders_of(customer: CustomerId, limit: int = 2) -> list[Order]:
    """List orders."""
    return [Order(id=OrderId(f"O-{n}"), customer=customer, total=10.0 * n) for n in range(limit)]


def cancel_order(order: OrderId, reasons: list[str] | None = None) -> bool:
    """Cancel an order."""
    return True


SHOP = [find_customer, orders_of, cancel_order]


def run(text: str, tools: ToolSet | None = None, messages: Any = None) -> Any:
    """Return what a program returns, or its error as text."""
    tools = tools or ToolSet([program_tool(SHOP)])
    if messages is not None:
        tools = tools.in_conversation(messages)
    result = tools.execute({"name": "run_program", "arguments": {"input": text}})
    return result.error if result.is_error else result.value


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_begun_is_finished_and_every_mask_is_what_accept_takes(seed: int) -> None:
    """Along random walks masks equal the matcher, each text has a completion, and each budget ends in a program."""
    rng = random.Random(seed)
    (tool,) = program_tools(rng)
    grammar, words = Grammar.from_json_schema(tool.parameters), vocabulary()
    for _ in range(3):
        assert grammar.matches(walk(grammar, words, rng))
    ended = [text for most in sorted(rng.sample(range(8, 90), 5)) if (text := generated(grammar, words, most, rng))]
    assert len(ended) >= 3
    assert all(map(grammar.matches, ended))


@pytest.mark.parametrize("name", format_names())
def test_every_format_writes_programs(name: str) -> None:
    """In every wire format a walk ends, with masks that equal the matcher; without control tokens it is read back."""
    rng, special = random.Random(name), list(getattr(get_format(name), "special", ()))
    tools = program_tools(rng)
    text = walk(tools.grammar(name, tool_choice="required", max_calls=1), vocabulary(special), rng, masks=12)
    if not special:
        (call,) = tools.parse(text.decode(), name).tool_calls
        assert call.error is None


def test_mypy_accepts_every_program() -> None:
    """mypy --strict takes each program of random walks against stubs of the same tools, and the grammar refuses each
    mutant that mypy rejects."""
    counts = judge(seed=21, count=60)
    assert counts["programs"] == 60
    assert counts["rejected"] > 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('return find_customer("Ada").name', "Ada"),
        ('c = find_customer(name="Ada")\nreturn orders_of(c.id)[-1].total', 10.0),
        ("c = find_customer('Ada')\nreturn orders_of(c[\"id\"], limit=3)[2]['id']", "O-2"),
        ('o = orders_of(find_customer("A").id)[1].id\ncancel_order(o, ["late", "wrong"])\n', True),
        ('n = 1\nc = find_customer("A")\nprint(orders_of(c.id, n))', [{"id": "O-0", "customer": "C-1", "total": 0.0}]),
        ('print(find_customer("A").name)\nprint(find_customer("B").name)\n', "A\nB"),
        ('cancel_order("O-17")', True),
        ('c = find_customer("Ada")\nname = c.name\nn = 1\n', "Ada"),
    ],
)
def test_programs_return_what_they_say(text: str, value: Any) -> None:
    """A program returns the value of ``return``, else what it prints, else the value of its last call."""
    assert run(text) == value


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('orders_of(find_customer("Ada").name)', "'name)' cannot follow 'orders_of(find_customer(\"Ada\").'"),
        ("return known.id", "'known.id' cannot follow 'return '"),
        ('c = find_customer("A")\nc = find_customer("B")', "cannot follow"),
        ("import os", "cannot follow"),
        ("n = 1", "is not a text of the grammar"),
        ("n = 1\nreturn n", "cannot follow"),
        ("", "is not a text of the grammar"),
    ],
)
def test_what_is_not_well_typed_is_refused_at_its_place(text: str, part: str) -> None:
    """A call with another text is refused; the error names the first characters that cannot stand there."""
    assert part in run(text)


def test_a_failure_tells_what_was_bound() -> None:
    """A failing call ends the program; the model reads the statement, the reason and the values before it."""
    error = run('c = find_customer("Ada")\no = orders_of(c.id)\ncancel_order(o[7].id)')
    assert "line 3, `cancel_order(o[7].id)`: IndexError" in error
    assert 'c = {"id":"C-1","name":"Ada"}' in error
    assert "LookupError: nothing found" in run('x = find_customer("Nobody")')


def test_programs_are_bounded() -> None:
    """The number of calls, statements and nested calls is bounded."""
    tools = ToolSet([program_tool(SHOP, max_calls=1, statements=2, nested=1)])
    assert "too many calls" in run('find_customer("A")\nfind_customer("B")', tools)
    assert "cannot follow" in run('find_customer("A")\nfind_customer("B")\nfind_customer("C")', tools)
    assert "cannot follow" in run('orders_of(find_customer("A").id)', tools)


@pytest.mark.parametrize(
    "text",
    [
        "().__class__",
        "f.__globals__",
        "open('x')",
        "__import__('os')",
        "[x for x in f()]",
        "while True: pass",
        "lambda: 1",
        "f(*f())",
        "f(**{})",
        "x = y = f()",
        "f() + f()",
        "f'{f()}'",
        "return",
        "x[0] = 1",
        "del f",
        "f(1)",
        "print()",
        "{**f()}",
        "(" * 500 + ")" * 500,
        "f()" + ".a" * 3_000,
        "x" * 30_000,
        "\0",
    ],
)
def test_the_interpreter_runs_nothing_but_calls(text: str) -> None:
    """Whatever else a text is, it is refused with an error of ours, and nothing of it has run."""
    calls: list[ToolCall] = []

    def run_all() -> None:
        steps = Interpreter({"f": ("f", [])}, 5).run(text)
        for _ in range(6):
            calls.append(steps.send(None if not calls else {"a": 1}))

    with pytest.raises(ToolCallError):
        run_all()
    assert all(call.name == "f" and not call.arguments for call in calls)


@pytest.mark.parametrize("seed", range(4))
def test_any_result_of_a_tool_ends_in_a_value_or_an_error_of_ours(seed: int) -> None:
    """Whatever tools return, a program of the grammar returns, or fails with an error that a model can read."""
    rng = random.Random(seed)
    (tool,) = program_tools(rng).in_conversation([])
    grammar, words = Grammar.from_json_schema(tool.parameters["properties"]["input"]), vocabulary()
    names = {"f0": 3, "f1": 3, "f2": 3, "f3": 3, "f9": 1}
    parameters = {name: (name, [f"p{n}" for n in range(count)]) for name, count in names.items()}
    results = [None, 1, "x", [], [[]], {"id": 1, "a": [{"b": 2}]}, {"a": {"name": [{}]}}]
    for _ in range(25):
        steps, value = Interpreter(parameters, 10).run(json.loads(walk(grammar, words, rng, masks=0))), None
        try:
            while True:
                steps.send(value)
                value = rng.choice(results)
        except (StopIteration, ToolCallError):
            pass


@pytest.mark.parametrize("seed", range(6))
def test_programs_run_against_typed_fakes(seed: int) -> None:
    """Over tools that return values of their schemas, a program runs; at most a list is too short, or a field absent."""
    rng = random.Random(seed)
    counts = run_against_fakes(random_tools(rng), 12, vocabulary(), rng)
    assert counts.total() == 12 and counts["ran"] > 0


def test_ids_come_from_results_or_from_the_conversation() -> None:
    """In a conversation, a literal id is a word of the user or of an earlier program's result; a name is none."""
    asked = [Message("user", "Cancel order O-17, please.")]
    assert run('cancel_order("O-17")', messages=asked) is True
    assert "cannot follow" in run('cancel_order("O-18")', messages=asked)
    assert "cannot follow" in run('cancel_order("order")', messages=asked)
    told = [*asked, Message("tool", '{"id": "O-18"}', tool_call_id="c", name="run_program")]
    assert run('cancel_order("O-18")', messages=told) is True
    other = [*asked, Message("tool", '{"id": "O-18"}', tool_call_id="c", name="get_page")]
    assert "cannot follow" in run('cancel_order("O-18")', messages=other)


def test_what_may_be_null_is_given_only_where_null_is_allowed() -> None:
    """A result that may be null is no argument of a parameter without null."""
    schema = {"type": "object", "properties": {"id": {"type": ["string", "null"]}}, "required": ["id"]}
    maybe = Tool("maybe", "", {"type": "object", "properties": {}}, output_schema=schema)
    strict = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}, "required": ["a"]}
    loose = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}
    (tool,) = ToolSet([program_tool([maybe, Tool("strict", "", strict), Tool("loose", "", loose)])])
    grammar = Grammar.from_json_schema(tool.parameters["properties"]["input"])
    assert grammar.matches(json.dumps("loose(maybe().id)"))
    assert not grammar.matches(json.dumps("strict(maybe().id)"))


def test_tools_without_a_form_in_programs_are_left_out() -> None:
    """A tool whose arguments depend on each other, or have no name, is left out with the reason; without others, making
    the tool is an error."""
    odd = Tool("odd", "", {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]})
    unnamed = Tool("unnamed", "", {"type": "object", "properties": {"a-b": {}}, "required": ["a-b"]})
    tool = program_tool([*SHOP, odd, unnamed])
    assert set(tool.program.left_out) == {"odd", "unnamed"}
    with pytest.raises(SchemaError, match="no tool can be called in a program: odd: its arguments depend"):
        program_tool([odd])
    with pytest.raises(SchemaError, match="no tool can be called in a program: there are none"):
        program_tool([])
    with pytest.raises(ToolGrammarError, match="nested is 0"):
        program_tool(SHOP, nested=0)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.org/a.json"},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}, "b": {"type": "strange"}, "c": {"enum": []}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}, "b": False, "c": 1}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/a"} for n in range(60)}}},
        },
        "no schema",
    ],
)
def test_any_schema_of_results_is_read_in_bounds(schema: Any) -> None:
    """A schema of results that is wrong, endless or huge makes fields that no program reaches, and no error."""
    odd = Tool("odd", "", {"type": "object", "properties": {}}, output_schema=schema)
    tools = ToolSet([program_tool([odd, *SHOP])])
    grammar = Grammar.from_json_schema(tools["run_program"].parameters["properties"]["input"])
    assert grammar.matches(json.dumps("x = odd()\nreturn x"))
    assert not grammar.matches(json.dumps("x = odd()\norders_of(x)"))


def test_work_grows_with_the_number_of_tools_not_faster() -> None:
    """Twice as many tools make at most twice as many nodes of a statement."""
    counts = []
    for count in (20, 40):
        parameters = {"properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}
        results = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}}
        tools = [Tool(f"t{n}", "", {"type": "object", **parameters}, output_schema=results) for n in range(count)]
        definition = program_tool(tools).parameters["properties"]["input"]["x-grammar"]
        programs, nodes, bound = string_grammar(definition).rules, Nodes(), (("x", "t0"),)
        assert isinstance(programs, Programs)
        nodes.heads(programs.statement(nodes, bound, 0, 1, has_call=True))
        for slot in programs.slots:
            nodes.heads(Values(nodes, programs, bound).value(slot, 1, "t1"))
        counts.append(len(nodes))
    assert counts[1] <= 2.1 * counts[0]


def test_programs_without_a_first_call_are_not_offered() -> None:
    """Where each call needs an id that the conversation does not have, the tool is not offered; else it is."""
    tools = ToolSet([program_tool([cancel_order])])
    assert list(tools.in_conversation([]).offered) == []
    assert list(tools.in_conversation([Message("user", "Cancel O-17")]).offered) == ["run_program"]


def test_policies_hold_inside_of_programs() -> None:
    """A program calls no tool that a policy forbids, none whose arguments it restricts, and none that a person has to
    confirm."""
    rules = {"find_*": "free", "orders_of": {"customer": "user"}, "cancel_order": "ask"}
    tools = ToolSet([program_tool(ToolSet(SHOP).under({"tools": rules}))])
    asked = [Message("user", "Cancel order O-17 of C-1.")]
    assert run('return find_customer("Ada").name', tools, asked) == "Ada"
    assert "cannot follow" in run('return orders_of("C-1")', tools, asked)
    assert "a person must confirm the call" in run('cancel_order("O-17")', tools, asked)
    barred = ToolSet([program_tool(ToolSet(SHOP).under({"tools": {"find_*": "free"}}))])
    assert "cannot follow" in run('cancel_order("O-17")', barred, asked)


def test_a_model_runs_programs() -> None:
    """A program is a call like any other: it is written under the grammar, run, and its result read."""
    text = 'c = find_customer(name="Mia Lund")\nreturn orders_of(customer=c.id)[1].total'
    first = Message("assistant", tool_calls=(ToolCall("c1", "run_program", {"input": text}),))
    model = ScriptedModel([first, Message("assistant", "It was 10.")])
    run = model.run("What was Mia Lund's last order?", tools=ToolSet([program_tool(SHOP)]), max_tokens=400).result
    assert [message.content for message in run.messages if message.role == "tool"] == ["10.0"]
    assert run.text == "It was 10."


BLOCK = 'I look.\n```python\nc = find_customer("Mia Lund")\nreturn orders_of(c.id)[1].total\n```'


def test_a_program_in_a_block_of_code_is_a_call() -> None:
    """The format ``program`` writes one program, as it is, with text before it; the history has it again."""
    tools = ToolSet([program_tool(SHOP)])
    grammar = tools.grammar("program")
    assert grammar.matches(BLOCK) and grammar.matches(BLOCK.partition("\n")[2]) and grammar.matches("I know.")
    assert not grammar.matches(BLOCK.replace(".id", ".name"))
    message = tools.parse(BLOCK, "program")
    (call,) = message.tool_calls
    assert message.text == "I look." and call.error is None
    assert tools.call(call) == 10.0
    (again,) = tools.render_history([message], "program")
    assert again.content == BLOCK


def test_a_block_of_code_is_sent_as_it_comes() -> None:
    """The pieces of a program arrive while it is written, and join to the arguments; without its end it is cut."""
    tools = ToolSet([program_tool(SHOP)])
    parser = tools.parser("program")
    sent = [event.text for piece in BLOCK.partition("find") for event in parser.feed(piece) if hasattr(event, "text")]
    assert "".join(sent).endswith('orders_of(c.id)[1].total"}')
    assert sent[1:3] == ['{"input": "', "c = "]
    (cut,) = tools.parse(BLOCK[:-4], "program").tool_calls
    assert cut.error is not None and "ends inside the call" in cut.error


def test_the_format_of_programs_is_for_one_tool_of_programs() -> None:
    """Another tool, or a second one, is refused with its name and the way out."""
    with pytest.raises(ToolGrammarError, match=r"made by program_tool, and not of 'find_customer'.*give program_tool"):
        ToolSet(SHOP).grammar("program")
    two = ToolSet([program_tool(SHOP), program_tool(SHOP, name="other")])
    with pytest.raises(ToolGrammarError, match="and not of 'other'"):
        two.grammar("program")
    assert two.grammar("program", tool_choice="other").matches(BLOCK.partition("\n")[2])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_run_calls_tools_in_programs(is_async: bool) -> None:
    """``programs=True``: the functions are in the prompt as Python, a program is a block of code, and the model reads
    what it returned."""
    model = ScriptedModel([Message("assistant", BLOCK), Message("assistant", "It was 10.")])
    if is_async:

        async def begin() -> Any:
            run = model.arun("What was Mia Lund's last order?", tools=SHOP, programs=True, max_tokens=400)
            return [one async for one in run] and run

        run = asyncio.run(begin())
    else:
        run = model.run("What was Mia Lund's last order?", tools=SHOP, programs=True, max_tokens=400)
    assert [one.content for one in (run.messages if is_async else run.result.messages) if one.role == "tool"] == [
        "10.0"
    ]
    shown = ToolSet([program_tool(SHOP)]).render_history(model.backend.requests[1], "program")
    assert [message.text for message in shown[1:]] == [BLOCK, "The program returned:\n10.0"]


def test_the_prompt_has_the_functions_as_python() -> None:
    """The prompt of the format shows signatures, and how to write a block."""
    prompt = ToolSet([program_tool(SHOP)]).prompt("program")
    assert "orders_of(customer: CustomerId, limit: int = ...) -> list[Order]  # List orders." in prompt
    assert "write a program in a block of code" in prompt


def test_a_run_in_programs_refuses_what_no_program_calls() -> None:
    """A tool without a form in programs is an error with its reason; under a policy, the functions obey it."""
    odd = Tool("odd", "", {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]})
    model = ScriptedModel([Message("assistant", "Done.")])
    with pytest.raises(ModelError, match=r"odd cannot be called in a program: .*leave it out of tools"):
        model.run("Go", tools=[*SHOP, odd], programs=True)
    with pytest.raises(ModelError, match="programs=True without tools"):
        model.run("Go", programs=True)
    restricts = {"tools": {"find_*": "free", "orders_of": {"customer": "user"}}}
    with pytest.raises(ModelError, match="orders_of cannot be called in a program: a policy restricts its arguments"):
        model.run("Go", tools=SHOP, policy=restricts, programs=True)
    policy = {"tools": {"find_*": "free"}}
    model = ScriptedModel([Message("assistant", BLOCK), Message("assistant", "Done.")])
    (call,) = model.run("Go", tools=SHOP, policy=policy, programs=True, max_tokens=200).result.turns[0].tool_calls
    assert "find_customer" in call.arguments["input"] and "orders_of" not in call.arguments["input"]


def test_models_see_functions_and_no_grammar() -> None:
    """The prompt has the signatures of the functions, and not the definition of the grammar."""
    (shown,) = ToolSet([program_tool(SHOP)]).to_openai()
    assert "orders_of(customer: CustomerId, limit: int = ...) -> list[Order]  # List orders." in json.dumps(shown)
    assert "x-grammar" not in json.dumps(shown)


def test_async_tools_are_awaited() -> None:
    """A program over async functions is a tool that is awaited."""

    async def later(name: str) -> Customer:
        await asyncio.sleep(0)
        return find_customer(name)

    tools = ToolSet([program_tool([later])])
    call = {"name": "run_program", "arguments": {"input": 'return later("Ada").name'}}
    assert asyncio.run(tools.acall(call)) == "Ada"


class Log:
    """Tools that wait; of each call, its beginning and its end."""

    def __init__(self) -> None:
        self.events: list[str] = []
        read, write, fail = ToolSet([self.read, self.write, self.fail])
        self.tools = [read.changed(annotations={"readOnlyHint": True}), write, fail]

    async def _call(self, name: str) -> str:
        self.events.append(f"+{name}")
        await asyncio.sleep(0.01)
        self.events.append(f"-{name}")
        return name

    async def read(self, name: str) -> str:
        """Read."""
        return await self._call(name)

    async def write(self, name: str) -> str:
        """Write."""
        return await self._call(name)

    async def fail(self, name: str) -> str:
        """Fail."""
        raise LookupError(f"no {name}")

    def run(self, text: str) -> Any:
        """Return what a program returns, or its error as text."""
        call = {"name": "run_program", "arguments": {"input": text}}
        result = asyncio.run(ToolSet([program_tool(self.tools)]).aexecute(call))
        return result.error if result.is_error else result.value


def test_calls_that_only_read_run_side_by_side() -> None:
    """Calls of tools with ``readOnlyHint`` wait for values that they need, and other calls for all before them."""
    log = Log()
    assert log.run("a = read('a')\nb = read('b')\nc = read(a)\nprint(c)\nprint(b)") == "a\nb"
    assert log.events == ["+a", "+b", "-a", "-b", "+a", "-a"]
    log = Log()
    assert log.run("a = read('a')\nb = write('b')\nread('c')\nread(a)") == "a"
    assert log.events == ["+a", "-a", "+b", "-b", "+c", "+a", "-c", "-a"]


def test_a_failing_call_side_by_side_ends_the_program() -> None:
    """No call that changes something begins after one that failed, and the error names the statement of that."""
    log = Log()
    log.tools[2] = log.tools[2].changed(annotations={"readOnlyHint": True})
    error = log.run("a = fail('x')\nb = read('b')\nwrite('c')")
    assert "line 1, `a = fail('x')`: LookupError: no x" in error and "+c" not in log.events
    assert "line 2, `fail('y')`" in log.run("b = read('b')\nfail('y')")


@pytest.mark.parametrize("definition", ["", "{}", "[]", '{"functions": {}}', '{"functions": {"f": {}}}'])
def test_a_malformed_definition_is_refused(definition: str) -> None:
    """A definition that is none is an error of ours."""
    with pytest.raises(GrammarError, match="definition of programs cannot be read"):
        Tool.custom("p", definition=definition, syntax="program")
