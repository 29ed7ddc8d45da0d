# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Class surveys: where the tokens of a vocabulary leave a class of characters.

Let C be a class of characters; C* stands for the contents of JSON strings over C. The *free string* is the JSON string
with any contents. A survey of C is made once for a
vocabulary. It serves each position q from which every string of C*, or every one of up to m characters, stays inside
the atom: then only the subtrees below the trie nodes at which tokens leave C* are visited (lemma 2 of
``docs/masks.md``).

Compiled where that is possible; ``class_survey.pxd`` declares its C interface.
"""

from __future__ import annotations

from array import array

from ..basics.recent_memo import RecentMemo

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.positions import Positions
    from ..compiled.arrays import copied, grown
    from ..compiled.memory import free, longs, octets
    from .bits import flip_bit
    from .subtrees import Subtrees
    from .trie import Trie

#: Maximum number of token sets that a survey memoises (see `ClassSurvey.inside`).
MAX_INSIDE = cython.declare(cython.int, 16)
#: Reciprocal of the minimum share of trie nodes below the characters of a class for which a survey pays off.
WIDE = cython.declare(cython.int, 16)
#: Reciprocal of the maximum share of these nodes below the exceptions of a chain, and maximum number of exceptions.
FEW = cython.declare(cython.int, 8)
MAX_EXCEPTIONS = cython.declare(cython.int, 16)


@cython.cclass
class ClassSurvey:
    """The tokens of a vocabulary in C*, and where the others leave C*, from a position between two characters.

    ``token`` lists the tokens that are prefixes of C*, by their number of characters (the last may be incomplete):
    ``token[:until[n]]`` have at most ``n``, and none has more than ``longest``. ``partial`` lists the tokens among them
    that end within a character, and -1 at its end, because a buffer may not be empty.

    ``exit`` lists the *exits*: the trie nodes whose byte continues a JSON string (or is its closing quote), but no
    string of C*. They are grouped by the first byte of the character that leaves C: ``exit[start[b] : start[b + 1]]``
    are those of byte ``b``, in pre-order. ``chars`` has for each exit the number of characters before that one.
    """

    def __init__(self, token, until, partial, exit, chars, start):
        self.token = token
        self.until = until
        self.partial = partial
        self.exit = exit
        self.chars = chars
        self.start = start
        self.longest = len(until) - 2
        self.masks = RecentMemo(MAX_INSIDE)
        if not (0 <= self.longest and len(start) == 257 and 0 <= start[256] < len(exit) == len(chars)):
            raise ValueError("this is not the survey of a class")
        if not 0 <= until[self.longest] < len(token) or partial[len(partial) - 1] != -1:
            raise ValueError("this is not the survey of a class")

    def saved(self) -> tuple:
        """Return the arguments that make the same survey."""
        tokens = copied("i", self.token), copied("i", self.until), copied("i", self.partial)
        return (*tokens, copied("i", self.exit), copied("i", self.chars), copied("i", self.start))

    @cython.cfunc
    def inside(self, most: cython.int, words: cython.int) -> cython.uint[::1]:
        """Return the tokens of at most ``most`` characters as bits, in ``words`` words; the caller must not change
        them."""
        found = self.masks.get(most)
        if found is None:
            found = array("I", [0]) * words
            bits: cython.uint[::1] = found
            i: cython.int
            for i in range(self.until[most]):
                flip_bit(bits, self.token[i])
            self.masks.put(most, found)
        return found


@cython.cfunc
def survey_class(
    automaton: Positions, trie: Trie, subtrees: Subtrees, star: cython.longlong, free: cython.longlong
) -> ClassSurvey:
    """Return the survey of a class.

    Below a node whose path is in C*, and below which are only bytes of groups that are in C as a whole, every token is
    in C*: there the automaton is not asked.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
        subtrees: the automaton's subtree test.
        star: the row state between two characters of a string of C*.
        free: the row state between two characters of the free string.
    """
    nodes: cython.int = trie.nodes
    depth: cython.int
    i: cython.int = 1
    at: cython.int
    in_star: cython.longlong
    in_free: cython.longlong
    # The groups of bytes below which the automaton must be asked.
    mixed: cython.ulonglong = subtrees.left_by(cython.cast(cython.int, star)) | encoding.OTHER
    tokens: cython.int = 0
    exits: cython.int = 0
    longest: cython.int = 0
    partial = array("i")
    token: cython.int[::1] = grown(None, "i", trie.vocabulary + 1)
    sizes: cython.int[::1] = grown(None, "i", trie.vocabulary + 1)
    exit: cython.int[::1] = grown(None, "i", 1024)
    chars: cython.int[::1] = grown(None, "i", 1024)
    # By depth on the current path: the positions in C* (`star` between two characters) and in the free string, the
    # number of characters, and the first byte of the last one.
    star_at: cython.longlong[::1] = array("q", [star]) * (trie.longest + 2)
    free_at: cython.longlong[::1] = array("q", [free]) * (trie.longest + 2)
    begun: cython.int[::1] = array("i", [0]) * (trie.longest + 2)
    lead: cython.uchar[::1] = bytearray(trie.longest + 2)
    leads: cython.uchar[::1] = bytearray(1024)
    while i < nodes:
        depth = trie.depth[i]
        in_free = automaton.after(free_at[depth - 1], trie.byte[i])
        if in_free < 0:
            i += trie.size[i]
            continue
        begun[depth], lead[depth] = begun[depth - 1], lead[depth - 1]
        if star_at[depth - 1] == star:
            begun[depth] += 1
            lead[depth] = trie.byte[i]
        in_star = automaton.after(star_at[depth - 1], trie.byte[i])
        if in_star <= 0:  # the free string goes on or ends (`DONE` is 0), a string of C* does not go on: an exit
            if exits + 1 == len(exit):  # one spare item, since a buffer may not be empty
                exit, chars = grown(exit, "i", 2 * len(exit)), grown(chars, "i", 2 * len(chars))
                leads = grown(leads, "B", 2 * len(leads))
            exit[exits], chars[exits], leads[exits] = i, begun[depth] - 1, lead[depth]
            exits += 1
            i += trie.size[i]
            continue
        longest = max(longest, begun[depth])
        for at in range(trie.first[i], trie.first[i + 1]):
            token[tokens], sizes[tokens] = trie.order[at], begun[depth]
            tokens += 1
            if in_star != star:
                partial.append(trie.order[at])
        star_at[depth], free_at[depth] = in_star, in_free
        i += 1
        if in_star == star and not trie.below[i - 1] & mixed:  # all tokens below are in C*
            longest = max(longest, _list_below(trie, i - 1, begun, token, sizes, tokens, partial))
            at = i  # `_list_below` has added these: skip them
            i += trie.size[i - 1] - 1
            tokens += trie.first[i] - trie.first[at]
    partial.append(-1)  # a buffer may not be empty
    return _sorted_survey(token, sizes, tokens, partial, exit, chars, leads, exits, longest)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _list_below(
    trie: Trie,
    node: cython.int,
    begun: cython.int[::1],
    token: cython.int[::1],
    sizes: cython.int[::1],
    tokens: cython.int,
    partial: object,
) -> cython.int:
    """List all tokens below a trie node, which begin with whole characters of C and go on in C*; return the greatest
    number of their characters.

    Args:
        trie: the vocabulary's trie.
        node: the node; a character ends there.
        begun: by depth on the current path, the number of characters; that of the node is known.
        token: the tokens so far; those below the node are added.
        sizes: their numbers of characters, likewise.
        tokens: the number of tokens so far.
        partial: the tokens that end within a character, likewise.
    """
    longest: cython.int = 0
    i: cython.int
    at: cython.int
    depth: cython.int
    byte: cython.int
    for i in range(node + 1, node + trie.size[node]):
        depth, byte = trie.depth[i], trie.byte[i]
        begun[depth] = begun[depth - 1] + ((byte & 0xC0) != 0x80)  # other bytes continue a character
        longest = max(longest, begun[depth])
        for at in range(trie.first[i], trie.first[i + 1]):
            token[tokens], sizes[tokens] = trie.order[at], begun[depth]
            tokens += 1
            if byte >= 0x80 and _is_partial(trie, i):
                partial.append(trie.order[at])
    return longest


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_partial(trie: Trie, node: cython.int) -> cython.bint:
    """Return True if the path of a trie node, which is valid UTF-8, ends within a character of several bytes."""
    size: cython.int = 1
    while (trie.byte[node] & 0xC0) == 0x80:
        node = trie.parent[node]
        size += 1
    return size < (2 if trie.byte[node] < 0xE0 else 3 if trie.byte[node] < 0xF0 else 4)


@cython.cfunc
def _sorted_survey(
    token: cython.int[::1],
    sizes: cython.int[::1],
    tokens: cython.int,
    partial: object,
    exit: cython.int[::1],
    chars: cython.int[::1],
    leads: cython.uchar[::1],
    exits: cython.int,
    longest: cython.int,
) -> ClassSurvey:
    """Return the survey of these tokens and exits, sorted by counting (stable): tokens by their number of characters
    (``sizes``), exits by the first byte of the character that leaves C (``leads``)."""
    i: cython.int
    at: cython.int
    until: cython.int[::1] = array("i", [0]) * (longest + 2)
    start: cython.int[::1] = array("i", [0]) * 258
    tokens_sorted: cython.int[::1] = grown(None, "i", tokens + 1)
    exit_sorted: cython.int[::1] = grown(None, "i", exits + 1)
    chars_sorted: cython.int[::1] = grown(None, "i", exits + 1)
    # First, the number of tokens of n characters is at n + 1; summed, the index of the first of them is at n; while
    # they are copied, it moves to the index after the last. Likewise for exits, one place further.
    for i in range(tokens):
        until[sizes[i] + 1 if sizes[i] <= longest else longest + 1] += 1
    for i in range(1, longest + 2):
        until[i] += until[i - 1]
    for i in range(tokens):
        at = until[sizes[i]]
        until[sizes[i]] += 1
        tokens_sorted[at] = token[i]
    for i in range(exits):
        start[leads[i] + 2] += 1
    for i in range(1, 258):
        start[i] += start[i - 1]
    for i in range(exits):
        at = start[leads[i] + 1]
        start[leads[i] + 1] += 1
        exit_sorted[at], chars_sorted[at] = exit[i], chars[i]
    return ClassSurvey(tokens_sorted, until, partial, exit_sorted, chars_sorted, copied("i", start)[:257])


@cython.cclass
class Chain:
    """A chain of row states q0, q1, q2, ... of a JSON string along one class C of ASCII characters: every character of
    C leads from each state to the next one; the last state is its own successor, or has none by C.

    From q0, a few characters of C, the *exceptions*, may lead to other states (for example, if some names are
    excluded). They are listed as first bytes: that of the character, and the backslash, since a character of C may be
    written as an escape (the slash as ``\\/``).

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
        subtrees: the automaton's subtree test.
    """

    def __init__(self, automaton: Positions, trie: Trie, subtrees: Subtrees):
        self.automaton = automaton
        self.trie = trie
        self.subtrees = subtrees
        self.states = longs(trie.longest + 2)
        self.members, self.exception = octets(128), octets(MAX_EXCEPTIONS + 1)
        self.count = self.exceptions = self.most = 0

    def __dealloc__(self):
        free(self.states)
        free(self.members)
        free(self.exception)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def choose(self, state: cython.int, free: cython.longlong) -> cython.bint:
        """Choose C for a chain from ``state``, and the exceptions from it. C is the printable ASCII characters that
        lead from q1, the majority successor of q0, to its own majority successor; or, if few trie nodes are below these
        or too many differ from q0, those that lead from q0 to q1. Return False if q1 is the free string, or if few trie
        nodes are below C.

        Args:
            state: q0, between two characters of a JSON string.
            free: the state of the free string.
        """
        majority: cython.int = self.subtrees.majority_from(state)
        if majority <= 0 or majority == free:
            return False
        # C is the class of q1, if q0 has few exceptions from it; else the class of q0.
        nodes: cython.int = self._set_class(majority, self.subtrees.majority_from(majority))
        lost: cython.int = 0
        first: cython.int
        i: cython.int
        self.exceptions = 0
        for i in range(self.count):
            first = self.trie.child[self.members[i]]
            if first >= 0 and self.automaton.after(state, self.members[i]) != majority:
                lost += self.trie.size[first] if self.exceptions < MAX_EXCEPTIONS else nodes
                if self.exceptions < MAX_EXCEPTIONS:
                    self.exception[self.exceptions] = self.members[i]
                    self.exceptions += 1
        first = self.trie.child[0x5C]
        if self.exceptions and first >= 0 and self.automaton.after(majority, 0x5C) >= 0:
            lost += self.trie.size[first]
            self.exception[self.exceptions] = 0x5C
            self.exceptions += 1
        if WIDE * nodes <= self.trie.nodes or FEW * lost > nodes:
            nodes = self._set_class(state, majority)
            self.exceptions = 0
        return WIDE * nodes > self.trie.nodes

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _set_class(self, state: cython.int, to: cython.longlong) -> cython.int:
        """Let C be the ASCII characters that lead from one row state to another; return the number of trie nodes below
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
    def flips(self) -> list:
        """Return C as flips: the ascending code points at which membership changes."""
        found: list = []
        last: cython.int = -1
        i: cython.int
        for i in range(self.count):
            if self.members[i] != last:
                found += [last, self.members[i]]
            last = self.members[i] + 1
        return [*found[1:], last]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def follow(self, state: cython.longlong, longest: cython.int) -> cython.bint:
        """Compute the states of the chain: ``states[n]`` is the state after n characters of C, for n up to ``longest``,
        the most that a token has; ``most`` is the last n with a state. Return False if characters of C lead to
        different states, so that there is no chain."""
        automaton: Positions = self.automaton
        at: cython.int = 0
        i: cython.int
        target: cython.longlong = self.subtrees.majority_from(cython.cast(cython.int, state))
        self.states[0] = state
        self.most = longest
        while True:
            if at:
                target = automaton.after(self.states[at], self.members[0])
                for i in range(1, self.count):
                    if automaton.after(self.states[at], self.members[i]) != target:
                        return False
            if target == encoding.DONE:
                return False
            if target < 0:
                self.most = at
                return True
            if at == longest:
                return True
            at += 1
            self.states[at] = target
            if target == self.states[at - 1]:  # so are all later states
                while at < longest:
                    at += 1
                    self.states[at] = target
                return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_dead(self, byte: cython.int) -> cython.bint:
        """Return True if a byte is dead in all states of the chain."""
        at: cython.int
        for at in range(self.most + 1):
            if at and self.states[at] == self.states[at - 1]:  # so are all later states
                return True
            if self.automaton.after(self.states[at], byte) >= 0:
                return False
        return True
