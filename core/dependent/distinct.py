"""Objects of an array with ``uniqueItems``, compared with the items before them after a *deciding* member.

The deciding member is required, and can always make the difference: it is a string of a roomy language (`is_roomy`).
Before it, no state depends on the items so far. After it, the object must differ from its *rivals*: the earlier objects
with the same members up to there. As a rule it has none, and the rest of the object is the same for every text.

For example, let ``name`` be the deciding member. After ``[{"id": 1, "name": "a"}, {"id": 1, "name": "a``, the quote is
forbidden; if an optional member may follow, the quote is allowed, and the brace after it is not.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from ..json import json_bytes, value_key
from .written import Endings, Written, endings_after_escape, endings_of

_NO_ITEMS: frozenset[str] = frozenset()


class _Rivals(NamedTuple):
    """The items that agree with an object in all members before the deciding one.

    Attributes:
        keys: by their strings in the deciding member: their keys (see `value_key`).
        spelled: these strings as `json.dumps` writes them, sorted.
    """

    keys: dict[str, list[str]]
    spelled: list[bytes]

    def add(self, string: str, key: str) -> None:
        """Add an item with a string in the deciding member."""
        if string not in self.keys:
            insort(self.spelled, json_bytes(string))
        self.keys.setdefault(string, []).append(key)


class _Items:
    """The items of an array that are read so far.

    Attributes:
        count: their number.
        rivals: the items by their members before the deciding one (the `value_key` of these).
    """

    def __init__(self) -> None:
        self.count = 0
        self.rivals: dict[str, _Rivals] = {}


class DistinctObjects:
    """The function of the dependent node after the deciding member of an object.

    Args:
        earlier: the names of the declared members that may come before the deciding one.
        name: the name of the deciding member.
        rest: returns the node of the rest of an object, by the keys of its rivals, from which it must differ (see
            `value_key`), and the names of its members up to here; without rivals, both are empty.
    """

    def __init__(
        self,
        earlier: Collection[str],
        name: str,
        rest: Callable[[frozenset[str], frozenset[str]], int],
    ) -> None:
        self._earlier = frozenset(earlier)
        self._name = name
        self._rest = rest

    def __call__(self, before: Written) -> int:
        """Return the node after a text that ends with the string of the deciding member."""
        start = before.string_start(len(before) - 1)
        around = self._members(before, start)
        assert around is not None
        members, opening = around
        string = json.loads(before.text_from(start))
        keys: list[str] = []
        for rivals in self._rivals(before, members, opening):
            keys += rivals.keys.get(string, ())
        return self._rest(frozenset(keys), frozenset((*members, self._name)) if keys else _NO_ITEMS)

    def endings(self, before: Written) -> tuple[list[Endings], bool]:
        """Return the continuations that give the deciding member the string of a rival, as `Written.endings` does. The
        text ends inside of that string, or where it may begin; at any other place there are none."""
        end = len(before)
        found: list[Endings] = []
        is_partial = False
        for start in dict.fromkeys((end, before.string_start(end))):  # the string may begin here, or has begun there
            around = self._members(before, start) if start >= 0 else None
            if around is None:
                continue
            members, opening = around
            begun = before.text_from(start)
            for rivals in self._rivals(before, members, opening):
                if b"\\" in begun:
                    more, partial = endings_after_escape(rivals.keys, begun)
                    found += more
                    is_partial = is_partial or partial
                else:
                    found += endings_of(rivals.spelled, begun)
        return found, is_partial

    def _members(self, before: Written, start: int) -> tuple[dict[str, Any], int] | None:
        """Return the members of an object before the deciding one, if its value begins at an index, and the index of
        the brace of the object; None if it does not."""
        member = before.member_at(start)
        if member is None or member[0] != self._name:
            return None
        _, opening, text = member
        try:
            return json.loads(text.rstrip(b", \t\r\n") + b"}"), opening
        except ValueError:  # the text ends inside of a string
            return None

    def _rivals(self, before: Written, members: dict[str, Any], opening: int) -> list[_Rivals]:
        """Return the items before an object that agree with its members before the deciding one.

        Args:
            before: the text.
            members: these members.
            opening: the index of the brace of the object.
        """
        around = before.items_before(opening)
        if around is None:
            return []
        memo, final, tentative = around
        known = memo.get(self)
        if known is None:
            known = memo[self] = _Items()
        for item in final[known.count :]:
            self._add(known, item)
        known.count = len(final)
        asked = value_key(members)
        found = [known.rivals[asked]] if asked in known.rivals else []
        if tentative:
            others = _Items()
            for item in tentative:
                self._add(others, item)
            found += [others.rivals[asked]] if asked in others.rivals else []
        return found

    def _add(self, items: _Items, item: bytes) -> None:
        """Add an item, as written, to the items that are read; one without the deciding member cannot be a rival."""
        value = json.loads(item)
        string = value.get(self._name) if type(value) is dict else None
        if type(string) is str:
            common = value_key({name: each for name, each in value.items() if name in self._earlier})
            items.rivals.setdefault(common, _Rivals({}, [])).add(string, value_key(value))
