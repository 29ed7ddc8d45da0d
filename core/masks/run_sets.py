# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Token sets of JSON strings that go on with a run of one class of ASCII characters.

A survey of the class, made once for a vocabulary, says how the tokens begin in the class and where they leave it. So
only the places where they leave it are visited, and of those only the ones where the string differs from what is known.

Compiled where that is possible; ``run_sets.pxd`` declares its C interface.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.positions import Positions
    from ..compiled.arrays import copied, grown
    from ..compiled.memory import free, longs, octets
    from .comparison import Comparison
    from .draft import Draft
    from .subtrees import Subtrees
    from .token_set import TokenSet, new_dense_set
    from .trie import Trie

#: Maximum number of classes whose surveys one vocabulary keeps, and of masks that one survey keeps.
MAX_CLASSES = cython.declare(cython.int, 32)
MAX_MASKS = cython.declare(cython.int, 16)
#: Minimum part of the trie's nodes, as its reciprocal, below the characters of a class for which a survey pays off.
WIDE = cython.declare(cython.int, 16)
#: Maximum part of them, as its reciprocal, below odd characters (see `RunSets._choose`), and maximum number of these.
FEW = cython.declare(cython.int, 8)
MAX_ODD = cython.declare(cython.int, 16)


@cython.cclass
class RunSurvey:
    """Tokens that begin with characters of a class of ASCII characters.

    ``token`` lists the tokens that consist of such characters, the first ``until[n]`` of at most ``n`` of them; ``n``
    is at most ``longest``, the most with which any token begins. ``exit`` lists the trie nodes of the first other byte,
    sorted by that byte (those of byte ``b`` are ``exit[start[b] : start[b + 1]]``), then in pre-order.
    """

    def __init__(self, token, until, exit, start):
        self.token = token
        self.until = until
        self.exit = exit
        self.start = start
        self.longest = len(until) - 2
        self.masks = {}
        if not (0 <= self.longest and len(start) == 257 and 0 <= start[256] < len(exit)):
            raise ValueError("this is not the survey of a class")
        if not 0 <= until[self.longest] < len(token):
            raise ValueError("this is not the survey of a class")

    def saved(self) -> tuple:
        """Return the arrays from which the survey can be made again."""
        return copied("i", self.token), copied("i", self.until), copied("i", self.exit), copied("i", self.start)

    @cython.cfunc
    def inside(self, most: cython.int, words: cython.int) -> cython.uint[::1]:
        """Return a bit for each token of at most ``most`` characters, all of the class: ``words`` numbers, which
        others share."""
        found = self.masks.get(most)
        if found is None:
            found = array("I", [0]) * words
            bits: cython.uint[::1] = found
            i: cython.int
            for i in range(self.until[most]):
                bits[self.token[i] >> 5] |= cython.cast(cython.uint, 1) << (self.token[i] & 31)
            if len(self.masks) >= MAX_MASKS:
                del self.masks[next(iter(self.masks))]
            self.masks[most] = found
        return found


def survey_class(trie: Trie, members: bytes) -> RunSurvey:
    """Return the survey of a class, given by its characters, by a walk of the trie that ends where tokens leave it."""
    is_member: cython.uchar[::1] = bytearray(256)
    sizes: cython.int[::1] = array("i", [0]) * (trie.longest + 3)
    starts: cython.int[::1] = array("i", [0]) * 258
    node: cython.int = 1
    i: cython.int
    j: cython.int
    longest: cython.int = 0
    for byte in members:
        is_member[byte] = 1
    while node < trie.nodes:
        if is_member[trie.byte[node]]:
            i = trie.depth[node]
            longest = max(longest, i)
            sizes[i + 1] += trie.first[node + 1] - trie.first[node]
            node += 1
        else:
            starts[trie.byte[node] + 2] += 1
            node += trie.size[node]
    for i in range(1, trie.longest + 3):
        sizes[i] += sizes[i - 1]
    for i in range(1, 258):
        starts[i] += starts[i - 1]
    token: cython.int[::1] = grown(None, "i", sizes[trie.longest + 2] + 1)
    exit: cython.int[::1] = grown(None, "i", starts[257] + 1)
    node = 1
    while node < trie.nodes:
        if is_member[trie.byte[node]]:
            for i in range(trie.first[node], trie.first[node + 1]):
                j = trie.depth[node]
                token[sizes[j]] = trie.order[i]
                sizes[j] += 1
            node += 1
        else:
            j = trie.byte[node] + 1
            exit[starts[j]] = node
            starts[j] += 1
            node += trie.size[node]
    return RunSurvey(token, copied("i", sizes)[: longest + 2], exit, copied("i", starts)[:257])


