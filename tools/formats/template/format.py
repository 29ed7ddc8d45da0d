"""Wire formats as data: a template of one call, and the markup around and between calls.

A call is a template: literal text around ``$name`` (the name as it is) or ``$quoted`` (as a JSON string), ``$args``
(the JSON object) and perhaps ``$id``. A turn is ``begin``, calls joined by ``separator``, ``finish``. The same data
makes the grammar, the rendering and the parser.

Markers that are control tokens of a family are control tokens in the grammar, never text; free text may not hold their
text either, since a parser reads text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from typing_extensions import Self

from toolgrammar.core.basics import Whitespace
from toolgrammar.core.conversation import Message, ReasoningMarkers, ToolCall
from toolgrammar.core.errors import GrammarError, Place, ToolGrammarError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import SPACE, dump_json
from toolgrammar.core.reading import ReadingMark
from toolgrammar.core.schema import mark, size_of

from ...tool import Tool
from ..base import Reasoning, TurnSpec, WireFormat, dump_name, named_tool
from ..described import described
from .parser import Syntax, TemplateParser

#: Names that can stand outside of quotation marks.
WORD = r"[A-Za-z0-9_.\-]+"

#: The holes of a template.
HOLE = re.compile(r"(\$name|\$quoted|\$args|\$id)")
#: A marker at the beginning of markup: a tag, a word in brackets, or a word before a bracket.
_MARKER = re.compile(r"<[^<>]+>|\[[A-Z_/]+\]|[\w:]+(?=\[)")
#: A tag, or a sign of a list of calls.
_AROUND = re.compile(r"<[^<>$]+>|[\[\],;]")
#: A marker that looks like a control token.
_CONTROL_TOKEN = re.compile(r"<\|[^<>|\s]+\|?>|<[^<>|\s]+\|>|<｜[^<>｜]+｜>|\[[A-Z_/]{3,}\]")


def quoted(text: str) -> str:
    """Return the regular expression of a text: `re.escape` escapes more than ECMA-262 permits."""
    return re.sub(r"[\\^$.*+?()\[\]{}|/]", r"\\\g<0>", text)


def _maybe(*alternatives: Grammar) -> Grammar:
    """Return the grammar of nothing, or one of these."""
    return Grammar.choice(Grammar.literal(""), *alternatives)


@dataclass(frozen=True)
class TemplateFormat(WireFormat):
    """A format as data.

    Attributes:
        name: its name.
        call: the template of one call.
        others: further templates of a call that the grammar admits, for all calls of a turn.
        triggers: markers that begin calls; free text contains none of them.
        begin: text before the first call.
        separator: text between calls.
        finish: text after the last call.
        joint: text between prose and calls.
        glued: in the grammar, ``joint`` is optional.
        lead: white space before calls without prose; in the grammar it is optional.
        trail: white space after calls; in the grammar it is optional.
        spacing: the spacing of arguments, unless the request asks for a freer one; None: the spacing of the request.
        special: the markers that are control tokens in the vocabularies of the family.
        as_text: the markers of ``special`` that are still written as text (see `with_special`).
        end_tokens: control tokens that end the turn.
        ends: the ``end_tokens`` that the vocabulary has.
        anchored: triggers count only at the very beginning of the turn.
        prose: text may stand before calls.
        afterwards: text may stand after calls too.
        loose: ``finish`` may be left out.
        named: the name of the tool stands before the marker of a call too.
        parallel: one turn may have several calls.
        head: regular expression of what a parser reads between an opener and the arguments, with the group ``name``
            and perhaps ``id``; empty if name and arguments are members of one object.
        openers: markers of each call in observed text; by default the template up to its first hole.
        skips: markup that a parser skips between calls, besides white space.
        frames: markup that a parser drops from text.
        text_start: markup before a turn of text alone.
        text_end: markup after it.
        prose_start: markup before text that stands before calls; empty, as ``prose_end``: as around text alone.
        prose_end: markup after it.
        name_key: the key of the name, if it is a member.
        argument_keys: the keys under which arguments are read; the template has the one that is written.
        names: `name_pattern`; empty: `WORD` where the call has the name as it is, any name where it is quoted.
        ids: regular expression of the ids on the wire.
        counted_ids: ids number the calls of a turn, from this number on; None: they do not.
        call_id: the id of a call made from ``$name`` and ``$id``; empty if ids on the wire are not read.
        call_ends_reasoning: the model may begin a call inside of its reasoning, without ending that.
        unthought: markup with which a turn without reasoning may begin.
        no_calls: what the model writes for no call, such as an empty list, where no tool fits; empty: such a turn is
            text.
        result: a result; ``$content``, ``$json`` (the content as a JSON string), ``$name`` and ``$id`` are filled in.
        instructions: the prompt for models whose template knows no tools; ``{tools}`` is the place of the tools.
    """

    name: str
    call: str
    triggers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    begin: str = ""
    separator: str = ""
    finish: str = ""
    joint: str = ""
    glued: bool = False
    lead: str = ""
    trail: str = ""
    spacing: Whitespace | None = None
    special: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()
    end_tokens: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    anchored: bool = False
    prose: bool = True
    afterwards: bool = False
    loose: bool = False
    named: bool = False
    parallel: bool = True
    head: str = ""
    openers: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    text_start: str = ""
    text_end: str = ""
    prose_start: str = ""
    prose_end: str = ""
    name_key: str = "name"
    argument_keys: tuple[str, ...] = ("arguments", "parameters")
    names: str = ""
    ids: str = ""
    counted_ids: int | None = None
    call_id: str = ""
    thinking: ReasoningMarkers | None = None
    call_ends_reasoning: bool = False
    unthought: str = ""
    no_calls: str = ""
    result: str = "$content"
    instructions: str = ""
    signs: tuple[str, ...] = ()
    signs_against: tuple[str, ...] = ()

    @property
    def _templates(self) -> tuple[str, ...]:
        """The templates of a call and of its parts."""
        return (self.call, *self.others)

    def for_vocabulary(self, special: Collection[str]) -> TemplateFormat:
        """Return `with_special`, with the tokens that may end the turn."""
        adapted = self.with_special(special)
        return replace(adapted, ends=tuple(token for token in self.end_tokens if token in special))

    def without_ids(self) -> TemplateFormat:
        """Return the format with ids that are read over."""
        return replace(self, call_id="")

    def with_special(self, special: Iterable[str]) -> TemplateFormat:
        """Return the format for a vocabulary with these control tokens: its markers among them are control tokens, all
        others are text."""
        vocabulary = frozenset(special)
        # A marker that is text in the family's own vocabulary may be a control token in this one. (Tokens of one or two
        # characters, "[" say, are no markers.)
        thinking = () if self.thinking is None else (self.thinking.start, self.thinking.end, self.thinking.after)
        written = (*self._markup, *thinking)
        more = {token for token in vocabulary if len(token) > 2 and any(token in text for text in written)}
        markers = tuple(sorted({*self.special, *more}))
        return replace(self, special=markers, as_text=tuple(token for token in markers if token not in vocabulary))

    def with_shown_markers(self) -> Self:
        """Return the format with the markers that its markup shows: in ``special`` those that look like control tokens
        (``<|x|>``, ``<｜x｜>``, ``[X]``), in ``skips`` those around calls, in ``triggers``, if it is empty, the first.
        """
        shown = (token for text in self._markup for token in _CONTROL_TOKEN.findall(text))
        special, skips = (tuple(dict.fromkeys(each)) for each in ((*shown, *self.special), (*self.skips, *self.around)))
        return replace(self, special=special, skips=skips, triggers=self.triggers or (self.first_marker,))

    @property
    def around(self) -> list[str]:
        """The tags, brackets and separators around calls."""
        return _AROUND.findall(self.begin + self.separator + self.finish + self.call.rpartition("$args")[2])

    @property
    def _markup(self) -> tuple[str, ...]:
        """All markup of a turn, but that around reasoning."""
        around = (self.begin, self.separator, self.finish, *self._around_text, self.unthought)
        # Every second piece is the markup between two holes.
        return (*around, *(piece for template in self._templates for piece in HOLE.split(template)[::2]))

    @property
    def first_marker(self) -> str:
        """The marker that calls begin with, or else their first line; empty if that is JSON, as any text may begin."""
        start = (self.begin + HOLE.split(self.call)[0]).lstrip()
        marker = _MARKER.match(start)
        if marker is not None:
            return marker.group()
        return "" if start[:1] in ("{", "[") else start.split("\n")[0]

    @property
    def call_markers(self) -> tuple[str, ...]:
        """Markers that begin calls wherever they stand."""
        ends_reasoning = self.thinking is not None and self.thinking.end in self.call  # a call would end it, too
        if self.anchored or ends_reasoning:
            return ()
        return tuple(mark for mark in self.triggers if not mark.startswith(("{", "[")))

    @property
    def barred_markers(self) -> tuple[str, ...]:
        """Markers of calls that no text contains."""
        return self._triggers_in_text if self.anchored else self.triggers

    @property
    def reasoning_ends(self) -> tuple[str, ...]:
        """Markers of calls that end open reasoning."""
        return self.call_markers if self.call_ends_reasoning and self.thinking is not None else ()

    @property
    def text_marker(self) -> str:
        """Markup before a text; empty if there is none."""
        return self.text_start

    @property
    def call_ends(self) -> tuple[str, ...]:
        """Markup that a parser takes for the end of arguments that are not one JSON object."""
        return ()

    @property
    def is_bare(self) -> bool:
        """Nothing stands before the name of a call: a parser would take any text for one."""
        return bool(self.head) and not self.openers and not HOLE.split(self.call)[0]

    # -- grammar -----------------------------------------------------------------------------------------------

    def with_reasoning(self, answer: Grammar, reasoning: Reasoning) -> Grammar:
        """Return the grammar of an answer with reasoning before it, or with markup that says there is none."""
        whole = super().with_reasoning(answer, reasoning)
        if not self.unthought or reasoning == "opened":
            return whole
        return Grammar.choice(whole, self.markup(self.unthought) + answer)

    def grammar(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of the assistant's turn: text, or calls, or (if the family does so) text and then calls.

        Raises:
            GrammarError: neither text nor calls are allowed, or more calls are demanded than the format can write.
            ToolGrammarError: the format cannot spell a tool's name, or cannot tell a JSON answer from calls.
        """
        alternatives: list[Grammar] = []
        calls_allowed = bool(turn.tools) and turn.max_calls != 0
        if turn.min_calls == 0 and turn.text:
            alternatives += self._without_calls(turn, calls_allowed)
        if calls_allowed:
            alternatives += self._with_calls(turn)
        if not alternatives:
            raise GrammarError("neither text nor calls are allowed in this turn", hint="give at least one tool")
        whole = alternatives[0] if len(alternatives) == 1 else Grammar.choice(*alternatives)
        return whole + _maybe(*map(Grammar.special, self.ends)) if self.ends else whole

    def _without_calls(self, turn: TurnSpec, calls_allowed: bool) -> Iterator[Grammar]:
        """Yield the grammars of a turn of text, of one that says that no tool fits, and of calls in other spellings."""
        text = self._text(turn, calls_allowed)
        yield text + _maybe(self.markup(self.trail)) if self.trail and self.text_start else text
        if self.no_calls and calls_allowed and turn.response_schema is None:
            yield from (self.markup(before + self.no_calls) for before in sorted({"", self.lead}))
        if turn.other is not None and calls_allowed:
            yield from turn.other.grammars(turn)

    def _with_calls(self, turn: TurnSpec) -> Iterator[Grammar]:
        """Yield the grammars of a turn of calls, alone and with the text around them that the family writes."""
        if not self.parallel and max(turn.min_calls, turn.least_calls) > 1:
            raise GrammarError(
                f"the format {self.name} writes one call in a turn, not {turn.least_calls}",
                hint="ask for one call, or choose a format with several, such as hermes",
            )
        if self.spacing is not None and turn.whitespace == "single":
            turn = replace(turn, whitespace=self.spacing)
        calls = self._calls(turn)
        may_go_on = turn.max_calls is None or turn.max_calls > 1
        if trails := set(filter(None, (self.trail, self._space_between if may_go_on else ""))):
            calls += _maybe(*map(self.markup, sorted(trails)))
        yield calls
        if self.lead:
            yield self.markup(self.lead) + calls
        if turn.text and turn.response_schema is None:
            if self.prose:
                yield self._prose(turn) + (calls if self.glued else self.markup(self.joint) + calls)
            if self.afterwards:
                yield calls + self._prose(turn)

    @property
    def _space_between(self) -> str:
        """White space between calls that may stand after the last one, too: a model that writes it and ends its turn
        would otherwise have to write another call."""
        if self.finish or not self.parallel:
            return ""
        return self.separator[: len(self.separator) - len(self.separator.lstrip(SPACE))]

    @property
    def markers(self) -> tuple[str, ...]:
        """Strings that free text may not contain."""
        own = list(self._triggers_in_text) if self.anchored else list(self.triggers)
        thinking = [] if self.thinking is None else [self.thinking.start, self.thinking.after]
        turn = (*self.frames, self.unthought, *self._around_text, *self.ends)
        return tuple(dict.fromkeys(filter(None, [*own, *thinking, *turn])))

    @property
    def _around_prose(self) -> tuple[str, str]:
        """Markup around text before calls."""
        apart = self.prose_start or self.prose_end
        return (self.prose_start, self.prose_end) if apart else (self.text_start, self.text_end)

    @property
    def _around_text(self) -> tuple[str, ...]:
        """Markup around text, alone or before calls."""
        return (self.text_start, self.text_end, self.prose_start, self.prose_end)

    @property
    def _triggers_in_text(self) -> tuple[str, ...]:
        """Triggers of an anchored format that are no ordinary text: they begin calls behind text, too."""
        return tuple(mark for mark in self.triggers if self.anchored and re.fullmatch(r"<\|[^<>\s]+\|>", mark))

    @property
    def _may_begin_as_json(self) -> bool:
        """A turn's calls may begin as a JSON answer does."""
        return self.anchored or any(trigger.startswith("{") for trigger in self.triggers)

    @property
    def name_pattern(self) -> str:
        """Regular expression of the tool names that the format can write."""
        return self.names or (WORD if "$name" in self.call else r"[^\x00]+")

    def _beginnings(self, tool: Tool) -> Iterator[str]:
        """Yield the beginnings of a turn whose first call is of a tool, up to the piece behind its name, without white
        space before them."""
        values = {"$name": tool.name, "$quoted": dump_json(tool.name)}
        for template in (self.call, *self.others):
            pieces = HOLE.split(template)
            at = next(index for index, piece in enumerate(pieces) if piece in values)
            yield (self.begin + "".join(values.get(piece, piece) for piece in pieces[: at + 2])).lstrip(SPACE)

    def _prose(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of text before calls."""
        text = self._free_text(turn)
        start, end = self._around_prose
        return self.markup(start) + text + self.markup(end)

    def _free_text(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of text that holds no call."""
        heads = () if turn.other is None else turn.other.heads
        return Grammar.text(excluding=self.markers, min_chars=1, excluding_starts=heads)

    def _text(self, turn: TurnSpec, calls_allowed: bool) -> Grammar:
        """Return the grammar of the text of a turn: demanded JSON, free text, or text that is surely no call.

        Raises:
            ToolGrammarError: a JSON answer could not be told from calls.
        """
        if turn.response_schema is not None:
            text = turn.answer()
            if (
                self._may_begin_as_json
                and calls_allowed
                and any(text.begins(begun) for tool in turn.tools for begun in self._beginnings(tool))
            ):
                raise ToolGrammarError(
                    f"the format {self.name} cannot distinguish this JSON answer from calls",
                    hint="leave out response_schema or the tools, or choose a format with markers, such as hermes",
                )
        elif not self.anchored:
            text = self._free_text(turn)
        else:
            # The first character that is not white space does not begin a trigger. (White space alone is no text.)
            triggers = "|".join(re.escape(trigger.lstrip(SPACE)) for trigger in self.triggers)
            excluded = f"(?![\\s\\S]*(?:{'|'.join(map(re.escape, self.markers))}))" if self.markers else ""
            for before, names, after in () if turn.other is None else turn.other.heads:
                excluded += f"(?!{before}(?:{'|'.join(map(quoted, names))}){after})"
            text = Grammar.from_regex(rf"{excluded}[ \t\n\r]*(?!{triggers})[^ \t\n\r][\s\S]*")
        return self.markup(self.text_start) + text + self.markup(self.text_end)

    def _calls(self, turn: TurnSpec) -> Grammar:
        written = [self._calls_as(template, turn) for template in (self.call, *self.others)]
        calls = written[0] if len(written) == 1 else Grammar.choice(*written)
        finish = self.markup(self.finish)
        return self.markup(self.begin) + calls + (Grammar.choice(finish, Grammar.literal("")) if self.loose else finish)

    def _calls_as(self, template: str, turn: TurnSpec) -> Grammar:
        """Return the grammar of the calls of a turn, each written by a template."""
        pieces = [piece for piece in HOLE.split(template) if piece]
        name_at = next(index for index, piece in enumerate(pieces) if piece in ("$name", "$quoted"))
        markup = cache(self._hole_or_markup)  # all tools share it
        head = Grammar.sequence(*map(markup, pieces[:name_at]))
        number = turn.grammars.number((self, template))
        calls = {tool.name: self._call(tool, turn, pieces[name_at:], number, markup) for tool in turn.tools}
        turn = turn if self.parallel else replace(turn, max_calls=1)
        return self.several(turn, calls, head, self.markup(self.separator))

    def _call(
        self, tool: Tool, turn: TurnSpec, pieces: Sequence[str], number: int, markup: Callable[[str], Grammar]
    ) -> tuple[str, Grammar]:
        """Return the name of a tool as it is written, and the grammar of the rest of its call.

        Args:
            tool: the tool.
            turn: the specification of the turn.
            pieces: those of the template from the name on.
            number: see `TurnSpec.part`.
            markup: returns the grammar of a piece.
        """
        name = tool.name if pieces[0] == "$name" else dump_name(tool.name)
        return name, turn.part(tool, number, partial(self._rest, tool, turn, pieces, markup))

    def _rest(self, tool: Tool, turn: TurnSpec, pieces: Sequence[str], markup: Callable[[str], Grammar]) -> Grammar:
        """Return the grammar of a call after its name, which is the first of its pieces."""
        self._check_name(tool.name)  # here, as the grammar of a tool is made once
        arguments = partial(self._arguments, tool, turn)
        if self.others:  # several templates have the same arguments
            arguments = partial(turn.part, tool, turn.grammars.number((self, "$args")), arguments)
        parts = [
            arguments() if piece == "$args" else Grammar.literal(tool.name) if piece == "$name" else markup(piece)
            for piece in pieces[1:]
        ]
        if turn.is_marked:
            # `parts` lacks the name: the arguments are before this index, and the markup behind them is at it.
            at = pieces.index("$args")
            behind = pieces[at + 1] if pieces[at + 1 :] and pieces[at + 1] != "$id" else ""
            at += 1 if behind else 0  # a number is whole only when the markup behind it is read
            parts[at:at] = turn.marks(ReadingMark.of_end(size_of(mark(behind, self._control))))
            parts[:0] = turn.marks(named_tool(tool, is_quoted=pieces[0] == "$quoted"))
        return Grammar.sequence(*parts)

    @property
    def _control(self) -> list[str]:
        """The markers that are control tokens, the longest first."""
        return sorted(sorted(set(self.special).difference(self.as_text)), key=len, reverse=True)

    def _hole_or_markup(self, piece: str) -> Grammar:
        return Grammar.from_regex(self.ids) if piece == "$id" else self.markup(piece)

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        """Return the grammar of ``$args``."""
        return turn.arguments(tool)

    def _check_name(self, name: str) -> None:
        """Raise a `ToolGrammarError` if the format cannot write a tool's name."""
        holds_marker = "$name" in self.call and any(token in name for token in self.special)
        if not re.fullmatch(self.name_pattern, name) or holds_marker:
            raise ToolGrammarError(
                f"the format {self.name} cannot express the tool name {name!r}",
                hint=f"rename the tool (names match {self.name_pattern}), or choose a JSON format, such as hermes",
            )

    def markup(self, text: str) -> Grammar:
        """Return the grammar of markup: control tokens as such, the rest as text."""
        words = self._control
        if not words:
            return Grammar.literal(text)
        pieces = re.split("(" + "|".join(map(re.escape, words)) + ")", text)
        return Grammar.sequence(
            *(Grammar.special(piece) if piece in words else Grammar.literal(piece) for piece in pieces if piece)
        )

    # -- reading -----------------------------------------------------------------------------------------------

    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> TemplateParser:
        """Return a parser that takes the history form and its common variations (see `TemplateParser`)."""
        return self._parser_class(tools)(self._syntax(tools, whole_text), finish, new_id)

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        """Return the constructor of the parser, with all but the syntax filled in."""
        return TemplateParser

    def _syntax(self, tools: Sequence[Tool], whole_text: bool) -> Syntax:
        """Return the parser's syntax; with ``whole_text``, a turn that does not begin as a call is a JSON answer."""
        openers = self.openers or (HOLE.split(self.call)[0] if self.head else "{",)
        triggers: tuple[str, ...] = self.triggers
        if self.named:
            named = tuple(tool.name + mark for tool in tools for mark in self.triggers)
            triggers, openers = triggers + named, openers + named
        # A trigger that is the beginning of an object is part of the call, and not skipped.
        skipped = [mark for mark in triggers if "{" not in openers or not mark.startswith("{")]
        markup = (self.begin, self.separator, self.finish, *skipped, *self.special, *self.skips)
        skips = {mark.strip(SPACE) for mark in (*markup, *self.end_tokens, *self.call_ends)} - set(openers) - {""}
        after = "" if self.thinking is None else self.thinking.after  # markup between reasoning and the rest
        frames = (*self.frames, self.unthought, *self._around_text, after, *self.ends)
        return Syntax(
            triggers=triggers,
            openers=openers,
            head=self.head,
            skips=tuple(sorted(skips, key=len, reverse=True)),
            frames=tuple(filter(None, dict.fromkeys(frames))),
            joint=self.joint,
            anchored=self.anchored or whole_text,
            triggers_in_text=() if whole_text else self._triggers_in_text,
            whole_text=whole_text,
            before_first=self._markup_up_to_call(self.begin, openers),
            between_calls=self._markup_up_to_call(self.separator, openers, follows=True),
            after_last=self._after_last(),
            head_templates=self._head_templates(openers) if self.head else (),
            afterwards=self.afterwards,
            name_key=self.name_key,
            # The key that the template has comes first.
            argument_keys=tuple(sorted(self.argument_keys, key=lambda key: f'"{key}"' not in self.call)),
            call_id=self.call_id,
            id_key=self._id_key,
            call_end="" if self.head or "{" in openers else self.call.rpartition("}")[2].strip(SPACE),
            thinking=self.thinking,
            bare=tuple(mark for mark in triggers if self.anchored and mark not in self._triggers_in_text),
            names=frozenset(tool.name for tool in tools),
            control=self.special,
            beginnings=tuple(begun for tool in tools for begun in self._beginnings(tool))
            if self._may_begin_as_json and whole_text
            else (),
        )

    def _markup_up_to_call(self, before: str, openers: Sequence[str], *, follows: bool = False) -> tuple[str, ...]:
        """Return the markup up to the end of a call's opener, for each template of a call; empty if a template shows
        none of the openers.

        Args:
            before: what stands before the call.
            openers: the openers.
            follows: another call stands before that: its closing markup comes first.
        """
        found = []
        for template in (self.call, *self.others):
            text = before + HOLE.split(template)[0]
            if follows:
                text = self._closing_markup(template) + text
            ends = [at + len(opener) for opener in openers if opener != "{" and (at := text.rfind(opener)) >= 0]
            if not ends and "{" not in openers:
                return ()
            if ends:
                text = text[: max(ends)]
            elif "{" in text:  # the opener is the brace of the call's object
                text = text.rpartition("{")[0]
            found.append(text)
        return tuple(found)

    def _after_last(self) -> tuple[str, ...]:
        """Return the markup after the last call of a turn, for each template of a call."""
        finish = "" if self.loose else self.finish
        return tuple(self._closing_markup(template) + finish for template in (self.call, *self.others))

    def _head_templates(self, openers: Sequence[str]) -> tuple[str, ...]:
        """Return the text between the opener of a call and its arguments, for each template; empty if a template shows
        none of the openers."""
        found = []
        for template in (self.call, *self.others):
            before = template.partition("$args")[0]
            if not (begun := [opener for opener in openers if opener in before]):
                return ()
            found.append(before.partition(max(begun, key=len))[2])
        return tuple(found)

    @property
    def _id_key(self) -> str:
        """The key of a call's id, where it is a member of the call's object and identifies the call."""
        found = re.search(r'"(\w+)":\s*"\$id"', self.call) if self.call_id == "$id" and not self.head else None
        return found[1] if found else ""

    def _closing_markup(self, template: str) -> str:
        """Return the markup after the arguments of a call."""
        back = template.partition("$args")[2]
        return back if self.head else back.rpartition("}")[2] if "}" in back else ""

    # -- writing -----------------------------------------------------------------------------------------------

    def render_calls(self, calls: Sequence[ToolCall]) -> str:
        """Return the calls in the history form.

        Raises:
            ToolGrammarError: several calls, where the family writes one; or a name that it cannot spell.
        """
        if not calls:
            return ""
        if len(calls) > 1 and not self.parallel:
            raise ToolGrammarError(f"the format {self.name} writes one call in a turn", hint="give one call")
        written = [self._render_call(call, index) for index, call in enumerate(calls)]
        return self.begin + self.separator.join(written) + self.finish

    def _render_call(self, call: ToolCall, index: int) -> str:
        """Return a call by its template; ``index`` is its number in the turn."""
        self._check_name(call.name)
        values = {
            "$name": call.name,
            "$quoted": dump_json(call.name),
            "$args": self._render_arguments(call),
            "$id": self._wire_id(call, index),
        }
        return "".join(values.get(piece, piece) for piece in HOLE.split(self.call))

    def _render_arguments(self, call: ToolCall) -> str:
        return dump_json(dict(call.arguments), compact=self.spacing == "compact")

    def _wire_id(self, call: ToolCall, index: int) -> str:
        """Return the id on the wire: the call's own if the format can write it, else one made from it.

        With ``call_id="functions.$name:$id"``, the id "functions.f:3" is written as "3".
        """
        if not self.ids:
            return ""
        own = call.id
        if self.call_id:
            before, after = self.call_id.replace("$name", call.name).split("$id")
            if own.startswith(before) and own.endswith(after):
                own = own[len(before) : len(own) - len(after)]
        if re.fullmatch(self.ids, own):
            return own
        if self.counted_ids is not None:
            return str(index + self.counted_ids)
        return (re.sub("[^A-Za-z0-9]", "", own)[-9:]).rjust(9, "0")  # nine characters, as Mistral's ids have

    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """Return a whole turn.

        Raises:
            ToolGrammarError: text and calls, where the family writes one of them.
        """
        if not calls:
            return f"{self.text_start}{text}{self.text_end}" if text else ""
        if text and not self.prose:
            raise ToolGrammarError(f"the format {self.name} writes text or calls, not both", hint="leave out the text")
        before = f"{text.join(self._around_prose)}{self.joint}" if text else self.lead
        return before + self.render_calls(calls) + self.trail

    def render_result(self, message: Message) -> str:
        """Return a result as the model reads it."""
        values = {"$content": message.text, "$name": message.name or "", "$id": message.tool_call_id or ""}
        values["$json"] = dump_json(message.text)
        return re.sub(r"\$(?:content|name|id|json)", lambda match: values[match.group()], self.result)

    def prompt(self, tools: Sequence[Tool], brief: Collection[str] = ()) -> str:
        """Return the instructions with the tools filled in; empty without tools."""
        if not tools:
            return ""
        instructions = self.instructions or (
            "# Tools\n\nYou may call these functions, given as JSON Schema, one a line:\n{tools}\n\n"
            f"Write a call exactly so, with nothing after it:\n{self._example()}"
        )
        return instructions.replace("{tools}", "\n".join(described(tool, brief=tool.name in brief) for tool in tools))

    def _example(self) -> str:
        values = {"$name": "NAME", "$quoted": '"NAME"', "$args": "{ARGUMENTS}", "$id": "ID"}
        call = "".join(values.get(piece, piece) for piece in HOLE.split(self.call))
        return self.begin + call + self.finish


def check_argument_name(name: str, pattern: str, wire: str, call: ToolCall) -> str:
    """Return the name of an argument, if it matches a pattern.

    Raises:
        ToolGrammarError: it does not; names the format.
    """
    if not re.fullmatch(pattern, name):
        raise unspellable(wire, f"the argument name {name!r}", call, name)
    return name


def unspellable(wire: str, what: str, call: ToolCall, parameter: str | None = None) -> ToolGrammarError:
    """Return the error for a call that a format cannot write."""
    place = Place(tool=call.name, parameter=parameter)
    return ToolGrammarError(
        f"the format {wire} cannot express {what}", hint="choose a JSON format, such as hermes", place=place
    )
