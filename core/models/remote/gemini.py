"""Gemini's ``generateContent``: requests with validated function calls, and streamed answers.

Source: the types of the ``google-genai`` package, version 3, and Google's guides ("Function calling", "Structured
output", "Thought signatures").
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ...conversation.events import Usage
from ...conversation.messages import ImagePart, Message, ReasoningBlock, ToolCall, new_call_id
from ...generation.params import GenerateParams
from .answer import Answer, brief, count
from .answer_judge import Task
from .form import Form
from .provider import ProviderProtocol, failed
from .schema_dialects import GEMINI, strict_schema, with_notes
from .servers import known, sampling

_FINISHES: Mapping[str, str] = {"STOP": "stop", "MAX_TOKENS": "length"}

#: Finish reasons of answers that Google withheld.
_WITHHELD = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"}
    | {"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}
)

#: Signature with which Google takes a call that Gemini did not make itself (guide "Thought signatures").
NO_SIGNATURE = "skip_thought_signature_validator"

#: What Gemini may refuse of the signatures of calls, in the place of an optional field: that some are missing (these
#: calls get `NO_SIGNATURE`), then those that there are (all calls get it).
_MISSING_SIGNATURES, _ALL_SIGNATURES = "missing thoughtSignature", "thoughtSignature"


class Gemini(ProviderProtocol):
    """Gemini's own API. Arguments as of `Protocol`.

    Function calls are constrained in the modes ``VALIDATED`` (a call or text) and ``ANY`` (a call). Most models refuse
    JSON of a schema beside functions; then the schema is in the prompt.
    """

    subset = GEMINI
    own_answers = "Gemini's"
    address_hint = "Gemini's API, or of a compatible one, often http://HOST:PORT/v1beta"
    model_role, content_field, takes_blank = "model", "parts", True
    url = "https://generativelanguage.googleapis.com/v1beta"
    version = "v1beta"
    key_names = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    own_fields = MappingProxyType({"contents": "give the conversation as the prompt"})
    optional = (
        *(_MISSING_SIGNATURES, _ALL_SIGNATURES),
        *("thinkingConfig", "topK", "topP", "seed", "temperature", "stopSequences"),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_found = False
        self._path = self.name if "/" in self.name else f"models/{self.name}"

    @classmethod
    def key_headers(cls, key: str) -> dict[str, str]:
        """Return the header with a key, which is not put into the address."""
        return {"x-goog-api-key": key} if key else {}

    async def find(self) -> None:
        """Ask for the model's context window, once; a server that does not tell it is no error."""
        if not self.is_found:
            self.window = count((await self._told(self._path)).get("inputTokenLimit")) or None

    # -- requests ----------------------------------------------------------------------------------------------

    def forms(self, task: Task, unknown: Collection[str], messages: Sequence[Message], *, enforced: bool) -> list[Form]:
        """Return the forms, the strongest first: calls that Gemini constrains (with JSON of a schema beside them, if
        that is asked for); calls that it does not; everything in the prompt."""
        tools, params, schema = task.tools, task.params, task.schema
        beside = tools is not None and schema is not None
        prompt = Form("prompt", schema_in_prompt=beside or task.is_json, tools_in_prompt=tools is not None)
        if tools is None:
            if not task.is_json:
                forbidden = [] if task.forbidden is None else task.forbidden.to_openai(closed=True)
                declared = _declared(forbidden, unknown).declarations
                return [Form("text", _tools(declared, {"mode": "NONE"}) if declared else {})]
            answer = self._answer_form(schema, unknown)
            return [prompt] if task.free or answer is None else [answer, prompt]
        if params.tool_format is not None:
            return [prompt]
        declared, left_out = _declared(tools.to_openai(closed=True), unknown)
        schemas = tuple(one["parametersJsonSchema"] for one in declared)
        strict: dict[str, Any] = {"mode": "VALIDATED" if params.tool_choice == "auto" else "ANY"}
        if params.tool_choice not in ("auto", "required"):
            strict["allowedFunctionNames"] = [params.tool_choice]
        constrained = Form("strict tools", _tools(declared, strict), left_out, beside, schemas=schemas)
        possible = [constrained]
        if beside and params.tool_choice == "auto" and (answer := self._answer_form(schema, unknown)) is not None:
            both = replace(
                constrained,
                name=f"strict tools + {answer.name}",
                fields={**constrained.fields, **answer.fields},
                left_out=left_out + answer.left_out,
                schema_in_prompt=False,
                schemas=(*schemas, *answer.schemas),
            )
            possible.insert(0, both)
        if params.tool_choice == "auto":
            possible.append(replace(constrained, name="tools", fields=_tools(declared, {"mode": "AUTO"})))
        return [*possible, prompt]

    def body(self, params: GenerateParams, form: Form, messages: Sequence[Message], *, is_free: bool) -> dict[str, Any]:
        """Return the body of a request."""
        config = sampling(self.kind, params)
        if params.max_tokens is not None:
            config["maxOutputTokens"] = params.max_tokens
        if params.stop and is_free:
            config["stopSequences"] = list(params.stop)
        if params.thinking is not None:
            if isinstance(params.thinking, (bool, str)):
                budget = 0 if params.thinking is False else -1  # 0: no thinking; -1: the model chooses
            else:
                budget = params.thinking
            config["thinkingConfig"] = {"thinkingBudget": budget, "includeThoughts": budget != 0}
        system, contents = self.turns(messages)
        body = {"contents": contents, **({"systemInstruction": {"parts": [{"text": system}]}} if system else {})}
        return {**body, **form.fields, "generationConfig": {**config, **form.fields.get("generationConfig", {})}}

    def merged(self, body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with the user's fields; those of ``generationConfig`` one by one."""
        made = super().merged(body, {key: value for key, value in fields.items() if key != "generationConfig"})
        more = fields.get("generationConfig")
        if isinstance(more, Mapping):
            config = {**body["generationConfig"], **more}
            made["generationConfig"] = {name: value for name, value in config.items() if value is not None}
        return made

    def budget(self, body: Mapping[str, Any]) -> int | None:
        """Return the token budget, which includes thoughts."""
        found = body["generationConfig"].get("maxOutputTokens")
        return found if isinstance(found, int) else None

    def refused_field(self, body: Mapping[str, Any], reason: str) -> str:
        """Return the field that a refusal names, in either spelling of Google's APIs."""
        said = reason.lower().replace("_", "").replace(" ", "")
        if "thoughtsignature" in said and any(_calls_in(turn) for turn in body["contents"]):
            is_missing = "missing" in said and _MISSING_SIGNATURES not in self._refused
            return _MISSING_SIGNATURES if is_missing else _ALL_SIGNATURES
        if "thinking" in said and "thinkingConfig" in body["generationConfig"]:
            return "thinkingConfig"
        if "schema" in said or "function" in said:
            return ""
        return next((name for name in body["generationConfig"] if name in self.optional and name.lower() in said), "")

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request without an optional field, or with signatures that say that there are none."""
        if name in (_MISSING_SIGNATURES, _ALL_SIGNATURES):
            is_replaced = name == _ALL_SIGNATURES
            return {**body, "contents": [_signed(turn, is_replaced=is_replaced) for turn in body["contents"]]}
        config = {key: value for key, value in body["generationConfig"].items() if key != name}
        return {**body, "generationConfig": config}

    def _text(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def _image(self, image: ImagePart) -> dict[str, Any]:
        """Return an image as its bytes, or as its address if it has none."""
        kind = {"mimeType": image.type_of_file}
        if image.data is None:
            return {"fileData": {**kind, "fileUri": image.url or ""}}
        return {"inlineData": {**kind, "data": base64.b64encode(image.data).decode()}}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        return {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}}

    def _result(self, message: Message) -> list[dict[str, Any]]:
        """Return the result of a call; its images are parts of their own."""
        response = {"error" if message.is_error else "output": message.text}
        result = {"id": message.tool_call_id, "name": message.name or "tool", "response": response}
        return [{"functionResponse": result}, *map(self._image, message.images)]

    def _past_answer(self, message: Message) -> list[dict[str, Any]]:
        """Return the parts of an earlier answer, with the signatures that Gemini gave them. The last part of the text
        gets the signature that belongs to no call."""
        signatures = {one.call_id: dict(one.data) for one in self.blocks_of(message, "gemini")}
        parts = self.blocks(message.content)
        if parts:
            parts[-1] |= signatures.get(None, {})
        return parts + [{**self._call(call), **signatures.get(call.id, {})} for call in message.tool_calls]

    def answer_fields(self, schema: Any) -> dict[str, Any]:
        """Return the fields with the schema of the answer."""
        return {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}}

    # -- answers -----------------------------------------------------------------------------------------------

    def _path_of_answers(self) -> str:
        return f"{self._path}:streamGenerateContent?alt=sse"

    def _read(self, event: Any, answer: Answer) -> tuple[str, str]:
        event = event[0] if isinstance(event, list) and event else event
        if isinstance(event, Mapping) and isinstance(event.get("error"), Mapping):
            raise failed(event["error"].get("message"))
        return _read(event, answer)


class _Declared(NamedTuple):
    """Declarations of tools, and pointers of the keywords that they lack, each after the tool's name."""

    declarations: list[dict[str, Any]]
    left_out: tuple[str, ...]


def _declared(tools: Sequence[Mapping[str, Any]], unknown: Collection[str]) -> _Declared:
    """Return tools as Gemini declares them, without the keywords ``unknown``.

    A tool whose schema the subset cannot say (recursion) takes any object, and its schema is in its description.
    """
    made: list[dict[str, Any]] = []
    left_out: list[str] = []
    for tool in tools:
        function = tool["function"]
        name, schema = function["name"], function.get("parameters", {"type": "object"})
        reduced, gone = known(schema, unknown)
        taken = strict_schema(reduced, GEMINI)
        described = function.get("description") or ""
        if taken is None:
            sent: Any = {"type": "object"}
            described = f"{described}\n\nParameters (JSON Schema): {json.dumps(schema, ensure_ascii=False)}".strip()
            left_out.append(name)
        else:
            removed = (*gone, *taken.left_out)
            sent = with_notes(taken.schema, schema, removed)
            left_out += [name + place for place in removed]
        made.append({"name": name, **({"description": described} if described else {}), "parametersJsonSchema": sent})
    return _Declared(made, tuple(left_out))


def _tools(declared: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> dict[str, Any]:
    return {"tools": [{"functionDeclarations": list(declared)}], "toolConfig": {"functionCallingConfig": dict(config)}}


def _calls_in(turn: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for part in turn["parts"] if "functionCall" in part]


def _signed(turn: Mapping[str, Any], *, is_replaced: bool) -> Mapping[str, Any]:
    """Return a turn whose first call has a signature, which Gemini demands of each turn with calls: `NO_SIGNATURE`, if
    it has none of its own. ``is_replaced``: signatures of its own are removed, because the server refused them."""
    if not _calls_in(turn):
        return turn
    parts = [dict(part) for part in turn["parts"]]
    if is_replaced:
        for part in parts:
            part.pop("thoughtSignature", None)
    first = next(part for part in parts if "functionCall" in part)
    first.setdefault("thoughtSignature", NO_SIGNATURE)
    return {**turn, "parts": parts}


def _read(event: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
    """Add a response, or the next chunk of one, to the answer; return the reasoning and the text that it adds. Only the
    first candidate counts. A blocked prompt has no candidates, and ends the answer as filtered. Signatures are kept as
    blocks, to be sent back."""
    answer.model = event.get("modelVersion") or answer.model
    if (usage := event.get("usageMetadata")) is not None:
        answer.usage = _usage(usage)
    feedback = event.get("promptFeedback") or {}
    candidates = event.get("candidates") or []
    if feedback.get("blockReason") and not candidates:
        answer.finish, answer.text = "content_filter", feedback.get("blockReasonMessage") or feedback["blockReason"]
        return "", ""
    if not candidates and usage is None and "promptFeedback" not in event:
        raise KeyError("candidates")
    thoughts, texts = [], []
    for candidate in candidates[:1]:
        for part in (candidate.get("content") or {}).get("parts") or ():
            call, signature = part.get("functionCall"), part.get("thoughtSignature")
            call_id: str | None = None
            if call is not None:
                call_id = str(call.get("id") or new_call_id())
                answer.call(len(answer.calls), call_id, str(call["name"]), json.dumps(call.get("args") or {}))
            elif part.get("thought"):
                thoughts.append(str(part.get("text") or ""))
            else:
                texts.append(str(part.get("text") or ""))
            if signature:
                answer.blocks.append(ReasoningBlock("gemini", {"thoughtSignature": signature}, call_id))
        if (reason := candidate.get("finishReason")) is not None:
            _end(str(reason), candidate.get("finishMessage"), answer)
    return answer.write("".join(thoughts), "".join(texts))


def _end(reason: str, message: Any, answer: Answer) -> None:
    """Record the end of an answer; a call that Gemini itself could not read is asked for again."""
    if reason in _WITHHELD:
        answer.finish = "content_filter"
    elif reason in _FINISHES:
        answer.finish = _FINISHES[reason]
    else:
        answer.finish = "stop"
        answer.malformed = f"the answer could not be read ({reason})" + (f": {brief(str(message))}" if message else "")


def _usage(given: Mapping[str, Any]) -> Usage:
    thoughts = count(given.get("thoughtsTokenCount"))
    return Usage(
        prompt_tokens=count(given.get("promptTokenCount")),
        completion_tokens=count(given.get("candidatesTokenCount")) + thoughts,
        reasoning_tokens=thoughts,
        cached_tokens=count(given.get("cachedContentTokenCount")),
    )
