"""The nearest text of a grammar: a search over pairs (state of the automaton, position in the broken text).

A text is read as far as the grammar allows. Where the grammar refuses it, edits are tried: another reading of one of
the last pieces (see `readings`), the nearest possible word, missing punctuation, or a piece left out. The search
continues from the cheapest text so far (Dijkstra 1959) and visits each pair once. After an edit that `SETTLED` pieces
follow, pairs at earlier positions are put aside, and tried again only if nothing else leads to the end. So the time is
linear in the number of errors, not exponential, as in the recovery of LR parsers (Diekmann and Tratt 2020).
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, partial
from heapq import heappop, heappush
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from ..automaton.encoding import REFUSED
from ..automaton.lazy_dfa import Program
from ..basics.cached import cached_property
from ..dependent.written import Written
from .edits import (
    AFTER_QUOTE,
    BEFORE_COMMA,
    COST_OF_FENCES,
    EDIT,
    INSERTED,
    INVENTED,
    LIKELY,
    MARKUP,
    MAX_COST,
    MAX_COST_OF_WORDS,
    MAX_EACH,
    MAX_INVENTED,
    MISSING_MARKUP,
    MOST_BESIDE_CUT,
    OF_PIECE,
    OF_WORD,
    ONLY_NAME,
    SPELLING,
    STRANGE_MEMBER,
    UNKNOWN_MEMBER,
    WRONG,
    Change,
    cost_of_prose,
)
from .prefix import Prefix
from .readings import (
    CLOSING,
    Reading,
    Structure,
    closing_bracket,
    content_of,
    kind_of,
    last_pieces,
    member_end,
    piece_count,
    piece_end,
    readings,
    structure_of,
)
from .words import DIGITS, MAX_BRANCHES, MAX_FORCED, MAX_WORDS, WORD_BYTES, Word, nearest, words_at

#: Number of pieces before a refusal for which other readings are tried.
PIECES_BACK = 5

#: Number of pieces that must follow an edit before earlier positions are put aside.
SETTLED = 8

#: Maximum number of positions at which a text may begin after prose.
MAX_BEGINNINGS = 16

_UNKNOWN = "a member that is not known, or does not fit"
#: The marks that end prose, and the maximum length of prose inside an answer, in bytes.
_MARK, MAX_PROSE = re.compile(rb'[<{}\[\]"]'), 400

_STRUCTURE = frozenset(b'{}[]",: \n\r\t')
#: The continuation of a word: a letter or digit, perhaps after dots and hyphens.
_IN_WORD = re.compile(rb"[.-]*[A-Za-z0-9_\x80-\xff]")
_FIRST_BYTES = {"string": frozenset(b'"'), "number": frozenset(b"0123456789"), "boolean": frozenset(b"tf")}


class _Insertion(NamedTuple):
    """The cost of inserted bytes, the state after them (negative: refused), and True if some of them are invented."""

    cost: float
    state: int
    is_invented: bool


@dataclass(eq=False)
class Search:
    """One search.

    Args:
        program: the automaton of the grammar.
        data: the broken text.
        specials: the names of the control tokens of the grammar.
        most: maximum cost; None: `MAX_COST`, and `MAX_EACH` more for each opening brace and colon.
        invent: edits may be invented (`Change.is_invented`).
        seconds: limit of the search, in processor time of this thread.
        goes_on: the text is a prefix: its completion costs nothing.

    Attributes:
        furthest: the maximum number of bytes of the broken text that were read.
        is_late: the search reached its time limit.
        would_invent: an invented edit was left out, since ``invent`` is False.
    """

    program: Program
    data: bytes
    specials: Collection[str]
    most: float | None
    invent: bool
    seconds: float
    goes_on: bool = False

    def __post_init__(self) -> None:
        data = self.data
        self._automaton = self.program.automaton
        self._until = time.thread_time() + self.seconds
        names = sorted((name.encode() for name in self.specials), key=len, reverse=True)
        found = re.finditer(b"|".join(map(re.escape, names)), data) if names else ()
        #: The names of control tokens in the text, by position: each stands for its token where that may follow.
        self._tokens = {match.start(): match.group() for match in found}
        self._token_starts = list(self._tokens)
        braces = data.count(b"{")
        # Colons of prose count for nothing: at most eight for each object.
        most_changed = MAX_COST + MAX_EACH * (braces + min(data.count(b":"), 8 * braces))
        if not any(mark in data for mark in (b"{", b"[", b"(", b"<")):
            most_changed = MAX_COST_OF_WORDS
        default = MAX_INVENTED + most_changed if self.invent else most_changed
        self._most = default if self.most is None else self.most  # lower, once the text lacks a value
        # By cost, then the furthest first, then in order of arrival.
        self._heap: list[tuple[float, int, int, Prefix]] = []
        self._aside: list[tuple[float, int, int, Prefix]] = []
        self._count = 0
        self._best: dict[tuple[int, int], float] = {}  # by state and position, the lowest cost
        self._settled = 0  # nodes at earlier positions are put aside
        self._words: dict[int, tuple[Word, ...]] = {}
        # Of a state, the bytes that may come next; of a position, its readings, its word, and the end of its member.
        self._following = cache(self._automaton.following)
        self._readings_at = cache(partial(readings, data))
        self._content = cache(partial(content_of, data))
        self._member_end = cache(partial(member_end, data))
        self.furthest = 0
        self.is_late = False
        self.would_invent = False

    def run(self) -> tuple[bytes, list[Change]] | None:
        """Return the cheapest text that was found and its edits; None if there is none."""
        with self.program.lock:
            start = Prefix(self.program.start, 0, 0.0)
        self._push(start)
        for beginning in self._beginnings(start):
            self._push(beginning)
        while True:
            node = self._next()
            if node is None or node.cost > self._most:
                return None
            if node.is_whole:
                return node.written(), node.changes()
            if time.thread_time() > self._until:
                self.is_late = True
                return None
            with self.program.lock:
                self._expand(node)

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _push(self, node: Prefix) -> None:
        """Add a node to the queue, unless one that costs no more came to its state and position."""
        if not node.is_whole:
            key = node.state, node.at
            if self._best.get(key, float("inf")) <= node.cost:
                return
            self._best[key] = node.cost
        self._count += 1
        heappush(self._heap, (node.cost, -node.at, self._count, node))

    def _next(self) -> Prefix | None:
        """Return the cheapest node that was not put aside; if there is none, the cheapest one that was."""
        while self._heap or self._aside:
            # If nothing else leads to the end, go on with what was put aside. An entry begins with its cost.
            if not self._heap or (self._aside and self._heap[0][0] > self._most):
                self._heap, self._aside, self._settled = self._aside, [], 0
            entry = heappop(self._heap)
            node = entry[-1]
            if node.at < self._settled and not node.is_whole:
                heappush(self._aside, entry)
            elif node.is_whole or self._best[node.state, node.at] >= node.cost:  # else a cheaper one came to this pair
                return node
        return None

    def _follow(self, node: Prefix, state: int, change: Change, before: bytes = b"") -> None:
        """Push the node after an edit; ``before`` is the unchanged text between the node and the edit."""
        if change.is_invented and not self.invent:
            self.would_invent = True
        elif state != REFUSED:
            self._push(Prefix(state, change.end, node.cost + change.cost, node, before + change.text, change))

    # -- steps -------------------------------------------------------------------------------------------------------

    def _step(self, node: Prefix, state: int, data: bytes, behind: bytes) -> int:
        """Return the state after ``data``, or `REFUSED`; ``behind`` is the text between the node and ``data``."""
        after = self._automaton.advance(state, data)
        if after >= REFUSED:
            return after
        return self.program.advance(state, data, Written(node.written() + behind))

    def _read(self, node: Prefix, marks: list[tuple[int, int]], end: int) -> tuple[int, int]:
        """Return how far the unchanged text is read after a node, at most to ``end``, and the state there. Pieces that
        are refused are halved, until one byte is refused.

        Args:
            node: the node.
            marks: known positions, ascending, with their states: reading starts at the last one up to ``end``; new ones
                are added.
            end: the position to stop at.
        """
        data = self.data
        at, state = marks[bisect_right(marks, end, key=itemgetter(0)) - 1]
        size = 64
        while size and at < end:
            token = self._tokens.get(at)
            after = REFUSED if token is None else self._after_token(node, state, token, data[node.at : at])
            if after != REFUSED:
                state, at, size = after, at + len(self._tokens[at]), 64
            else:
                piece = data[at : min(at + size, end, self._next_token(at + 1))]
                after = self._step(node, state, piece, data[node.at : at])
                if after == REFUSED:
                    size = min(size, len(piece)) // 2
                    continue
                state, at = after, at + len(piece)
            if at > marks[-1][0]:
                marks.append((at, state))
        return at, state

    def _next_token(self, at: int) -> int:
        """Return where the next name of a control token begins, or the end of the text."""
        index = bisect_left(self._token_starts, at)
        return self._token_starts[index] if index < len(self._token_starts) else len(self.data)

    def _after_token(self, node: Prefix, state: int, name: bytes, behind: bytes) -> int:
        """Return the state after a control token, or `REFUSED`; ``behind`` is the text between the node and it."""
        store, text = self.program.store, name.decode()
        if text not in store.specials:
            return REFUSED
        # Here a control token is written as its name. The store adds one byte for it, its first; so the rest is before.
        return store.advance_special(
            state, store.specials.index(text), lambda: Written(node.written() + behind + name[1:])
        )

    def _expand(self, node: Prefix) -> None:
        """Read on from a node, and push the nodes of all edits where the text is refused."""
        data, begin = self.data, node.at
        marks = [(begin, node.state)]
        end, state = self._read(node, marks, len(data))
        self.furthest = max(self.furthest, end)
        if node.parent is not None and piece_count(data, begin, end, SETTLED) >= SETTLED:
            self._settled = max(self._settled, begin)
        if end == len(data):
            self._finish(node, end, state)
        else:
            stripped = begin + len(data[begin:end].rstrip())
            for at in dict.fromkeys((end, stripped)):
                here = self._read(node, marks, at)[1]
                if here >= 0 and self._automaton.accepts(here) and not self._splits_value(node, marks, at):
                    self._leave_rest(node, at, here)
        self._read_otherwise(node, marks, end)
        splits = self._splits_value(node, marks, end)
        self._insert(node, end, state, splits=splits)
        if end < len(data):
            if data[end] in b"}]":
                self._add_missing_values(node, end, state)
            self._replace_word(node, state, end, data[begin:end])
            self._change_bytes(node, end, state, splits=splits)
            self._skip_prose(node, end, state)

    def _read_otherwise(self, node: Prefix, marks: list[tuple[int, int]], end: int) -> None:
        """Push nodes with an edit of one of the last pieces before a refusal at ``end``: another reading, another word,
        or without the member that begins there."""
        data, begin = self.data, node.at
        # From the last piece back. Of the piece after the present one: its position, and the cost of its member, if
        # that is left out together with a comma here.
        next_at, cost_of_next = len(data), STRANGE_MEMBER
        for at in last_pieces(data, begin, min(end + 1, len(data)), PIECES_BACK):
            before = data[begin:at]
            reached, here = self._read(node, marks, at)
            if reached != at:
                next_at, cost_of_next = at, STRANGE_MEMBER
                continue
            for reading in self._readings_at(at):
                if self._evades(here, at, reading):
                    reading = reading._replace(cost=max(reading.cost, EDIT))
                after = self._step(node, here, reading.text, before) if reading.text else here
                self._follow(node, after, Change(at, reading.end, reading.text, reading.cost, reading.why), before)
            if self._content(at).end >= end:  # a word that was read whole is one that is known
                self._replace_word(node, here, at, before)
            # A member that is left out takes the comma after it along, or else the one before it.
            cost = self._cost_of_leaving(node, here, at, end, before)
            if (ends := self._member_end(at)) is not None:
                self._follow(node, here, Change(at, ends.comma, b"", cost, _UNKNOWN), before)
            if data.startswith(b",", at):
                if (ends := self._member_end(next_at)) is not None:
                    self._follow(node, here, Change(at, ends.value, b"", cost_of_next, _UNKNOWN), before)
                for bracket in CLOSING:
                    after = self._step(node, here, bracket, before)
                    self._follow(node, after, Change(at, at, bracket, BEFORE_COMMA, "a missing bracket"), before)
            next_at, cost_of_next = at, cost

    @cached_property
    def _structure(self) -> Structure:
        """The brackets and strings around each position of the broken text."""
        return structure_of(self.data)

    def _splits_value(self, node: Prefix, marks: list[tuple[int, int]], at: int) -> bool:
        """Return True if a position is inside a value and a word goes on there (a string at a letter or digit, a bare
        word or a number), so that to end the value there changes it.

        False inside one of finitely many words, such as a name: it is replaced as a whole, or it is misspelled markup.
        """
        data = self.data
        if not 0 < at < len(data) or not _IN_WORD.match(data, at):
            return False
        begin = self._structure.opening_quotes[at]
        if begin < 0:
            if data[at - 1] not in WORD_BYTES:
                return False
            begin = at - 1
            while begin > node.at and data[begin - 1] in WORD_BYTES:
                begin -= 1
        if begin < node.at:
            return True
        reached, state = self._read(node, marks, begin)
        return reached == begin and not self._words_of(node, state, data[node.at : begin])

    def _cost_of_leaving(self, node: Prefix, state: int, at: int, end: int, before: bytes) -> float:
        """Return the cost of leaving out the member at a position: lower if the text is refused at its name, and no
        possible name is near."""
        name_end, name = self._content(at)
        is_refused_at_name = name and end <= name_end and self.data[:at].rstrip()[-1:] in (b",", b"{")
        if not is_refused_at_name:
            return UNKNOWN_MEMBER
        near = nearest(name.decode("utf-8", "replace"), self._words_of(node, state, before))  # by cost, with the cost
        return STRANGE_MEMBER if all(cost >= ONLY_NAME for _, cost in near) else UNKNOWN_MEMBER

    def _evades(self, state: int, at: int, reading: Reading) -> bool:
        """Return True if a reading changes the type of a value although its own type is possible here."""
        kind, other = kind_of(self.data[at : reading.end]), kind_of(reading.text)
        if not kind or not other or kind == other:
            return False
        return not _FIRST_BYTES[kind].isdisjoint(self._following(state))

    def _beginnings(self, start: Prefix) -> Iterator[Prefix]:
        """Yield the nodes after prose before the text."""
        data = self.data
        with self.program.lock:
            first = self._following(start.state)
        if len(first) > MAX_BRANCHES:
            return
        positions = (at for at in range(1, len(data)) if data[at] in first and data[at] not in b" \n\t\r")
        for number, at in enumerate(positions):
            if number == MAX_BEGINNINGS:
                return
            change = Change(0, at, b"", cost_of_prose(data[:at]), "text before the answer")
            yield Prefix(start.state, at, change.cost, start, b"", change)

    # -- edits -------------------------------------------------------------------------------------------------------

    def _leave_rest(self, node: Prefix, end: int, state: int) -> None:
        """Push the text that ends at ``end``, with the rest of the data left out: cheap if the rest is space, fences
        and brackets, else the cost of prose, and more if ``end`` is within a structure."""
        rest = self.data[end:]
        cost, why = COST_OF_FENCES, "text after the answer"
        if rest.strip(b" \t\r\n`}])>"):
            cost = cost_of_prose(rest)
            if self._structure.depths[end]:
                cost, why = cost + UNKNOWN_MEMBER, "the rest, which does not fit"
        change = Change(end, len(self.data), b"", cost, why)
        text = self.data[node.at : end]
        self._push(Prefix(state, len(self.data), node.cost + cost, node, text, change, is_whole=True))

    def _finish(self, node: Prefix, end: int, state: int) -> None:
        """Push the complete text, or the text with its shortest completion."""
        text = self.data[node.at : end]
        if self._automaton.accepts(state):
            self._push(Prefix(state, end, node.cost, node, text, is_whole=True))
            return
        parts = self.program.store.shortest_completion(state, Written(node.written() + text))
        cost, added, is_invented = 0.0, b"", False
        for part in parts:
            if isinstance(part, bytes):
                inserted = self._insertion(node, state, part, text + added)
                state = inserted.state
                cost += inserted.cost
                is_invented |= inserted.is_invented
                added += part
            else:  # the name of a control token
                state = self._after_token(node, state, part.encode(), text + added)
                cost += MARKUP
                added += part.encode()
        if self.goes_on:
            cost = 0.0
        elif is_invented and not self.invent:
            # The text was read to its end and lacks a value: other readings must be near.
            self.would_invent = True
            self._most = min(self._most, node.cost + MOST_BESIDE_CUT)
            return
        is_cut = self.goes_on or cost > MARKUP * (len(added) + 0.5)  # not all of it is forced
        change = Change(end, end, added, cost, "the end is missing", is_invented, is_cut)
        self._push(Prefix(state, end, node.cost + cost, node, text + added, change, is_whole=True))

    def _add_missing_values(self, node: Prefix, end: int, state: int) -> None:
        """Push the node with the values that an object or array still needs before the bracket at ``end``."""
        bracket, before = self.data[end], self.data[node.at : end]
        parts = self.program.store.shortest_completion(state, Written(node.written() + before))
        added = parts[0] if parts and isinstance(parts[0], bytes) else b""
        size = closing_bracket(added)  # what comes before this bracket is missing inside of the object or array
        if not size or added[size] != bracket:
            return
        cost, after, is_invented = self._insertion(node, state, added[:size], before)
        why = "a value is missing"
        self._follow(node, after, Change(end, end, added[:size], cost, why, is_invented), before)

    def _insertion(self, node: Prefix, state: int, added: bytes, behind: bytes) -> _Insertion:
        """Return the cost and the effect of bytes that are inserted in a state; ``behind`` is the text before them.

        Forced text is cheap. Structure is likely. The first byte that the grammar leaves open (a value, a name) is
        expensive, and the bytes that go on with it are cheap; so is what ends an empty value that was opened here.
        """
        cost, at, is_invented = 0.0, 0, False
        was_chosen = is_fresh = False  # the last byte was a free choice; the last piece opened a free string
        opened = 0  # brackets
        while at < len(added):
            forced = self._automaton.forced(state, len(added) - at)
            byte = added[at]
            if forced and added.startswith(forced, at):
                size, was_chosen = len(forced), False
                cost += MARKUP * size
            else:
                size = 1
                # The closing quote of an empty string, or the bracket of an object or array that was opened here.
                ends_invented = is_fresh or (byte in b"}]" and opened > 0)
                if byte in _STRUCTURE and not ends_invented:
                    cost, was_chosen = cost + LIKELY, False
                else:
                    cost += MARKUP if was_chosen else INVENTED
                    is_invented = was_chosen = True
            piece = added[at : at + size]
            opened += piece.count(b"{") + piece.count(b"[") - piece.count(b"}") - piece.count(b"]")
            state = self._step(node, state, piece, behind + added[:at])
            at += size
            if state < 0:
                break
            is_fresh = piece.endswith(b'"') and len(self._following(state)) > MAX_BRANCHES
        return _Insertion(cost, state, is_invented)

    def _insert(self, node: Prefix, end: int, state: int, *, splits: bool) -> None:
        """Push nodes with missing text inserted: white space, punctuation, or text that the grammar forces.

        If the position ``splits`` a value, an insertion that ends the value is invented: it makes another value.
        """
        before = self.data[node.at : end]
        # The text that was inserted just here, by the node's own change.
        inserted = node.change.text if node.change is not None and not before and node.change.begin == node.at else b""
        for text in self._forced(end, state, before or node.text, inserted):
            cost, why = MISSING_MARKUP + MARKUP * len(text), "missing markup"
            if text.isspace():
                cost, why = SPELLING / 2, "white space"
            ends_value = not _STRUCTURE.isdisjoint(text)
            change = Change(end, end, text, cost, why, splits and ends_value)
            self._follow(node, self._step(node, state, text, before), change, before)
        is_free = len(self._following(state)) > MAX_BRANCHES
        for text, cost in INSERTED:
            if (inserted[-1:] + text) in (b'""', b"{}", b"[]"):  # that would be a value
                continue
            if text == b'"' and (end == len(self.data) or self.data[end] not in WORD_BYTES):  # nothing to be quoted
                continue
            if text != b'"' and is_free:  # it would be a part of a string
                continue
            if text in b",:" and self.data[end - 1 : end] == b'"' and self.data[end : end + 1].isalpha():
                cost += AFTER_QUOTE  # the quote more likely opens the next string
            after = self._step(node, state, text, before)
            if splits or after != REFUSED:
                self._follow(node, after, Change(end, end, text, cost, "missing punctuation", splits), before)

    def _forced(self, end: int, state: int, before: bytes, inserted: bytes) -> Iterator[bytes]:
        """Yield the text that the grammar forces here, and its prefixes after which the broken text may continue.
        ``before`` is the text before it, ``inserted`` the edit that was made just here."""
        data, forced = self.data, self._automaton.forced(state, MAX_FORCED)
        if inserted == b'"' and forced[:1].strip(b'"'):
            return  # a quote was missing before a word of the text, and this would be another word
        if not forced or (before and before[-1] in WORD_BYTES and forced[0] in WORD_BYTES and end < len(data)):
            return  # a word that is spelled otherwise is replaced as a whole
        yield forced
        space = len(forced) - len(forced.lstrip())
        # The first four prefixes after which the next byte of the broken text is forced.
        joins = [size for size in range(1, len(forced)) if data[end : end + 1] == forced[size : size + 1]][:4]
        for size in dict.fromkeys((space, *joins)):
            if 0 < size < len(forced):
                yield forced[:size]

    def _skip_prose(self, node: Prefix, end: int, state: int) -> None:
        """Push the node that leaves out words up to the next mark that the grammar allows: text between calls."""
        possible = self._following(state)
        if len(possible) > MAX_BRANCHES:
            return
        stop = _MARK.search(self.data, end + 1, end + MAX_PROSE)
        if stop is None or stop.group() not in (b"<", b"{", b"[") or stop.group()[0] not in possible:
            return  # before a quote or a closing bracket, the words may be a member without quotes
        if len(self.data[end : stop.start()].split()) < 2:
            return
        skipped = self.data[end : stop.start()]
        change = Change(end, stop.start(), b"", cost_of_prose(skipped), "text between")
        self._follow(node, state, change, self.data[node.at : end])

    def _change_bytes(self, node: Prefix, end: int, state: int, *, splits: bool) -> None:
        """Push nodes that leave out one character or piece, or insert or substitute one of few possible characters.

        Inside a value (``splits``) such an edit is invented: it makes another value.
        """
        data, before = self.data, self.data[node.at : end]
        size = 1  # of the character
        while end + size < len(data) and data[end + size] & 0xC0 == 0x80:  # bytes 10xxxxxx go on with it
            size += 1
        cost = EDIT if data[end] not in WORD_BYTES else OF_WORD  # rather than that, a word has another spelling
        self._follow(node, state, Change(end, end + size, b"", cost, "a character too many", splits), before)
        past = piece_end(data, end)
        if past > end + size:
            change = Change(end, past, b"", EDIT + OF_PIECE * (past - end), "a piece too many", splits)
            self._follow(node, state, change, before)
        possible = self._following(state)
        if len(possible) > MAX_BRANCHES or data[end] in _STRUCTURE:
            return
        for byte in possible:
            if byte in _STRUCTURE:
                continue
            text = bytes((byte,))
            after = self._step(node, state, text, before)
            change = Change(end, end, text, EDIT, "a missing character", len(possible) > 1)
            self._follow(node, after, change, before)
            is_other = splits or byte in DIGITS or data[end] in DIGITS  # another number or date
            change = Change(end, end + size, text, WRONG, "a wrong character", is_other)
            self._follow(node, after, change, before)

    # -- words -------------------------------------------------------------------------------------------------------

    def _replace_word(self, node: Prefix, state: int, at: int, before: bytes) -> None:
        """Push nodes that replace the word at a position by the nearest possible words, if these are finitely many."""
        end, content = self._content(at)
        if end <= at or not content:
            return
        for word, cost in nearest(content.decode("utf-8", "replace"), self._words_of(node, state, before)):
            after = self._step(node, state, word, before)
            why = "the spelling of a name or value" if cost < LIKELY else "a name or value that is not known"
            self._follow(node, after, Change(at, end, word, cost, why), before)

    def _words_of(self, node: Prefix, state: int, before: bytes) -> tuple[Word, ...]:
        words = self._words.get(state)
        if words is None:
            possible = words_at(self._automaton, partial(self._step, node), self._following, state, before)
            found = list(islice(possible, MAX_WORDS + 1))
            words = self._words[state] = tuple(found) if len(found) <= MAX_WORDS else ()
        return words
