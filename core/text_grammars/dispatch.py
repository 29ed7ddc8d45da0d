"""Free text in which triggers begin constrained parts: the core of structural tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import GrammarError, UnsupportedSchemaError
from ..language.free_text import containing
from ..language.terms import Terms
from ..unicode.charset import CharSet
from .expressions import Chars, Control, Expression, Intersection, Literal, Regular, Repeat, choice, sequence
from .source import Source


def free_text(excluding: Iterable[str] = (), most: int | None = None) -> Regular:
    """Return the texts of at most ``most`` characters that contain none of the strings ``excluding``."""
    words = tuple(sorted({word for word in excluding if word}))

    def build(terms: Terms) -> int:
        free = terms.not_(containing(terms, words)) if words else terms.ALL
        return free if most is None else terms.and_([free, terms.repeat(terms.ANY, 0, most)])

    return Regular(("free text", words, most), build)


def read_other_tokens(
    source: Source,
    excluded: Sequence[Control | Literal],
    start: int,
    written: str,
    narrowed: list[UnsupportedSchemaError] | None,
) -> Expression:
    """Read the ``*`` or ``+`` that has to follow what stands for all tokens but some; return text without the excluded
    tokens: a sound subset of the sequences of any other tokens.

    The text of an excluded token does not occur, in whatever tokens it is spelled. Control tokens are left out, because
    the sequences would include all of them, the prompt's own marks too.

    Args:
        source: the grammar, after what stands for the tokens.
        excluded: the excluded tokens.
        start: where that begins.
        written: how it is written, for errors.
        narrowed: gets the report of what is left out; None: nothing may be left out.

    Raises:
        GrammarError: nothing is repeated, or nothing may be left out.
    """
    if source.peek() not in ("*", "+"):
        source.fail(
            "a single token of many cannot be enforced: other tokens may have the same text",
            at=start,
            hint=f"write {written}* or {written}+, which is free text, or a character class",
        )
    if narrowed is None:
        source.fail("any token cannot be enforced, only any text", at=start, hint="write a character class")
    words = sorted({token.text for token in excluded if isinstance(token, Literal)})
    spelled = f", and texts that contain {' or '.join(map(repr, words))}, spelled as other tokens" if words else ""
    narrowed.append(
        UnsupportedSchemaError(
            "token exclusions apply to text",
            hint="list the allowed control tokens",
            place=source.place(start),
            left_out=f"control tokens that the grammar does not name there{spelled}",
        )
    )
    free = free_text(words)
    if source.take("*"):
        return free
    source.take("+")
    return Intersection((free, Repeat(Chars(CharSet.full()), 1, None)))


def dispatch(
    rules: Sequence[tuple[Literal | Control, Expression]], excludes: Sequence[str] = (), *, loop: bool
) -> Expression:
    """Return free text in which each trigger is followed by its own part.

    Args:
        rules: triggers, each with the part that follows it. The first complete trigger counts; of several that end at
            the same position, the longest.
        excludes: strings that free text does not contain.
        loop: free text may follow a part, with further triggers; else nothing follows.

    Raises:
        GrammarError: some trigger can never be written, because it contains another one or an excluded string.
    """
    triggers = [trigger.text for trigger, _ in rules if isinstance(trigger, Literal)]
    words = tuple(sorted({*triggers, *excludes}))
    for trigger in triggers:
        for word in words:
            where = trigger.find(word)
            if word == trigger or where < 0:
                continue
            # A shorter trigger at the end of a longer one is no obstacle: the longest counts.
            if word in excludes or where + len(word) < len(trigger):
                raise GrammarError(
                    f"the trigger {trigger!r} can never be written, because it contains {word!r}",
                    hint="leave out the longer trigger and let its part follow the shorter one",
                )
    free = free_text(words)
    tagged = choice(*(sequence(_until(trigger, words), part) for trigger, part in rules))
    return sequence(Repeat(tagged, 0, None), free) if loop else choice(free, tagged)


def _until(trigger: Literal | Control, words: tuple[str, ...]) -> Expression:
    """Return free text up to and including its first trigger: none of the ``words`` (triggers and excluded texts) is
    complete before the last character, and no longer one ends there."""
    if isinstance(trigger, Control):
        return sequence(free_text(words), trigger)
    end = trigger.text

    def build(terms: Terms) -> int:
        before = terms.seq(terms.not_(containing(terms, words)), terms.ANY)
        longer = [terms.not_(terms.seq(terms.ALL, terms.literal(w))) for w in words if w != end and w.endswith(end)]
        return terms.and_([terms.seq(terms.ALL, terms.literal(end)), before, *longer])

    return Regular(("until", end, words), build)
