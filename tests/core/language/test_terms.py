"""Terms: the laws of regular languages, against brute force; patterns against Python's `re`."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import PatternError, ToolGrammarError, UnsupportedPatternError
from toolgrammar.core.automaton.completion.strings import shortest, some_string
from toolgrammar.core.language import CharSet, Nodes, Terms
from toolgrammar.core.language import terms as terms_module
from toolgrammar.core.language.queries import is_cofinite
from toolgrammar.core.language.term_kinds import ALT
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.schema.scalars.formats import format_term

ALPHABET = "ab_ "
STRINGS = ["".join(chars) for size in range(5) for chars in itertools.product(ALPHABET, repeat=size)]


def trees() -> st.SearchStrategy[tuple]:
    """Descriptions of terms."""
    leaf = st.one_of(
        st.tuples(st.just("chars"), st.text(ALPHABET, min_size=1, max_size=3)),
        st.tuples(st.just("words"), st.lists(st.text(ALPHABET, max_size=3), min_size=1, max_size=3).map(tuple)),
        st.just(("all",)),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["alt", "and", "seq"]), inner, inner),
            st.tuples(st.just("not"), inner),
            st.tuples(st.just("repeat"), inner, st.integers(0, 2), st.sampled_from([0, 1, 2, None])),
        ),
        max_leaves=5,
    )


def term_of(terms: Terms, tree: tuple) -> int:
    """The library's term."""
    kind, *args = tree
    if kind == "chars":
        return terms.chars(CharSet.of(args[0]))
    if kind == "words":
        return terms.words(args[0])
    if kind == "all":
        return terms.ALL
    if kind == "repeat":
        return terms.repeat(term_of(terms, args[0]), args[1], None if args[2] is None else args[1] + args[2])
    parts = [term_of(terms, part) for part in args]
    if kind == "not":
        return terms.not_(parts[0])
    return terms.seq(*parts) if kind == "seq" else terms.alt(parts) if kind == "alt" else terms.and_(parts)


def holds(tree: tuple, text: str) -> bool:
    """The oracle: membership by definition."""
    kind, *args = tree
    if kind == "chars":
        return len(text) == 1 and text in args[0]
    if kind == "words":
        return text in args[0]
    if kind == "all":
        return True
    if kind == "not":
        return not holds(args[0], text)
    if kind == "alt":
        return holds(args[0], text) or holds(args[1], text)
    if kind == "and":
        return holds(args[0], text) and holds(args[1], text)
    if kind == "seq":
        return any(holds(args[0], text[:cut]) and holds(args[1], text[cut:]) for cut in range(len(text) + 1))
    part, least, more = args
    most = None if more is None else least + more
    ends = {(0, 0)}  # (copies, characters)
    queue = [(0, 0)]
    for copies, at in queue:
        if at == len(text) and (copies >= least or holds(part, "")):
            return True
        if copies == (len(text) + least + 1 if most is None else most):
            continue
        for cut in range(at, len(text) + 1):
            step = (copies + 1, cut)
            if step not in ends and holds(part, text[at:cut]):
                ends.add(step)
                queue.append(step)
    return False


@settings(max_examples=150)
@given(trees())
def test_membership_is_by_definition(tree: tuple) -> None:
    """Union, intersection, complement, concatenation and repetition mean what they say."""
    terms = Terms()
    term = term_of(terms, tree)
    for text in STRINGS:
        assert terms.matches(term, text) == holds(tree, text), text


@settings(max_examples=150)
@given(trees())
def test_emptiness_and_shortest_strings(tree: tuple) -> None:
    """A language is empty iff it has no string; the shortest one is in it, and none is shorter."""
    terms = Terms()
    term = term_of(terms, tree)
    members = [text for text in STRINGS if holds(tree, text)]
    if terms.is_empty(term):
        assert not members
        return
    text = shortest(terms, term, spell, {}).decode()
    assert terms.matches(term, text)
    if members:
        assert len(text) <= len(members[0])
    if is_cofinite(terms, term):
        assert all(not terms.is_empty(terms.derivative(term, ord(char))) for char in ALPHABET)


