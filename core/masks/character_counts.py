# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Character counts: the number of characters of each token, and where tokens leave a class of characters.

Compiled where that is possible; ``character_counts.pxd`` says what others see of it in C.
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
    from .self_loops import SelfLoops
    from .trie import Trie

#: Maximum number of character classes whose runs, or exits, one vocabulary keeps.
MAX_CLASSES = cython.declare(cython.int, 24)
#: Minimum number of times that a class is met before its `ClassRuns` are taken where a walk would do as well, and
#: maximum number of classes for which that is counted.
OFTEN = cython.declare(cython.int, 8)
MAX_MET = cython.declare(cython.int, 256)


@cython.cclass
class TokenCounts:
    """Tokens that stay inside a JSON string (from between two characters on), by their number of characters, and the
    trie nodes of closing quotes with the number of characters before them.

    The tokens of at most ``n`` characters are the first ``until[n]``.
    """

    def saved(self) -> tuple:
        """Return arrays from which `load_token_counts` makes the same counts again."""
        numbers = array("i", [self.tokens, self.ends, self.longest])
        tokens = copied("i", self.token), copied("i", self.token_chars)
        return (*tokens, copied("i", self.end), copied("i", self.end_chars), numbers)


def load_token_counts(saved: tuple) -> TokenCounts:
    """Return the counts that `TokenCounts.saved` was asked of."""
    counts: TokenCounts = TokenCounts.__new__(TokenCounts)
    counts.token, counts.token_chars, counts.end, counts.end_chars, numbers = saved
    counts.tokens, counts.ends, counts.longest = numbers
    _sort_counts(counts)
    return counts


@cython.cfunc
def _sort_counts(counts: TokenCounts) -> object:
    """Bring the tokens in the order of their characters (a counting sort, stable)."""
    until: cython.int[::1] = array("i", [0]) * (counts.longest + 2)
    tokens: cython.int[::1] = array("i", [0]) * (counts.tokens + 1)
    chars: cython.int[::1] = array("i", [0]) * (counts.tokens + 1)
    i: cython.int
    at: cython.int
    for i in range(counts.tokens):
        until[counts.token_chars[i] + 1] += 1
    for i in range(1, counts.longest + 2):
        until[i] += until[i - 1]
    for i in range(counts.tokens):
        at = until[counts.token_chars[i]]
        until[counts.token_chars[i]] += 1
        tokens[at] = counts.token[i]
        chars[at] = counts.token_chars[i]
    counts.token, counts.token_chars, counts.until = tokens, chars, until
    return None


@cython.cclass
class ClassExits:
    """Where a vocabulary leaves a class of characters in a JSON string, by a quote, a backslash or another character.

    ``plain`` has a bit for each token of characters of the class alone, read from between two characters. ``node`` are
    the trie nodes on the way out, or behind, in pre-order; ``after`` says for each where in that list its subtree is
    over.
    """


@cython.cclass
class ClassRuns:
    """`TokenCounts` for strings of one class of characters, to be asked for any subtree.

    ``token_node`` and ``end_node`` are in pre-order. ``between`` says for each trie node how many characters were
    read if it lies between two characters of a string of the class (its bytes read from there on), else -1.
    """


