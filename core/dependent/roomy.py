"""Roomy languages: each prefix has infinitely many continuations, so repetition is tested at the end of a string."""

from __future__ import annotations

from ..language import term_kinds as kinds
from ..language.queries import is_cofinite, is_finite, steps
from ..language.terms import Terms

#: Maximum number of states that `is_roomy` inspects.
MAX_ROOMY = 64


def is_roomy(terms: Terms, term: int) -> bool:
    """Return True if every prefix of a string of the language has infinitely many continuations; False also if there
    are too many states to inspect."""
    if is_cofinite(terms, term):
        return True
    kind, args = terms.shape(term)
    parts = args if kind == kinds.AND else [term]
    if any(is_finite(terms, part) for part in parts):
        return False
    # A cofinite part forbids finitely many strings only, and what is roomy without them stays so.
    parts = [part for part in parts if not is_cofinite(terms, part)]
    if len(parts) == 1 and _ends_in_loops(terms, parts[0]):
        return not terms.is_empty(parts[0])
    if _admit_after_some_character(terms, parts):
        return True
    # From a state that reaches no cycle, every path leads to a state without continuations.
    seen = {term}
    queue = [term]
    for state in queue:
        following = {target for _, _, target in steps(terms, state)}
        if not following:
            return False
        queue.extend(target for target in following - seen if not is_cofinite(terms, target))
        seen |= following
        if len(seen) > MAX_ROOMY:
            return False
    return True


def _ends_in_loops(terms: Terms, term: int) -> bool:
    """Return True if a term's shape shows that it is roomy or empty: each of its strings ends in an unbounded
    repetition, or can be continued into one."""
    waiting = [term]
    while waiting:
        kind, args = terms.shape(waiting.pop())
        if kind == kinds.SEQ:
            waiting.append(args[1])
        elif kind == kinds.REPEAT:
            part, _, most = args
            if terms.is_empty(part) or (most < 0 and terms.nullable(part)):  # only the empty string, perhaps: (ε)*
                return False
            if most >= 0:  # the last copy decides
                waiting.append(part)
        elif kind == kinds.ALT:
            parts = [part for part in args if part != terms.EPSILON]
            if len(parts) < len(args) and all(terms.is_empty(part) for part in parts):  # only the empty string
                return False
            waiting += parts
        else:
            return False
    return True


def _admit_after_some_character(terms: Terms, languages: list[int]) -> bool:
    """Return True if the languages are complements, and by their shapes some character occurs in none of the
    complemented languages; then every string with this character is in all of the languages."""
    waiting: list[int] = []
    ranges: list[tuple[int, int]] = []
    seen = set(languages)
    for term in languages:
        kind, args = terms.shape(term)
        if kind != kinds.NOT:
            return False
        waiting.append(args[0])
    while waiting:
        kind, args = terms.shape(waiting.pop())
        if kind == kinds.CHARS:
            ranges += args
        elif kind == kinds.WORDS:
            ranges += [(ord(character), ord(character)) for word in args for character in word]
        elif kind in (kinds.SEQ, kinds.ALT, kinds.REPEAT, kinds.AND):
            # Of a repetition the rest are bounds; each part of an intersection has all characters of its strings.
            parts = args if kind in (kinds.SEQ, kinds.ALT) else args[:1]
            waiting += [part for part in parts if part not in seen]
            seen.update(parts)
        elif kind not in (kinds.EMPTY_KIND, kinds.EPSILON_KIND):
            return False
    first_missing = 0
    for low, high in sorted([*ranges, (kinds.SURROGATES, kinds.SURROGATES_END - 1)]):
        if low > first_missing:
            return True
        first_missing = max(first_missing, high + 1)
    return first_missing < kinds.END
