"""The engine: languages, token masks, decoding and models. It knows no tool and no agent framework.

`Grammar` says what may be written, `Vocabulary` with which tokens; ``grammar.bind(vocabulary)`` gives a `Constraint`
that all sequences share, and each sequence steps its own `Matcher`. `load_model` gives a `Model` that does all of it::

    from toolgrammar.core import Grammar

    grammar = Grammar.from_json_schema({"type": "integer", "minimum": 1})
    assert grammar.matches("12") and not grammar.matches("0")

Names are imported on first use, so ``import toolgrammar.core`` costs next to nothing: neither NumPy, nor a model
library, nor an agent framework is loaded before something needs it. What this package cannot do: describe tools (that
is ``toolgrammar.tools``) or speak to a framework (``toolgrammar.adapters``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compiled import interpreted as _interpreted
from .faces import lazy

if _interpreted.INTERPRETED:
    _interpreted.use_sources()

if TYPE_CHECKING:
    from .basics.options import OnUnsupported, PropertyOrder, Whitespace
    from .conversation.bound import Copied, Seen, of_conversation
    from .conversation.events import (
        ArgumentsDelta,
        CallEnd,
        CallStart,
        CallSureness,
        ChoiceMade,
        Event,
        Finish,
        FinishReason,
        Generation,
        ReasoningDelta,
        TextDelta,
        TokenWritten,
        Usage,
        ValueMass,
    )
    from .conversation.messages import ImagePart, Message, Part, ReasoningBlock, Role, TextPart, ToolCall
    from .conversation.trace import ForbiddenToken, Trace, TracedToken
    from .errors import (
        AuthenticationError,
        BudgetError,
        CancelledError,
        ContentFilterError,
        ContextOverflowError,
        CutAnswerError,
        DecodingError,
        GenerationTimeoutError,
        GrammarError,
        InternalError,
        InvalidArgumentsError,
        InvalidSchemaError,
        LimitError,
        LiveValuesError,
        MissingDependencyError,
        ModelError,
        NotFoundError,
        ParseError,
        PatternError,
        PermissionDeniedError,
        Place,
        PolicyError,
        RateLimitError,
        RecordError,
        SchemaError,
        SchemaWarning,
        ServerConnectionError,
        ServerError,
        ServerFailureError,
        ServerTimeoutError,
        ToolCallError,
        ToolGrammarError,
        ToolTimeoutError,
        UnknownOptionError,
        UnknownToolError,
        UnsatisfiableSchemaError,
        UnsupportedPatternError,
        UnsupportedSchemaError,
        VocabularyError,
    )
    from .generation.params import GenerateParams, JsonMode, OutputParser, ToolInterface
    from .generation.partial import Partial, PartialReader
    from .grammar import Comparison, Example, Grammar, Witness
    from .grammar.constraint_cache import CacheStatistics, ConstraintCache
    from .live import AtLeast, AtMost, DaysFromToday, LiveValues, Values, given
    from .masks import Constraint, MaskTable, Matcher, apply_mask, fill_masks
    from .models import AsyncRun, AsyncStream, Model, RepeatedCall, Run, RunResult, Stream, load_model
    from .record import Record, RecordReport
    from .schema.read.reasoning_order import reasoning_first
    from .vocabulary.vocabulary import Vocabulary

__all__ = [
    "ArgumentsDelta",
    "AsyncRun",
    "AsyncStream",
    "AtLeast",
    "AtMost",
    "AuthenticationError",
    "BudgetError",
    "CacheStatistics",
    "CallEnd",
    "CallStart",
    "CallSureness",
    "CancelledError",
    "ChoiceMade",
    "Comparison",
    "Constraint",
    "ConstraintCache",
    "ContentFilterError",
    "ContextOverflowError",
    "Copied",
    "CutAnswerError",
    "DaysFromToday",
    "DecodingError",
    "Event",
    "Example",
    "Finish",
    "FinishReason",
    "ForbiddenToken",
    "GenerateParams",
    "Generation",
    "GenerationTimeoutError",
    "Grammar",
    "GrammarError",
    "ImagePart",
    "InternalError",
    "InvalidArgumentsError",
    "InvalidSchemaError",
    "JsonMode",
    "LimitError",
    "LiveValues",
    "LiveValuesError",
    "MaskTable",
    "Matcher",
    "Message",
    "MissingDependencyError",
    "Model",
    "ModelError",
    "NotFoundError",
    "OnUnsupported",
    "OutputParser",
    "ParseError",
    "Part",
    "Partial",
    "PartialReader",
    "PatternError",
    "PermissionDeniedError",
    "Place",
    "PolicyError",
    "PropertyOrder",
    "RateLimitError",
    "ReasoningBlock",
    "ReasoningDelta",
    "Record",
    "RecordError",
    "RecordReport",
    "RepeatedCall",
    "Role",
    "Run",
    "RunResult",
    "SchemaError",
    "SchemaWarning",
    "Seen",
    "ServerConnectionError",
    "ServerError",
    "ServerFailureError",
    "ServerTimeoutError",
    "Stream",
    "TextDelta",
    "TextPart",
    "TokenWritten",
    "ToolCall",
    "ToolCallError",
    "ToolGrammarError",
    "ToolInterface",
    "ToolTimeoutError",
    "Trace",
    "TracedToken",
    "UnknownOptionError",
    "UnknownToolError",
    "UnsatisfiableSchemaError",
    "UnsupportedPatternError",
    "UnsupportedSchemaError",
    "Usage",
    "ValueMass",
    "Values",
    "Vocabulary",
    "VocabularyError",
    "Whitespace",
    "Witness",
    "apply_mask",
    "fill_masks",
    "given",
    "load_model",
    "of_conversation",
    "reasoning_first",
]

#: Names that are not in ``errors``, by their module.
_HOME = {
    "conversation.bound": "Copied Seen of_conversation",
    "live": "AtLeast AtMost DaysFromToday LiveValues Values given",
    "masks": "Constraint MaskTable Matcher apply_mask fill_masks",
    "grammar.constraint_cache": "CacheStatistics ConstraintCache",
    "conversation.events": (
        "ArgumentsDelta CallEnd CallStart CallSureness ChoiceMade Event Finish FinishReason Generation "
        "ReasoningDelta TextDelta TokenWritten Usage ValueMass"
    ),
    "grammar": "Comparison Example Grammar Witness",
    "conversation.trace": "ForbiddenToken Trace TracedToken",
    "conversation.messages": "ImagePart Message Part ReasoningBlock Role TextPart ToolCall",
    "models": "AsyncRun AsyncStream Model RepeatedCall Run RunResult Stream load_model",
    "record": "Record RecordReport",
    "schema.read.reasoning_order": "reasoning_first",
    "generation.partial": "Partial PartialReader",
    "generation.params": "GenerateParams JsonMode OutputParser ToolInterface",
    "basics.options": "OnUnsupported PropertyOrder Whitespace",
    "vocabulary": "Vocabulary",
}
_ELSEWHERE = set(" ".join(_HOME.values()).split())

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__, {**_HOME, "errors": " ".join(name for name in __all__ if name not in _ELSEWHERE)}
    )
