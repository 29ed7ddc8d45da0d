"""The LangChain chat model as LangChain sees it: settings, copies, saving, caching, counting, profile, errors."""

from __future__ import annotations

import inspect
import json
import time
from typing import Any
from uuid import UUID

import pytest
from langchain_core import exceptions
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd, dumps, load
from langchain_core.messages import HumanMessage, trim_messages
from langchain_core.outputs import LLMResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import tool
from pydantic import BaseModel

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.adapters.langchain import messages as langchain_messages
from toolgrammar.adapters.langchain.messages import to_messages
from toolgrammar.core import (
    ContextOverflowError,
    Grammar,
    Message,
    Model,
    ModelError,
    ToolGrammarError,
    Vocabulary,
    load_model,
)
from toolgrammar.core import errors as our_errors
from toolgrammar.core.testing import ScriptedModel

# LangChain's own names for these came with later versions; before, our errors pass as they are.
REFUSED = getattr(exceptions, "ModelInvalidRequestError", ToolGrammarError)
OVERFLOWN = getattr(exceptions, "ContextOverflowError", ContextOverflowError)
LATE = getattr(exceptions, "ModelTimeoutError", TimeoutError)

# Which classes may be loaded became the caller's to say after 1.0.
NEWER = "allowed_objects" in inspect.signature(load).parameters
ALLOWED: dict[str, Any] = {"allowed_objects": [ChatToolGrammar]} if NEWER else {}


@tool
def set_heat(degrees: int, boost: bool = False) -> str:
    """Set the heat."""
    return f"{degrees}"


def scripted(*replies: str | Message, **fields: Any) -> ChatToolGrammar:
    """A chat model that says these replies."""
    return ChatToolGrammar(model=ScriptedModel(replies), **fields)


def test_token_counting(noise: Model) -> None:
    """Tokens are counted by the model, tools included, so that trimming sees what the model will."""
    model = ChatToolGrammar(model=noise)
    messages = [HumanMessage("word " * 50), HumanMessage("hello")]
    count = model.get_num_tokens_from_messages(messages)
    assert count == noise.count_tokens(to_messages(messages))
    assert model.get_num_tokens_from_messages(messages, tools=[set_heat]) > count + 20
    assert model.get_num_tokens_from_messages([]) == 0
    assert model.get_token_ids("hello") == noise.backend.encode("hello")
    assert trim_messages(messages, max_tokens=count - 10, token_counter=model) == messages[1:]


def test_identity(noise: Model) -> None:
    """What changes the output is in the identity; a live model is not."""
    model = ChatToolGrammar(model=noise, temperature=0.5, seed=3)
    identity = model._identifying_params
    assert (identity["temperature"], identity["seed"], identity["model"]) == (0.5, 3, "embedded")
    json.dumps(identity)
    assert model.model_copy().invoke("x", max_tokens=2).text


def test_tracing_parameters(noise: Model) -> None:
    """Traces name us as provider, and the model, the temperature and the stop strings."""
    params = ChatToolGrammar(model=noise, temperature=0.5, stop=["a"])._get_ls_params()
    assert (params["ls_provider"], params["ls_model_name"]) == ("toolgrammar", "embedded")
    assert (params["ls_temperature"], params["ls_stop"]) == (0.5, ["a"])


def test_errors_are_langchains() -> None:
    """A prompt that does not fit is LangChain's overflow error and ours; a timeout is LangChain's timeout.

    A LangChain that has no such error gets ours.
    """
    small = ChatToolGrammar(model=ScriptedModel(["x"], context_window=50))
    with pytest.raises(OVERFLOWN) as caught:
        small.invoke("word " * 100)
    assert isinstance(caught.value, ContextOverflowError)
    late = ChatToolGrammar(model=ScriptedModel(["x" * 100]), timeout=0.0)
    with pytest.raises(LATE) as late_error:
        late.invoke("hello")
    assert isinstance(late_error.value, TimeoutError)
    odd = {"title": "f", "type": "object", "properties": {"x": {"type": "nonsense"}}}
    with pytest.raises(REFUSED, match="nonsense"):
        late.bind_tools([odd])


