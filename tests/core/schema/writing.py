"""The judge of what is written under a schema: whatever binds can be finished from everywhere, validly."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np

from toolgrammar.core import (
    BudgetError,
    GenerateParams,
    Grammar,
    LimitError,
    SchemaError,
    UnsatisfiableSchemaError,
    Vocabulary,
)
from toolgrammar.core.generation.loop import Decoding
from toolgrammar.core.generation.token_sequence import Forward

from ...schemas import random_schema, random_value
from ...vocabularies import tekken
from ...whole_masks import MaskError, Steps, check_mask

if TYPE_CHECKING:
    import numpy.typing as npt

    from toolgrammar.core import Constraint, Matcher

#: Tokens of more than a byte, as tokenizers have them: across the joints of JSON, with whole names, items and escapes.
WORDS = (
    b'": ', b", ", b'", "', b'":', b'{"', b'{"a": ', b"}]", b"[[", b"]]", b"[]", b"{}", b"], [", b"}, {", b"[{", b"0, ",
    b"1, 1", b"12", b"0.0", b"1e", b"true", b"false, ", b"null", b'"a"', b'a", "a"', b'"a": 1, "a"', b"\xc3\xa9", b"ab",
    b'"b": ', b"\\u00", b'", "b": ', b": [", b'"]', b'"}', b"]}", b"e1", b'""',
)  # fmt: skip
EOS = 256 + len(WORDS)
VOCABULARY = Vocabulary([bytes((byte,)) for byte in range(256)] + list(WORDS) + [None], eos=[EOS])

ALL = range(len(VOCABULARY))

#: Tokens that walks prefer: letters and digits alone would never end a string.
LIKELY = frozenset((*range(256, len(VOCABULARY)), *b'"]},0:1a'))

#: How many tokens a walk writes at most before it is finished by force.
MAX_WALK = 40

#: With how many budgets below the length of the shortest text a schema is tried at most.
MAX_BUDGETS = 16


#: Of so many seeds, one is judged with a large vocabulary too: along a walk of so many tokens.
LARGE_SHARE, MAX_LARGE_WALK = 20, 24

#: Maximum share of schemas that may be refused though nothing says that they are unsatisfiable.
MAX_REFUSED = 0.07


class WritingError(AssertionError):
    """What the judge objects to, with everything needed to see it again."""

    def __init__(self, what: str, schema: Any, options: dict[str, Any], text: bytes = b"") -> None:
        self.what = what
        self.case = {"schema": schema, "options": options}
        self.text = text
        super().__init__(f"{what}\ntext: {text!r}\noptions: {options}\nschema: {json.dumps(schema)}")


@dataclass
class Tally:
    """What was judged: schemas by outcome (``"written"``, ``"unsatisfiable"``, or the kind of the refusal), and steps.

    Attributes:
        large: masks of the large vocabulary.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    completions: int = 0
    generations: int = 0
    large: int = 0

    def count(self, outcome: str, number: int = 1) -> None:
        """Add some schemas."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + number

    def add(self, other: Tally) -> None:
        """Add what another counted."""
        for outcome, number in other.outcomes.items():
            self.count(outcome, number)
        self.tokens += other.tokens
        self.completions += other.completions
        self.generations += other.generations
        self.large += other.large

    @property
    def schemas(self) -> int:
        """How many schemas had an outcome."""
        return sum(self.outcomes.values())

    @property
    def refused(self) -> int:
        """How many schemas were refused though nothing says that they are unsatisfiable."""
        return sum(number for name, number in self.outcomes.items() if name not in ("written", "unsatisfiable"))


class _Noise:
    """A backend whose model has no idea: random logits from one seed."""

    name = "noise"
    tool_format = "hermes"
    chat_template = None
    takes_thinking = False
    context_window = 10_000
    vocabulary = VOCABULARY

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", "surrogatepass"))


def draw_options(rng: random.Random) -> dict[str, Any]:
    """Return keyword arguments for `Grammar.from_json_schema`."""
    return {
        "whitespace": rng.choice(("single", "single", "compact", "flexible")),
        "property_order": rng.choice(("schema", "schema", "any")),
        "additional_properties": rng.random() < 0.8,
    }


def judge_seed(seed: int, tally: Tally, *, large: bool = False) -> None:
    """Draw a schema and options from a seed, and judge what is written under them.

    Args:
        seed: of everything that is drawn.
        tally: what is counted.
        large: judge masks of a large vocabulary, too, under one of `LARGE_SHARE` seeds; needs ``mistral-common``.

    Raises:
        WritingError: what is wrong.
    """
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2, 2, 3)))
    options = draw_options(rng)
    judge(schema, options, rng, tally)
    if large and seed % LARGE_SHARE == 0:
        judge_masks(schema, options, random.Random(seed), tally, tekken())


def judge_masks(schema: Any, options: dict[str, Any], rng: random.Random, tally: Tally, large: Vocabulary) -> None:
    """Compare masks of a large vocabulary with what is accepted along one random walk.

    Raises:
        WritingError: what is wrong.
    """
    case = _Case(schema, options, tally)
    written = b""
    try:
        constraint = Grammar.from_json_schema(schema, **options).bind(large)
    except (SchemaError, LimitError):
        return  # `judge` counts it
    try:
        matcher = constraint.matcher()
        steps = Steps()
        for _ in range(MAX_LARGE_WALK):
            allowed = np.flatnonzero(_judged_mask(matcher, written, case, steps))
            tally.large += 1
            if not len(allowed):
                if not matcher.is_finished:
                    raise case.error("a dead end of the large vocabulary", written)
                return
            token = int(rng.choice(allowed))
            if not matcher.accept(token):
                raise case.error(f"the large mask allows {large.tokens[token]!r}, accept refuses", written)
            written += large.tokens[token] or b""
            completion = matcher.shortest_completion()
            case.check(written + completion, written)
    except WritingError:
        raise
    except Exception as error:
        raise case.error(f"{type(error).__name__}: {error}", written) from error


def _judged_mask(matcher: Matcher, written: bytes, case: _Case, steps: Steps | None = None) -> npt.NDArray[np.bool_]:
    """Return the mask of a text, all of which is compared with what the matcher accepts."""
    try:
        return check_mask(matcher, steps)
    except MaskError as error:
        raise case.error(str(error), written) from None


def judge(schema: Any, options: dict[str, Any], rng: random.Random, tally: Tally) -> None:
    """Bind a schema, then finish it from the start, along random walks, and under every budget.

    Raises:
        WritingError: what is wrong.
    """
    case = _Case(schema, options, tally)
    candidates = [random_value(rng) for _ in range(6)]
    try:
        grammar = Grammar.from_json_schema(schema, **options)
        constraint = grammar.bind(VOCABULARY)
    except UnsatisfiableSchemaError:
        tally.count("unsatisfiable")
        if options["additional_properties"]:
            for value in candidates:
                if case.allows(value):
                    raise case.error(f"unsatisfiable, but {value!r} is valid") from None
        return
    except (SchemaError, LimitError) as error:
        tally.count(f"{type(error).__name__}: {error.message}")
        return
    except Exception as error:
        raise case.error(f"bind raises {type(error).__name__}: {error}") from error
    tally.count("written")
    written = b""
    try:
        matcher = constraint.matcher()
        least = matcher.shortest_completion()
        tally.completions += 1
        case.check(least, b"")
        for value in candidates:  # what is shorter and valid is not overlooked
            text = json.dumps(value, ensure_ascii=False, separators=_separators(options)).encode()
            if len(text) < len(least) and case.allows(value) and grammar.matches(text):
                raise case.error(f"shortest text {least!r}, but {text!r} is shorter")
        for _ in range(2):
            written = b""
            matcher = constraint.matcher()
            for step in range(MAX_WALK):
                step_text = _step(matcher, rng, step, written, case)
                if step_text is None:
                    break
                written += step_text
            else:
                written += matcher.shortest_completion()
                case.check(written, b"")
        written = b""
        _check_budgets(constraint, len(least), case, rng)
    except WritingError:
        raise
    except Exception as error:
        raise case.error(f"{type(error).__name__}: {error}", written) from error


class _Case:
    """A schema with its options, its second judge (``jsonschema``), and the finished texts that this one has seen."""

    def __init__(self, schema: Any, options: dict[str, Any], tally: Tally) -> None:
        self._schema = schema
        self._options = options
        self._seen: set[bytes] = set()
        self.tally = tally
        self._judging = jsonschema.Draft202012Validator(pythonic(schema))

    def error(self, what: str, text: bytes = b"") -> WritingError:
        """Return an objection, made after a text was begun."""
        return WritingError(what, self._schema, self._options, text)

    def allows(self, value: Any) -> bool:
        """Whether ``jsonschema`` calls a value valid."""
        return bool(self._judging.is_valid(value))

    def check(self, text: bytes, written: bytes) -> None:
        """Object to a finished text that is not JSON, or not valid, or has a name twice.

        Args:
            text: the text, which is judged when it is met first.
            written: the part that was written before it was completed.
        """
        if text in self._seen:
            return
        try:
            value = _JSON.decode(text.decode())
        except ValueError as error:
            raise self.error(f"not JSON: {text!r}: {error}", written) from None
        if not self.allows(value):
            raise self.error(f"invalid: {text!r}", written)
        self._seen.add(text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a name twice is an error."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is repeated")
    return members


def _constant(name: str) -> None:
    """Refuse ``NaN`` and infinities, which Python reads and JSON does not have."""
    raise ValueError(name)


_JSON = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_constant)


def pythonic(schema: Any) -> Any:
    """Return a schema whose patterns mean in Python what they mean in ECMA-262."""
    if isinstance(schema, list):
        return [pythonic(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for word, value in schema.items():
        if word in ("const", "enum"):
            found[word] = value
        elif word == "pattern" and isinstance(value, str):
            found[word] = _pattern(value)
        elif word == "patternProperties":
            found[word] = {_pattern(name): pythonic(item) for name, item in value.items()}
        else:
            found[word] = pythonic(value)
    return found


def _pattern(pattern: str) -> str:
    r"""Return a pattern for Python: ``$`` is the very end, ``.`` no line terminator, ``\w`` and ``\b`` of ASCII."""
    return "(?a:" + pattern.replace("$", r"\Z").replace(".", r"[^\n\r\u2028\u2029]") + ")"


def _separators(options: dict[str, Any]) -> tuple[str, str]:
    return (", ", ": ") if options["whitespace"] == "single" else (",", ":")


def _step(matcher: Matcher, rng: random.Random, step: int, written: bytes, case: _Case) -> bytes | None:
    """Judge the state of a matcher, and take one random token; None at the end of the text."""
    if step % 4 == 0:  # the steps of unique items are slow
        choices = allowed = np.flatnonzero(_judged_mask(matcher, written, case)).tolist()
    else:
        choices = allowed = matcher.allowed_tokens()
    completion = matcher.shortest_completion()
    case.tally.completions += 1
    case.check(written + completion, written)
    if completion and (matcher.is_finished or not matcher.fork().accept_bytes(completion)):
        raise case.error(f"completion {completion!r} is refused", written)
    if not completion and not matcher.is_accepting:
        raise case.error("an empty completion where the text may not end", written)
    if not choices:
        if not matcher.is_finished:
            raise case.error("a dead end", written)
        return None
    likely = [token for token in choices if token in LIKELY]
    if likely and rng.random() < 0.8:
        choices = likely
    token = rng.choice(choices)
    if step % 5 == 3:  # the text goes on in a copy, or after a way back
        other = matcher.fork()
        if not other.accept(rng.choice(choices)):
            raise case.error("a fork refuses what the mask allows", written)
        matcher.accept(token)
        matcher.rollback(1)
        if matcher.allowed_tokens() != allowed:
            raise case.error("another mask after a rollback", written)
    if not matcher.accept(token):
        raise case.error(f"the mask allows {VOCABULARY.tokens[token]!r}, accept refuses", written)
    case.tally.tokens += 1
    if token == EOS:
        case.check(written, written)
        return None
    return VOCABULARY.tokens[token]


def _check_budgets(constraint: Constraint, most: int, case: _Case, rng: random.Random) -> None:
    """Generate with every budget from the least on, or some where they are many (``most``: bytes of the shortest
    text)."""
    least: int | None = None
    budgets: Sequence[int] = range(max(1, most // 3), most)
    if len(budgets) > MAX_BUDGETS:
        budgets = sorted(rng.sample(budgets, MAX_BUDGETS))
    for budget in (*budgets, most, most + 1, most + 2, most + 10):
        try:
            ids = _generate(constraint, budget, rng)
        except BudgetError:
            if least is not None:
                raise case.error(f"budget {least} is enough, {budget} is not") from None
            if budget >= most:
                raise case.error(f"budget {budget} is not enough for {most} bytes") from None
            continue
        least = budget if least is None else least
        case.tally.generations += 1
        if len(ids) > budget:
            raise case.error(f"{len(ids)} tokens under a budget of {budget}")
        case.check(b"".join(VOCABULARY.tokens[token] or b"" for token in ids), b"")


def _generate(constraint: Constraint, budget: int, rng: random.Random) -> Sequence[int]:
    """Return the tokens of one generation by a model without an idea."""
    params = GenerateParams(max_tokens=budget, temperature=1.0, seed=rng.randrange(2**31))
    decoding = Decoding(_Noise(), [0], constraint.matcher(), params)  # type: ignore[arg-type]
    steps = decoding.steps()
    logits: Any = None
    while True:
        try:
            step = steps.send(logits)
        except StopIteration:
            return decoding.token_ids
        logits = _noise(rng) if isinstance(step, Forward) else None


def _noise(rng: random.Random) -> npt.NDArray[np.float32]:
    """Return random logits: four times what as many calls of ``rng.random`` return, drawn at once."""
    words = np.frombuffer(rng.getrandbits(64 * len(ALL)).to_bytes(8 * len(ALL), "little"), dtype="<u4")
    return (((words[::2] >> 5) * 2.0**26 + (words[1::2] >> 6)) * 2.0**-53).astype(np.float32) * np.float32(4)
