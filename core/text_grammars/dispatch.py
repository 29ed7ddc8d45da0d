"""Free text in which triggers begin constrained parts: the core of structural tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import GrammarError, Place, UnsupportedSchemaError
from ..language.free_text import containing
from ..language.terms import Terms
from ..unicode.charset import CharSet
from .expressions import Chars, Control, Expression, Intersection, Literal, Regular, Repeat, choice, sequence


def free_text(excluding: Iterable[str] = (), most: int | None = None) -> Regular:
    """Return text that contains none of some strings, of at most ``most`` characters."""
    words = tuple(sorted({word for word in excluding if word}))

    def build(terms: Terms) -> int:
        free = terms.not_(containing(terms, words)) if words else terms.ALL
        return free if most is None else terms.and_([free, terms.repeat(terms.ANY, 0, most)])

    return Regular(("free text", words, most), build)


def any_tokens(excluding: Iterable[Control | Literal], least: int) -> Expression:
    """Return what is surely within any number of tokens, each other than some: text.

    An excluded control token is no text; one that is text is not contained, however it is spelled. No control token is
    written, because any of them, the prompt's own marks too, would be in the language.

    Args:
        excluding: the tokens.
        least: the least number of tokens, 0 or 1.
    """
    free = free_text(token.text for token in excluding if isinstance(token, Literal))
    return Intersection((free, Repeat(Chars(CharSet.full()), least, None))) if least else free


def left_out_of_tokens(excluding: Iterable[Control | Literal], place: Place) -> UnsupportedSchemaError:
    """Return the report that `any_tokens` leaves something out."""
    words = sorted({token.text for token in excluding if isinstance(token, Literal)})
    spelled = f", and texts that contain {' or '.join(map(repr, words))}, spelled as other tokens" if words else ""
    return UnsupportedSchemaError(
        "token exclusions apply to text",
        hint="list the allowed control tokens",
        place=place,
        left_out=f"control tokens that the grammar does not name there{spelled}",
    )


def dispatch(
    rules: Sequence[tuple[Literal | Control, Expression]], loop: bool, excludes: Sequence[str] = ()
) -> Expression:
    """Return free text in which, after each trigger, its own part has to follow.

    Args:
        rules: triggers, each with the part that follows it. The first trigger that is complete counts, and of several
            that end together the longest.
        loop: free text may follow a part, with further triggers; else nothing follows.
        excludes: strings that free text does not contain.

    Raises:
        GrammarError: some trigger can never be written, because it contains another one or an excluded string.
    """
    triggers = [trigger.text for trigger, _ in rules if isinstance(trigger, Literal)]
    words = tuple(sorted({*triggers, *excludes}))
    for trigger in triggers:
        for word in words:
            where = trigger.find(word)
            if word != trigger and where >= 0 and (word in excludes or where + len(word) < len(trigger)):
                raise GrammarError(
                    f"the trigger {trigger!r} can never be written, because it contains {word!r}",
                    hint="leave out the longer trigger and let its part follow the shorter one",
                )
    free = free_text(words)
    tagged = choice(*(sequence(_until(trigger, words), part) for trigger, part in rules))
    return sequence(Repeat(tagged, 0, None), free) if loop else choice(free, tagged)


def _until(trigger: Literal | Control, words: tuple[str, ...]) -> Expression:
    """Return free text up to and including a trigger."""
    if isinstance(trigger, Control):
        return sequence(free_text(words), trigger)
    end = trigger.text

    def build(terms: Terms) -> int:
        before = terms.seq(terms.not_(containing(terms, words)), terms.ANY)
        longer = [terms.not_(terms.seq(terms.ALL, terms.literal(w))) for w in words if w != end and w.endswith(end)]
        return terms.and_([terms.seq(terms.ALL, terms.literal(end)), before, *longer])

    return Regular(("until", end, words), build)