@cython.cclass
class RunSets:
    """Token sets of the row states from which the characters of a class lead to one state, those from there to one
    more, and so on, until they come to a state that they do not leave, or lead nowhere any more.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
        loops: the automaton's self loops.
        differences: makes token sets from another one.
        draft: for what is noted of a token set while it is made.
        surveys: the surveys of the vocabulary, by the characters of the class.
    """

    def __init__(
        self, automaton: Positions, trie: Trie, loops: Subtrees, differences: Comparison, draft: Draft, surveys
    ):
        self.automaton = automaton
        self.trie = trie
        self.loops = loops
        self.differences = differences
        self.draft = draft
        self.surveys = surveys
        self.words = (trie.vocabulary + 31) // 32
        self.visited = 0
        self.chain, self.stack = longs(trie.longest + 2), longs(trie.longest + 2)
        self.members, self.odd = octets(128), octets(MAX_ODD)
        self.count = self.odd_count = self.most = 0

    def __dealloc__(self):
        free(self.chain)
        free(self.stack)
        free(self.members)
        free(self.odd)

    @cython.cfunc
    def found(self, atom: cython.longlong, free: cython.longlong, base: TokenSet) -> object:
        """Return the token set of a row state between two characters of a JSON string; None if no run of a class
        follows it, or if another way is as quick.

        Args:
            atom: the state.
            free: the state of the free string there.
            base: the token set of that, dense.
        """
        automaton: Positions = self.automaton
        is_free: cython.bint
        if automaton.after(free, 0x61) != free or not self._choose(cython.cast(cython.int, atom), free):
            return None
        is_free = automaton.after(atom, 0xC3) == automaton.after(free, 0xC3)
        if not is_free and not self._is_ascii(atom):
            return None
        survey: RunSurvey = self._survey()
        if not self._follow(atom, survey.longest) or (is_free and (self.odd_count or self.most < survey.longest)):
            return None
        self.draft.begin()
        return self._lacking_set(free, base, survey) if is_free else self._run_set(survey)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _choose(self, state: cython.int, free: cython.longlong) -> cython.bint:
        """Choose the class: the ASCII characters that lead to the same row state as most do. Return False if that is
        the free string, or if few tokens begin with them.

        If few more lead on from the next state, these belong to the class and are *odd* ones in the first place: so it
        is where some names are left out.
        """
        usual: cython.int = self.loops.usual_from(state)
        if usual <= 0 or usual == free:
            return False
        nodes: cython.int = self._gather(usual, self.loops.usual_from(usual))
        odd_nodes: cython.int = 0
        first: cython.int
        i: cython.int
        self.odd_count = 0
        for i in range(self.count):
            first = self.trie.child[self.members[i]]
            if first >= 0 and self.automaton.after(state, self.members[i]) != usual:
                odd_nodes += self.trie.size[first] if self.odd_count < MAX_ODD else nodes
                if self.odd_count < MAX_ODD:
                    self.odd[self.odd_count] = self.members[i]
                    self.odd_count += 1
        if WIDE * nodes <= self.trie.nodes or FEW * odd_nodes > nodes:
            nodes = self._gather(state, usual)
            self.odd_count = 0
        return WIDE * nodes > self.trie.nodes

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _gather(self, state: cython.int, to: cython.longlong) -> cython.int:
        """Choose the ASCII characters that lead from one row state to another; return the number of trie nodes below
        them."""
        nodes: cython.int = 0
        byte: cython.int
        self.count = 0
        if to <= 0:
            return 0
        for byte in range(0x20, 0x7F):
            if byte != 0x22 and byte != 0x5C and self.automaton.after(state, byte) == to:
                self.members[self.count] = byte
                self.count += 1
                if self.trie.child[byte] >= 0:
                    nodes += self.trie.size[self.trie.child[byte]]
        return nodes

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_ascii(self, atom: cython.longlong) -> cython.bint:
        """Return True if no other than ASCII characters may follow a row state."""
        byte: cython.int
        for byte in range(0xC2, 0xF5):
            if self.automaton.after(atom, byte) >= 0:
                return False
        return True

    @cython.cfunc
    def _survey(self) -> RunSurvey:
        """Return the survey of the chosen class; made once for the vocabulary."""
        key = bytes([self.members[i] for i in range(self.count)])
        surveys: dict = self.surveys
        found = surveys.pop(key, None)
        if found is None:
            found = survey_class(self.trie, key)
            if len(surveys) >= MAX_CLASSES:
                del surveys[next(iter(surveys))]
        surveys[key] = found  # last: those of the least recent grammars go first
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _follow(self, atom: cython.longlong, longest: cython.int) -> cython.bint:
        """Note the states after 0, 1, 2, ... characters of the chosen class, and how many such characters may come (at
        most ``longest``, which no token exceeds). Return False if it makes a difference which of them come."""
        automaton: Positions = self.automaton
        at: cython.int = 0
        i: cython.int
        then: cython.longlong = self.loops.usual_from(cython.cast(cython.int, atom))
        self.chain[0] = atom
        self.most = longest
        while True:
            if at:
                then = automaton.after(self.chain[at], self.members[0])
                for i in range(1, self.count):
                    if automaton.after(self.chain[at], self.members[i]) != then:
                        return False
            if then == encoding.DONE or automaton.may_end(self.chain[at]):
                return False
            if then < 0:
                self.most = at
                return True
            if at == longest:
                return True
            at += 1
            self.chain[at] = then
            if then == self.chain[at - 1]:
                while at < longest:
                    at += 1
                    self.chain[at] = then
                return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leads_only(self, byte: cython.int, to: cython.longlong) -> cython.bint:
        """Return True if a byte leads to the same position from each state of the run."""
        at: cython.int
        for at in range(self.most + 1):
            if at and self.chain[at] == self.chain[at - 1]:  # so are all that follow
                return True
            if self.automaton.after(self.chain[at], byte) != to:
                return False
        return True

    @cython.cfunc
    def _run_set(self, survey: RunSurvey) -> TokenSet:
        """Return the token set of the chosen class's run, where few other characters may follow it."""
        automaton: Positions = self.automaton
        trie: Trie = self.trie
        token_set: TokenSet = new_dense_set(survey.inside(self.most, self.words), survey.until[self.most])
        byte: cython.int
        i: cython.int
        at: cython.int
        node: cython.int
        groups: cython.int = 0
        then: cython.longlong
        for byte in range(256):
            if survey.start[byte] == survey.start[byte + 1] or self._leads_only(byte, encoding.DEAD):
                continue
            groups += 1
            for i in range(survey.start[byte], survey.start[byte + 1]):
                node = survey.exit[i]
                at = trie.depth[node] - 1
                if at > self.most or self._is_below_odd(node):
                    continue
                then = automaton.after(self.chain[at], byte)
                if then == encoding.DONE:
                    self.draft.end(node, True)
                elif then > 0:
                    self._walk(node, self.chain[at], token_set)
        for i in range(self.odd_count):
            groups += 1
            node = trie.child[self.odd[i]]
            token_set.count -= self._clear(node, token_set.dense)
            self._walk(node, self.chain[0], token_set)
        if groups > 1:
            self.draft.sort_ends()
        self.draft.set_ends(token_set)
        return token_set

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_below_odd(self, node: cython.int) -> cython.bint:
        """Return True if a trie node is below that of one of the odd characters."""
        i: cython.int
        first: cython.int
        for i in range(self.odd_count):
            first = self.trie.child[self.odd[i]]
            if first <= node < first + self.trie.size[first]:
                return True
        return False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _clear(self, node: cython.int, bits: cython.uint[::1]) -> cython.int:
        """Clear the bits of the tokens from a trie node on; return how many were set."""
        trie: Trie = self.trie
        at: cython.int
        token: cython.int
        cleared: cython.int = 0
        for at in range(trie.first[node], trie.first[node + trie.size[node]]):
            token = trie.order[at]
            cleared += bits[token >> 5] >> (token & 31) & 1
            bits[token >> 5] &= ~(cython.cast(cython.uint, 1) << (token & 31))
        return cleared

    @cython.cfunc
    def _walk(self, node: cython.int, before: cython.longlong, token_set: TokenSet) -> object:
        """Add the tokens from a trie node on; ``before`` is the state before it."""
        automaton: Positions = self.automaton
        trie: Trie = self.trie
        order: cython.int[::1] = trie.order
        bits: cython.uint[::1] = token_set.dense
        i: cython.int = node
        at: cython.int
        stop: cython.int = node + trie.size[node]
        until: cython.int
        depth: cython.int
        then: cython.longlong
        self.stack[trie.depth[node] - 1] = before
        while i < stop:
            self.visited += 1
            depth = trie.depth[i]
            then = automaton.after(self.stack[depth - 1], trie.byte[i])
            if then <= 0:
                if then == encoding.DONE:
                    self.draft.end(i, True)
                i += trie.size[i]
                continue
            until = i + 1
            if trie.size[i] > 1 and self.loops.stays(i, cython.cast(cython.int, then), -1):
                until = i + trie.size[i]
            for at in range(trie.first[i], trie.first[until]):
                bits[order[at] >> 5] |= cython.cast(cython.uint, 1) << (order[at] & 31)
            token_set.count += trie.first[until] - trie.first[i]
            self.stack[depth] = then
            i = until
        return None

    @cython.cfunc
    def _lacking_set(self, free: cython.longlong, base: TokenSet, survey: RunSurvey) -> TokenSet:
        """Return the token set of a string that, once it has left the run of the chosen class, which has no end, is
        mostly free, as its difference to ``base``, that of the free string."""
        automaton: Positions = self.automaton
        trie: Trie = self.trie
        byte: cython.int
        i: cython.int
        at: cython.int
        node: cython.int
        wide: cython.longlong
        for byte in range(256):
            wide = automaton.after(free, byte)
            if wide < 0 or survey.start[byte] == survey.start[byte + 1] or self._leads_only(byte, wide):
                continue
            for i in range(survey.start[byte], survey.start[byte + 1]):
                node = survey.exit[i]
                at = trie.depth[node] - 1
                if automaton.after(self.chain[at], byte) != wide:
                    self.differences.compare(node, self.chain[at], free, base)
        return self.differences.difference(base)
