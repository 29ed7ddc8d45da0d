"""The parts of an adapter that know no framework: loading models, reading options and messages, checks, errors.

An adapter translates and decides nothing. A minimal one holds a `LoadedModel`, makes a `Request` of each call, and
returns the answer in the framework's form. ``errors`` and ``to_their_message`` are its own: the first returns rows of
`Translation`, from our errors to the framework's::

    class ChatModel(framework.ChatModel):
        def __init__(self, model="embedded", *, options=None, **settings):
            self._params = generation_params(settings)  # a wrong setting is an error now
            self._loaded = LoadedModel(model, options)

        def chat(self, messages, tools=(), tool_choice=None, response_format=None):
            with translated(errors):
                schema = None if is_free(response_format) else closed(schema_in(response_format))
                params = self._loaded.with_tools(self._params, [*map(openai_tool, tools)], tool_choice, schema)
                conversation = [message_of(message) for message in messages]
                request = Request(self._loaded.model(), conversation, params, validators_of(response_format))
                generation = request.generate()
                request.check(generation)
            return to_their_message(generation)  # calls as executable_text: a cut call must not run

``_shared/messages.py`` has more forms of messages, ``Request.stream`` streams, and ``require_executable`` guards calls
that the adapter runs itself.
"""

from __future__ import annotations

from toolgrammar.core.basics import require_known
from toolgrammar.core.conversation import image, message_of, parts_of, past_call

from .answers import (
    Collector,
    cut_places,
    executable_text,
    forced_share,
    problem,
    require_ended,
    require_executable,
    require_whole,
)
from .engines import require_settled, schemas_in
from .errors import REQUEST_ERRORS, ErrorTable, Translation, missing, translated
from .loaded_model import (
    MAX_TOOL_SETS,
    LoadedModel,
    count_text,
    count_tokens,
    guarantee,
    require_storable,
    thinks,
)
from .logprobs import TELLING, TextTokens, beside, note, telling, text_tokens, vocabulary_of
from .messages import closed, is_free, openai_tool, role_of, schema_in, tool_name
from .options import (
    CONNECTION,
    EFFORTS,
    GENERATION,
    LOADING,
    Confirmed,
    generation_params,
    loading_options,
    stop_strings,
    tool_choice,
)
from .request import Request, Validators, validators_of
from .settings import Settings

__all__ = [
    "CONNECTION",
    "EFFORTS",
    "GENERATION",
    "LOADING",
    "MAX_TOOL_SETS",
    "REQUEST_ERRORS",
    "TELLING",
    "Collector",
    "Confirmed",
    "ErrorTable",
    "LoadedModel",
    "Request",
    "Settings",
    "TextTokens",
    "Translation",
    "Validators",
    "beside",
    "closed",
    "count_text",
    "count_tokens",
    "cut_places",
    "executable_text",
    "forced_share",
    "generation_params",
    "guarantee",
    "image",
    "is_free",
    "loading_options",
    "message_of",
    "missing",
    "note",
    "openai_tool",
    "parts_of",
    "past_call",
    "problem",
    "require_ended",
    "require_executable",
    "require_known",
    "require_settled",
    "require_storable",
    "require_whole",
    "role_of",
    "schema_in",
    "schemas_in",
    "stop_strings",
    "telling",
    "text_tokens",
    "thinks",
    "tool_choice",
    "tool_name",
    "translated",
    "validators_of",
    "vocabulary_of",
]
