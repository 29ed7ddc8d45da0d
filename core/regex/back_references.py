r"""Back-references: a group of few words is written out for each of them, any other lies between two regular languages.

``(['"])[a-z]*\1`` is ``'[a-z]*'|"[a-z]*"``. A group of more than `MAX_WORDS` words makes the pattern irregular. Its
*inner* language has the shortest words, and the strings that use no reference to the group; its *outer* language takes
a reference for a copy of the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice, product
from typing import Final, Literal

from ..unicode.charset import CharSet
from .syntax import Alt, BackReference, Capture, Chars, Look, Regex, Repeat, Seq, fold, in_a_row

#: Which language of a pattern with back-references: its own, one inside of it, or one around it.
Bound = Literal["exact", "inner", "outer"]

MAX_WORDS: Final = 64
"""Maximum number of words of a group for which a pattern is written out."""
MAX_LENGTH: Final = 16
"""Maximum length of these words."""
MAX_GROUP: Final = 50
"""Maximum number of parts of a group whose words are listed."""
MAX_GROUPS: Final = 4
"""Maximum number of groups to which a pattern refers."""
MAX_SIZE: Final = 8_000
"""Maximum number of parts of a pattern that is written out."""
MAX_DEPTH: Final = 60
"""Maximum depth of its tree."""

#: Characters that are listed before others.
_FIRST = (CharSet.range("a", "z"), CharSet.range("A", "Z"), CharSet.range("0", "9"), CharSet.range(" ", "~"))
_NOTHING = Chars(CharSet.empty())
_OPPOSITE: Final[dict[Bound, Bound]] = {"exact": "exact", "inner": "outer", "outer": "inner"}


def expanded(tree: Regex, bound: Bound) -> Regex | None:
    """Return a pattern without `Capture` and `BackReference`.

    Args:
        tree: the pattern, with a `Capture` for each group that has a number.
        bound: which language is asked for. The three differ only where a group has too many words.

    Returns:
        The tree; None if there is none: the language is not regular and ``exact``, a group is repeated, optional or in
        a look-around before the reference to it, or the pattern would be too large.
    """
    if _size(tree) > MAX_SIZE or fold(tree, lambda _, depths: 1 + max(depths, default=0)) > MAX_DEPTH:
        return None
    if len(set(_numbers(tree, BackReference))) > MAX_GROUPS:
        return None
    made = _expanded(tree, bound, frozenset(), MAX_SIZE)
    if made is None or _numbers(made, BackReference):
        return None
    return _without_captures(made)


def _expanded(tree: Regex, bound: Bound, outside: Set[int], most: int) -> Regex | None:
    """Return a part of a pattern without the references within; None: see `expanded`.

    Args:
        tree: the part.
        bound: which language is asked for.
        outside: groups that are left as they are, since the rest of the pattern refers to them.
        most: maximum number of parts.
    """
    while True:
        asked = {*_numbers(tree, BackReference)} - outside
        number = next((each for each in _numbers(tree, Capture) if each in asked), None)
        if number is None:
            return tree
        written = _written(tree, number, bound, outside, most)
        if written is None or _size(written) > most:
            return None
        tree = written


def _written(tree: Regex, number: int, bound: Bound, outside: Set[int], most: int) -> Regex | None:
    """Return a part of a pattern without the references to a group: an alternative for each word of the group, with the
    word in place of the group and its references; None: see `expanded`. If there are too many words, ``exact`` gives
    up, ``inner`` uses some of them, and ``outer`` lets the references match any word. For the arguments see
    `_expanded`; ``number`` is that of the group.
    """
    path = _path(tree, number)
    if path is None:
        return None
    looks = [above for above, _ in path if isinstance(above, Look)]
    if any(not look.ahead for look in looks):
        return None  # it is matched from its end
    if sum(look.negated for look in looks) % 2:
        bound = _OPPOSITE[bound]
    node = path[-1][0].items[path[-1][1]] if path else tree
    group = _group(node, number)
    if group is None:
        return None
    inside = {*_numbers(group, Capture), *_numbers(group, BackReference)}
    if not inside.isdisjoint(_numbers(tree, BackReference)):  # it refers to a group, or has one that is referred to
        return None
    group = _without_captures(group)
    if not group.is_pure:  # its words depend on the text around it
        return None
    options = _options(node, number, group, bound, min(MAX_WORDS, most // _size(node)))
    if options is None:
        return None
    whole, part = _counts(tree), _counts(node)  # of references, by group
    referred_outside = {*outside, *(each for each, count in whole.items() if count > part[each])}
    written: list[Regex] = []
    for option in options:
        each = _expanded(option, bound, referred_outside, most // len(options))
        if each is not None:
            written.append(each)
        elif bound != "inner":
            return None
    if options and not written:
        return None
    made = written[0] if len(written) == 1 else Alt(tuple(written)) if written else _NOTHING
    for above, at in reversed(path):
        made = _with(above, [*above.items[:at], made, *above.items[at + 1 :]])
    return made


def _path(tree: Regex, number: int) -> list[tuple[Regex, int]] | None:
    """Return the path from a root to the smallest part with a group and all references to it, as pairs of a node and
    the index of its item; None: the group occurs several times, or refers to itself."""
    path: list[tuple[Regex, int]] = []
    node = tree
    while True:
        with_group = [at for at, item in enumerate(node.items) if number in _numbers(item, Capture)]
        with_reference = [at for at, item in enumerate(node.items) if number in _numbers(item, BackReference)]
        if len(with_group) != 1:
            return None
        if with_reference != with_group:
            return path
        path.append((node, with_group[0]))
        node = node.items[with_group[0]]
        if isinstance(node, Capture) and node.number == number:
            return None


def _options(node: Regex, number: int, group: Regex, bound: Bound, most: int) -> list[Regex] | None:
    """Return alternatives of a part without the references to a group in it; None: the group has too many words for
    ``exact``.

    Args:
        node: the part.
        number: the number of the group.
        group: its content, without captures.
        bound: which language is asked for.
        most: maximum number of words that are written out.
    """
    is_listed = _size(group) <= MAX_GROUP
    words = list(islice(_words(group), most + 1)) if is_listed else []
    are_all = is_listed and len(words) <= most and group.longest is not None and group.longest <= MAX_LENGTH
    if not are_all and bound == "exact":
        return None
    options: list[Regex] = []
    if are_all or bound == "inner":
        literals = [in_a_row([Chars(CharSet.of(character)) for character in word]) for word in words[:most]]
        options += [_replaced(node, number, each, each, each) for each in literals]
    if not are_all:  # a reference matches nothing (inner), or all that the group may match (outer)
        use, denied = (_NOTHING, group) if bound == "inner" else (group, _NOTHING)
        options.append(_replaced(node, number, group, use, denied))
    return options


def _group(node: Regex, number: int) -> Regex | None:
    """Return the content of the group of a number, if the group is matched exactly once, before every reference to it;
    None: it is optional, repeated, or inside an alternative, or a reference comes first."""
    while not (isinstance(node, Capture) and node.number == number):
        if not isinstance(node, (Seq, Capture)):
            return None
        at = next(at for at, item in enumerate(node.items) if number in _numbers(item, Capture))
        if any(number in _numbers(item, BackReference) for item in node.items[: at + 1]):
            return None
        node = node.items[at]
    return node.item


def _replaced(node: Regex, number: int, group: Regex, use: Regex, denied: Regex) -> Regex:
    """Return a tree with something else for a group, for the references to it, and for those of them whose match makes
    the whole fail (in ``(?!...)``)."""
    if isinstance(node, Capture) and node.number == number:
        return group
    if isinstance(node, BackReference):
        return use if node.number == number else node
    if not node.items:
        return node
    if isinstance(node, Look) and node.negated:
        use, denied = denied, use
    return _with(node, [_replaced(item, number, group, use, denied) for item in node.items])


def _with(node: Regex, items: Sequence[Regex]) -> Regex:
    """Return a node with other items."""
    if isinstance(node, Seq):
        return Seq(tuple(items))
    if isinstance(node, Alt):
        return Alt(tuple(items))
    if isinstance(node, Repeat):
        return Repeat(items[0], node.min, node.max)
    if isinstance(node, Look):
        return Look(node.ahead, node.negated, items[0])
    assert isinstance(node, Capture)
    return Capture(node.number, items[0])


def _without_captures(tree: Regex) -> Regex:
    def combine(node: Regex, items: Sequence[Regex]) -> Regex:
        return items[0] if isinstance(node, Capture) else _with(node, items) if items else node

    return fold(tree, combine)


def _numbers(tree: Regex, kind: type[Capture] | type[BackReference]) -> list[int]:
    """Return the numbers of the groups, or of the references, in a tree, in order."""
    found: list[int] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, kind):
            found.append(node.number)
        waiting += reversed(node.items)
    return found


def _counts(tree: Regex) -> Counter[int]:
    """Return how often each number occurs in a tree, of a group or of a reference."""
    return Counter((*_numbers(tree, Capture), *_numbers(tree, BackReference)))


def _size(tree: Regex) -> int:
    """Return the number of parts of a tree."""
    size, waiting = 0, [tree]
    while waiting:
        size += 1
        waiting += waiting.pop().items
    return size


# -- the words of a group ------------------------------------------------------------------------------------------


def _words(group: Regex) -> Iterator[str]:
    """Yield words of a pure tree in the order of their length, up to `MAX_LENGTH`: of each length at most one more than
    `MAX_WORDS`."""
    known: dict[tuple[int, int], list[str]] = {}
    for length in range(MAX_LENGTH + 1 if group.longest is None else min(group.longest, MAX_LENGTH) + 1):
        yield from _of_length(group, length, known)


def _of_length(node: Regex, length: int, known: dict[tuple[int, int], list[str]]) -> list[str]:
    """Return words of one length, computed once for each node (which is kept by the tree) and length."""
    if length < node.shortest or (node.longest is not None and length > node.longest):
        return []
    key = id(node), length
    if key not in known:
        known[key] = list(islice(dict.fromkeys(_found(node, length, known)), MAX_WORDS + 1))
    return known[key]


def _found(node: Regex, length: int, known: dict[tuple[int, int], list[str]]) -> Iterator[str]:
    """Yield words of one length of a node, common characters first. Words may repeat; of a run of more than `MAX_WORDS`
    characters, only as many as the caller needs to know that there are too many."""
    if isinstance(node, Chars):
        for part in (*(node.charset.intersection(each) for each in _FIRST), node.charset):
            for first, last in part:
                yield from map(chr, range(first, min(last, first + MAX_WORDS) + 1))
    elif isinstance(node, Alt):
        for item in node.items:
            yield from _of_length(item, length, known)
    elif isinstance(node, Seq):
        yield from _in_a_row(node.items, length, known)
    elif isinstance(node, Repeat):
        yield from _repeated(node, length, known)
    else:
        yield ""


def _in_a_row(items: Sequence[Regex], length: int, known: dict[tuple[int, int], list[str]]) -> Iterator[str]:
    """Yield the words of one length of items one after the other."""
    words = {0: [""]}  # by length: the words of the items so far
    for item in items:
        words = _continued(words, item, 0, length, known)
    yield from words.get(length, ())


def _repeated(node: Repeat, length: int, known: dict[tuple[int, int], list[str]]) -> Iterator[str]:
    """Yield the words of one length of a repetition, from the numbers of copies that are not empty."""
    least = 0 if node.item.is_nullable else node.min  # all other copies are empty
    if length == 0 and least == 0:
        yield ""
    words = {0: [""]}  # by length: the words of ``count`` copies
    for count in range(1, length + 1 if node.max is None else min(node.max, length) + 1):
        words = _continued(words, node.item, 1, length, known)
        if count >= least:
            yield from words.get(length, ())


def _continued(
    words: Mapping[int, Sequence[str]], item: Regex, least: int, most: int, known: dict[tuple[int, int], list[str]]
) -> dict[int, list[str]]:
    """Return words (by length), each followed by a word of an item; of each length at most one more than `MAX_WORDS`.

    The word of the item has at least ``least`` characters, and both together at most ``most``.
    """
    longer: dict[int, dict[str, None]] = {}
    for begun, beginnings in words.items():
        for more in range(least, most - begun + 1):
            joined = longer.setdefault(begun + more, {})
            for tail, word in product(_of_length(item, more, known), beginnings):
                if len(joined) > MAX_WORDS:
                    break
                joined[word + tail] = None
    return {length: list(found) for length, found in longer.items() if found}
