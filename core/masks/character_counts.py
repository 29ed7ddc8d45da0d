# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Character counts: the number of characters of each token, and where tokens leave a class of characters.

Compiled where that is possible; ``character_counts.pxd`` declares its C interface.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.blocks import row_item
    from ..automaton.positions import Positions
    from ..compiled.arrays import copied, grown
    from ..compiled.memory import free, octets
    from .subtrees import Subtrees
    from .trie import Trie

from .trie import GROUPS

#: Maximum number of character classes whose runs, or exits, one vocabulary keeps.
MAX_CLASSES = cython.declare(cython.int, 24)
#: Minimum number of times that a class is met before its `ClassRuns` are made where a walk would do as well, and
#: maximum number of classes whose times are counted.
OFTEN = cython.declare(cython.int, 8)
MAX_MET = cython.declare(cython.int, 256)
_ALL_GROUPS = cython.declare(cython.ulonglong, 2**64 - 1)
#: Minimum part of the trie's nodes, as its reciprocal, from which on `ClassRuns` are quicker than a walk.
WIDE = cython.declare(cython.int, 8)


@cython.cclass
class TokenCounts:
    """Tokens that stay inside a JSON string (from between two characters on), by their number of characters, and the
    trie nodes of closing quotes with the number of characters before them.

    The tokens of at most ``n`` characters are the first ``until[n]``; ``chars`` has the number by token.
    """

    def saved(self) -> tuple:
        """Return the arrays for `load_token_counts`."""
        numbers = array("i", [self.tokens, self.ends, self.longest])
        tokens = copied("i", self.token), copied("i", self.token_chars)
        return (*tokens, copied("i", self.end), copied("i", self.end_chars), numbers)


def load_token_counts(saved: tuple) -> TokenCounts:
    """Return the counts whose `saved` returned these arrays."""
    counts: TokenCounts = TokenCounts.__new__(TokenCounts)
    counts.token, counts.token_chars, counts.end, counts.end_chars, numbers = saved
    counts.tokens, counts.ends, counts.longest = numbers
    _sort_counts(counts)
    return counts


@cython.cfunc
def _sort_counts(counts: TokenCounts) -> object:
    """Sort the tokens by their number of characters (a stable counting sort)."""
    until: cython.int[::1] = array("i", [0]) * (counts.longest + 2)
    tokens: cython.int[::1] = array("i", [0]) * (counts.tokens + 1)
    chars: cython.int[::1] = array("i", [0]) * (counts.tokens + 1)
    i: cython.int
    at: cython.int
    last: cython.int = 0
    for i in range(counts.tokens):
        until[counts.token_chars[i] + 1] += 1
        last = max(last, counts.token[i])
    for i in range(1, counts.longest + 2):
        until[i] += until[i - 1]
    for i in range(counts.tokens):
        at = until[counts.token_chars[i]]
        until[counts.token_chars[i]] += 1
        tokens[at] = counts.token[i]
        chars[at] = counts.token_chars[i]
    counts.token, counts.token_chars, counts.until = tokens, chars, until
    counts.chars = array("h", [0]) * (last + 1)
    for i in range(counts.tokens):
        counts.chars[tokens[i]] = cython.cast(cython.short, chars[i])
    return None


@cython.cclass
class ClassExits:
    """The trie nodes where tokens leave a class of characters in a JSON string, by a quote, a backslash or another
    character.

    ``plain`` has a bit for each token that consists of characters of the class. ``node`` lists, in pre-order, the nodes
    on the paths to an exit and below it; ``after`` has for each the index in that list at which its subtree ends.
    """

    def saved(self) -> tuple:
        """Return the arrays for `load_class_exits`."""
        numbers = array("i", [self.count, self.nodes])
        return copied("I", self.plain), copied("i", self.node), copied("i", self.after), numbers


def load_class_exits(saved: tuple) -> ClassExits:
    """Return the exits whose `saved` returned these arrays."""
    exits: ClassExits = ClassExits.__new__(ClassExits)
    exits.plain, exits.node, exits.after, numbers = saved
    exits.count, exits.nodes = numbers
    if not 0 <= exits.nodes < len(exits.node) == len(exits.after):
        raise ValueError("these are not the exits of a class")
    return exits


@cython.cclass
class ClassRuns:
    """`TokenCounts` for strings of one class of characters, for queries about any subtree.

    ``token_at`` has the places of the tokens in the trie's order; like ``end_node``, they ascend. ``chars`` has the
    number of characters by token.
    """

    def saved(self) -> tuple:
        """Return the arrays for `load_class_runs`."""
        numbers = array("i", [self.tokens, self.ends, self.longest])
        ends = copied("i", self.end_node)[: self.ends + 1], copied("i", self.end_chars)[: self.ends + 1]
        return (copied("i", self.token_at)[: self.tokens + 1], *ends, numbers)


