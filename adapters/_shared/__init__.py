"""The parts of an adapter that know no framework: loading models, reading options and messages, checks, errors.

An adapter translates and decides nothing. A minimal one holds a `LoadedModel`, makes a `Request` of each call, and
returns the answer in the framework's form. ``errors`` and ``to_their_message`` are its own: the first returns the
framework's errors by the codes of ours::

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

from toolgrammar.core.basics import require_known as require_known
from toolgrammar.core.conversation import (
    message_of as message_of,
    parts_of as parts_of,
    past_call as past_call,
    role_of as role_of,
)

from .answers import (
    PROBABILITIES as PROBABILITIES,
    Collector as Collector,
    TextTokens as TextTokens,
    cut_places as cut_places,
    executable_text as executable_text,
    extension_field as extension_field,
    forced_share as forced_share,
    probability_params as probability_params,
    problem as problem,
    reported_fields as reported_fields,
    require_ended as require_ended,
    require_executable as require_executable,
    require_whole as require_whole,
    text_tokens as text_tokens,
    vocabulary_of as vocabulary_of,
)
from .engines import (
    require_no_policy as require_no_policy,
    require_settled as require_settled,
    schemas_in as schemas_in,
    settled as settled,
)
from .errors import REQUEST_ERRORS as REQUEST_ERRORS, missing as missing, translated as translated
from .loaded_model import (
    LoadedModel as LoadedModel,
    count_text as count_text,
    count_tokens as count_tokens,
    guarantee as guarantee,
    require_storable as require_storable,
    thinks as thinks,
)
from .messages import (
    closed as closed,
    content_of as content_of,
    is_free as is_free,
    openai_tool as openai_tool,
    schema_in as schema_in,
    tool_name as tool_name,
)
from .options import (
    CONNECTION as CONNECTION,
    EFFORTS as EFFORTS,
    GENERATION as GENERATION,
    LOADING as LOADING,
    Confirmed as Confirmed,
    generation_params as generation_params,
    loading_options as loading_options,
    tool_choice as tool_choice,
)
from .request import Request as Request, validators_of as validators_of
from .settings import Settings as Settings