def test_llm_output_is_summed() -> None:
    """Generating for several prompts adds the counts up."""
    result = scripted("one", "two").generate([[HumanMessage("a")], [HumanMessage("b")]])
    assert result.llm_output is not None
    assert result.llm_output["token_usage"]["completion_tokens"] == len("one") + len("two")


@pytest.mark.parametrize(
    "changed",
    [
        {"thinking": 5},
        {"repetition_penalty": 1.5},
        {"parallel_tool_calls": False},
        {"seed": 2},
        {"temperature": 0.5},
        {"stop": ["."]},
        {"max_tokens": 7},
    ],
)
def test_cache_tells_settings_apart(noise: Model, changed: dict[str, Any]) -> None:
    """An answer is cached under everything that shapes it: other settings never meet in the cache."""
    cache = InMemoryCache()
    settings: dict[str, Any] = {"model": noise, "max_tokens": 5, "temperature": 1.0, "seed": 1, "cache": cache}
    ChatToolGrammar(**settings).invoke("Hello")
    ChatToolGrammar(**settings).invoke("Hello")
    assert len(cache._cache) == 1
    ChatToolGrammar(**{**settings, **changed}).invoke("Hello")
    assert len(cache._cache) == 2


def test_other_models_and_schemas_are_other_keys() -> None:
    """Two loaded models of one name, two grammars and two classes that look alike never share an answer."""
    cache = InMemoryCache()
    one, other = ScriptedModel(["one"]), ScriptedModel(["other"])
    assert ChatToolGrammar(model=one, cache=cache).invoke("x").text == "one"
    assert ChatToolGrammar(model=one, cache=cache).invoke("x").text == "one"  # from the cache: the script is over
    assert ChatToolGrammar(model=other, cache=cache).invoke("x").text == "other"

    model = scripted("12", "12", cache=InMemoryCache())
    assert model.invoke("x", grammar=Grammar.from_regex("[0-9]")).text == "1"
    assert model.invoke("x", grammar=Grammar.from_regex("[0-9]{2}")).text == "12"

    def shape(kind: type) -> type[BaseModel]:
        class Shape(BaseModel):
            value: kind

        return Shape

    model = scripted('{"value": 1}', '{"value": "1"}', cache=InMemoryCache())
    assert model.invoke("x", response_format=shape(int)).text == '{"value": 1}'
    assert model.invoke("x", response_format=shape(str)).text == '{"value": "1"}'


@pytest.mark.skipif("profile" not in BaseChatModel.model_fields, reason="profiles came with langchain-core 1.1")
def test_profile(noise: Model) -> None:
    """The profile tells agents what the model can do; with it they ask for a constrained final answer."""
    profile = ChatToolGrammar(model=noise, max_tokens=50, tool_format="json").profile
    assert profile is not None
    assert profile["max_input_tokens"] == noise.context_window
    assert profile["max_output_tokens"] == 50
    assert profile["structured_output"]
    assert not profile["image_inputs"]
    assert profile["reasoning_output"]  # its vocabulary has the markers
    bytes_alone = Vocabulary([bytes((byte,)) for byte in range(256)] + [None], eos=[256])
    plain = ChatToolGrammar(model=ScriptedModel(["x"], vocabulary=bytes_alone), tool_format="llama-json").profile
    assert plain is not None
    assert not plain["reasoning_output"]
    own = ChatToolGrammar(model=noise, profile={"structured_output": False}).profile
    assert own == {"structured_output": False}


def test_unknown_setting_is_refused() -> None:
    """A misspelt setting is an error, and so is one of a server for a model that is on none."""
    with pytest.raises(ModelError, match="temprature"):
        ChatToolGrammar(temprature=0)
    with pytest.raises(ModelError, match="api_key, max_retries"):
        ChatToolGrammar(model="embedded", max_retries=2, api_key="x")
    assert ChatToolGrammar(model_name="embedded").model == "embedded"
    with pytest.raises(ModelError, match="unknown model address"):
        ChatToolGrammar(model_name="nowhere")


