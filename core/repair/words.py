"""The possible words of a grammar at a state, where they are finitely many, and those nearest to a word of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import repeat

from ..automaton.encoding import REFUSED
from ..automaton.states import Automaton
from .edits import BEGINNING, EDIT, LIKELY, MARKS, ONLY_NAME

#: Maximum number of possible words that are compared with a word of the text, and of states visited to list them. If
#: there are more (as of a pattern), none is compared.
MAX_WORDS, MAX_WORD_STATES = 1_000, 3_000

#: Number of words whose comparisons are remembered.
MAX_COMPARED = 4_096

#: Maximum number of possible next bytes inside a word of a finite list. More next bytes: the text is free.
MAX_BRANCHES = 64

#: Minimum similarity of a word and the one that replaces it, from 0 to 1.
MIN_SIMILARITY = 0.6

#: Maximum length of forced text that is inserted, in bytes.
MAX_FORCED = 256

#: Names that mean the same in calls of different families.
_ALIASES = {
    "arguments": ("parameters", "args", "input", "kwargs", "params", "toolinput", "functionarguments"),
    "parameters": ("arguments", "args", "input", "kwargs", "params"),
    "name": ("function", "tool", "toolname", "functionname", "action"),
}

WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") | frozenset(
    range(128, 256)
)
DIGITS = frozenset(b"0123456789")
_LETTERS = WORD_BYTES - DIGITS - frozenset(b"-.")

#: A possible word, as written and as decoded.
Word = tuple[bytes, str]

#: Returns the state after a text, by a state, the text, and the text behind the state.
Step = Callable[[int, bytes, bytes], int]


def words_at(
    automaton: Automaton, step: Step, following: Callable[[int], bytes], state: int, before: bytes
) -> Iterator[Word]:
    """Yield the possible words in a state: strings with their quotes, and words without. Beyond `MAX_WORD_STATES`,
    empty words follow without an end: the caller, who stops at a maximum, takes the words for too many.

    Args:
        automaton: that of the grammar.
        step: returns the state after a text in a state; its last argument is the text behind that state.
        following: returns the bytes that may come next in a state.
        state: where the words begin.
        before: the text behind ``state``.
    """
    budget = MAX_WORD_STATES
    quoted = step(state, b'"', before)
    begun = [(quoted, b'"')] if quoted != REFUSED else []  # beginnings of words, each with the state after it
    first = following(state)
    if len(first) <= MAX_BRANCHES:
        begun += [(step(state, bytes((byte,)), before), bytes((byte,))) for byte in first if byte in _LETTERS]
    while begun:
        if not budget:
            yield from repeat((b"", ""))
        after, word = begun.pop()
        budget -= 1
        is_quoted = word.startswith(b'"')
        if after < 0:  # refused
            continue
        forced = automaton.forced(after, MAX_FORCED)
        stop = forced.find(b'"') if is_quoted else _word_length(forced)
        if is_quoted and stop >= 0:  # the grammar forces the rest of the word
            word += forced[: stop + 1]
            yield word, word[1:-1].decode("utf-8", "replace")
            continue
        if not is_quoted and stop < len(forced):
            word += forced[:stop]
            yield word, word.decode("utf-8", "replace")
            continue
        if forced:
            after = step(after, forced, before + word)
            word += forced
            if after < 0:
                continue
        next_bytes = following(after)
        if len(next_bytes) > MAX_BRANCHES or len(word) > MAX_FORCED:
            continue
        if not is_quoted and (not next_bytes or not WORD_BYTES.issuperset(next_bytes)):
            yield word, word.decode("utf-8", "replace")
        for byte in next_bytes:
            text = bytes((byte,))
            if is_quoted and text == b'"':
                yield word + text, word[1:].decode("utf-8", "replace")
            elif is_quoted or byte in WORD_BYTES:
                begun.append((step(after, text, before + word), word + text))


def _word_length(text: bytes) -> int:
    """Return the number of bytes of the word with which a text begins."""
    return next((number for number, byte in enumerate(text) if byte not in WORD_BYTES), len(text))


@lru_cache(maxsize=MAX_COMPARED)
def _folded(word: str) -> str:
    """Return the letters and digits of a word, without case: ``"User-Id"`` -> ``"userid"``."""
    return "".join(filter(str.isalnum, word.casefold()))


@lru_cache(maxsize=MAX_COMPARED)
def nearest(content: str, words: tuple[Word, ...]) -> tuple[tuple[bytes, float], ...]:
    """Return at most three words that are near to a word of the text, the nearest first, each with its cost: one that
    differs in case and marks, an alias, one that begins with the other, a similar one, or the only one."""
    meant = _folded(content)
    score = partial(_similarity, SequenceMatcher(None, "", meant, autojunk=False))
    ranked: list[tuple[float, bytes]] = []
    for word, text in words:
        folded = _folded(text)
        if folded == meant:
            ranked.append((MARKS if meant else EDIT, word))  # without letters and digits, marks are all that there is
        elif meant in _ALIASES.get(folded, ()):
            ranked.append((LIKELY, word))
        elif min(len(meant), len(folded)) > 2 and (folded.startswith(meant) or meant.startswith(folded)):
            ranked.append((BEGINNING, word))  # one or two letters begin too many words
        elif meant and (alike := score(folded)) >= MIN_SIMILARITY:
            ranked.append((EDIT + 2 * (1 - alike), word))
        elif len(words) == 1:
            ranked.append((ONLY_NAME, word))
    ranked.sort(key=lambda pair: pair[0])
    return tuple((word, cost) for cost, word in ranked[:3])


def _similarity(matcher: SequenceMatcher[str], word: str) -> float:
    matcher.set_seq1(word)
    if matcher.real_quick_ratio() < MIN_SIMILARITY or matcher.quick_ratio() < MIN_SIMILARITY:
        return 0.0
    return matcher.ratio()
