"""`ToolSet`: the tools of a request, the grammar of their calls, and the parsing, checking and running of calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import replace
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Self

from toolgrammar.core.basics import Whitespace, logger_of, require_word
from toolgrammar.core.conversation import CallEnd, Message, MessageBuilder, ToolCall, of_conversation
from toolgrammar.core.errors import (
    InvalidArgumentsError,
    LimitError,
    Place,
    PolicyError,
    SchemaError,
    ToolCallError,
    ToolGrammarError,
    UnknownToolError,
)
from toolgrammar.core.generation import PartialReader, ToolsInPrompt, check_tool_choice
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import dump_json
from toolgrammar.core.live import LiveSchema, LiveValues
from toolgrammar.core.pages import table
from toolgrammar.core.repair import SECONDS as REPAIR_SECONDS
from toolgrammar.core.repair import SPELLING_ONLY, Edit, Repaired, ends_early
from toolgrammar.core.repair import repair as repair_text
from toolgrammar.core.schema import of_today, reasoning_first

from .call_grammars import CALL_GRAMMARS, MARKED_GRAMMARS, CallGrammars, Derived
from .calling import as_call
from .closed_schema import close_objects
from .contracts import ToolChanges, compared_contracts, contract_of
from .dialects import response_schema_of
from .execution import Execution
from .formats import (
    FormatParser,
    Reasoning,
    Strictness,
    ThinkingParser,
    TurnSpec,
    WireFormat,
    choose_format,
    detect_format,
    get_format,
    new_call_id,
)
from .formats.bare_json import BareJsonParser
from .formats.base import checked_strictness, history_as_text
from .formats.described import described
from .formats.leniencies import lenient
from .formats.other_spellings import OtherSpellings, OtherSpellingsParser
from .formats.template.arguments import kinds_of_arguments
from .live_values import has_value, not_offered
from .repair import repair_call
from .sources.any_source import tools_from_any
from .tool import Tool, ToolList, merged, policy_of, warn_of_skipped, with_tool

if TYPE_CHECKING:
    from .argument_checker import ArgumentChecker

_LOG = logger_of("tools")

MAX_CALLS = 16

#: What becomes of a source that cannot be a tool, or has no grammar.
OnUnusable = Literal["error", "skip"]


class ToolSet(Execution):
    """An immutable, ordered set of tools with different names; satisfies ``toolgrammar.core.ToolInterface``.

    Equal tools under one name count once; unequal ones are an error. Equality looks at what may be called (names and
    schemas without annotations), so two sets that allow the same calls are equal and hash alike.

    Attributes:
        max_calls: most calls in one turn when parallel calls are on; None: no bound.
        skipped: one error for each optional tool that was left out, since it cannot be a tool or its arguments have no
            grammar; also in a warning of the logger ``toolgrammar.tools``. Tools of documents and servers are optional.

    Args:
        tools: a list of anything that describes a tool, or one such thing: functions, Python modules, Pydantic models,
            dataclasses, typed dicts, `Tool` objects, tool dicts of any provider (also a whole ``tools/list`` result of
            MCP), JSON Schemas with a title, tool objects of agent frameworks and SDKs, TypeScript declarations or JSON
            as text, OpenAPI documents, or another `ToolSet`.
        additional_properties: read argument schemas open; by default they are closed (see `close_objects`).
        max_calls: most calls in one turn when parallel calls are on; None for no bound.
        strictness: for some tools, by name, how their arguments are held to the schema: ``"closed"`` or ``"open"``, as
            ``additional_properties`` says for all, or ``"object"``: the grammar asks for some JSON object, and the
            finished call is checked.
        grammars: cache of the grammars of single tools; by default all tool sets share one.

    Raises:
        SchemaError: something cannot be a tool (names the tool, the parameter and the reason), or two different tools
            have one name.
        ToolGrammarError: ``max_calls`` is below 1, or ``strictness`` has another form.
        UnknownToolError: ``strictness`` is of a tool that is not there.
        PolicyError: some of the tools are from a tool set under a policy, and others are not. (If all are, so is this.)
    """

    def __init__(
        self,
        tools: Any = (),
        *,
        additional_properties: bool = False,
        max_calls: int | None = MAX_CALLS,
        strictness: Mapping[str, Strictness] | None = None,
        grammars: CallGrammars = CALL_GRAMMARS,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        read = tools if isinstance(tools, ToolList) else tools_from_any(tools)
        skipped_before: tuple[ToolGrammarError, ...] = getattr(tools, "skipped", read.skipped)
        skipped: list[ToolGrammarError] = []
        for tool in read:
            namesake = self._tools.get(tool.name)
            try:
                self._tools[tool.name] = tool if namesake is None else merged(namesake, tool)
            except SchemaError as error:
                if not tool.optional:
                    raise
                skipped.append(error)
        if max_calls is not None and not (isinstance(max_calls, int) and max_calls >= 1):
            raise ToolGrammarError(f"max_calls is {max_calls!r}", hint="at least 1, or None for no bound")
        self._additional_properties = additional_properties
        self.max_calls = max_calls
        self._strictness = {self[name].name: value for name, value in checked_strictness(strictness).items()}
        self._call_grammars = grammars
        self._derived = Derived()
        self._messages: tuple[Message, ...] | None = None
        self._names_only = False  # arguments of calls do not matter
        self._offered_cache: dict[str, Tool] | None = None  # of `offered`
        self._context: Context | None = None  # in which callables of live values run
        self._policy: Any = policy_of(read)  # that of the tool set that they are from
        for name, reason in self._without_grammar():
            del self._tools[name]
            skipped.append(reason)
        self._offered_cache = None  # the tools without a grammar were in it
        warn_of_skipped(skipped)
        self.skipped: tuple[ToolGrammarError, ...] = (*skipped_before, *skipped)

    @classmethod
    def from_any(
        cls,
        sources: Any,
        *,
        additional_properties: bool = False,
        max_calls: int | None = MAX_CALLS,
        on_unusable: OnUnusable = "error",
    ) -> ToolSet:
        """Return a tool set of anything that describes tools; the same as ``ToolSet(sources)``.

        Args:
            sources, additional_properties, max_calls: as for `ToolSet`.
            on_unusable: ``"skip"`` for tools that somebody else lists: what cannot be a tool, or has no grammar, is
                left out and named in `skipped`.

        Raises:
            SchemaError: something cannot be a tool; names the tool, the parameter and the reason.
        """
        require_word("on_unusable", on_unusable, OnUnusable)
        tools = tools_from_any(sources, skip=on_unusable == "skip")
        return cls(tools, additional_properties=additional_properties, max_calls=max_calls)

    def reasoning_first(self) -> ToolSet:
        """Return this tool set with arguments that explain (``reasoning``, ...) before the others, at every depth."""
        return self._with(tool.changed(parameters=reasoning_first(tool.parameters)) for tool in self)

    @classmethod
    def from_typescript(
        cls,
        text: str,
        names: Iterable[str] | None = None,
        *,
        files: Mapping[str, str] | None = None,
        additional_properties: bool = False,
        max_calls: int | None = MAX_CALLS,
    ) -> ToolSet:
        """Return a tool set of TypeScript declarations; see `tools_from_typescript` for what becomes a tool.

        Args:
            text: interfaces, types, enums and function signatures.
            names: only these declarations, in this order.
            files: the texts that this one may import, by their path from it or by module name.
            additional_properties: read argument schemas open instead of closed.
            max_calls: most calls in one turn.

        Raises:
            SchemaError: something cannot be read, or has no values in JSON; with line and column.
            MissingDependencyError: the extra ``typescript`` is not installed.
        """
        from .typescript.reader import tools_from_typescript  # not all users need it

        tools = tools_from_typescript(text, names, files=files)
        return cls(tools, additional_properties=additional_properties, max_calls=max_calls)

    def under(self, policy: Any) -> Self:
        """Return the tools that a policy allows, with arguments from the sources that it names; prompts stay as they
        are. A tool of which no call is allowed is left out.

        Calls are checked in a conversation: ``tools.under(policy).in_conversation(messages).call(call)``.

        Args:
            policy: a `Policy` (of one role), its data or the path of its file.

        Raises:
            PolicyError: it is malformed, has several roles, or has a rule for an argument that its tool does not have.
        """
        from .policy import Policy  # not all users need it

        policy = Policy.from_any(policy)
        if policy is self._policy:
            return self
        return self._derived.get((policy, policy.hash), partial(self._restricted, policy))

    def _restricted(self, policy: Any) -> Self:
        """Return the tools that a policy allows, with parameters that take only allowed values."""
        tools = policy.restrict(tuple(self), tuple(filter(self._is_open, self.names)))
        policy = policy if self._policy is None else self._policy & policy
        restricted = self._with(tool.under(policy) for tool in tools)
        restricted._policy = policy
        turn = self._turn_with()
        # Leave out tools without allowed arguments. Of a tool that needs a conversation, only `offered` knows that.
        kept = [tool for tool in restricted if tool.needs_conversation or has_value(self[tool.name], tool, turn)]
        if len(kept) < len(restricted):
            restricted._tools = {tool.name: tool for tool in kept}
        return restricted

    @property
    def policy(self) -> Any:
        """The `Policy` that restricts its calls, or None."""
        return self._policy

    @property
    def asks(self) -> bool:
        """True if its policy lets a person confirm calls."""
        return self._policy is not None and any(map(self._policy.asks, self))

    def in_conversation(self, messages: Sequence[Message]) -> Self:
        """Return this tool set for a conversation, which gives the values of `Seen` and `Copied`.

        A tool whose required parameter has no value there is not offered: its calls are not in the grammar. Prompts are
        the same in each conversation. A `Model` does this with its own conversation.
        """
        needs_messages = self._policy is not None or any(tool.needs_conversation for tool in self)
        if not needs_messages and not self._has_values:
            return self
        made = self._with(each.program.in_conversation(messages, each) if each.program else each for each in self)
        if needs_messages:
            made._messages = tuple(messages)
        else:
            made._derived = self._derived  # the same grammars
        made._context = copy_context()  # callables run in that of the request, whatever thread writes the answer
        return made

    @property
    def offered(self) -> dict[str, Tool]:
        """Return the tools that may be called now, by name, with the values and texts of the conversation."""
        if self._offered_cache is None:
            found: dict[str, Tool] = {}
            for tool in self:
                may_repeat = self._policy is None or self._policy.may_repeat(tool.name)
                once = None if may_repeat else tool.name  # no call of it again that has a result
                parameters = of_conversation(tool.parameters, self._messages or (), once=once)
                if parameters is tool.parameters and tool.program is None:
                    found[tool.name] = tool
                    continue
                bound = tool.changed(parameters=parameters)
                if has_value(tool, bound, self._turn_with()):
                    found[tool.name] = bound
            self._offered_cache = found
        return self._offered_cache

    def require_offered(self, choice: str) -> None:
        """Raise an error if a demanded call has no values in the conversation.

        Args:
            choice: ``"auto"``, ``"none"``, ``"required"``, or the name of a tool.

        Raises:
            LiveValuesError: a required parameter has no value.
        """
        demanded = () if choice in ("auto", "none") else self.names if choice == "required" else (choice,)
        if demanded and not any(name in self.offered for name in demanded):
            raise not_offered([self._tools[name] for name in demanded], self._messages or ())

    def require_conversation(self, tool: str | None = None) -> None:
        """Raise a PolicyError if its calls are under a policy, and it is in no conversation."""
        if self._policy is not None and self._messages is None:
            raise PolicyError(
                "a call under a policy is checked in its conversation",
                hint="give it: tools.in_conversation(messages), or call(call, policy=..., messages=...)",
                place=Place(tool=tool),
            )

    # -- as a collection ---------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tools, in order."""
        return tuple(self._tools)

    def __getitem__(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownToolError.among(self.names, name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __bool__(self) -> bool:
        return bool(self._tools)

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """Key of the calls that are allowed: equal fingerprints, equal grammars."""
        return (
            tuple(tool.fingerprint for tool in self._tools.values()),
            self._additional_properties,
            self.max_calls,
            tuple(sorted(self._strictness.items())),
            None if self._messages is None else tuple(tool.fingerprint for tool in self.offered.values()),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolSet) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__ |= self.__dict__
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_context": None}  # of a request, and of its thread

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._tools)})"

    def _repr_html_(self) -> str:
        return table((each.name, ", ".join(each.parameters.get("properties", ())), each.description) for each in self)

    def subset(self, names: Iterable[str]) -> ToolSet:
        """Return the subset of these names, in this set's order, for a request that allows only some tools.

        Raises:
            UnknownToolError: one is not in the set.
        """
        wanted = {self[name].name for name in names}
        return self._with(tool for tool in self if tool.name in wanted)

    def compare(self, other: ToolSet, *, formats: bool = True) -> ToolChanges:
        """Return what becomes of calls and results if another set takes this one's place; ``formats``: they assert."""
        sides = ([contract_of(each, is_open=tools._is_open(each.name)) for each in tools] for tools in (self, other))
        return compared_contracts(*sides, formats=formats)

    # -- language ----------------------------------------------------------------------------------------------

    def grammar(
        self,
        format: str | WireFormat = "hermes",
        *,
        tool_choice: str = "auto",
        parallel: bool = True,
        whitespace: Whitespace = "single",
        response_schema: Any = None,
        allowed: Collection[str] | None = None,
        min_calls: int | None = None,
        max_calls: int | None = None,
        distinct: bool = False,
        reasoning: Reasoning = "none",
        other_spellings: bool = False,
        marked: bool = False,
    ) -> Grammar:
        """Return the union grammar of the assistant's turn.

        Args:
            format: wire format.
            tool_choice: ``"auto"`` (text of at least one character, or calls with or without text before them),
                ``"required"`` (calls only; ``"any"`` is the same), ``"none"`` (text only), or a tool's name (exactly
                one call of it). The first three words win over a tool of that name.
            parallel: up to ``max_calls`` calls in a turn instead of one.
            whitespace: how arguments may be spaced.
            response_schema: text is JSON of this schema (a dict, a bool or a Pydantic model) instead of free; then it
                is the whole answer, without calls: a final answer as one more alternative.
            allowed: names of the tools that may be called now; None is all. The others stay in the prompt.
            min_calls: least calls in a turn that has calls.
            max_calls: most calls in a turn, instead of the set's own bound.
            distinct: no tool is called twice in a turn.
            reasoning: whether reasoning between the format's markers comes before the answer: ``"none"``,
                ``"optional"``, or ``"opened"``, where the prompt has opened it. For those who run the grammar
                themselves, under a processor say; a `Model` keeps reasoning apart (``GenerateParams.thinking``), with
                a budget of its own.
            other_spellings: text that begins as a call in the spelling of another family (JSON, a tag, Python; in a
                code fence or not) is held to that call; `parser` needs the same.
            marked: the grammar is for reading (`toolgrammar.core.reading`), not for writing.

        Raises:
            UnknownToolError: ``tool_choice`` is neither a known word nor the name of a tool; lists the names.
            GrammarError: ``whitespace`` or ``reasoning`` is none of its words.
            SchemaError: a schema cannot be enforced; names the tool.
            ToolGrammarError: a call is demanded, but there are no tools.
        """
        wire = get_format(format)
        require_word("whitespace", whitespace, Whitespace)
        require_word("reasoning", reasoning, Reasoning)
        schema = None if response_schema is None else of_today(response_schema_of(response_schema))
        tools = self if allowed is None else self.subset(allowed)
        turn = tools._turn(tool_choice, parallel, whitespace, schema)
        if turn.tools:
            turn = turn.counted(min_calls, max_calls, distinct)
        other_spellings = other_spellings and bool(turn.tools) and turn.text and schema is None
        # A schema may have a date that must be past or still to come: then it is another one each day.
        tools_of_today = tuple(tool.of_today() for tool in turn.tools)
        day = tuple(tool.fingerprint for tool in tools_of_today) if tools_of_today != turn.tools else None
        turn_key = (tool_choice, parallel, tools.names, min_calls, max_calls, distinct, day)
        key = (wire, turn_key, whitespace, repr(schema), reasoning, other_spellings, marked)

        def make() -> Grammar:
            other = self._spellings(wire).of_tools(tools_of_today) if other_spellings else None
            spec = replace(turn, tools=tools_of_today, other=other if other and other.rows else None)
            if marked:
                spec = replace(spec, is_marked=True, grammars=MARKED_GRAMMARS)
            return wire.with_reasoning(wire.grammar(spec), reasoning)

        return self._derived.get(key, make)

    def _turn(self, choice: str, parallel: bool, whitespace: Whitespace, schema: Any) -> TurnSpec:
        """Return the specification of a turn with the values of the conversation; raises the errors of `grammar`."""
        tools = tuple(self.offered.values())
        choice = check_tool_choice(choice, self.names)
        if choice == "required" and not self._tools:
            raise ToolGrammarError("a tool call is required, but there are no tools", hint="give at least one tool")
        self.require_offered(choice)
        most = self.max_calls if parallel else 1
        turn = self._turn_with(tools, max_calls=most, response_schema=schema, whitespace=whitespace)
        if choice == "none" or not tools:
            return replace(turn, tools=(), max_calls=0)
        if choice == "required":
            return replace(turn, min_calls=1, text=False)
        if choice == "auto":
            return turn
        return replace(turn, tools=(self.offered[choice],), min_calls=1, max_calls=1, text=False)

    def _turn_with(self, tools: tuple[Tool, ...] = (), **fields: Any) -> TurnSpec:
        """Return a turn with some tools, whose schemas are read as this set reads them."""
        fields |= {"additional_properties": self._additional_properties, "strictness": self._strictness}
        return TurnSpec(tools, grammars=self._call_grammars, **fields)

    def _spellings(self, wire: WireFormat) -> OtherSpellings:
        """Return the spellings of other families beside a format: in the grammar and the parser, the same tools."""

        def make() -> OtherSpellings:
            tools = tuple(tool.of_today() for tool in self.offered.values())
            return OtherSpellings.beside(wire, self._turn_with(tools))

        return self._derived.get((OtherSpellings, wire), make)

    def live_values(
        self,
        format: str | WireFormat = "hermes",
        *,
        response_schema: Any = None,
        other_spellings: bool = False,
        response_values: Mapping[str, Any] | None = None,
    ) -> LiveValues | None:
        """Return the callables of the tools' live values, for one text: ``constraint.matcher(tools.live_values(...))``;
        None if there are none.

        Args:
            format, response_schema, other_spellings: as for `grammar`.
            response_values: the callables of the response schema, by the names that its ``x-values`` have.
        """
        if not self._has_values and not response_values:
            return None
        marked = partial(self.grammar, get_format(format), marked=True)
        answers = partial(marked, response_schema=response_schema, other_spellings=other_spellings)
        # Tried in this order: the first lacks texts of turns that demand calls, or whose prompt opens the reasoning.
        make_grammars = (
            partial(answers, reasoning="optional"),
            partial(marked, tool_choice="required"),
            partial(answers, reasoning="opened"),
        )
        sources = self._sources | {(None, name): source for name, source in (response_values or {}).items()}
        return LiveValues(sources, make_grammars, self._context)

    def live_places(self, in_grammar: bool = False) -> tuple[str, ...]:
        """Return the places of values that a server does not enforce, each after the tool's name.

        Args:
            in_grammar: the server has the grammar of the turn, with the values of the conversation.
        """
        return tuple(tool.name + place for tool in self for place in tool.live_places(in_grammar))

    def to_structural_tag(
        self,
        format: str | WireFormat = "hermes",
        *,
        tool_choice: str = "auto",
        parallel: bool = True,
        min_calls: int | None = None,
        max_calls: int | None = None,
    ) -> dict[str, Any]:
        """Return the assistant's turn as a structural tag, for engines that read xgrammar's JSON (vLLM, SGLang, ...).

        It says no more than `grammar` does, but for ids that are counted, and for keywords of JSON Schema that the
        engine does not enforce: check calls with `parse`. Markers that are control tokens are written as text, as
        engines expect them.

        Args:
            format, tool_choice, parallel, min_calls, max_calls: as for `grammar`.

        Raises:
            GrammarError: a structural tag cannot say how the format writes calls.
            UnknownToolError, ToolGrammarError: as for `grammar`.
        """
        from .structural_tag import structural_tag

        turn = self._turn(tool_choice, parallel, "single", None)
        turn = replace(turn, tools=tuple(tool.enforceable for tool in turn.tools))
        return structural_tag(get_format(format), turn.counted(min_calls, max_calls))

    def parser(
        self,
        format: str | WireFormat = "hermes",
        *,
        response_schema: Any = None,
        new_id: Callable[[], str] = new_call_id,
        reasoning: Reasoning = "none",
        bare_json: bool = False,
        other_spellings: bool = False,
        values: LiveValues | None = None,
        names_only: bool = False,
    ) -> FormatParser:
        """Return a fresh streaming parser for that wire format; it checks each call as `parse` does.

        Its ``leniencies`` name what it put up with so far, as `parse` does for the message.

        Args:
            format: wire format.
            response_schema: the one that was given to `grammar`: text is then JSON that may hold a marker in a string.
            new_id: makes the ids of calls.
            reasoning: ``"opened"`` if the prompt has opened the reasoning, so that the text begins inside of it; as in
                `grammar`, a `Model` needs none of it.
            bare_json: no grammar held the text: JSON that names a tool and has arguments, at the beginning of a line or
                in a code fence, is a call too, unless the format has markup around text.
            other_spellings: the grammar had them, as `grammar` says.
            values: the live values of the text (`live_values`), so that what was asked is not asked again.
            names_only: only the names of calls matter: each call begins as soon as its name is certain, with an id of
                its own (otherwise it waits for the id in formats that write that after the arguments), and is not
                checked.
        """
        wire = get_format(format)
        finish: Callable[[ToolCall], ToolCall] = partial(self._checked, values=values)
        if names_only:
            wire, finish = wire.without_ids(), lambda call: call
        whole_text = response_schema is not None
        parser = self._parser(wire, finish, new_id, whole_text, reasoning, other_spellings)
        if bare_json and response_schema is None and not wire.text_marker:
            parser = BareJsonParser(parser, self._tools.keys(), finish, new_id)
        return parser

    def _parser(
        self,
        wire: WireFormat,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        whole_text: bool,
        reasoning: Reasoning = "none",
        other_spellings: bool = False,
    ) -> FormatParser:
        """Return the parser of a format for these tools, with what reads other spellings and reasoning around it."""
        parser: FormatParser = wire.parser(self._readable, finish, new_id, whole_text=whole_text)
        if other_spellings and not whole_text:
            spellings = self._spellings(wire).of_tools(self._readable)
            if spellings.rows:
                parser = OtherSpellingsParser(parser, spellings, finish, new_id)
        if wire.thinking is None:
            return parser
        return ThinkingParser(
            parser,
            wire.thinking,
            opened=reasoning == "opened",
            calls=() if whole_text else wire.call_markers,
            text=wire.text_marker,
        )

    def parse(
        self,
        text: str,
        format: str | WireFormat = "hermes",
        *,
        response_schema: Any = None,
        new_id: Callable[[], str] = new_call_id,
        repair: bool = False,
    ) -> Message:
        """Return the assistant's message in a text that a model wrote, under the grammar or freely.

        A call that is malformed, of an unknown tool or with invalid arguments is in the message with ``error`` set; so
        is the last one if the text ends in it. What the text has that the format does not write is in ``leniencies``,
        each with its place, its cost and a name of `toolgrammar.tools.formats.LENIENCIES`; a text that the grammar held
        has none, unless its words are a call as JSON (``bare_json``).

        Args:
            text: what it wrote.
            format: wire format.
            response_schema: as for `parser`.
            new_id: makes the ids of calls.
            repair: repair such a call where that makes it valid: JSON that does not parse (with the ``json-repair``
                library, if it is installed), numbers and other values that were written as strings.

        Law: for calls valid for their tools, ``parse(get_format(f).render(text, calls), f)`` has that text and those
        names and arguments.
        """
        parser = self.parser(format, response_schema=response_schema, new_id=new_id, bare_json=True)
        built = MessageBuilder()
        repaired: list[Edit] = []
        for event in (*parser.feed(text), *parser.close()):
            if repair and isinstance(event, CallEnd) and event.call.error is not None:
                call = self._repaired(event.call)
                if call.error is None:
                    old = event.call.raw or ""
                    repaired.append(lenient("repaired", max(text.find(old), 0), old, dump_json(dict(call.arguments))))
                event = replace(event, call=call)
            built.add(event)
        leniencies = sorted((*parser.leniencies, *repaired), key=lambda edit: edit.start)
        return replace(built.message(), leniencies=tuple(leniencies))

    def repair(
        self,
        text: str,
        format: str | WireFormat = "hermes",
        *,
        most: float | None = None,
        invent: bool = False,
        seconds: float = REPAIR_SECONDS,
    ) -> tuple[Message, Repaired]:
        """Return the calls that a broken text was probably meant to make, and what was changed for them.

        The text becomes the nearest text of calls in the format (see `toolgrammar.core.repair.repair`): spelling is
        corrected, tools, arguments and listed values get the nearest names that exist, unknown arguments are left out.
        Nothing is run.

        Args:
            text: what a model wrote without a grammar, with at least one call.
            format: wire format.
            most: maximum cost of all edits, as of `toolgrammar.core.repair.repair`.
            invent: values that the text does not hold may be made up where a schema demands some.
            seconds: processor time after which the search gives up.

        Raises:
            ParseError: no calls are near, or only with invented values.
            ToolGrammarError: as `grammar`.
        """
        wire = get_format(format)
        tools = self if self._messages is not None else self._with(self._readable)
        turn = replace(tools._turn("required", True, "flexible", None), property_order="any")
        turn = replace(turn, tools=tuple(tool.readable.of_today() for tool in turn.tools))
        grammar = wire.grammar(turn)
        started = thread_time()  # one time for both searches; they count as this does
        repaired = repair_text(text, grammar, most=most, invent=invent, seconds=seconds)
        if (stricter := wire.stricter(text, repaired.text)) is not wire:
            left = max(seconds - (thread_time() - started), 0.0)
            repaired = repair_text(text, stricter.grammar(turn), most=most, invent=invent, seconds=left)
        return self.parse(repaired.text, wire), repaired

    def partial_reader(self, name: str) -> PartialReader:
        """Return a reader of the arguments of a tool while they are being written: the JSON text of a call's
        ``ArgumentsDelta`` events, as far as it came.

        Raises:
            UnknownToolError: no such tool; lists the names.
        """
        return PartialReader.of_schema(close_objects(self[name].readable.parameters))

    # -- calls -------------------------------------------------------------------------------------------------

    def validate(self, call: ToolCall | Mapping[str, Any], *, values: LiveValues | None = None) -> ToolCall:
        """Return a call if it is valid.

        Args:
            call: a `ToolCall`, or a dict of it: with ``name`` and ``arguments``, or as OpenAI, Anthropic or LangChain
                write it.
            values: the live values of the text in which it was written; None: their callables are asked now.

        Raises:
            UnknownToolError: no such tool; lists the names.
            InvalidArgumentsError: the arguments do not match the tool's schema, read as the grammar reads it, or an
                argument is none of its live values.
            LiveValuesError: a callable that gives live values failed.
            ToolCallError: the call was malformed as it was written.
        """
        call = as_call(call)
        if self._names_only:
            call = replace(call, arguments={}, raw="{}", error=None)
        is_malformed = call.fault is not None  # its text could not be read, maybe not even its name
        if call.name not in self._tools and not (is_malformed and not call.name):
            raise UnknownToolError.among(self.names, call.name)
        if is_malformed and call.error is not None:
            raise ToolCallError(call.error, place=Place(tool=call.name or None))
        self.require_conversation(call.name)
        try:
            self._checker(call.name).check(call.arguments)
        except InvalidArgumentsError as error:
            # Parameters under a policy are its rules as a schema, so say which value the policy refuses, if one.
            refusal = self._policy and self._policy.refusal(call, self._messages or (), self)
            raise refusal or error from None
        if self._policy is not None:
            call = replace(call, ask=self._policy.unconfirmed(call, self._messages or (), self))
        if self._has_values:
            live = values or LiveValues(self._sources, context=self._context)
            LiveSchema(self[call.name].parameters).check(call.arguments, live, call.name)
        return call if call.error is None else replace(call, error=None)

    # -- for models and servers --------------------------------------------------------------------------------

    def to_openai(
        self, *, closed: bool = False, brief: Collection[str] = (), bound: bool = False
    ) -> list[dict[str, Any]]:
        """Return the tools as OpenAI-style dicts with full schemas, for chat templates and servers.

        Args:
            closed: write out the closed reading that calls are checked against (see `close_objects`).
            brief: names of tools without schema, and with one line of their description.
            bound: only the tools that may be called now, with all that calls are held to (see `Tool.to_openai`).
        """
        shown = self.offered.values() if bound else self
        listed = [tool.to_openai(brief=tool.name in brief, bound=bound) for tool in shown]
        for tool in listed if closed else ():
            function = tool["function"]
            if "parameters" in function and not self._is_open(function["name"]):
                tool["function"] = {**function, "parameters": close_objects(function["parameters"])}
        return listed

    def check_call(self, call: ToolCall, *, repair: bool = False) -> ToolCall:
        """Return a call that was written without a grammar, with ``error`` set if it is not valid.

        Args:
            call: as a server or a parser read it.
            repair: repair it where that makes it valid, as `parse` does.

        Law: if ``error`` is None, `validate` takes the call; so does Pydantic, if the tool is a function or a class,
        validators that the user wrote apart.
        """
        checked = self._checked(call)
        if repair and checked.error is not None:
            checked = self._repaired(checked)
        if checked.error is not None or not self[checked.name].is_bound:
            return checked
        try:  # JSON Schema takes 3.0 and 1e25 for integers, and Pydantic does not
            return replace(checked, arguments=self._checker(checked.name).read(checked.arguments))
        except ToolGrammarError as error:
            return replace(checked, error=str(error))

    def wire_format(
        self, name: str | WireFormat | None = None, template: str = "", special: Collection[str] = ()
    ) -> WireFormat:
        """Return the format in which a model writes calls; see `toolgrammar.tools.formats.choose_format`."""
        return choose_format(name, template, special)

    def shown_format(self, template: str, special: Collection[str] = ()) -> WireFormat | None:
        """Return the format that a chat template shows; see `toolgrammar.tools.formats.detect_format`."""
        return detect_format(template, special)

    def render_history(self, messages: Sequence[Message], format: str | WireFormat = "hermes") -> tuple[Message, ...]:
        """Return a conversation for a model whose chat template knows no calls: calls as text of the assistant,
        neighbouring results as one text of the user, as the format writes them."""
        return history_as_text(get_format(format), messages)

    def prompt(self, format: str | WireFormat = "hermes", *, brief: Collection[str] = ()) -> str:
        """Return the text that tells a model without its own template about the tools and the format.

        Args:
            format: wire format.
            brief: names of the tools of which it has only the name and one line.
        """
        return get_format(format).prompt(self._readable, brief)

    def brief_names(self, mode: ToolsInPrompt = "schemas", size: int = 0) -> frozenset[str]:
        """Return the names of the tools of which the prompt has only the name and one line.

        Args:
            mode: ``"schemas"``: those of deferred tools; ``"names"``: all; ``"auto"``: all if their declarations have
                more bytes than ``size``.
            size: see ``mode``.
        """
        is_large = mode == "auto" and len(self.declarations(self.names).encode("utf-8", "surrogatepass")) > size
        return frozenset(tool.name for tool in self if tool.deferred or is_large or mode == "names")

    def named(self) -> ToolSet:
        """Return the tools that may be called now, without parameters: for a request that chooses among them."""
        nothing = {"type": "object", "properties": {}}
        made = self._with(Tool(tool.name, tool.summary, nothing) for tool in self.offered.values())
        made._names_only = True
        return made

    def declarations(self, names: Sequence[str]) -> str:
        """Return the full declarations of some tools, one a line, as a text for the prompt."""
        by_name = {tool.name: tool for tool in self._readable}
        return "\n".join(described(by_name[name]) for name in names)

    # -- inside ------------------------------------------------------------------------------------------------

    def _with(self, tools: Iterable[Tool]) -> Self:
        """Return a set of some of these tools, which are not checked again."""
        made = copy.copy(self)
        made._tools = {tool.name: tool for tool in tools}
        made._strictness = {name: value for name, value in self._strictness.items() if name in made._tools}
        made._derived, made._offered_cache = Derived(), None
        return made

    def _without_grammar(self) -> Iterator[tuple[str, ToolGrammarError]]:
        """Yield the name of each optional tool whose arguments have no grammar, and why."""
        turn = self._turn("auto", True, "single", None)
        form = self._call_grammars.number(ToolSet)  # for the key: arguments in no format
        for tool in turn.tools:
            if tool.optional:
                dated = tool.of_today()
                try:
                    turn.part(dated, form, partial(turn.arguments, dated))
                except (SchemaError, LimitError) as error:
                    yield tool.name, with_tool(error, tool.name)

    @property
    def _readable(self) -> tuple[Tool, ...]:
        """The tools without live values."""
        return tuple(tool.readable for tool in self)

    @property
    def _sources(self) -> dict[tuple[str | None, str], Any]:
        """The callables of live values, by tool and name."""
        return {(tool.name, name): source for tool in self for name, source in tool.values.items()}

    @property
    def _has_values(self) -> bool:
        """True if a tool has live values."""
        return any(tool.has_values for tool in self)

    def _checked(self, call: ToolCall, values: LiveValues | None = None) -> ToolCall:
        """Return the call, with ``error`` set if it is not valid."""
        try:
            return self.validate(call, values=values)
        except ToolGrammarError as error:
            return replace(call, error=str(error))

    def _repaired(self, call: ToolCall) -> ToolCall:
        """Return the repaired call if the repair makes it valid, else the call itself."""
        repaired = self._checked(repair_call(call, self.names, kinds_of_arguments(self._readable)))
        if repaired.error is not None:
            repaired = self._respelled(call)
        if repaired.error is not None:
            return call
        _LOG.info("a call of the tool %r was repaired", repaired.name)
        return repaired

    def _respelled(self, call: ToolCall) -> ToolCall:
        """Return the valid call from which a call differs by its spelling only, else the call itself."""
        is_malformed = call.fault is not None
        if is_malformed and ends_early(call.raw or ""):  # a repair would invent the rest
            return call
        try:
            arguments = (call.raw or "") if is_malformed else dump_json(dict(call.arguments))
            text = f'[{{"name": {dump_json(call.name)}, "arguments": {arguments}}}]'
            message, repaired = self.repair(text, "json", most=SPELLING_ONLY)
        except (ToolGrammarError, ValueError, TypeError, RecursionError):
            return call
        is_one_call = not repaired.is_cut and len(message.tool_calls) == 1
        return replace(message.tool_calls[0], id=call.id) if is_one_call else call

    def _checker(self, name: str) -> ArgumentChecker:
        """Return the check of a tool's arguments, with the values of the conversation if it is offered there."""

        def make() -> ArgumentChecker:
            from .argument_checker import ArgumentChecker

            tool = self._tools[name] if self._messages is None else self.offered.get(name, self._tools[name])
            return ArgumentChecker(tool, additional_properties=self._is_open(name))

        return self._derived.get(name, make)

    def _is_open(self, name: str) -> bool:
        strictness = self._strictness.get(name)
        return self._additional_properties if strictness is None else strictness == "open"
