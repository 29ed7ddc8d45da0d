r"""From "the pattern matches somewhere in the text" to "the text is one of these strings".

JSON Schema's ``pattern`` is searched for, and its assertions (``^``, ``$``, ``\b``, look-arounds) speak about the
text around the match. Here they become intersections and complements of plain languages of *whole* texts.

How: the searched pattern is ``Anything pattern Anything``, matched from end to end. Alternatives that hold assertions
are multiplied out, so that what remains is a sequence of plain pieces with assertions in the gaps between them.
A look-ahead in a gap narrows all that follows, a look-behind all that precedes:

    p0 (?<=k) p1 (?=m) p2   =   (p0 & Anything k) p1 (p2 & m Anything)

which is exact as long as no look-behind stands to the right of a look-ahead. Where one does, the narrower of the two
is absorbed into the piece beside it first, if its width allows. Whatever resists (mostly assertions inside
unbounded repetition) is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Place, UnsupportedPatternError
from ..unicode.charset import CharSet
from .parser import WORD
from .syntax import (
    ANY_CHARACTER,
    ANYTHING,
    EMPTY,
    NOTHING,
    Alt,
    Chars,
    Empty,
    End,
    Look,
    Regex,
    Repeat,
    Seq,
    Start,
    WordBoundary,
    alt,
    both,
    boundary,
    fold,
    negate,
    repeat,
    seq,
)

#: Maximum count of a repetition with assertions inside that is written out.
_MAX_COPIES = 3
#: Maximum number of branches when alternatives with assertions are multiplied out.
_MAX_BRANCHES = 4096


class _Resists(Exception):
    """The assertions are too entangled to be rewritten piece by piece."""


def search_language(node: Regex) -> Regex:
    r"""Return the language of all texts in which a pattern matches somewhere.

    Args:
        node: the tree of a pattern, as ``parse`` makes it.

    Returns:
        An anchored tree for whole texts: ``Empty``, ``Chars``, ``Seq``, ``Alt``, ``Repeat``, ``And`` and ``Not`` only
        (``NOTHING`` and ``ANYTHING`` are among these).

    Raises:
        UnsupportedPatternError: the assertions of the pattern are too entangled to be rewritten.

    Law: a text is in the language of the result if and only if the pattern matches in it, in the sense of ECMA-262's
    ``RegExp.prototype.test`` with the ``u`` flag.
    """
    items = node.items if isinstance(node, Seq) else (node,)
    first, last = isinstance(items[0], Start), isinstance(items[-1], End)
    middle = items[first : len(items) - last]
    if all(item.is_pure for item in middle):  # most patterns have assertions at their ends only
        before, after = () if first else (ANYTHING,), () if last else (ANYTHING,)
        return _normalise(Seq((*before, *middle, *after)))
    return _whole(Seq((ANYTHING, node, ANYTHING)))


def _whole(node: Regex) -> Regex:
    """Return the language of the texts that a tree with assertions matches from end to end."""
    node = _normalise(node)
    try:
        return alt(*[_branch_language(branch) for branch in _branches(node)])
    except _Resists:
        raise UnsupportedPatternError(
            "the assertions of this pattern are too entangled: they look across each other, or repeat without end",
            hint="move ^, $, \\b and look-arounds out of repetitions, or use several patterns in an allOf",
            place=Place(offset=0),
        ) from None


# -- normal form -------------------------------------------------------------------------------------------------------


def _normalise(node: Regex) -> Regex:
    r"""Rewrite ``\b`` as look-arounds, write short repetitions of assertions out, and absorb narrow look-arounds."""

    def combine(node: Regex, parts: Sequence[Regex]) -> Regex:
        if isinstance(node, WordBoundary):
            return boundary(WORD, negated=node.negated)
        if isinstance(node, Look):
            return _look(node.ahead, node.negated, parts[0])
        if isinstance(node, Seq):
            return seq(*_absorb(seq(*parts)))
        if isinstance(node, Alt):
            return alt(*parts)
        if isinstance(node, Repeat):
            return _repeat(parts[0], node.min, node.max)
        return node

    return fold(node, combine)


def _look(ahead: bool, negated: bool, item: Regex) -> Regex:
    if item.is_pure:
        if item.is_nullable:  # Found everywhere.
            return NOTHING if negated else EMPTY
        if item == NOTHING:
            return EMPTY if negated else NOTHING
    if not negated and isinstance(item, End if ahead else Start):
        return item
    return Look(ahead, negated, item)


def _repeat(item: Regex, least: int, most: int | None) -> Regex:
    if item.is_pure:
        return repeat(item, least, most)
    if item.longest == 0:
        # Without width, a second time is as true as the first.
        return item if least else EMPTY
    if most is None or most > _MAX_COPIES:
        return repeat(item, least, most)
    optional: Regex = EMPTY
    for _ in range(most - least):
        optional = alt(EMPTY, seq(item, optional))
    return seq(*[item] * least, optional)


def _absorb(node: Regex) -> list[Regex]:
    """Absorb each look-around whose width is that of the plain items beside it, or less, into those items.

    If every string of ``p`` is at least as long as every string of ``k``, then whether ``k Anything`` holds where a
    string of ``p`` begins depends on that string alone: ``(?=k) p = p & k Anything``.
    """
    items: list[Regex] = list(node.items) if isinstance(node, Seq) else [node]
    if not any(isinstance(item, Look) for item in items):
        return items
    # Assertions in one gap commute: look-behinds first, so that each stands beside what it speaks of.
    start = 0
    for index in range(len(items) + 1):
        if index == len(items) or not isinstance(items[index], (Look, Start, End)):
            items[start:index] = sorted(items[start:index], key=_gap_order)
            start = index + 1
    index = len(items) - 1
    while index >= 0:
        item = items[index]
        if isinstance(item, Look) and item.ahead and (size := _room(item, items[index + 1 :])):
            items[index : index + 1 + size] = [_restrict(items[index + 1 : index + 1 + size], item)]
        index -= 1
    index = 0
    while index < len(items):
        item = items[index]
        if isinstance(item, Look) and not item.ahead and (size := _room(item, items[:index][::-1])):
            items[index - size : index + 1] = [_restrict(items[index - size : index], item)]
            index -= size
        index += 1
    return items


def _gap_order(item: Regex) -> int:
    return 1 if not isinstance(item, Look) else 2 if item.ahead else 0


def _room(look: Look, items: Sequence[Regex]) -> int:
    """Return how many of the plain items, nearest first, it takes to be as wide as a look-around; 0 if there are too
    few."""
    needed = look.item.longest
    if needed is None or not look.item.is_pure:
        return 0
    for count, item in enumerate(items, 1):
        if not item.is_pure:
            return 0
        needed -= item.shortest
        if needed <= 0:
            return count
    return 0


def _restrict(items: Sequence[Regex], look: Look) -> Regex:
    """Return the plain items in a row, as far as a look-around that they have room for allows."""
    if isinstance(look.item, Chars):
        charset = ~look.item.charset if look.negated else look.item.charset
        return _restrict_end(seq(*items), charset, first=look.ahead)
    found = seq(look.item, ANYTHING) if look.ahead else seq(ANYTHING, look.item)
    return both(seq(*items), negate(found) if look.negated else found)


def _restrict_end(node: Regex, charset: CharSet, *, first: bool) -> Regex:
    """Return the strings of a plain language, not the empty one, whose first (or last) character is in a set."""
    if isinstance(node, Empty):
        return NOTHING
    if isinstance(node, Chars):
        return Chars(node.charset & charset)
    if isinstance(node, Alt):
        parts: list[Regex] = []
        for item in node.items:
            parts.append(_restrict_end(item, charset, first=first))
        return alt(*parts)
    if isinstance(node, Seq):
        end, rest = (node.items[0], seq(*node.items[1:])) if first else (node.items[-1], seq(*node.items[:-1]))
        if not end.is_nullable:
            end = _restrict_end(end, charset, first=first)
            return seq(end, rest) if first else seq(rest, end)
    if isinstance(node, Repeat) and not node.item.is_nullable:
        end = _restrict_end(node.item, charset, first=first)
        rest = repeat(node.item, max(node.min - 1, 0), None if node.max is None else node.max - 1)
        return seq(end, rest) if first else seq(rest, end)
    return both(node, seq(Chars(charset), ANYTHING) if first else seq(ANYTHING, Chars(charset)))


# -- branches ----------------------------------------------------------------------------------------------------------


def _branches(node: Regex) -> list[list[Regex]]:
    """Multiply out the alternatives that hold assertions: the result is the union of these sequences."""

    def combine(node: Regex, parts: Sequence[list[list[Regex]] | None]) -> list[list[Regex]] | None:
        if isinstance(node, (Start, End, Look)):
            return [[node]]
        if all(part is None for part in parts):
            return None  # Plain: one item, whatever is inside.
        if isinstance(node, Alt):
            plain = [item for item, part in zip(node.items, parts, strict=True) if part is None]
            branches = [branch for part in parts if part is not None for branch in part]
            if plain:
                branches.append([alt(*plain)])
        elif isinstance(node, Seq):
            branches = [[]]
            for item, part in zip(node.items, parts, strict=True):
                if len(branches) * len(part or ()) > _MAX_BRANCHES:
                    raise _Resists
                choices = [[item]] if part is None else part
                branches = [[*branch, *choice] for branch in branches for choice in choices]
        else:
            branches = [[node]]
        return branches

    branches = fold(node, combine)
    return [[node]] if branches is None else branches


def _branch_language(items: list[Regex]) -> Regex:
    """Return the language of the texts that a sequence without alternatives of assertions matches whole.

    Raises:
        _Resists: it cannot be rewritten.
    """
    trimmed = _trim_repeats(items)
    if trimmed is not None:
        return _whole(seq(*trimmed))
    anchored = _anchor(items)
    if anchored is None:
        return NOTHING
    pieces: list[Regex] = []
    gaps: list[list[Look]] = [[]]
    for item in _absorb(seq(*anchored)):
        if isinstance(item, Look):
            gaps[-1].append(item)
        elif pieces and not gaps[-1] and item.is_pure and pieces[-1].is_pure:
            pieces[-1] = seq(pieces[-1], item)
        elif item != EMPTY:
            pieces.append(item)
            gaps.append([])
    if not pieces:
        return both(EMPTY, *[_beside(look) for look in gaps[0]])
    # At the ends of the text, one side of the gap is the whole text and the other side is empty.
    ends = [_beside(look) if look.ahead else _truth(look) for look in gaps[0]]
    ends += [_truth(look) if look.ahead else _beside(look) for look in gaps[-1]]
    return both(*ends, _between(pieces, gaps[1:-1]))


def _trim_repeats(items: list[Regex]) -> list[Regex] | None:
    """Return the items with repetitions of assertions cut down to their fewest rounds, where any text may precede or
    follow them: more rounds match no more. None: there are no such repetitions."""
    for index, item in enumerate(items):
        if isinstance(item, Repeat) and ANYTHING in items[max(index - 1, 0) : index + 2] and not item.is_pure:
            least = [item.item] * item.min if item.min <= _MAX_COPIES else [repeat(item.item, item.min, item.min)]
            if least != [item]:
                return [*items[:index], *least, *items[index + 1 :]]
    return None


def _anchor(items: Sequence[Regex]) -> list[Regex] | None:
    """Drop ``^`` and ``$`` and the items that they force to be empty; None when these cannot be."""
    starts = [index for index, item in enumerate(items) if isinstance(item, Start)]
    if starts:
        before = _only_assertions(items[: starts[-1]])
        if before is None:
            return None
        items = [*before, *items[starts[-1] + 1 :]]
    ends = [index for index, item in enumerate(items) if isinstance(item, End)]
    if ends:
        after = _only_assertions(items[ends[0] + 1 :])
        if after is None:
            return None
        items = [*items[: ends[0]], *[item for item in after if not isinstance(item, End)]]  # true at the end
    return list(items)


def _only_assertions(items: Sequence[Regex]) -> list[Regex] | None:
    """Return what is left of a sequence when it matches the empty string, or None when it cannot."""
    left: list[Regex] = []
    for item in items:
        if isinstance(item, Look) or (isinstance(item, End) and End() not in left):
            left.append(item)
        elif not isinstance(item, (Start, End)):
            if not item.is_pure:
                raise _Resists
            if not item.is_nullable:
                return None
    return left


def _beside(look: Look) -> Regex:
    """Return the texts in which a look-around holds, when all of the text is on the side to which it looks."""
    found = _whole(seq(look.item, ANYTHING) if look.ahead else seq(ANYTHING, look.item))
    return negate(found) if look.negated else found


def _truth(look: Look) -> Regex:
    """Return a look-around on whose side there is no text: ANYTHING when it holds, NOTHING when not."""
    return ANYTHING if _one_sided(look).is_nullable else NOTHING


def _one_sided(look: Look) -> Regex:
    """As :func:`_beside`, for a look-around with text on its other side too, at which it must not look."""
    forbidden = _looks_back if look.ahead else _looks_ahead
    if fold(look.item, lambda node, parts: forbidden(node) or any(parts)):
        raise _Resists
    return _beside(look)


def _looks_back(node: Regex) -> bool:
    return isinstance(node, (Start, WordBoundary)) or (isinstance(node, Look) and not node.ahead)


def _looks_ahead(node: Regex) -> bool:
    return isinstance(node, (End, WordBoundary)) or (isinstance(node, Look) and node.ahead)


def _between(pieces: list[Regex], gaps: list[list[Look]]) -> Regex:
    """Return the language of pieces in a row, with the look-arounds of ``gaps[i]`` between ``pieces[i]`` and the next
    one."""
    last_behind = max((index for index, gap in enumerate(gaps) for look in gap if not look.ahead), default=-1)
    first_ahead = min((index for index, gap in enumerate(gaps) for look in gap if look.ahead), default=len(gaps))
    if last_behind > first_ahead:
        return _uncross(pieces, gaps, first_ahead, last_behind)
    left: Regex = EMPTY
    right: Regex = _closing_language(pieces[-1])
    for index in range(len(gaps) - 1, last_behind, -1):
        right = both(right, *[_one_sided(look) for look in gaps[index] if look.ahead])
        right = seq(_plain(pieces[index]), right)
    if last_behind >= 0:
        right = both(right, *[_one_sided(look) for look in gaps[last_behind] if look.ahead])
    for index in range(last_behind + 1):
        left = seq(left, _plain(pieces[index]))
        left = both(left, *[_one_sided(look) for look in gaps[index] if not look.ahead])
    return seq(left, right)


def _plain(piece: Regex) -> Regex:
    if not piece.is_pure:
        raise _Resists
    return piece


def _closing_language(piece: Regex) -> Regex:
    """Return the language of the last piece, when it is plain or a repetition of one character behind look-aheads.

    In ``((?!k)c){m,n}`` at the end of the text, every position before the end is the start of one round. So these are
    the strings of ``c{m,n}`` without a position (but the end) from which ``k Anything`` matches.
    """
    if piece.is_pure:
        return piece
    body = piece.item if isinstance(piece, Repeat) else piece
    if not (isinstance(piece, Repeat) and isinstance(body, Seq) and isinstance(body.items[-1], Chars)):
        raise _Resists
    demands: list[Regex] = []
    for look in body.items[:-1]:
        if not (isinstance(look, Look) and look.ahead):
            raise _Resists
        violated = both(negate(_one_sided(look)), seq(ANY_CHARACTER, ANYTHING))
        demands.append(negate(seq(ANYTHING, violated)))
    return both(repeat(body.items[-1], piece.min, piece.max), *demands)


def _uncross(pieces: list[Regex], gaps: list[list[Look]], first_ahead: int, last_behind: int) -> Regex:
    """Take away one look-around that crosses another: one character wide, beside a piece that may be empty.

    Either that piece is empty, and the look-around moves on to the next gap; or it is not, and absorbs it.
    """
    for index, gap in enumerate(gaps):
        for look in gap:
            crosses = index < last_behind if look.ahead else index > first_ahead
            target = index + 1 if look.ahead else index
            if not (crosses and isinstance(look.item, Chars) and pieces[target].is_pure):
                continue
            others = [*gaps[:index], [other for other in gap if other is not look], *gaps[index + 1 :]]
            absorbed = [*pieces[:target], _restrict([pieces[target]], look), *pieces[target + 1 :]]
            languages = [_branch_language(_interleave(absorbed, others))]
            if pieces[target].is_nullable:
                merged = [*gaps[: target - 1], gaps[target - 1] + gaps[target], *gaps[target + 1 :]]
                languages.append(_branch_language(_interleave([*pieces[:target], *pieces[target + 1 :]], merged)))
            return alt(*languages)
    raise _Resists


def _interleave(pieces: Sequence[Regex], gaps: Sequence[Sequence[Look]]) -> list[Regex]:
    items: list[Regex] = [pieces[0]]
    for piece, gap in zip(pieces[1:], gaps, strict=True):
        items += [*gap, piece]
    return items