def load_class_runs(saved: tuple, counts: TokenCounts) -> ClassRuns:
    """Return the runs whose `saved` returned these arrays, over the counts of the same vocabulary."""
    runs: ClassRuns = ClassRuns.__new__(ClassRuns)
    runs.token_at, runs.end_node, runs.end_chars, numbers = saved
    runs.tokens, runs.ends, runs.longest = numbers
    if not (0 <= runs.tokens < len(runs.token_at) and 0 <= runs.ends < len(runs.end_node) == len(runs.end_chars)):
        raise ValueError("these are not the runs of a class")
    runs.chars = counts.chars
    return runs


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
    """Facts about the characters of the tokens of a vocabulary, each found once.

    Args:
        automaton: an automaton, which numbers the classes of characters; the facts do not depend on it.
        trie: the vocabulary's trie.
        loops: the automaton's self loops.
        index: the vocabulary's index, which keeps the facts for all automata.
    """

    def __init__(self, automaton: Positions, trie: Trie, loops: Subtrees, index):
        self.automaton = automaton
        self.trie = trie
        self.loops = loops
        self.index = index
        self.taken = []
        self.path = octets(trie.longest + 2)
        self.visited = 0

    def __dealloc__(self):
        free(self.path)

    @cython.cfunc
    def counts(self) -> TokenCounts:
        """Return the `TokenCounts`; made once for the vocabulary."""
        if self.index.counts is None:
            rows = self.automaton.given
            self.index.counts = self._find_counts(rows.character_class(rows.class_number(rows.terms.ANY))[1])
        return self.index.counts

    @cython.cfunc
    def runs(self, number: cython.int) -> ClassRuns:
        """Return the `ClassRuns` of a class of characters; made once for the vocabulary."""
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
            else:
                del known[key]
            known[key] = found  # last: those of the least recent grammars go first
            self.taken[number] = found
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def has_runs(self, state: cython.int) -> cython.int:
        """Return 1 if a run of one class follows a row state and `ClassRuns` of the class pay off: they exist, self
        loops are of no help, or the class was met often. (For a class of ASCII characters, `RunSets` do.)"""
        automaton: Positions = self.automaton
        number: cython.int = automaton.given.fact(state, encoding.CLASS) - 1
        if number < 0 or not self._is_beyond_ascii(state):
            return 0
        if automaton.given.fact(state, encoding.MOST) >= 0 or (
            number < len(self.taken) and self.taken[number] is not None
        ):
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
    def _find_counts(self, star: cython.int) -> TokenCounts:
        """Walk the whole trie once from row state ``star``, the free string between two characters."""
        trie: Trie = self.trie
        automaton: Positions = self.automaton
        counts: TokenCounts = TokenCounts.__new__(TokenCounts)
        counts.longest = 0
        tokens: cython.int[::1] = grown(None, "i", trie.vocabulary + 1)
        token_chars: cython.int[::1] = grown(None, "i", trie.vocabulary + 1)
        # Small at first, since few tokens end a string: fresh memory is slower than the walk.
        ends: cython.int[::1] = grown(None, "i", 1024)
        end_chars: cython.int[::1] = grown(None, "i", 1024)
        token_count: cython.int = 0
        end_count: cython.int = 0
        chars: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
        i: cython.int = 1
        depth: cython.int
        nodes: cython.int = trie.nodes
        byte: cython.uchar[::1] = trie.byte
        depths: cython.ushort[::1] = trie.depth
        size: cython.int[::1] = trie.size
        first: cython.int[::1] = trie.first
        base_rows: cython.p_int = automaton.given.base
        at: cython.longlong
        then: cython.int
        token: cython.int
        visited: cython.int = 0
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # the shared one may be in use
        star_at: cython.longlong = automaton.row_at(star)
        stack[0] = star_at
        while i < nodes:
            visited += 1
            depth = depths[i]
            at = stack[depth - 1]
            if at >= 0:
                then = row_item(automaton.given.rows, at + byte[i])
            else:
                then = base_rows[byte[i] - 256 - at]
            if then < 0:
                i += size[i]
                continue
            if then == encoding.DONE:
                if end_count + 1 == len(ends):  # one spare item, since a buffer may not be empty
                    ends = grown(ends, "i", 2 * len(ends))
                    end_chars = grown(end_chars, "i", 2 * len(end_chars))
                ends[end_count] = i
                end_chars[end_count] = chars[depth - 1]
                end_count += 1
                i += size[i]
                continue
            chars[depth] = chars[depth - 1] + (1 if at == star_at else 0)
            if chars[depth] > counts.longest:
                counts.longest = chars[depth]
            for token in range(first[i], first[i + 1]):
                tokens[token_count] = trie.order[token]
                token_chars[token_count] = chars[depth]
                token_count += 1
            if size[i] > 1:
                stack[depth] = automaton.row_at(then)
            i += 1
        self.visited += visited
        counts.token, counts.token_chars, counts.tokens = tokens, token_chars, token_count
        counts.end, counts.end_chars, counts.ends = ends, end_chars, end_count
        _sort_counts(counts)
        return counts

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_wide_run(self, state: cython.int) -> cython.int:
        """Return 1 if a run of one class follows a row state, and a large part of the trie begins with bytes that it
        takes, so that a walk would be long."""
        trie: Trie = self.trie
        if self.automaton.given.fact(state, encoding.CLASS) == 0 or self.index.counts is None:
            return 0  # the counts of a small vocabulary take a long walk themselves
        nodes: cython.int = 0
        byte: cython.int
        for byte in range(256):
            if trie.child[byte] >= 0 and self.automaton.after(state, byte) > 0:
                nodes += trie.size[trie.child[byte]]
        return 1 if WIDE * nodes > trie.nodes else 0

    @cython.cfunc
    def _find_runs(self, star: cython.int) -> ClassRuns:
        """Choose the tokens and ends of a class among those of the free string. ``star`` is a row state between two
        characters of a string of the class.

        Where the groups of bytes in a subtree tell which of them leave ``star``, and that there is no way back, the
        tokens are told by their groups. The rest is walked.
        """
        trie: Trie = self.trie
        counts: TokenCounts = self.counts()
        automaton: Positions = self.automaton
        groups: cython.ulonglong[::1] = GROUPS
        runs: ClassRuns = ClassRuns.__new__(ClassRuns)
        marks: cython.ulonglong[::1] = trie.marks
        order: cython.int[::1] = trie.order
        first: cython.int[::1] = trie.first
        chars: cython.short[::1] = counts.chars
        known: cython.int = len(counts.chars)
        token_at: cython.int[::1] = grown(None, "i", trie.vocabulary + 1)
        ends: cython.int[::1] = grown(None, "i", counts.ends + 1)
        end_chars: cython.int[::1] = grown(None, "i", counts.ends + 1)
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # the shared one may be in use
        escaped: cython.uchar[::1] = grown(None, "B", trie.longest + 2)
        dead: cython.ulonglong = _ALL_GROUPS & ~encoding.SEPARATOR  # groups of which no byte goes on
        byte: cython.int
        for byte in range(256):
            if automaton.after(star, byte) >= 0:
                dead &= ~groups[byte]
        unsure: cython.ulonglong = self.loops.left_by(star) & ~dead & ~groups[0x22]  # inside, a quote is escaped
        longest: cython.int = 0
        count: cython.int = 0
        depth: cython.int
        then: cython.longlong
        is_told: cython.bint
        node: cython.int
        until: cython.int
        i: cython.int = 0
        k: cython.int
        token: cython.int
        stack[0] = star
        while i < trie.nodes:
            self.visited += 1
            depth = trie.depth[i]
            then = star
            if i:
                then = automaton.after(stack[depth - 1], trie.byte[i])
                escaped[depth] = escaped[depth - 1] or trie.byte[i] == 0x5C
            if then <= 0:
                i += trie.size[i]
                continue
            is_told = then == star and not escaped[depth] and not trie.below[i] & unsure
            until = first[i + trie.size[i] if is_told else i + 1]
            for k in range(first[i], until):
                token = order[k]
                if token < known and chars[token] and not (is_told and marks[k] & dead):
                    token_at[count] = k
                    if chars[token] > longest:
                        longest = chars[token]
                    count += 1
            stack[depth] = then
            i += trie.size[i] if is_told else 1
        runs.tokens = count
        # A copy of many costs more than the memory that it saves.
        runs.token_at = token_at if 2 * count > trie.vocabulary else copied("i", token_at[: count + 1])
        runs.chars = chars
        count = 0
        for i in range(counts.ends):
            node = counts.end[i]
            if self._after_path(star, self._load(node)) != encoding.DONE:
                continue
            ends[count] = node
            end_chars[count] = counts.end_chars[i]
            if end_chars[count] > longest:
                longest = end_chars[count]
            count += 1
        runs.ends = count
        runs.end_node, runs.end_chars = ends, end_chars
        runs.longest = longest
        return runs

    @cython.cfunc
    @cython.exceptval(check=False)
    def _load(self, node: cython.int) -> cython.int:
        """Write the bytes that lead to a trie node to ``path``; return their number."""
        trie: Trie = self.trie
        size: cython.int = trie.depth[node]
        at: cython.int
        for at in range(size - 1, -1, -1):
            self.path[at] = trie.byte[node]
            node = trie.parent[node]
        return size

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _after_path(self, state: cython.longlong, size: cython.int) -> cython.longlong:
        """Return the row state after the first bytes of ``path``, `DONE` if the text ends with them; else `DEAD`."""
        i: cython.int
        for i in range(size):
            state = self.automaton.after(state, self.path[i])
            if state <= 0 and (state < 0 or i + 1 < size):
                return encoding.DEAD
        return state

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def chars_before(self, number: cython.int, node: cython.int) -> cython.int:
        """Return the number of characters before a trie node, if it lies between two characters of a string of a class;
        else -1."""
        star: cython.longlong = self.automaton.given.character_class(number)[1]
        state: cython.longlong = star
        chars: cython.int = 0
        i: cython.int
        for i in range(self._load(node)):
            chars += 1 if state == star else 0
            state = self.automaton.after(state, self.path[i])
            if state <= 0:
                return -1
        return chars if state == star else -1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_counted(self, state: cython.int) -> cython.int:
        """Return 1 if a bounded run of one class follows a row state and self loops are of no help, since some of its
        characters are not ASCII."""
        automaton: Positions = self.automaton
        if automaton.given.fact(state, encoding.CLASS) == 0:
            return 0
        if automaton.given.fact(state, encoding.MOST) < 0:
            return 0
        return self._is_beyond_ascii(state)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_beyond_ascii(self, state: cython.int) -> cython.bint:
        """Return True if other characters than ASCII may follow a row state."""
        return self.automaton.after(state, 0xC3) > 0 or self.automaton.after(state, 0xE4) > 0

    @cython.cfunc
    def exits(self, number: cython.int) -> ClassExits:
        """Return the `ClassExits` of a class of characters; made once for the vocabulary."""
        key, star = self.automaton.given.character_class(number)
        known: dict = self.index.exits
        found = known.get(key)
        if found is None:
            found = self._find_exits(star)
            if len(known) >= MAX_CLASSES:
                del known[next(iter(known))]
        else:
            del known[key]
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
        stack: cython.longlong[::1] = array("q", [0]) * (trie.longest + 2)  # the shared one may be in use
        wanted: cython.uchar[::1] = grown(None, "B", trie.nodes)
        state[0] = encoding.LOCAL_BODY
        stack[0] = star
        local: cython.schar[::1] = automaton.local
        count: cython.int = 0
        i: cython.int = 1
        nodes: cython.int = trie.nodes
        parent: cython.int
        here: cython.int
        stop: cython.int
        then: cython.longlong
        token: cython.int
        while i < nodes:
            here = local[state[depth[i] - 1] * 256 + byte[i]]
            if here == encoding.DEAD:
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
            state[depth[i]] = here
            stop = i + 1
            if then == star and size[i] > 1 and self.loops.stays(i, cython.cast(cython.int, star), 0):
                stop = i + size[i]
            for parent in range(trie.first[i], trie.first[stop]):
                token = trie.order[parent]
                plain[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
                count += 1
            i = stop
        exits.count = count
        count = 0
        for i in range(nodes):
            count += wanted[i]
        exits.nodes = count
        exits.node = grown(None, "i", exits.nodes + 1)
        exits.after = grown(None, "i", exits.nodes + 1)
        count = 0
        parent = 0  # the number of nodes in whose subtrees the next one may be: they are on the stack
        for i in range(nodes):
            if wanted[i]:
                while parent > 0 and stack[parent - 1] >> 32 <= i:
                    parent -= 1
                    exits.after[cython.cast(cython.int, stack[parent] & 0x7FFFFFFF)] = count
                stack[parent] = cython.cast(cython.longlong, i + size[i]) << 32 | count
                parent += 1
                exits.node[count] = i
                count += 1
        for i in range(parent):
            exits.after[cython.cast(cython.int, stack[i] & 0x7FFFFFFF)] = count
        exits.node[count] = exits.after[count] = nodes
        exits.plain = plain
        return exits