def spell(low: int, high: int) -> bytes:
    """Return one of the characters between two code points, ``a`` if it is."""
    return chr(max(low, min(high, 0x61))).encode()


def test_surrogates_are_no_characters() -> None:
    """A complement has no string that holds only a surrogate, neither as its only one nor as its shortest."""
    terms = Terms()
    longer = terms.seq(terms.ANY, terms.repeat(terms.ANY, 1, None))
    assert terms.is_empty(terms.not_(terms.alt([terms.EPSILON, terms.ANY, longer])))
    assert shortest(terms, terms.not_(terms.alt([terms.EPSILON, terms.ANY])), spell, {}) == b"aa"


def test_equal_languages_meet() -> None:
    """Hash-consing: what is built alike is the same number."""
    terms = Terms()
    one = terms.alt([terms.literal("a"), terms.literal("b")])
    assert one == terms.alt([terms.literal("b"), terms.literal("a")]) and terms.not_(terms.not_(one)) == one
    assert terms.seq(terms.ALL, terms.ALL) == terms.ALL and terms.and_([one, terms.not_(one)]) == terms.EMPTY
    assert terms.length_bounds(terms.repeat(terms.ANY, 2, 5)) == (2, 5) and terms.length_bounds(one) is None


def test_runs_of_classes_meet() -> None:
    """So many characters of one class, and so many of another: one run of what both classes have."""
    terms = Terms()
    small, wide = terms.chars(CharSet([(97, 99)])), terms.chars(CharSet([(98, 122)]))
    both = terms.chars(CharSet([(98, 99)]))
    assert terms.and_([terms.repeat(small, 2, None), terms.repeat(wide, 0, 9)]) == terms.repeat(both, 2, 9)
    assert terms.and_([terms.repeat(small, 1, 4), terms.repeat(terms.ANY, 3, 8)]) == terms.repeat(small, 3, 4)
    digits = terms.chars(CharSet([(48, 57)]))
    assert terms.and_([terms.repeat(small, 0, 3), terms.repeat(digits, 0, 2)]) == terms.EPSILON
    assert terms.run_bounds(terms.literal("ab")) is None and terms.run_bounds(small) == (small, 1, 1)