@cython.cfunc
@cython.exceptval(check=False)
def first_from(ordered: cython.int[::1], size: cython.int, node: cython.int) -> cython.int:
    """Return the index of the first of ``size`` ascending nodes that is not before ``node``."""
    low: cython.int = 0
    high: cython.int = size
    middle: cython.int
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cclass
class CharacterCounts:
    """What is found out once for a vocabulary about the characters of its tokens.

    Args:
        automaton: an automaton; what is found does not depend on it, but its row states say which classes there are.
        trie: the vocabulary's trie.
        loops: the automaton's.
        index: the vocabulary's index, which keeps what is found for all automata.
    """

    def __init__(self, automaton: Positions, trie: Trie, loops: SelfLoops, index):
        self.automaton = automaton
        self.trie = trie
        self.loops = loops
        self.index = index
        self.taken = []
        self.visited = 0

    @cython.cfunc
    def counts(self) -> TokenCounts:
        """Return how many characters each token has inside a JSON string; taken once for the vocabulary."""
        found = self.index.counts
        if found is not None:
            return found
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        counts: TokenCounts = TokenCounts.__new__(TokenCounts)
        counts.longest = 0
        rooms = [grown(None, "i", each) for each in (*[trie.vocabulary + 1] * 2, trie.nodes, trie.nodes)]
        tokens: cython.int[::1] = rooms[0]
        token_chars: cython.int[::1] = rooms[1]
        ends: cython.int[::1] = rooms[2]
        end_chars: cython.int[::1] = rooms[3]
        token_count: cython.int = 0
        end_count: cython.int = 0
        state: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        chars: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        state[0] = encoding.LOCAL_BODY
        i: cython.int = 1
        depth: cython.int
        here: cython.int
        then: cython.int
        token: cython.int
        while i < trie.nodes:
            depth = trie.depth[i]
            here = state[depth - 1]
            then = automaton.local[here * 256 + trie.byte[i]]
            if then == -1:
                i += trie.size[i]
                continue
            chars[depth] = chars[depth - 1] + (1 if here == encoding.LOCAL_BODY and then != encoding.LOCAL_DONE else 0)
            if chars[depth] > counts.longest:
                counts.longest = chars[depth]
            if then == encoding.LOCAL_DONE:
                ends[end_count] = i
                end_chars[end_count] = chars[depth]
                end_count += 1
                i += trie.size[i]
                continue
            token = trie.token[i]
            while token >= 0:
                tokens[token_count] = token
                token_chars[token_count] = chars[depth]
                token_count += 1
                token = trie.same[token]
            state[depth] = then
            i += 1
        counts.tokens = token_count
        counts.ends = end_count
        # One item more than there are, since a buffer may not be empty.
        counts.token, counts.token_chars = [each[: token_count + 1] for each in rooms[:2]]
        counts.end, counts.end_chars = [each[: end_count + 1] for each in rooms[2:]]
        _sort_counts(counts)
        self.index.counts = counts
        return counts

    @cython.cfunc
    def runs(self, number: cython.int) -> ClassRuns:
        """Return the `ClassRuns` of a class of characters; taken once for the vocabulary."""
        while len(self.taken) <= number:
            self.taken.append(None)
        found = self.taken[number]
        if found is None:
            key, star = self.automaton.given.character_class(number)
            known: dict = self.index.runs
            found = known.get(key)
            if found is None:
                found = self._find_runs(star)
                if len(known) >= MAX_CLASSES:
                    del known[next(iter(known))]
                known[key] = found
            self.taken[number] = found
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def has_runs(self, state: cython.int) -> cython.int:
        """Return 1 if a counted run of one class follows a row state and `ClassRuns` of the class pay: they are known,
        there is no other way to be quick, or the class was met often."""
        automaton: Positions = self.automaton
        number: cython.int = automaton.facts[encoding.FACTS * state + encoding.CLASS] - 1
        if number < 0:
            return 0
        if self.is_counted(state) or (number < len(self.taken) and self.taken[number] is not None):
            return 1
        key, _ = automaton.given.character_class(number)
        if key in self.index.runs:
            return 1
        met: dict = self.index.met
        if len(met) > MAX_MET:
            met.clear()
        met[key] = met.get(key, 0) + 1
        return 1 if met[key] > OFTEN else 0

    @cython.cfunc
    def _find_runs(self, star: cython.int) -> ClassRuns:
        """Walk the whole trie once from row state ``star``, the free string of a class between two characters."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        runs: ClassRuns = ClassRuns.__new__(ClassRuns)
        runs.longest = 0
        rooms = [grown(None, "i", trie.vocabulary + 1) for _ in range(3)]
        token_nodes: cython.int[::1] = rooms[0]
        tokens: cython.int[::1] = rooms[1]
        token_chars: cython.int[::1] = rooms[2]
        # Few tokens end a string: memory that is touched for the first time is slower than the walk.
        ends: cython.int[::1] = grown(None, "i", 1024)
        end_chars: cython.int[::1] = grown(None, "i", 1024)
        token_count: cython.int = 0
        end_count: cython.int = 0
        between: cython.short[::1] = array("h", [-1]) * trie.nodes
        chars: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        i: cython.int = 1
        depth: cython.int
        nodes: cython.int = trie.nodes
        byte: cython.uchar[::1] = trie.byte
        depths: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        first_token: cython.int[::1] = trie.token
        here: cython.longlong
        then: cython.longlong
        token: cython.int
        between[0] = 0
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # a walk may be under way on the other
        stack[0] = star
        while i < nodes:
            self.visited += 1
            depth = depths[i]
            here = stack[depth - 1]
            then = automaton.after(here, byte[i])
            if then < 0:
                i += size[i]
                continue
            if then == encoding.DONE:
                if end_count + 1 == len(ends):  # one item more than there are, since a buffer may not be empty
                    ends = grown(ends, "i", 2 * len(ends))
                    end_chars = grown(end_chars, "i", 2 * len(end_chars))
                ends[end_count] = i
                end_chars[end_count] = chars[depth - 1]
                end_count += 1
                i += size[i]
                continue
            chars[depth] = chars[depth - 1] + (1 if here == star else 0)
            if chars[depth] > runs.longest:
                runs.longest = chars[depth]
            if then == star:
                between[i] = chars[depth]
            token = first_token[i]
            while token >= 0:
                token_nodes[token_count] = i
                tokens[token_count] = token
                token_chars[token_count] = chars[depth]
                token_count += 1
                token = trie.same[token]
            stack[depth] = then
            i += 1
        runs.tokens = token_count
        runs.ends = end_count
        if 2 * token_count < trie.vocabulary:  # else the copies would take longer than the room is worth
            rooms = [each[: token_count + 1] for each in rooms]
        runs.token_node, runs.token, runs.token_chars = rooms
        runs.end_node, runs.end_chars = ends, end_chars
        runs.between = between
        return runs

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_counted(self, state: cython.int) -> cython.int:
        """Return 1 if from a row state on so many characters of one class follow, and `_stays` cannot tell about them,
        since some are beyond ASCII."""
        automaton: Positions = self.automaton
        if state >= automaton.row_room or automaton.facts[encoding.FACTS * state + encoding.CLASS] == 0:
            return 0
        if automaton.facts[encoding.FACTS * state + encoding.MOST] < 0:
            return 0
        return 1 if automaton.after(state, 0xC3) > 0 or automaton.after(state, 0xE4) > 0 else 0

    @cython.cfunc
    def exits(self, number: cython.int) -> ClassExits:
        """Return the `ClassExits` of a class of characters; taken once for the vocabulary."""
        key, star = self.automaton.given.character_class(number)
        known: dict = self.index.exits
        found = known.get(key)
        if found is None:
            found = self._find_exits(star)
            if len(known) >= MAX_CLASSES:
                del known[next(iter(known))]
            known[key] = found
        return found

    @cython.cfunc
    def _find_exits(self, star: cython.longlong) -> ClassExits:
        """Walk the whole trie once from row state ``star``, the free string of a class between two characters."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        byte: cython.uchar[::1] = trie.byte
        depth: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        exits: ClassExits = ClassExits.__new__(ClassExits)
        plain: cython.uint[::1] = grown(None, "I", (trie.vocabulary + 31) // 32)
        state: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # a walk may be under way on the other
        wanted: cython.uchar[::1] = grown(None, "B", trie.nodes)
        state[0] = encoding.LOCAL_BODY
        stack[0] = star
        local: cython.schar[::1] = automaton.local
        count: cython.int = 0
        i: cython.int = 1
        nodes: cython.int = trie.nodes
        parent: cython.int
        here: cython.int
        then: cython.longlong
        token: cython.int
        while i < nodes:
            here = local[state[depth[i] - 1] * 256 + byte[i]]
            if here == -1:
                i += size[i]
                continue
            then = automaton.after(stack[depth[i] - 1], byte[i])
            if byte[i] == 0x22 or byte[i] == 0x5C or then < 0:
                parent = i
                while parent > 0 and not wanted[parent]:
                    wanted[parent] = 1
                    parent = trie.parent[parent]
                for parent in range(i + 1, i + size[i]):
                    wanted[parent] = 1
                i += size[i]
                continue
            stack[depth[i]] = then
            token = trie.token[i]
            while token >= 0:
                plain[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                count += 1
                token = trie.same[token]
            state[depth[i]] = here
            if then == star and size[i] > 1 and self.loops.stays(i, cython.cast(cython.int, star)):
                for parent in range(trie.first[i + 1], trie.first[i + size[i]]):
                    token = trie.order[parent]
                    plain[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                    count += 1
                i += size[i]
                continue
            i += 1
        exits.count = count
        count = 0
        for i in range(nodes):
            count += wanted[i]
        exits.nodes = count
        exits.node = grown(None, "i", exits.nodes + 1)
        exits.after = grown(None, "i", exits.nodes + 1)
        parent = 0
        for i in range(nodes):
            if wanted[i]:
                exits.node[parent] = i
                parent += 1
        exits.node[parent] = exits.after[parent] = nodes
        for i in range(exits.nodes):
            exits.after[i] = first_from(exits.node, exits.nodes, exits.node[i] + size[exits.node[i]])
        exits.plain = plain
        return exits