def test_saved_and_loaded(noise: Model) -> None:
    """A model with a URI is saved as its settings and loaded again; one made of a loaded model says that it is not."""
    model = ChatToolGrammar(model="embedded", options={"seed": 3}, temperature=0.5, stop=["x"])
    saved = json.loads(dumps(model))
    assert saved["id"] == ["toolgrammar", "adapters", "langchain", "ChatToolGrammar"]
    expected = {"model": "embedded", "options": {"seed": 3}, "temperature": 0.5, "stop": ["x"]}
    assert {name: value for name, value in saved["kwargs"].items() if value is not None} == expected
    assert dumpd(ChatToolGrammar(model=noise))["type"] == "not_implemented"
    assert (
        dumpd(ChatToolGrammar(model="embedded", options={"seed": 3, "context_window": 4_096}))["type"] == "constructor"
    )


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_loaded_again() -> None:
    """LangChain loads what it saved, when the caller allows our class."""
    model = ChatToolGrammar(model="embedded", temperature=1.0, seed=3, max_tokens=8)
    again = load(dumpd(model), valid_namespaces=["toolgrammar"], **ALLOWED)
    assert again.invoke("Hello").text == model.invoke("Hello").text


def test_changed_on_the_fly() -> None:
    """LangChain's configurable fields make copies; they share the loaded model, whose object they do not have."""
    model = scripted("hello there", "hello there")
    configurable = model.configurable_fields(max_tokens=ConfigurableField(id="budget"))
    assert configurable.with_config(configurable={"budget": 5}).invoke("x").text == "hello"
    assert configurable.invoke("x").text == "hello there"
    copied = ChatToolGrammar(**{name: getattr(model, name) for name in type(model).model_fields})
    assert copied.loaded is model.loaded
    assert ChatToolGrammar(model="embedded", loaded=model.loaded).loaded is not model.loaded


def test_another_model_for_one_call(noise: Model) -> None:
    """A call may name another model, and its name is in the answer and in the trace."""
    model = scripted("never said", max_tokens=3)
    assert model.invoke("x", model="embedded").response_metadata["model_name"] == "embedded"
    assert model._get_ls_params(model="embedded")["ls_model_name"] == "embedded"
    assert model.invoke("x", model=noise).response_metadata["model_name"] == "embedded"


def test_rate_limiter() -> None:
    """LangChain's rate limiter holds calls back."""
    limiter = InMemoryRateLimiter(requests_per_second=20, check_every_n_seconds=0.01, max_bucket_size=1)
    model = scripted("a", "b", "c", rate_limiter=limiter)
    started = time.monotonic()
    assert [model.invoke("x").text for _ in range(3)] == ["a", "b", "c"]
    assert time.monotonic() - started > 0.09


def test_batches() -> None:
    """A batch is answered in order, also asynchronously, and an error stays with its own prompt."""

    def script(messages: Any) -> str:
        if messages[-1].text == "b":
            raise ModelError("no b")
        return str(messages[-1].text) * 2

    model = ChatToolGrammar(model=ScriptedModel(script))
    first, second, third = model.batch(["a", "b", "c"], return_exceptions=True)
    assert (first.text, third.text) == ("aa", "cc")
    assert isinstance(second, ModelError)
    assert {number: answer.text for number, answer in model.batch_as_completed(["x", "y"])} == {0: "xx", 1: "yy"}


class Heard(BaseCallbackHandler):
    """Keeps what LangChain's callbacks are told."""

    def __init__(self) -> None:
        self.started: dict[str, Any] = {}
        self.tokens: list[str] = []
        self.ended: list[LLMResult] = []
        self.errors: list[BaseException] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A call begins."""
        self.started = kwargs

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """A chunk came."""
        self.tokens.append(token)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """A call ended well."""
        self.ended.append(response)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A call failed."""
        self.errors.append(error)