def test_too_many_terms_hit_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton that grows without end is stopped with an error of ours."""
    monkeypatch.setattr(terms_module, "MAX_TERMS", 500)
    terms = Terms()
    term = regex_term(terms, "^(a|b)*a(a|b){200}$", whole=False)
    with pytest.raises(ToolGrammarError, match="automaton states"):
        terms.matches(term, "ab" * 300)


def test_many_parts_are_no_matter_and_deep_ones_hit_a_limit() -> None:
    """Thousands of optional parts one behind the other are read one by one; thousands of parts in one another are
    refused."""
    terms = Terms()
    optional = terms.repeat(terms.literal("a"), 0, 1)
    assert terms.matches(terms.sequence([optional, terms.repeat(terms.literal("b"), 0, 1)] * 3_000), "ab" * 5)
    deep = optional
    for _ in range(3_000):
        deep = terms.not_(terms.seq(deep, terms.literal("c")))
    with pytest.raises(ToolGrammarError, match="too deep"):
        terms.matches(deep, "c")
    assert terms.matches(terms.literal("c"), "c")


def test_strings_of_a_derived_class_are_strings() -> None:
    """Words and texts may be of a class that is derived from the builtin one."""

    class Name(str):
        __slots__ = ()

    terms = Terms()
    assert terms.literal(Name("ab")) == terms.literal("ab") and terms.words([Name("ab")]) == terms.literal("ab")
    assert terms.matches(terms.words([Name("ab"), Name("c")]), Name("c"))


def test_words_are_the_same_term_as_the_same_words_behind_others() -> None:
    """What is left of words that end alike is one term, however it was reached; also of very many words."""
    terms = Terms()
    term = terms.words(["left-a", "left-b", "right-a", "right-b"])
    rest = terms.words(["-a", "-b"])
    for beginning in ("left", "right"):
        state = term
        for char in beginning:
            state = terms.derivative(state, ord(char))
        assert state == rest
    many = [f"{first}{number:03}" for first in "ab" for number in range(300)]
    assert all(terms.matches(terms.words(many), word) for word in many)
    assert not any(terms.matches(terms.words(many), word) for word in ("", "a", "a30", "a300", "c000", "a0000"))


PIECES = ["a", "b", "_", " ", ".", "[ab]", "[^a]", "\\w", "\\W", "\\s", "\\d", "(?:ab|b)", "(a)", "x"]
QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{0,1}", "{1,}", "*?", "+?"]
ASSERTIONS = ["", "", "", "^", "$", "\\b", "\\B", "(?=a)", "(?!a)", "(?=.*b)", "(?!.*b)", "(?<=a)", "(?<!a)"]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """Patterns with anchors and assertions in odd places."""
    branches = []
    for _ in range(draw(st.integers(1, 2))):
        parts = []
        for _ in range(draw(st.integers(1, 4))):
            parts.append(draw(st.sampled_from(ASSERTIONS)))
            parts.append(draw(st.sampled_from(PIECES)) + draw(st.sampled_from(QUANTIFIERS)))
        parts.append(draw(st.sampled_from(ASSERTIONS)))
        branches.append("".join(parts))
    return "|".join(branches)


def test_patterns_search_like_re() -> None:
    """A pattern matches somewhere in a string iff Python's `re` says so; few are not supported."""
    outcomes: Counter[str] = Counter()

    @settings(max_examples=300)
    @given(patterns())
    def check(pattern: str) -> None:
        terms = Terms()
        try:
            term = regex_term(terms, pattern, whole=False)
        except UnsupportedPatternError:
            outcomes["refused"] += 1
            return
        outcomes["judged"] += 1
        python = re.compile(pattern.replace("$", "\\Z"), re.ASCII)
        for text in STRINGS[1:] if "\\B" in pattern else STRINGS:  # before 3.14, Python's \\B does not match in ""
            assert terms.matches(term, text) == bool(python.search(text)), (pattern, text)

    check()
    assert outcomes["refused"] <= 0.2 * outcomes.total(), outcomes


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^\\p{Lu}\\p{Ll}*$", ["A", "Éa"], ["a", "AA"]),
        ("^\\p{Script=Greek}+$", ["αβγ"], ["abc"]),
        ("^\\u{1F600}$", ["😀"], ["x"]),
        ("^\\ud83d\\ude00$", ["😀"], ["x"]),
        ("^[\\w.-]+@[\\w-]+\\.[a-z]{2,}$", ["a.b-c@d-e.org"], ["a@b", "@b.org"]),
        ("^(?!-)[a-z-]{1,5}(?<!-)$", ["a-b"], ["-ab", "ab-", "abcdef"]),
        ("^\\/x\\-y\\.$", ["/x-y."], ["/x-yz"]),
        ("^$", [""], ["a"]),
        ("a$b", [], ["a", "ab", "a\nb"]),
        ("^\\cJ\\x41\\t$", ["\nA\t"], ["JA"]),
        ("(?<year>\\d{4})", ["in 2024"], ["in 202"]),
    ],
)
def test_ecma_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    """ECMA-262 syntax with the u flag, and the sloppiness of real schemas."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    assert [text for text in [*yes, *no] if terms.matches(term, text)] == yes


@pytest.mark.parametrize(
    "pattern",
    ["(a)?\\1", "(?P<>a)", "(?x)a", "a++", "(?>a)", "(", "[a", "a{2,1}", "*a", "\\p{Nope}", "[\\Z]", "(?<n>a)?\\k<n>"],
)
def test_what_is_refused_names_its_place(pattern: str) -> None:
    """Malformed and non-regular patterns are errors with an offset and a way out."""
    with pytest.raises(PatternError) as caught:
        regex_term(Terms(), pattern, whole=False)
    assert caught.value.place.offset is not None and caught.value.hint and json.dumps(str(caught.value))


SETS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8)), max_size=4).map(
    lambda pairs: CharSet(tuple((low, low + size) for low, size in pairs))
)


def test_recursive_nodes() -> None:
    """A rule that can only finish through itself is empty; one with a way out is not; left recursion is an error."""
    nodes = Nodes()
    endless = nodes.lazy("endless", lambda: nodes.seq(nodes.literal(b"a"), nodes.lazy("endless", lambda: 0)))
    assert nodes.is_empty(endless)
    nested = nodes.lazy(
        "nested",
        lambda: nodes.alt(
            [
                nodes.sequence([nodes.literal(b"("), nodes.lazy("nested", lambda: 0), nodes.literal(b")")]),
                nodes.literal(b"x"),
            ]
        ),
    )
    assert not nodes.is_empty(nested)
    left = nodes.lazy("left", lambda: nodes.lazy("left", lambda: 0))
    with pytest.raises(ToolGrammarError, match="refers to itself"):
        nodes.heads(left)


def test_words_share_prefixes() -> None:
    """Many literals are one trie: a head for each next byte, with the longest common prefix."""
    nodes = Nodes()
    words = nodes.words({b"get": nodes.EPSILON, b"get_all": nodes.EPSILON, b"put": nodes.EPSILON})
    heads = [nodes.args(atom)[0] for atom, _ in nodes.heads(words)]
    assert sorted(heads) == [b"get", b"put"]
    assert nodes.words({}) == nodes.EMPTY


@pytest.mark.parametrize("term", [-1, 10**6, 2**31 - 1])
def test_a_term_of_nowhere_is_an_error(term: int) -> None:
    """Every question about a term that the store does not have raises IndexError, and so does building on it."""
    terms = Terms()
    questions = (terms.nullable, terms.is_empty, terms.known, terms.shape, terms.segments, terms.run_bounds)
    for ask in (*questions, terms.length_bounds, terms.ranges, terms.not_):
        with pytest.raises(IndexError):
            ask(term)
    for parts in ([term, terms.ANY], [terms.ANY, term]):
        for build in (terms.alt, terms.and_, terms.sequence, lambda both: terms.seq(*both)):
            with pytest.raises(IndexError):
                build(parts)
    for text in ("", "a"):
        with pytest.raises(IndexError):
            terms.matches(term, text)
    with pytest.raises(IndexError):
        terms.derivative(term, 97)
    with pytest.raises(IndexError):
        terms.repeat(term, 0, None)
    with pytest.raises(IndexError):
        terms.segments(terms.deferred("what is made later", lambda _: term))


def test_what_does_not_fit_is_an_error() -> None:
    """Ranges are those of classes of characters, and remainders are integers of 32 bits."""
    terms = Terms()
    assert terms.ranges(terms.EMPTY) == () and terms.ranges(terms.ANY)[0] == (0, 0xD7FF)
    for term in (terms.EPSILON, terms.ALL, terms.literal("a"), terms.repeat(terms.ANY, 2, 3)):
        with pytest.raises(ValueError, match="not a class"):
            terms.ranges(term)
    for of, places in ((0, 0), (-5, 2), (2**31 // 10 + 1, 0), (2**40, 0), (1, -1)):
        with pytest.raises(ValueError, match="would not fit"):
            terms.multiples(of, places)
    largest = (2**31 - 1) // 10
    assert terms.matches(terms.multiples(largest, 0), str(largest * 7_654_321))
    assert not terms.matches(terms.multiples(largest, 0), str(largest * 7_654_321 + 1))


@given(trees(), trees())
@settings(deadline=None)
def test_a_copy_has_the_same_terms_and_gives_nothing_back(known: tuple, new: tuple) -> None:
    """A copy of a store gives equal terms the same number, adds its own terms to itself alone, and is not copied."""
    seed = Terms()
    before = term_of(seed, known)
    size = len(seed)
    one, two = seed.copy(), seed.copy()
    assert term_of(one, known) == term_of(two, known) == before
    assert term_of(one, new) == term_of(two, new)
    assert len(seed) == size and term_of(seed, known) == before
    assert all(one.matches(term_of(one, new), text) == holds(new, text) for text in STRINGS[:60])
    with pytest.raises(ValueError, match="not copied again"):
        one.copy()


BOUNDS = [(low, high) for low in range(4) for high in (0, 1, 2, 3, None) if high is None or high >= low]


@pytest.mark.parametrize("inner", BOUNDS)
@pytest.mark.parametrize("outer", BOUNDS)
def test_a_count_of_counts(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> None:
    """A repetition of a repetition holds exactly the numbers of copies that it says, and is one if they have no gap."""
    terms = Terms()
    once = terms.chars(CharSet.of("a"))
    term = terms.repeat(terms.repeat(once, *inner), *outer)
    most = 30 if outer[1] is None else outer[1]
    wanted = {
        copies
        for count in range(outer[0], most + 1)
        for copies in range(30)
        if inner[0] * count <= copies
        and (copies == 0 if count == 0 else inner[1] is None or copies <= inner[1] * count)
    }
    assert {copies for copies in range(30) if terms.matches(term, "a" * copies)} == wanted
    has_gap = wanted != set(range(min(wanted), max(wanted) + 1))
    assert has_gap or term == terms.EPSILON or terms.run_bounds(term) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("^(([a-z]{1,100}){1,100}){1,100}$", "a" * 40, 1),
        ("^(([a-z]{1,100}-?){1,100}){1,100}$", "a" * 40, 12),
        ("^[a-z]{1,100}[a-z]{1,100}[a-z]{1,100}$", "a" * 40, 3),
        ("^([a-z]{1,9}[0-9]{0,9}){1,50}$", "ab1" * 14, 6),
    ],
)
def test_counted_parts_that_others_include_are_dropped(pattern: str, text: str, parts: int) -> None:
    """After many characters that any of several counters may have read, few alternatives are left."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    for character in text:
        term = terms.derivative(term, ord(character))
        kind, args = terms.shape(term)
        assert kind != ALT or len(args) <= parts
    assert not terms.is_empty(term) and len(terms) < 3_000


