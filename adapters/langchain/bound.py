"""A LangChain chat model with bound settings, which stay bound when tools are bound as well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _shared
from . import structured as structured

try:
    from langchain_core.language_models import LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable, RunnableBinding
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error

if TYPE_CHECKING:
    from langchain_core.language_models.chat_model_stream import AsyncChatModelStream, ChatModelStream
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.schema import StreamEvent

# Settings that belong to the tools of an earlier binding, or to one chain.
_OF_TOOLS = ("tools", "tool_choice", "ls_structured_output_format")


class BoundChat(RunnableBinding[LanguageModelInput, AIMessage]):
    """A chat model with bound settings, as `ChatToolGrammar.bind` returns it.

    LangChain's own binding hands ``bind_tools`` on to the model, which does not know the bound settings: an agent
    over ``model.bind(temperature=0.7)`` would run without them.
    """

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """Bind tools to the model, over what is bound already; arguments as `ChatToolGrammar.bind_tools`.

        Tools replace those of an earlier binding, together with the choice among them.
        """
        settings = {name: value for name, value in self.kwargs.items() if name not in _OF_TOOLS}
        if "tools" not in self.kwargs and "tool_choice" in self.kwargs:  # a choice that waits for its tools
            settings["tool_choice"] = self.kwargs["tool_choice"]
        # None is the default of an argument: it replaces nothing that is bound.
        settings |= {name: value for name, value in kwargs.items() if value is not None or name not in settings}
        model: Any = self.bound
        bound: BoundChat = model.bind_tools(tools, **settings)
        return bound.model_copy(update={"config": self.config, "config_factories": self.config_factories})

    def with_structured_output(self, schema: Any = None, **kwargs: Any) -> Runnable[Any, Any]:
        """Return a chain whose answers match a schema; arguments as `ChatToolGrammar.with_structured_output`."""
        return structured.asking(self, schema, **kwargs)

    if TYPE_CHECKING:
        # LangChain's own binding has these types; what runs is inherited, in the versions that have it.

        @overload  # type: ignore[override]
        def stream_events(
            self, input: LanguageModelInput, config: RunnableConfig | None = None, *,
            version: Literal["v1", "v2"] = "v2", **kwargs: Any,
        ) -> Iterator[StreamEvent]: ...  # fmt: skip

        @overload
        def stream_events(
            self, input: LanguageModelInput, config: RunnableConfig | None = None, *,
            version: Literal["v3"], stop: list[str] | None = None, **kwargs: Any,
        ) -> ChatModelStream: ...  # fmt: skip

        def stream_events(self, *args: Any, **kwargs: Any) -> Any:
            """Return the events of an answer, as `BaseChatModel.stream_events`."""

        @overload
        def astream_events(
            self, input: LanguageModelInput, config: RunnableConfig | None = None, *,
            version: Literal["v1", "v2"] = "v2", **kwargs: Any,
        ) -> AsyncIterator[StreamEvent]: ...  # fmt: skip

        @overload
        def astream_events(
            self, input: LanguageModelInput, config: RunnableConfig | None = None, *,
            version: Literal["v3"], stop: list[str] | None = None, **kwargs: Any,
        ) -> Awaitable[AsyncChatModelStream]: ...  # fmt: skip

        def astream_events(self, *args: Any, **kwargs: Any) -> Any:
            """Return the events of an answer, as `BaseChatModel.astream_events`."""

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return the path of LangChain's own binding, which LangChain can load."""
        return [*cls.get_lc_namespace(), RunnableBinding.__name__]