@pytest.mark.parametrize("streaming", [True, False])
def test_callbacks(streaming: bool) -> None:
    """Callbacks hear of the settings, of every chunk when streaming, of the end, and of errors."""
    heard = Heard()
    model = scripted("one two", streaming=streaming, temperature=0.5)
    assert model.invoke("x", config={"callbacks": [heard]}).text == "one two"
    assert "".join(heard.tokens) == ("one two" if streaming else "")
    assert heard.started["invocation_params"]["temperature"] == 0.5
    assert heard.started["metadata"]["ls_provider"] == "toolgrammar"
    assert heard.ended[0].generations[0][0].text == "one two"
    with pytest.raises(ModelError):
        model.invoke("x", config={"callbacks": [heard]})  # the script is over
    assert isinstance(heard.errors[0], ModelError)


def test_streaming_callbacks_hear_each_chunk_once() -> None:
    """A stream tells its callbacks each chunk once."""
    heard = Heard()
    pieces = [chunk.text for chunk in scripted("one two").stream("x", config={"callbacks": [heard]})]
    assert "".join(heard.tokens) == "".join(pieces) == "one two"


# Every error that we raise on purpose, and what LangChain calls it.
NAMES = {
    "ContextOverflowError": "ContextOverflowError",
    **dict.fromkeys(["GenerationTimeoutError", "ServerTimeoutError"], "ModelTimeoutError"),
    "AuthenticationError": "ModelAuthenticationError",
    "PermissionDeniedError": "ModelPermissionDeniedError",
    "NotFoundError": "ModelNotFoundError",
    "RateLimitError": "ModelRateLimitError",
    "ServerFailureError": "ModelAPIError",
    "ServerConnectionError": "ModelConnectionError",
    "ContentFilterError": "ModelRefusalError",
    **dict.fromkeys(["SchemaError", "GrammarError", "LimitError", "BudgetError"], "ModelInvalidRequestError"),
    **dict.fromkeys(["UnknownToolError", "ModelError"], "ModelInvalidRequestError"),
}

#: Our errors by their codes.
OURS: dict[str, type[ToolGrammarError]] = {
    each.code: each
    for each in vars(our_errors).values()
    if isinstance(each, type) and issubclass(each, ToolGrammarError)
}


def test_error_table() -> None:
    """The table names what agents and middleware act on, and leaves out what this LangChain does not have."""
    named = {OURS[code].__name__: theirs.__name__ for code, theirs in langchain_messages.errors().items()}
    assert named == {ours: theirs for ours, theirs in NAMES.items() if hasattr(exceptions, theirs)}


def test_langchain_retries_what_we_call_retryable() -> None:
    """LangChain and we agree on what may succeed when it is tried again."""
    for code, theirs in langchain_messages.errors().items():
        assert getattr(theirs, "is_retryable", False) == OURS[code].retryable, code


def test_langchains_errors_are_known() -> None:
    """A new error of LangChain's for models shows up here: it may be the better name for one of ours."""
    root = getattr(exceptions, "ModelError", None)
    found = {
        name for name, value in vars(exceptions).items() if root and isinstance(value, type) and issubclass(value, root)
    }
    assert found - {"ModelError"} <= {*NAMES.values()}


def test_older_langchain_gets_our_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where LangChain has no name for an error, ours is raised as it is."""
    for name in {*NAMES.values()}:
        monkeypatch.delattr(exceptions, name, raising=False)
    assert langchain_messages.errors() == {}
    with pytest.raises(ToolGrammarError) as caught:
        ChatToolGrammar(model=ScriptedModel(["x"], context_window=50)).invoke("word " * 100)
    assert type(caught.value) is ContextOverflowError


def test_models_are_loaded_once(noise: Model) -> None:
    """Copies, and calls that name another model, load nothing twice."""
    model = ChatToolGrammar(model=noise)
    assert model.model_copy(deep=True).loaded is model.loaded
    seeded = ChatToolGrammar(model="embedded", options={"seed": 5})
    assert seeded.loaded.model() is seeded.loaded.model("embedded")
    assert seeded.loaded.model() is not load_model("embedded")


def test_the_model_has_one_name() -> None:
    """``model_name`` is another name of ``model``; both together would drop one unseen."""
    assert ChatToolGrammar(model_name="embedded").model == "embedded"
    with pytest.raises(ModelError, match="one setting"):
        ChatToolGrammar(model="embedded", model_name="other")
