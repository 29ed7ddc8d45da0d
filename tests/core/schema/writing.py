"""The judge of what is written under a schema: whatever binds can be finished from everywhere, validly."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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
from toolgrammar.core.generation.loop import Decoding, Forward

from ...schemas import random_schema, random_value

#: Tokens of more than a byte, as tokenizers have them: across the joints of JSON, with whole names, items and escapes.
WORDS = (
    b'": ', b", ", b'", "', b'":', b'{"', b'{"a": ', b"}]", b"[[", b"]]", b"[]", b"{}", b"], [", b"}, {", b"[{", b"0, ",
    b"1, 1", b"12", b"0.0", b"1e", b"true", b"false, ", b"null", b'"a"', b'a", "a"', b'"a": 1, "a"', b"\xc3\xa9", b"ab",
    b'"b": ', b"\\u00", b'", "b": ', b": [", b'"]', b'"}', b"]}", b"e1", b'""',
)  # fmt: skip
EOS = 256 + len(WORDS)
VOCABULARY = Vocabulary([bytes((byte,)) for byte in range(256)] + list(WORDS) + [None], eos=[EOS])

#: How many tokens a walk writes at most before it is finished by force.
MAX_WALK = 40

#: With how many budgets below the length of the shortest text a schema is tried at most.
MAX_BUDGETS = 16


class WritingError(AssertionError):
    """What the judge objects to, with everything needed to see it again."""

    def __init__(self, what: str, schema: Any, options: dict[str, Any], text: bytes = b"") -> None:
        self.what = what
        self.case = {"schema": schema, "options": options}
        self.text = text
        super().__init__(f"{what}\ntext: {text!r}\noptions: {options}\nschema: {json.dumps(schema)}")


@dataclass
class Tally:
    """What was judged: schemas by outcome (``"written"``, ``"unsatisfiable"``, or the kind of the refusal), and steps."""

    outcomes: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    completions: int = 0
    generations: int = 0

    def count(self, outcome: str) -> None:
        """Add one schema."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

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


def judge_seed(seed: int, tally: Tally) -> None:
    """Draw a schema and options from a seed, and judge what is written under them.

    Raises:
        WritingError: what is wrong.
    """
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2, 2, 3)))
    judge(schema, draw_options(rng), rng, tally)


def judge(schema: Any, options: dict[str, Any], rng: random.Random, tally: Tally) -> None:
    """Bind a schema, then finish it from the start, along random walks, and under every budget.

    Raises:
        WritingError: what is wrong.
    """
    judging = jsonschema.Draft202012Validator(pythonic(schema))
    candidates = [random_value(rng) for _ in range(6)]
    try:
        grammar = Grammar.from_json_schema(schema, **options)
        constraint = grammar.bind(VOCABULARY)
    except UnsatisfiableSchemaError:
        tally.count("unsatisfiable")
        if options["additional_properties"]:
            for value in candidates:
                if judging.is_valid(value):
                    raise WritingError(f"unsatisfiable, but {value!r} is valid", schema, options) from None
        return
    except (SchemaError, LimitError) as error:
        tally.count(f"{type(error).__name__}: {error.message}")
        return
    except Exception as error:
        raise WritingError(f"bind raises {type(error).__name__}: {error}", schema, options) from error
    tally.count("written")
    written = b""
    try:
        matcher = constraint.matcher()
        least = matcher.shortest_completion()
        tally.completions += 1
        _check_text(least, judging, schema, options, b"")
        for value in candidates:  # what is shorter and valid is not overlooked
            text = json.dumps(value, ensure_ascii=False, separators=_separators(options)).encode()
            if len(text) < len(least) and judging.is_valid(value) and grammar.matches(text):
                raise WritingError(f"shortest text {least!r}, but {text!r} is shorter", schema, options)
        for _ in range(2):
            written = b""
            matcher = constraint.matcher()
            for step in range(MAX_WALK):
                step_text = _step(matcher, rng, step, written, judging, schema, options, tally)
                if step_text is None:
                    break
                written += step_text
            else:
                written += matcher.shortest_completion()
                _check_text(written, judging, schema, options, b"")
        written = b""
        _check_budgets(constraint, len(least), judging, schema, options, rng, tally)
    except WritingError:
        raise
    except Exception as error:
        raise WritingError(f"{type(error).__name__}: {error}", schema, options, written) from error


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


