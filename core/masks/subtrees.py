# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Self loops: row states that a text does not leave by bytes of some groups.

Compiled where that is possible; ``subtrees.pxd`` declares its C interface.
"""

from __future__ import annotations

from .trie import GROUPS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.blocks import row_of
    from ..automaton.positions import Positions
    from ..compiled.memory import free, ints, more, octets, ulongs
    from .trie import Trie, is_space

#: Minimum number of trie nodes in a subtree for which the groups of bytes on which a state loops pay off.
SOME = cython.declare(cython.int, 16)
#: The groups that are not plain: the quote, the backslash, and everything except printable ASCII.
MARKS = cython.declare(cython.ulonglong, GROUPS[0x22] | GROUPS[0x5C] | GROUPS[0x80] | GROUPS[0])
_ALL_GROUPS = cython.declare(cython.ulonglong, 2**64 - 1)
#: Maximum number of states, and of bytes ahead, that are inspected for the end of a text.
MOST_REACHED = cython.declare(cython.int, 32)
FURTHEST = cython.declare(cython.int, 8)
#: The same for a search for what leads out of a text, from a state that is not like most.
MANY = cython.declare(cython.int, 1024)
#: Minimum number of trie nodes in a subtree for which non-ASCII analysis pays off.
LARGE = cython.declare(cython.int, 64)
#: Maximum number of states, each with the groups on the way to it, in the search for what leads out of a text; and of
#: sets of two or more groups that are found, without joining some.
MOST_WAYS = cython.declare(cython.int, 160)
MOST_NEEDS = cython.declare(cython.int, 16)
#: Maximum number of terms, about, that such a search makes: their derivatives may cost more than it saves.
MOST_MADE = cython.declare(cython.int, 64)
#: Number of ways to one state from which on only what they have in common is kept.
MOST_ALIKE = cython.declare(cython.int, 8)


@cython.cclass
class Subtrees:
    """The test whether all tokens of a subtree of the trie stay inside the text of a row state, without a walk.

    Args:
        atoms: the automaton whose row states they are.
        trie: the vocabulary's trie.
    """

    def __init__(self, atoms: Positions, trie: Trie):
        self.atoms = atoms
        self.trie = trie
        self.room, self.usual, self.leaves, self.is_wide = 64, ints(64), ulongs(64), octets(64)
        self.safe, self.exits_at, self.needs_at = octets(64), ints(64), ints(128)
        self.exits_room, self.exits = 256, ints(256)
        self.exits_used = 1  # 0 means that exits are not known
        self.needs_room, self.needs = 64, ulongs(64)
        self.needs_used = 1  # 0 means that they are not known
        self.reached = ints(MOST_REACHED)
        self.way_state, self.way_groups, self.way_size = ints(MOST_WAYS), ulongs(MOST_WAYS), ints(MOST_WAYS)
        self.found = ulongs(MOST_NEEDS)
        self.ways = 0
        self.founds = 0
        self.single = 0
        self.is_full = False

    def __dealloc__(self):
        free(self.usual)
        free(self.leaves)
        free(self.is_wide)
        free(self.safe)
        free(self.exits_at)
        free(self.needs_at)
        free(self.exits)
        free(self.needs)
        free(self.reached)
        free(self.way_state)
        free(self.way_groups)
        free(self.way_size)
        free(self.found)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def bytes_held(self) -> cython.longlong:
        """Return the bytes that the facts take."""
        return 26 * self.room + 4 * self.exits_room + 8 * self.needs_room

    @cython.cfunc
    @cython.exceptval(0, check=True)
    def left_by(self, state: cython.int) -> cython.ulonglong:
        """Return the groups of bytes (see `GROUPS`) that may lead from a row state to another one than itself; all
        others do not, in whatever order they come."""
        if state >= self.room:
            self._make_room(state)
        if self.leaves[state] == 0:
            self._find_leaves(state)
        if self.usual[state] != state:
            return _ALL_GROUPS
        if not self.is_wide[state]:
            self._find_wide(state)
        return self.leaves[state]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def usual_from(self, state: cython.int) -> cython.int:
        """Return the row state to which most ASCII bytes lead from a row state, of those that lead anywhere, if there
        is one; else any, or 0."""
        if state >= self.room:
            self._make_room(state)
        if self.leaves[state] == 0:
            self._find_leaves(state)
        return self.usual[state]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def home(self, state: cython.int) -> cython.int:
        """Return the row state to which most ASCII bytes lead from a row state, if most lead from there back to it; 0
        if there is no such state, or if it is that one."""
        home: cython.int = self.usual_from(state)
        return home if home > 0 and home != state and self.usual_from(home) == home else 0

    @cython.cfunc
    def widen(self, state: cython.int) -> object:
        """Look whether all non-ASCII characters lead back to a row state, which need not have other self loops, so that
        `stays` knows it of the states within a character."""
        if state >= self.room:
            self._make_room(state)
        if self.leaves[state] == 0:
            self._find_leaves(state)
        if not self.is_wide[state]:
            self._find_wide(state)
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def stays(self, node: cython.int, state: cython.int, like: cython.int) -> cython.int:
        """Return 1 if all tokens below trie ``node``, which is in row state ``state``, stay inside. All their bytes
        lead from each state to its usual successor, or they are too few to reach the end of the text.

        So it is in loops and bounded repetitions of a pattern. If the text may end in the state, it may end after each
        of the tokens, else after none.

        With ``like`` 1, in a JSON string, it is enough that those tokens stay inside that do so in the free string, and
        that the text ends in none of them (then return 2) or where the free string does (3).

        With ``like`` -1 the ways out of the text are not searched, which takes as long as some thousand nodes.
        """
        trie: Trie = self.trie
        below: cython.ulonglong = trie.below[node]
        here: cython.int = state
        _i: cython.int
        for _i in range(trie.height[node]):
            if here >= self.room:
                self._make_room(here)
            if self.leaves[here] == 0:
                if trie.size[node] < SOME:
                    return 0
                self._find_leaves(here)
            if below & self.leaves[here]:
                break
            if self.usual[here] == here:
                return 1
            here = self.usual[here]
            if self.atoms.may_end(here) != self.atoms.may_end(state):
                return 0
        else:
            return 1
        if below & MARKS == 0:
            if self.safe[state] == 0 and trie.size[node] >= SOME:
                self._find_safe(state)
            return 1 if trie.height[node] < self.safe[state] else self._lacks_needs(node, state, like)
        if below & self.leaves[here] & ~(encoding.HIGH | encoding.SEPARATOR):
            return self._lacks_needs(node, state, like)
        if trie.size[node] < LARGE or self.is_wide[here]:
            return 0
        if here != state or self.usual[here] != here:
            return 0
        self._find_wide(state)
        return 0 if below & self.leaves[state] else 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _lacks_needs(self, node: cython.int, state: cython.int, like: cython.int) -> cython.int:
        """Return 1 if the tokens below trie ``node`` lack some byte on each way out of the text of a row state to which
        most bytes lead back, or of one next to it: in a string that several patterns search for words, few tokens have
        all letters of one. With ``like`` 1 return as `stays` does."""
        first: cython.int
        at: cython.int
        kind: cython.int = like
        while kind >= 0:
            first = self.needs_at[2 * state + kind]
            if first == 0:
                if self.usual[state] == state:
                    if self.trie.size[node] < SOME:
                        return 0
                elif self.trie.size[node] < MANY or kind == 0 or self.home(state) == 0:
                    return 0
                elif self.needs_at[2 * self.usual[state] + kind] <= 0:
                    return 0
                self._find_needs(state, kind)
                first = self.needs_at[2 * state + kind]
            if first > 0:
                if self.needs[first + 2] & self.trie.below[node]:
                    return 0
                for at in range(first + 3, first + 3 + cython.cast(cython.int, self.needs[first])):
                    if self.needs[at] & ~self.trie.below[node] == 0:
                        return 0
                return cython.cast(cython.int, self.needs[first + 1])
            kind -= 1
        return 0

    @cython.cfunc
    def _find_needs(self, state: cython.int, like: cython.int) -> object:
        """Note the minimal sets of groups of bytes of which one is on each way from a row state, or its home, to which
        most bytes lead, out of its text, or to an end of it (if it may end in the state: to where it may not). It is a
        search from state to state with the groups so far, where a superset of what is known for the same state adds
        nothing. The way with the fewest groups is followed next (as in Dijkstra's algorithm), so that none is followed
        of which a part would do.

        Other than ASCII, all characters lead back (where the text may end: lead out).

        With ``like`` 1 (see `stays`) the ways are those to a state in which a quote does something else than in
        its home. So a quote leads out of none, and neither does a byte that may be in no JSON string.
        """
        i: cython.int
        first: cython.int
        then: cython.int
        home: cython.int = self.usual[state]
        is_end: cython.bint = self.atoms.may_end(home)
        self.needs_at[2 * state + like] = -1
        if home == state:
            if not self._begin_ways(home, like, is_end):
                return None
        else:
            if self.atoms.may_end(state) != is_end or self.atoms.after(state, 0x22) != self.atoms.after(home, 0x22):
                return None
            first = self.needs_at[2 * home + like]
            self.ways = 0
            self.is_full = False
            self.founds = cython.cast(cython.int, self.needs[first])
            self.single = self.needs[first + 2]
            for i in range(self.founds):
                self.found[i] = self.needs[first + 3 + i]
        self._note_way(state, 0, 0)
        i = 0
        made: cython.Py_ssize_t = len(self.atoms.given.terms)
        while i < self.ways:
            self._bring_least(i)
            self._follow(i, home, like)
            if self.is_full or len(self.atoms.given.terms) > made + MOST_MADE:
                return None
            i += 1
        first = self.needs_used
        if first + self.founds + 3 > self.needs_room:
            self.needs = more(self.needs, self.needs_room, 2 * (first + self.founds + 3))
            self.needs_room = 2 * (first + self.founds + 3)
        self.needs[first] = self.founds
        self.needs[first + 1] = 1
        if like:
            self.needs[first + 1] = 3 if self.atoms.after(home, 0x22) == encoding.DONE else 2
        self.needs[first + 2] = self.single
        for i in range(self.founds):
            self.needs[first + 3 + i] = self.found[i]
        self.needs_used = first + self.founds + 3
        self.needs_at[2 * state + like] = first
        if not is_end and home == state:  # inside a character, what follows it is the same
            for byte in (0xC3, 0xE4, 0xF1):
                then = cython.cast(cython.int, self.atoms.after(home, byte))
                self._make_room(then)
                self.needs_at[2 * then + like] = first
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin_ways(self, home: cython.int, like: cython.int, is_end: cython.bint) -> cython.bint:
        """Begin the search of `_find_needs` with what is known of every row state to which most bytes lead back; return
        False if that is too much."""
        if (is_end and like) or self.atoms.after(home, 0x80) > 0:  # inside a character: see `_find_needs`
            return False
        if not self.is_wide[home]:
            self._find_wide(home)
        if self.leaves[home] & encoding.HIGH and not is_end:
            return False
        self.ways = self.founds = 0
        self.single = 0
        self.is_full = False
        if not like:
            self._note_need(encoding.OTHER)  # no UTF-8
        if is_end:  # and within a character there is none
            self._note_need(encoding.HIGH)
        if self.leaves[home] & encoding.SEPARATOR:
            self._note_need(encoding.SEPARATOR)
        return True

    @cython.cfunc
    def _follow(self, i: cython.int, home: cython.int, like: cython.int) -> object:
        """Note the ways one byte on from way number ``i``, except back to ``home``, or what leads out. A backslash does
        so, a quote (see `_find_needs`), and a byte of other characters than ASCII that leads elsewhere than from
        ``home``. What a byte does from ``home`` too is known with fewer groups."""
        groups: cython.ulonglong[::1] = GROUPS
        atoms: Positions = self.atoms
        state: cython.int = self.way_state[i]
        at: cython.longlong = atoms.row_at(state)
        row: cython.p_int = row_of(atoms.given.rows, atoms.given.base, at)
        at = atoms.row_at(home)
        home_row: cython.p_int = row_of(atoms.given.rows, atoms.given.base, at)
        byte: cython.int
        then: cython.int
        group: cython.ulonglong
        # The last step and the last way out, which are often repeated.
        before: cython.int = -2
        before_group: cython.ulonglong = 0
        out: cython.ulonglong = 0
        is_end: cython.bint = atoms.may_end(home)
        for byte in range(0x100):
            then = row[byte]
            if then == home_row[byte] and (state != home or byte >= 0x80):
                continue
            group = groups[byte]
            if byte >= 0x80:
                then = 0
            elif then == before and group == before_group:
                continue
            else:
                before, before_group = then, group
                if like and (byte < 0x20 or byte == 0x22) and then <= 0:
                    continue
                if byte == 0x22 or byte == 0x5C or then <= 0 or atoms.may_end(then) != is_end:
                    then = 0
                elif then == state or then == home:
                    continue
                elif like and atoms.after(then, 0x22) != home_row[0x22]:
                    then = 0
            if then:
                self._note_way(then, self.way_groups[i] | group, i + 1)
            elif group != out:
                self._note_need(self.way_groups[i] | group)
                out = group
        return None

    @cython.cfunc
    def _bring_least(self, i: cython.int) -> object:
        """Exchange way number ``i`` with the one of the fewest groups from there on."""
        least: cython.int = i
        j: cython.int
        for j in range(i + 1, self.ways):
            if self.way_size[j] < self.way_size[least]:
                least = j
        self.way_state[i], self.way_state[least] = self.way_state[least], self.way_state[i]
        self.way_groups[i], self.way_groups[least] = self.way_groups[least], self.way_groups[i]
        self.way_size[i], self.way_size[least] = self.way_size[least], self.way_size[i]
        return None

    @cython.cfunc
    def _note_way(self, state: cython.int, groups: cython.ulonglong, followed: cython.int) -> object:
        """Note that some groups of bytes lead to a row state, unless fewer do, or lead out. That takes the place of the
        ways there with more of them, except of the first ones, which were ``followed``. Of many ways to one state, as
        with any letter, only what they have in common is kept."""
        i: cython.int
        alike: cython.int = 0
        common: cython.ulonglong = groups
        if groups & self.single:
            return None
        for i in range(self.founds):
            if self.found[i] & ~groups == 0:
                return None
        for i in range(self.ways):
            if self.way_state[i] == state:
                if self.way_groups[i] & ~groups == 0:
                    return None
                alike += 1
                common &= self.way_groups[i]
        if alike >= MOST_ALIKE:
            groups = common
        if alike:
            i = followed
            while i < self.ways:
                if self.way_state[i] == state and groups & ~self.way_groups[i] == 0:
                    self.ways -= 1
                    self._move_way(self.ways, i)
                else:
                    i += 1
        if self.ways == MOST_WAYS:
            self.is_full = True
            return None
        self._make_room(state)
        self.way_state[self.ways] = state
        self.way_groups[self.ways] = groups
        self.way_size[self.ways] = 0
        while groups:
            groups &= groups - 1
            self.way_size[self.ways] += 1
        self.ways += 1
        return None

    @cython.cfunc
    def _move_way(self, source: cython.int, target: cython.int) -> object:
        """Let one way take the place of another."""
        self.way_state[target] = self.way_state[source]
        self.way_groups[target] = self.way_groups[source]
        self.way_size[target] = self.way_size[source]
        return None

    @cython.cfunc
    def _note_need(self, groups: cython.ulonglong) -> object:
        """Note that some groups of bytes lead out, unless fewer do."""
        i: cython.int
        left: cython.int = 0
        if groups & self.single:
            return None
        for i in range(self.founds):
            if self.found[i] & ~groups == 0:
                return None
        for i in range(self.founds):
            if groups & ~self.found[i]:
                self.found[left] = self.found[i]
                left += 1
        self.founds = left
        if groups & (groups - 1) == 0:
            self.single |= groups
            return None
        if left == MOST_NEEDS:
            self._join_needs(groups)
            return None
        self.found[left] = groups
        self.founds = left + 1
        return None

    @cython.cfunc
    def _join_needs(self, groups: cython.ulonglong) -> object:
        """Note that of some groups that lead out together, the one that is in most of the other sets leads out alone:
        that makes room, and more ways seem to lead out than do."""
        i: cython.int
        count: cython.int
        most: cython.int = -1
        best: cython.ulonglong = 0
        while groups:
            one: cython.ulonglong = groups & ~(groups - 1)
            groups ^= one
            count = 0
            for i in range(self.founds):
                count += self.found[i] & one != 0
            if count > most:
                most, best = count, one
        count = 0
        for i in range(self.founds):
            if not self.found[i] & best:
                self.found[count] = self.found[i]
                count += 1
        self.founds = count
        self.single |= best
        return None

    @cython.cfunc
    def _find_safe(self, state: cython.int) -> object:
        """Note the minimum number of plain bytes from a row state out of its text, or to an end of it, by a bounded
        breadth-first search."""
        reached: cython.p_int = self.reached
        count: cython.int = 1
        done: cython.int = 0
        level: cython.int = 0
        stop: cython.int
        at: cython.int
        i: cython.int
        then: cython.int
        reached[0] = state
        while level < FURTHEST and done < count < MOST_REACHED:
            level += 1
            stop = count
            while done < stop:
                then = reached[done]
                done += 1
                if then >= self.room:
                    self._make_room(then)
                if self.leaves[then] == 0:
                    self._find_leaves(then)
                if self.safe[then] == 1:
                    self.safe[state] = level
                    return None
                if self.exits_at[then] == 0:
                    self._find_exits(then)
                for at in range(self.exits_at[then] + 1, self.exits_at[then] + 1 + self.exits[self.exits_at[then]]):
                    then = self.exits[at]
                    for i in range(count):
                        if reached[i] == then:
                            break
                    else:
                        if count < MOST_REACHED:
                            reached[count] = then
                            count += 1
        # No state of those levels is left by a plain byte; if there is no other state, none ever is.
        self.safe[state] = level + 1 if done < count or count == MOST_REACHED else 255
        return None

    @cython.cfunc
    def _find_exits(self, state: cython.int) -> object:
        """Note the row states to which plain bytes lead from one, after their number."""
        groups: cython.ulonglong[::1] = GROUPS
        first: cython.int = self.exits_used
        at: cython.int = first + 1
        i: cython.int
        byte: cython.int
        then: cython.longlong
        if first + 128 > self.exits_room:
            self.exits = more(self.exits, self.exits_room, 2 * first + 128)
            self.exits_room = 2 * first + 128
        for byte in range(128):
            if groups[byte] & MARKS:
                continue
            then = self.atoms.after(state, byte)
            for i in range(first + 1, at):
                if self.exits[i] == then:
                    break
            else:
                self.exits[at] = cython.cast(cython.int, then)
                at += 1
        self.exits[first] = at - first - 1
        self.exits_at[state] = first
        self.exits_used = at
        return None

    @cython.cfunc
    def _make_room(self, state: cython.longlong) -> object:
        """Make room for the facts of a row state."""
        had: cython.Py_ssize_t = self.room
        if state >= had:
            room: cython.Py_ssize_t = max(2 * state, len(self.atoms.given))
            self.usual = more(self.usual, had, room)
            self.leaves = more(self.leaves, had, room)
            self.is_wide = more(self.is_wide, had, room)
            self.safe = more(self.safe, had, room)
            self.exits_at = more(self.exits_at, had, room)
            self.needs_at = more(self.needs_at, 2 * had, 2 * room)
            self.room = room
        return None

    @cython.cfunc
    def _find_leaves(self, state: cython.int) -> object:
        """Note the usual successor of a row state, to which most ASCII bytes lead, and the groups of the other
        bytes."""
        groups: cython.ulonglong[::1] = GROUPS
        left: cython.ulonglong = encoding.HIGH | encoding.SEPARATOR | encoding.OTHER
        usual: cython.longlong = 0
        then: cython.longlong
        ahead: cython.int = 0  # the majority vote of Boyer and Moore (1981)
        byte: cython.int
        for byte in range(128):
            then = self.atoms.after(state, byte)
            if then <= 0:
                continue
            if ahead == 0:
                usual = then
            ahead += 1 if then == usual else -1
        for byte in range(128):
            then = self.atoms.after(state, byte)
            if usual == 0 or then != usual:
                left |= groups[byte]
            if groups[byte] & MARKS == 0 and (then <= 0 or self.atoms.may_end(then)):
                self.safe[state] = 1
        if self.atoms.may_end(state):
            self.safe[state] = 1
        self.leaves[state] = left
        self.usual[state] = cython.cast(cython.int, usual)
        return None

    @cython.cfunc
    def _find_wide(self, state: cython.int) -> object:
        """Note a self loop for non-ASCII bytes if every non-ASCII character leads from a row state back to it, for the
        states within a character too. White space, which ``\\S`` and ECMAScript's dot exclude, may lead elsewhere."""
        atoms: Positions = self.atoms
        self.is_wide[state] = 1
        two: cython.longlong = atoms.after(state, 0xC3)
        three: cython.longlong = atoms.after(state, 0xE4)
        four: cython.longlong = atoms.after(state, 0xF1)
        if two <= 0 or three <= 0 or four <= 0 or atoms.may_end(state):
            return None
        if not (self._leads(two, 0x80, 0xBF, state) and self._leads(three, 0x80, 0xBF, two)):
            return None
        if not (self._leads(four, 0x80, 0xBF, three) and self._leads(state, 0xC3, 0xDF, two)):
            return None
        if not (self._leads(state, 0xE4, 0xEC, three) and self._leads(state, 0xF1, 0xF3, four)):
            return None
        if not (self._leads(atoms.after(state, 0xE0), 0xA0, 0xBF, two) and atoms.after(state, 0xEE) == three):
            return None
        if not self._leads(atoms.after(state, 0xED), 0x80, 0x9F, two):
            return None
        if not self._leads(atoms.after(state, 0xF0), 0x90, 0xBF, three):
            return None
        if not self._leads(atoms.after(state, 0xF4), 0x80, 0x8F, three):
            return None
        left: cython.ulonglong = self.leaves[state] if self.usual[state] == state else _ALL_GROUPS
        left &= ~(encoding.HIGH | encoding.SEPARATOR)
        lead: cython.int
        second: cython.int
        then: cython.longlong
        if atoms.after(state, 0xC2) != two:
            left |= encoding.SEPARATOR
            if not self._leads_but(atoms.after(state, 0xC2), 0x80, state):
                return None
        for lead in (0xE1, 0xE2, 0xE3, 0xEF):
            then = atoms.after(state, lead)
            if then == three:
                continue
            left |= encoding.SEPARATOR
            if then < 0:
                return None
            for second in range(0x80, 0xC0):
                if atoms.after(then, second) == two:
                    continue
                if not self._leads_but(atoms.after(then, second), (lead & 0xF) << 12 | (second & 0x3F) << 6, state):
                    return None
        self._make_room(max(two, three, four))
        if self.usual[state] == state:
            self.leaves[state] = left
        for then in (two, three, four):
            self.leaves[then] = left
            self.usual[then] = then
            self.is_wide[then] = 1
        for then in (two, three, four):
            self.safe[then] = 1
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leads_but(self, start: cython.longlong, first: cython.int, to: cython.longlong) -> cython.int:
        """Return 1 if the last bytes of all characters from ``first`` to ``first + 0x3F``, except white space, lead
        from one row state to another."""
        byte: cython.int
        for byte in range(0x40):
            if not is_space(first + byte) and (start < 0 or self.atoms.after(start, 0x80 + byte) != to):
                return 0
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leads(self, start: cython.longlong, low: cython.int, high: cython.int, to: cython.longlong) -> cython.int:
        """Return 1 if all bytes between two lead from one row state to another."""
        byte: cython.int
        if start < 0:
            return 0
        for byte in range(low, high + 1):
            if self.atoms.after(start, byte) != to:
                return 0
        return 1
