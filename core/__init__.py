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
    from .basics.options import OnUnsupported as OnUnsupported, PropertyOrder as PropertyOrder, Whitespace as Whitespace
    from .conversation.bound import Copied as Copied, Seen as Seen, of_conversation as of_conversation
    from .conversation.events import (
        ArgumentsDelta as ArgumentsDelta,
        CallEnd as CallEnd,
        CallStart as CallStart,
        CallSureness as CallSureness,
        ChoiceMade as ChoiceMade,
        Event as Event,
        Finish as Finish,
        FinishReason as FinishReason,
        Generation as Generation,
        ReasoningDelta as ReasoningDelta,
        TextDelta as TextDelta,
        TokenWritten as TokenWritten,
        Usage as Usage,
        ValueMass as ValueMass,
    )
    from .conversation.messages import (
        ImagePart as ImagePart,
        Message as Message,
        Part as Part,
        ReasoningBlock as ReasoningBlock,
        Role as Role,
        TextPart as TextPart,
        ToolCall as ToolCall,
    )
    from .conversation.trace import ForbiddenToken as ForbiddenToken, Trace as Trace, TracedToken as TracedToken
    from .errors import (
        AuthenticationError as AuthenticationError,
        BudgetError as BudgetError,
        CancelledError as CancelledError,
        ContentFilterError as ContentFilterError,
        ContextOverflowError as ContextOverflowError,
        CutAnswerError as CutAnswerError,
        DecodingError as DecodingError,
        GenerationTimeoutError as GenerationTimeoutError,
        GrammarError as GrammarError,
        InternalError as InternalError,
        InvalidArgumentsError as InvalidArgumentsError,
        InvalidSchemaError as InvalidSchemaError,
        LimitError as LimitError,
        LiveValuesError as LiveValuesError,
        MissingDependencyError as MissingDependencyError,
        ModelError as ModelError,
        NotFoundError as NotFoundError,
        ParseError as ParseError,
        PatternError as PatternError,
        PermissionDeniedError as PermissionDeniedError,
        Place as Place,
        PolicyError as PolicyError,
        RateLimitError as RateLimitError,
        RecordError as RecordError,
        SchemaError as SchemaError,
        SchemaWarning as SchemaWarning,
        ServerConnectionError as ServerConnectionError,
        ServerError as ServerError,
        ServerFailureError as ServerFailureError,
        ServerTimeoutError as ServerTimeoutError,
        ToolCallError as ToolCallError,
        ToolGrammarError as ToolGrammarError,
        ToolTimeoutError as ToolTimeoutError,
        UnknownOptionError as UnknownOptionError,
        UnknownToolError as UnknownToolError,
        UnsatisfiableSchemaError as UnsatisfiableSchemaError,
        UnsupportedPatternError as UnsupportedPatternError,
        UnsupportedSchemaError as UnsupportedSchemaError,
        VocabularyError as VocabularyError,
    )
    from .generation.params import (
        GenerateParams as GenerateParams,
        JsonMode as JsonMode,
        OutputParser as OutputParser,
        ToolInterface as ToolInterface,
    )
    from .generation.partial import Partial as Partial, PartialReader as PartialReader
    from .grammar import Comparison as Comparison, Example as Example, Grammar as Grammar, Witness as Witness
    from .grammar.constraint_cache import CacheStatistics as CacheStatistics, ConstraintCache as ConstraintCache
    from .live import (
        AtLeast as AtLeast,
        AtMost as AtMost,
        DaysFromToday as DaysFromToday,
        LiveValues as LiveValues,
        Values as Values,
        given as given,
    )
    from .masks import (
        Constraint as Constraint,
        MaskTable as MaskTable,
        Matcher as Matcher,
        apply_mask as apply_mask,
        fill_masks as fill_masks,
    )
    from .models import (
        AsyncRun as AsyncRun,
        AsyncStream as AsyncStream,
        Model as Model,
        RepeatedCall as RepeatedCall,
        Run as Run,
        RunResult as RunResult,
        Stream as Stream,
        load_model as load_model,
    )
    from .record import Record as Record, RecordReport as RecordReport
    from .schema.read.reasoning_order import reasoning_first as reasoning_first
    from .vocabulary.vocabulary import Vocabulary as Vocabulary

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
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
            "errors": (
                "AuthenticationError BudgetError CancelledError ContentFilterError ContextOverflowError "
                "CutAnswerError DecodingError GenerationTimeoutError GrammarError InternalError "
                "InvalidArgumentsError InvalidSchemaError LimitError LiveValuesError MissingDependencyError "
                "ModelError NotFoundError ParseError PatternError PermissionDeniedError Place PolicyError "
                "RateLimitError RecordError SchemaError SchemaWarning ServerConnectionError ServerError "
                "ServerFailureError ServerTimeoutError ToolCallError ToolGrammarError ToolTimeoutError "
                "UnknownOptionError UnknownToolError UnsatisfiableSchemaError UnsupportedPatternError "
                "UnsupportedSchemaError VocabularyError"
            ),
        },
    )