def _step(
    matcher: Any,
    rng: random.Random,
    step: int,
    written: bytes,
    judging: Any,
    schema: Any,
    options: dict[str, Any],
    tally: Tally,
) -> bytes | None:
    """Judge the state of a matcher, and take one random token; None at the end of the text."""
    allowed = set(matcher.allowed_tokens())
    for token in range(len(VOCABULARY)) if step % 4 == 0 else rng.sample(range(len(VOCABULARY)), 30):
        accepted = matcher.accept(token)
        if accepted:
            matcher.rollback(1)
        if accepted != (token in allowed):
            data = VOCABULARY.tokens[token]
            raise WritingError(f"mask {not accepted}, accept {accepted} of {data!r}", schema, options, written)
    completion = matcher.shortest_completion()
    tally.completions += 1
    _check_text(written + completion, judging, schema, options, written)
    if completion and (matcher.is_finished or not matcher.fork().accept_bytes(completion)):
        raise WritingError(f"completion {completion!r} is refused", schema, options, written)
    if not completion and not matcher.is_accepting:
        raise WritingError("an empty completion where the text may not end", schema, options, written)
    if not allowed:
        if not matcher.is_finished:
            raise WritingError("a dead end", schema, options, written)
        return None
    # Letters and digits alone would never end a string: structure, and words, are as likely.
    choices = sorted(allowed)
    likely = [token for token in choices if token >= 256 or token in b'"]},0:1a']
    if likely and rng.random() < 0.8:
        choices = likely
    token = rng.choice(choices)
    if step % 5 == 3:  # the text goes on in a copy, or after a way back
        other = matcher.fork()
        if not other.accept(rng.choice(choices)):
            raise WritingError("a fork refuses what the mask allows", schema, options, written)
        matcher.accept(token)
        matcher.rollback(1)
        if set(matcher.allowed_tokens()) != allowed:
            raise WritingError("another mask after a rollback", schema, options, written)
    if not matcher.accept(token):
        raise WritingError(f"the mask allows {VOCABULARY.tokens[token]!r}, accept refuses", schema, options, written)
    tally.tokens += 1
    if token == EOS:
        _check_text(written, judging, schema, options, written)
        return None
    return VOCABULARY.tokens[token]


def _check_text(text: bytes, judging: Any, schema: Any, options: dict[str, Any], written: bytes) -> None:
    """Object to a finished text that is not JSON, or not valid, or has a name twice."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise WritingError(f"a name is repeated in {text!r}", schema, options, written)
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=members)
    except ValueError as error:
        raise WritingError(f"not JSON: {text!r}: {error}", schema, options, written) from None
    if not judging.is_valid(value):
        raise WritingError(f"invalid: {text!r}", schema, options, written)


def _check_budgets(
    constraint: Any, most: int, judging: Any, schema: Any, options: dict[str, Any], rng: random.Random, tally: Tally
) -> None:
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
                raise WritingError(f"budget {least} is enough, {budget} is not", schema, options) from None
            if budget >= most:
                raise WritingError(f"budget {budget} is not enough for {most} bytes", schema, options) from None
            continue
        least = budget if least is None else least
        tally.generations += 1
        if len(ids) > budget:
            raise WritingError(f"{len(ids)} tokens under a budget of {budget}", schema, options)
        _check_text(b"".join(VOCABULARY.tokens[token] or b"" for token in ids), judging, schema, options, b"")


def _generate(constraint: Any, budget: int, rng: random.Random) -> Sequence[int]:
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
        logits = None
        if isinstance(step, Forward):
            logits = np.array([rng.random() for _ in range(len(VOCABULARY))], dtype=np.float32) * 4
