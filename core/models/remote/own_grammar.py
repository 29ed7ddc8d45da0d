"""Our grammar on servers without our plug-in.

llama.cpp's server: the prompt is rendered here, and ``/completion`` enforces the exported GBNF. Its
``/v1/chat/completions`` refuses a grammar beside tools, and translates schemas itself, incompletely. vLLM and SGLang:
the tools are in the prompt, and a structural tag has the grammar of the turn as EBNF. vLLM's guidance backend reads no
such tag, so it gets the grammar in Lark.

Sources: the README of llama.cpp's server (``/props``, ``/tokenize``, ``/completion``); vLLM's
``StructuredOutputsParams.structural_tag``, which is JSON text; SGLang's ``StructuralTagResponseFormat``; the format
``grammar`` of xgrammar 0.2.8, which both use.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Any

from ...basics.logs import logger_of
from ...conversation.messages import Message
from ...errors import GrammarError, LimitError, ModelError, NotFoundError, SchemaError, ServerError
from ...export.writers import Exported
from ...generation.plan import Planner
from ...grammar import Grammar
from ..chat_template import ChatTemplate
from ..prompts import with_system
from ..template_shape import message_shape
from .answer import Answer, RawCall, member
from .answer_judge import Task, Verdict
from .form import GRAMMAR, LARK, STRUCTURAL_TAG, Form
from .instructions import schema_text
from .transport import RefusedError, Transport

_LOG = logger_of("remote")

#: Maximum size of an exported grammar in characters. The server parses it for each request: 193,000 characters (263
#: tools) in 0.1 s.
MAX_GBNF = 400_000

#: Text that no model writes by itself, for the probe.
_PROBE = "qzx"


async def template_of(transport: Transport) -> ChatTemplate | None:
    """Return the chat template of a server that enforces grammars; None if it has no template, or ignores grammars.

    The probe requests a text that only a grammar can cause.

    Raises:
        ServerError: the server did not answer.
    """
    try:
        props = await transport.fetch("/props")
        source = member(props, "chat_template")
        if not isinstance(source, str) or not source:
            return None
        template = ChatTemplate(
            source, controls=(), bos=str(props.get("bos_token", "")), eos=str(props.get("eos_token", ""))
        )
        body = {"prompt": ".", "n_predict": 8, "temperature": 0, "grammar": f'root ::= "{_PROBE}"'}
        written = await transport.fetch("/completion", body)
    except RefusedError:
        return None
    except ModelError as error:
        # A subclass of `ServerError` says that there is no connection, or no permission, or that the server failed.
        if isinstance(error, ServerError) and type(error) not in (ServerError, NotFoundError):
            raise
        return None  # another server, or a template with an error
    if member(written, "content") == _PROBE:
        return template
    _LOG.warning("the server ignores grammars; its answers are validated")
    return None


def grammar_form(task: Task, planner: Planner, template: ChatTemplate, messages: Sequence[Message]) -> Form | None:
    """Return the form of a request that the server enforces by our grammar; None if there is none.

    There is none for free text, images, reasoning, and a grammar with control tokens or above `MAX_GBNF`.
    """
    params, tools = task.params, task.tools
    if _has_no_grammar(task) or any(turn.images for turn in messages):
        return None
    if "think" in template.source and params.thinking is not False:
        return None  # the grammar is that of the answer alone
    wire, declared, tool_prompt = None, [], ""  # the format of calls, and how the prompt describes the tools
    try:
        if task.schema is not None:
            messages = with_system(messages, schema_text(task.schema, tools is not None))
        if tools is not None:
            own = tools.shown_format(template.source, ())
            is_own = own is not None and params.tool_format is None
            wire = own if is_own else tools.wire_format(params.tool_format, template.source, ())
            # A template describes tools, and writes calls, in its own format alone.
            if wire != own or not message_shape(template.source).writes_calls:
                messages = tools.render_history(messages, wire)
            declared, tool_prompt = (tools.to_openai() if wire == own else []), tools.prompt(wire)
        plan = planner.plan(task.plannable, wire)
        if plan.grammar.specials:
            return None
        exported = _exported(plan.grammar, GRAMMAR)
        thinking = params.thinking is not False if isinstance(params.thinking, int) else None  # None: the default
        pieces = template.render_prompt(messages, declared, tool_prompt, thinking)
        prompt = "".join(piece for piece, _ in pieces)
    except (GrammarError, LimitError, ModelError, SchemaError) as error:
        _LOG.info("the request has no grammar for the server: %s", error)
        return None
    if len(exported.text) > MAX_GBNF or prompt.rstrip().endswith("<think>"):
        return None
    fields = {"prompt": prompt, "grammar": exported.text, "preserved_tokens": list(getattr(wire, "call_markers", ()))}
    unsaid = (*exported.unsaid, *(str(problem) for problem in plan.grammar.unenforced))
    return Form(GRAMMAR, fields, unsaid, plan=plan, exported=exported.text)


def text_forms(kind: str, task: Task, planner: Planner, taken: Collection[str]) -> list[Form]:
    """Return the forms of a request that vLLM or SGLang enforces by our grammar as a text: in a structural tag; and for
    vLLM in Lark, which its guidance backend takes and the others do not.

    There is none for other servers, free text, and a grammar with control tokens or above `MAX_GBNF`.

    Args:
        kind: kind of the server.
        task: the requirements of the request.
        planner: makes the grammar of the turn.
        taken: the forms that the server has taken: it reads structural tags if it took one, or strict tools, of which
            vLLM makes one.
    """
    params, tools = task.params, task.tools
    if kind not in ("vllm", "sglang") or _has_no_grammar(task):
        return []
    needs_lark = kind == "vllm" and not {STRUCTURAL_TAG, "strict tools"}.intersection(taken)
    found: list[Form] = []
    try:
        wire = None if tools is None else tools.wire_format(params.tool_format, "", ())
        plan = planner.plan(task.plannable, wire)
        if plan.grammar.specials:
            return []
        for name in (STRUCTURAL_TAG, LARK) if needs_lark else (STRUCTURAL_TAG,):
            exported = _exported(plan.grammar, name)
            if len(exported.text) > MAX_GBNF:
                continue
            found.append(
                Form(
                    name,
                    _text_fields(kind, name, exported.text),
                    (*exported.unsaid, *(str(problem) for problem in plan.grammar.unenforced)),
                    schema_in_prompt=task.schema is not None,
                    tools_in_prompt=tools is not None,
                    plan=plan,
                    exported=exported.text,
                )
            )
    except (GrammarError, LimitError, ModelError, SchemaError) as error:
        _LOG.info("the request has no grammar for the server: %s", error)
    return found


def _has_no_grammar(task: Task) -> bool:
    """Return True if an answer is free text, or JSON that is asked for in words only."""
    return task.free or (task.tools is None and not task.is_json and task.grammar is None)


def _text_fields(kind: str, name: str, text: str) -> dict[str, Any]:
    """Return the fields of a request with a grammar as a text."""
    if name == LARK:
        return {"structured_outputs": {"grammar": text}}
    tag = {"type": "structural_tag", "format": {"type": "grammar", "grammar": text}}
    return {"structured_outputs": {"structural_tag": json.dumps(tag)}} if kind == "vllm" else {"response_format": tag}


def ignores(form: Form, answer: Answer, verdict: Verdict, used_up: bool | None) -> bool:
    """Return True if an answer proves that the server did not enforce a form.

    Args:
        form: the form.
        answer: the answer.
        verdict: its judgement.
        used_up: the result of `Answer.used_up`; a truncated answer proves nothing.
    """
    if used_up is True:
        return False
    if form.plan is not None:
        # The server knows only what the exported text says.
        grammar = _read(form.name, form.exported) if form.left_out else form.plan.grammar
        return not grammar.matches(answer.text)
    if not form.promises or not verdict.wrong or verdict.cut:
        return False
    # Arguments outside of their schema prove nothing: the server may not know a keyword.
    return not answer.calls or any(call.name not in form.promises or not _is_object(call) for call in answer.calls)


def _is_object(call: RawCall) -> bool:
    try:
        return isinstance(json.loads(call.arguments), dict)
    except (ValueError, RecursionError):
        return False


async def completion_pieces(
    transport: Transport, form: Form, sampling: Mapping[str, Any], live: bool
) -> AsyncGenerator[Any, None]:
    """Yield the answer of ``/completion`` as chunks of a chat completion.

    Args:
        transport: connections to the server.
        form: a form of `grammar_form`.
        sampling: the other fields of the body.
        live: stream the answer.
    """
    tokens = await _tokens(transport, form.fields["prompt"])
    body = {**sampling, **form.fields, "prompt": tokens, "stream": live}
    body.pop("chat_template_kwargs", None)  # they are in the prompt
    if "max_tokens" in body:
        body["n_predict"] = body.pop("max_tokens")
    if not live:
        yield _chunk(await transport.fetch("/completion", body))
        return
    async with aclosing(transport.events("/completion", body)) as events:
        async for event in events:
            yield _chunk(event)


async def _tokens(transport: Transport, prompt: str) -> Any:
    """Return the tokens of a prompt; the text, if the server does not tell its tokens. The token that begins a sequence
    is there once, also if the server adds it and the template has written it."""
    try:
        body = {"content": prompt, "add_special": True, "parse_special": True}
        found = await transport.fetch("/tokenize", body)
    except NotFoundError:
        return prompt
    ids = member(found, "tokens")
    if not isinstance(ids, list) or not ids:
        return prompt
    return ids[1:] if len(ids) > 1 and ids[0] == ids[1] else ids


def _chunk(event: Any) -> Any:
    """Return an event of ``/completion`` as a chunk of a chat completion; any other event as it is."""
    if not isinstance(member(event, "content"), str):
        return event
    finish = None
    if event.get("stop"):
        finish = "length" if event.get("stop_type") == "limit" or event.get("truncated") else "stop"
    chunk = {"choices": [{"index": 0, "delta": {"content": event["content"]}, "finish_reason": finish}]}
    counts = {"prompt_tokens": event.get("tokens_evaluated"), "completion_tokens": event.get("tokens_predicted")}
    return {**chunk, "model": event.get("model"), **({"usage": counts} if finish else {})}


#: How the grammar of a form is written, and read again.
_WRITERS = {GRAMMAR: Grammar.to_gbnf, STRUCTURAL_TAG: Grammar.to_ebnf, LARK: Grammar.to_lark}
_READERS: Mapping[str, Callable[[str], Grammar]] = {
    GRAMMAR: Grammar.from_gbnf,
    STRUCTURAL_TAG: Grammar.from_ebnf,
    LARK: Grammar.from_lark,
}


@lru_cache(maxsize=48)
def _exported(grammar: Grammar, form: str) -> Exported:
    return _WRITERS[form](grammar)


@lru_cache(maxsize=16)
def _read(form: str, exported: str) -> Grammar:
    return _READERS[form](exported)