def test_a_string_deep_in_a_wide_space_is_found() -> None:
    """A date and time of more than 127 characters is found in few terms: a search goes depth-first, too."""
    terms = Terms()
    long = terms.and_([format_term(terms, "date-time"), terms.repeat(terms.ANY, 128, None)])
    assert not terms.is_empty(long)
    assert len(terms) < 20_000


def test_a_search_within_a_search_leads_to_no_cycle() -> None:
    """Searches that start when a deferred term is built keep what they find, whatever the search around them finds."""
    terms = Terms()

    def deferred(name: str, build: Callable[[Terms], int]) -> int:
        part = terms.deferred(name, build, loops=True)
        return terms.and_([part, terms.not_(terms.literal("no"))])  # a string of it has to be searched for

    def after(letter: str, term: int) -> int:
        return terms.seq(terms.literal(letter), term)

    def chain(letter: str) -> int:
        term = terms.literal(letter)
        for number in range(3):
            term = deferred(f"{letter}{number}", lambda terms, rest=term: after(letter, rest))
        return term

    known, loop = chain("y"), deferred("loop", lambda terms: after("l", fork))

    def with_known(terms: Terms) -> int:
        assert not terms.is_empty(known)
        return after("q", chain("w"))

    def with_loop(terms: Terms) -> int:
        assert not terms.is_empty(loop)  # by way of the fork
        return after("z", loop)

    first = deferred("first", lambda terms: after("e", known))
    second, third = deferred("second", with_known), deferred("third", with_loop)
    fork = terms.alt([after("a", first), after("b", second), after("c", third)])
    root = deferred("root", lambda terms: after("r", fork))
    assert not terms.is_empty(root)
    for start in (root, fork, third, loop):
        path = [start]
        while path[-1] in terms.toward:
            path.append(terms.toward[path[-1]])
            assert path[-1] not in path[:-1], "a cycle"
    assert terms.matches(root, some_string(terms, root))
