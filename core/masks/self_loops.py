# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Self loops: row states that a text does not leave by bytes of some groups.

Compiled where that is possible; ``self_loops.pxd`` declares its C interface.
"""

from __future__ import annotations

from .trie import GROUPS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
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
#: Minimum number of trie nodes in a subtree for which non-ASCII analysis pays off.
LARGE = cython.declare(cython.int, 64)
#: Maximum number of states, each with the groups on the way to it, in the search for what leads out of a text; and of
#: sets of groups that are found.
MOST_WAYS = cython.declare(cython.int, 192)
MOST_NEEDS = cython.declare(cython.int, 16)


@cython.cclass
class SelfLoops:
    """The test whether all tokens of a subtree of the trie stay inside the text of a row state, without a walk.

    Args:
        atoms: the automaton whose row states they are.
        trie: the vocabulary's trie.
    """

    def __init__(self, atoms: Positions, trie: Trie):
        self.atoms = atoms
        self.trie = trie
        self.room, self.usual, self.leaves, self.is_wide = 64, ints(64), ulongs(64), octets(64)
        self.safe, self.exits_at, self.needs_at, self.links_at = octets(64), ints(64), ints(64), ints(64)
        self.exits_room, self.exits = 256, ints(256)
        self.exits_used = 1  # 0 means that exits are not known
        self.needs_room, self.needs = 64, ulongs(64)
        self.needs_used = 1  # 0 means that they are not known
        self.links_room = 0  # few grammars need any
        self.links_used = 1
        self.reached = ints(MOST_REACHED)
        self.way_state, self.way_groups = ints(MOST_WAYS), ulongs(MOST_WAYS)
        self.found, self.home_found = ulongs(MOST_NEEDS), ulongs(MOST_NEEDS)
        self.ways = 0
        self.founds = 0
        self.searched = 0

    def __dealloc__(self):
        free(self.usual)
        free(self.leaves)
        free(self.is_wide)
        free(self.safe)
        free(self.exits_at)
        free(self.needs_at)
        free(self.links_at)
        free(self.exits)
        free(self.needs)
        free(self.links)
        free(self.reached)
        free(self.way_state)
        free(self.way_groups)
        free(self.found)
        free(self.home_found)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def bytes_held(self) -> cython.longlong:
        """Return the bytes that the facts take."""
        return 26 * self.room + 4 * self.exits_room + 8 * (self.links_room + self.needs_room)

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
    def stays(self, node: cython.int, state: cython.int) -> cython.int:
        """Return 1 if all tokens below trie ``node``, which is in row state ``state``, stay inside. All their bytes
        lead from each state to its usual successor, or they are too few to reach the end of the text.

        So it is in loops and bounded repetitions of a pattern. If the text may end in the state, it may end after each
        of the tokens, else after none.
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
            return 1 if trie.height[node] < self.safe[state] else self._lacks_needs(node, state)
        if below & self.leaves[here] & ~(encoding.HIGH | encoding.SEPARATOR):
            return self._lacks_needs(node, state)
        if trie.size[node] < LARGE or self.is_wide[here]:
            return 0
        if here != state or self.usual[here] != here:
            return 0
        self._find_wide(state)
        return 0 if below & self.leaves[state] else 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _lacks_needs(self, node: cython.int, state: cython.int) -> cython.int:
        """Return 1 if the tokens below trie ``node`` lack some byte on each way out of the text of a row state: in a
        string that several patterns search for words, few tokens have all letters of one."""
        first: cython.int
        at: cython.int
        if self.trie.size[node] < SOME:
            return 0
        if self.needs_at[state] == 0:
            self._find_needs(state)
        first = self.needs_at[state]
        if first < 0:
            return 0
        for at in range(first + 1, first + 1 + cython.cast(cython.int, self.needs[first])):
            if self.needs[at] & ~self.trie.below[node] == 0:
                return 0
        return 1

    @cython.cfunc
    def _find_needs(self, state: cython.int) -> object:
        """Note the minimal sets of groups of bytes of which one is on each way from a row state out of its text, or to
        an end of it (if it may end in the state: to where it may not). It is a breadth-first search from state to state
        with the groups so far, where a superset of what is known for the same state adds nothing.

        All ways lead through the states about one state (``home``) to which most bytes lead. Other than ASCII, all
        characters lead there (where the text may end: lead out); and as a way there takes no certain byte, what leads
        out from there counts everywhere.
        """
        home: cython.int = state
        i: cython.int = 0
        first: cython.int
        self.needs_at[state] = -1
        while True:
            if home >= self.room:
                self._make_room(home)
            if self.leaves[home] == 0:
                self._find_leaves(home)
            if self.usual[home] == home:
                break
            home = self.usual[home]
            i += 1
            if i > 3 or home <= 0:
                return None
        is_end: cython.bint = self.atoms.may_end(home)
        if is_end != self.atoms.may_end(state):
            return None
        if not self.is_wide[home]:
            self._find_wide(home)
        if self.leaves[home] & encoding.HIGH and not is_end:
            return None
        if self.searched != home:  # what states about the same one have in common is searched once
            if self.needs_at[home] < 0 and home != state:
                return None
            self.searched = 0
            self.ways = self.founds = 0
            self._note_need(encoding.OTHER)  # no UTF-8
            if is_end:  # and within a character there is none
                self._note_need(encoding.HIGH)
            self._note_way(home, 0)
            if self.leaves[home] & encoding.SEPARATOR:
                self._note_need(encoding.SEPARATOR)
            if not self._search(0, home):
                self.needs_at[home] = -1
                return None
            self.searched = home
            self.home_ways = self.ways
            self.home_founds = self.founds
            for i in range(self.founds):
                self.home_found[i] = self.found[i]
        else:
            self.ways = self.home_ways
            self.founds = self.home_founds
            for i in range(self.founds):
                self.found[i] = self.home_found[i]
        if home != state:
            self._note_way(state, 0)
            if not self._search(self.home_ways, home):
                return None
        first = self.needs_used
        if first + self.founds + 1 > self.needs_room:
            self.needs = more(self.needs, self.needs_room, 2 * (first + self.founds))
            self.needs_room = 2 * (first + self.founds)
        self.needs[first] = self.founds
        for i in range(self.founds):
            self.needs[first + 1 + i] = self.found[i]
        self.needs_used = first + self.founds + 1
        self.needs_at[state] = first
        if state == home and not is_end:  # inside a character, what follows it is the same
            for byte in (0xC3, 0xE4, 0xF1):
                then: cython.int = cython.cast(cython.int, self.atoms.after(home, byte))
                self._make_room(then)
                self.needs_at[then] = first
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search(self, i: cython.int, home: cython.int) -> cython.int:
        """Follow the noted ways from number ``i`` on; return 0 if they are too many."""
        first: cython.int
        at: cython.int
        groups: cython.ulonglong
        while i < self.ways:
            first = self.links_at[self.way_state[i]]
            if first == 0 or self.links[first + 1] != cython.cast(cython.ulonglong, home):
                self._find_links(self.way_state[i], home)
                first = self.links_at[self.way_state[i]]
            for at in range(first + 2, first + 2 + 2 * cython.cast(cython.int, self.links[first]), 2):
                groups = self.way_groups[i] | self.links[at + 1]
                if self.links[at]:
                    self._note_way(cython.cast(cython.int, self.links[at]), groups)
                else:
                    self._note_need(groups)
            if self.ways == MOST_WAYS or self.founds == MOST_NEEDS:
                return 0
            i += 1
        return 1

    @cython.cfunc
    def _note_way(self, state: cython.int, groups: cython.ulonglong) -> object:
        """Note that some groups of bytes lead to a row state, unless fewer do, or lead out."""
        i: cython.int
        for i in range(self.ways):
            if self.way_state[i] == state and self.way_groups[i] & ~groups == 0:
                return None
        for i in range(self.founds):
            if self.found[i] & ~groups == 0:
                return None
        if self.ways < MOST_WAYS:
            self._make_room(state)
            self.way_state[self.ways] = state
            self.way_groups[self.ways] = groups
            self.ways += 1
        return None

    @cython.cfunc
    def _note_need(self, groups: cython.ulonglong) -> object:
        """Note that some groups of bytes lead out, unless fewer do."""
        i: cython.int
        left: cython.int = 0
        for i in range(self.founds):
            if self.found[i] & ~groups == 0:
                return None
        for i in range(self.founds):
            if groups & ~self.found[i]:
                self.found[left] = self.found[i]
                left += 1
        self.founds = left
        if left < MOST_NEEDS:
            self.found[left] = groups
            self.founds = left + 1
        return None

    @cython.cfunc
    def _find_links(self, state: cython.int, home: cython.int) -> object:
        """Note the row states to which ASCII leads from one, except itself and ``home``, each with a group of bytes; 0
        stands for the way out. A quote or a backslash counts as one, and so does a byte of other characters that leads
        elsewhere than from ``home``."""
        groups: cython.ulonglong[::1] = GROUPS
        first: cython.int = self.links_used
        at: cython.int = first + 2
        i: cython.int
        byte: cython.int
        then: cython.longlong
        is_end: cython.bint = self.atoms.may_end(home)
        if self.links_room == 0:
            self.links_room, self.links = 1024, ulongs(1024)
        if first + 514 > self.links_room:
            self.links = more(self.links, self.links_room, 2 * first + 514)
            self.links_room = 2 * first + 514
        for byte in range(0x100):
            then = self.atoms.after(state, byte)
            if byte >= 0x80:
                if then == self.atoms.after(home, byte):
                    continue
                then = 0
            elif byte == 0x22 or byte == 0x5C or then <= 0 or self.atoms.may_end(then) != is_end:
                then = 0
            elif then == state or then == home:
                continue
            for i in range(first + 2, at, 2):
                if self.links[i] == cython.cast(cython.ulonglong, then) and self.links[i + 1] == groups[byte]:
                    break
            else:
                self.links[at] = cython.cast(cython.ulonglong, then)
                self.links[at + 1] = groups[byte]
                at += 2
        self.links[first] = (at - first - 2) // 2
        self.links[first + 1] = home  # which the way out depends on, too
        self.links_used = at
        self.links_at[state] = first
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
            self.needs_at = more(self.needs_at, had, room)
            self.links_at = more(self.links_at, had, room)
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
        left: cython.ulonglong = self.leaves[state] & ~(encoding.HIGH | encoding.SEPARATOR)
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
        for then in (state, two, three, four):
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
