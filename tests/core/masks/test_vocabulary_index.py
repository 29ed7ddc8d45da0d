"""Vocabulary indexes: the same whether computed or read from disk."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.masks import index_files as module
from toolgrammar.core.masks.index_files import MIN_TOKENS, index_of
from toolgrammar.core.masks.trie import Trie
from toolgrammar.core.masks.vocabulary_index import VocabularyIndex
from toolgrammar.core.vocabulary.disk_cache import read_arrays, write_arrays

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "string", "maxLength": 3}, "c": {"type": "number"}},
    "required": ["a", "b"],
}
PREFIXES = ["", '{"a": "', '{"a": "x\\', '{"a": "x", "b": "', '{"a": "x", "b": "y', '{"a": "x", "b": "y", "c": 1']


def tokens(seed: int = 0) -> list[bytes | None]:
    """A large vocabulary: all bytes, random words of JSON, and some control tokens."""
    draw = random.Random(seed)
    letters = ["a", "b", "c", " ", '"', '", "', '": ', "{", "}", "[", "]", "1", ".5", "\\", "é", "\n", "x", "u00"]
    words = {bytes([byte]): None for byte in range(256)}
    while len(words) < MIN_TOKENS:
        words["".join(draw.choices(letters, k=draw.randint(1, 6))).encode()] = None
    return [*words, b"a", None, None]


def vocabulary(folder: Path | bool, seed: int = 0) -> Vocabulary:
    """The vocabulary, fresh, with its files in a folder."""
    listed = tokens(seed)
    return Vocabulary(listed, eos=[len(listed) - 1], cache_dir=folder)  # type: ignore[arg-type]


def masks(known: Vocabulary) -> Iterator[bytes]:
    """Masks in states of every kind of string."""
    for grammar in (Grammar.from_json_schema(SCHEMA), Grammar.text(min_chars=1), Grammar.text(excluding=["ab"])):
        constraint = grammar.bind(known)
        for prefix in PREFIXES if grammar.schema else [""]:
            matcher = constraint.matcher()
            assert matcher.accept_bytes(prefix.encode())
            out = np.zeros(constraint.words, dtype=np.uint32)
            matcher.fill_mask(out)
            yield out.tobytes()


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Vocabulary]:
    """Collects the vocabularies whose preparation was computed, not read."""
    found: list[Vocabulary] = []
    compute = module._compute

    def counted(each: Vocabulary) -> VocabularyIndex:
        found.append(each)
        return compute(each)

    monkeypatch.setattr(module, "_compute", counted)
    return found


def test_what_is_read_equals_what_is_computed(tmp_path: Path, computed: list[Vocabulary]) -> None:
    """A second vocabulary of equal content reads, computes nothing, and gives the same masks."""
    first, second, without = vocabulary(tmp_path), vocabulary(tmp_path), vocabulary(False)
    expected = list(masks(first))
    assert list(masks(second)) == expected
    assert list(masks(without)) == expected
    assert computed == [first, without]
    assert index_of(second).trie.saved() == index_of(first).trie.saved()
    assert index_of(second).quoted.tolist() == index_of(first).quoted.tolist()
    assert list(index_of(first).quoted) == [n for n, data in enumerate(first.tokens) if b'"' in (data or b"")]
    assert len(list(tmp_path.iterdir())) == 1


def test_common_classes_are_surveyed_ahead(tmp_path: Path) -> None:
    """Where tokens leave the common classes of characters is known before any mask asks, computed or read."""
    patterns = [r"^.{2,90}$", r"^\S{2,90}$", r"^[-\w]{1,90}$", "ab", ".+:[0-9]$"]
    seen = []
    for known in (vocabulary(tmp_path), vocabulary(tmp_path), vocabulary(False)):
        index = index_of(known)
        classes = {ranges for ranges, _survey in index.surveys.items()}
        assert len(classes) == 19
        out = np.zeros((known.size + 31) // 32, dtype=np.uint32)
        for pattern in patterns:
            matcher = Grammar.from_json_schema({"type": "string", "pattern": pattern}).bind(known).matcher()
            for byte in b'"x1':
                matcher.fill_mask(out)
                seen.append(out.tobytes())
                assert matcher.accept_bytes(bytes((byte,)))
        assert {ranges for ranges, _survey in index.surveys.items()} == classes
    third = len(seen) // 3
    assert seen[:third] == seen[third : 2 * third] == seen[2 * third :]


def test_the_trie_holds_every_token(tmp_path: Path) -> None:
    """Read or computed, the masks of free text hold exactly the tokens that a UTF-8 text may begin with."""
    for known in (vocabulary(tmp_path), vocabulary(tmp_path)):
        allowed = set(Grammar.text(min_chars=1).bind(known).matcher().allowed_tokens())
        for number, data in enumerate(known.tokens):
            if data:
                begins = True
                try:
                    data.decode()
                except UnicodeDecodeError as error:
                    begins = error.reason == "unexpected end of data"
                assert (number in allowed) == begins, data


def test_damaged_files_are_computed_again_and_replaced(tmp_path: Path, computed: list[Vocabulary]) -> None:
    """Cut, changed, empty and foreign files are noticed: the masks are right, and the file is whole again."""
    expected = list(masks(vocabulary(tmp_path)))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    damaged = [whole[:-1], whole[:middle], b"", flipped, b"x" * 100]
    for content in damaged:
        path.write_bytes(content)
        computed.clear()
        known = vocabulary(tmp_path)
        assert list(masks(known)) == expected
        assert computed == [known]
        assert path.read_bytes() == whole


def test_whole_files_of_nonsense_are_computed_again(tmp_path: Path, computed: list[Vocabulary]) -> None:
    """A file with a right checksum, but arrays that are no trie of this vocabulary, is not believed."""
    known = vocabulary(tmp_path)
    expected = list(masks(known))
    key = module._key(known)
    arrays = read_arrays(tmp_path, key)
    assert arrays is not None
    deep = array("H", arrays["trie 1"])
    deep[5] = 9_999
    for wrong in (
        {},
        {**arrays, "trie 1": deep},
        {**arrays, "survey 1 0": array("i")},
        {**arrays, "survey 0 4": arrays["survey 0 4"][:-1]},
        {**arrays, "trie 2": arrays["trie 2"][:-1]},
        {**arrays, "trie 2": array("i", [known.size]) * len(deep)},
        {**arrays, "trie 3": array("i", [-1])},
    ):
        assert write_arrays(tmp_path, key, wrong)
        computed.clear()
        again = vocabulary(tmp_path)
        assert list(masks(again)) == expected
        assert computed == [again]
    assert read_arrays(tmp_path, key) == arrays


def test_the_key_follows_content_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal content has one key; another token, end, control token, format or code has another."""
    listed = tokens()
    base = vocabulary(tmp_path)
    changed = list(listed)
    changed[300] = b"something else"
    others = [
        Vocabulary(changed, eos=base.eos),
        Vocabulary(listed, eos=[]),
        Vocabulary(listed, eos=base.eos, special={"<x>": len(listed) - 2}),
        Vocabulary([*listed, None], eos=base.eos),
    ]
    assert module._key(Vocabulary(listed, eos=base.eos)) == module._key(base)
    keys = {module._key(each) for each in (base, *others)}
    assert len(keys) == 5
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    assert module._key(base) not in keys
    monkeypatch.setattr(module, "_code", lambda: "of another version")
    assert module._key(base) not in keys


@pytest.mark.parametrize("installed", [True, False])
def test_the_code_is_what_makes_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    """A change of any module of the automaton or of languages is other code, also in a tree that is not installed."""
    for name in ("automaton/prepared.py", "language/terms.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "automaton/prepared.py"))
    if not installed:

        def version(name: str) -> str:
            raise module.importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(module.importlib.metadata, "version", version)
    codes = {module._code.__wrapped__()}
    for name in ("automaton/prepared.py", "language/terms.py"):
        (tmp_path / name).write_text("2")
        codes.add(module._code.__wrapped__())
    assert len(codes) == 3


def test_small_vocabularies_leave_no_files(tmp_path: Path) -> None:
    """What is prepared faster than it is read is not kept; nor is anything where the cache is switched off."""
    small = Vocabulary([b"a", b'"', None], eos=[2], cache_dir=tmp_path)
    assert Grammar.json().bind(small).matcher().allowed_tokens() == [1]
    list(masks(vocabulary(False)))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Below a file no folder can be made: the masks are the same, and nothing is raised."""
    (tmp_path / "file").write_bytes(b"")
    assert list(masks(vocabulary(tmp_path / "file" / "below"))) == list(masks(vocabulary(False)))


def test_a_trie_refuses_what_is_no_trie() -> None:
    """Arrays that are not in pre-order, or of another length, are an error and not a crash."""
    listed = [b"a", b"ab", b"b", None]
    data, depth, token, same = Trie(listed).saved()
    assert Trie(listed, (data, depth, token, same)).saved() == (data, depth, token, same)
    assert (bytes(data[1:]), list(depth[1:]), list(token[1:])) == (b"abb", [1, 2, 1], [0, 1, 2])
    for wrong in (
        (data, array("H", [0, 1, 3, 1]), token, same),
        (data, array("H", [0, 1, 0, 1]), token, same),
        (data, depth, array("i", [-1, 0, 1, 4]), same),
        (data, depth[:-1], token, same),
        (data, depth, token, same[:-1]),
    ):
        with pytest.raises(ValueError, match="trie"):
            Trie(listed, wrong)


PROGRAM = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import test_vocabulary_index as tests
from toolgrammar.core.masks import index_files as module
from toolgrammar.core.masks.index_files import MIN_TOKENS, index_of
computed = []
compute = module._compute
module._compute = lambda each: (computed.append(1), compute(each))[1]
digest = hashlib.sha256(b"".join(tests.masks(tests.vocabulary(Path(sys.argv[2]))))).hexdigest()
import json
print(json.dumps([digest, len(computed)]))
"""


def test_processes_share_what_one_index_of(tmp_path: Path) -> None:
    """Two processes that begin at once agree, and a third reads what they left."""
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(tmp_path)]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)

    results = []
    for process in [start(), start()]:
        output, errors = process.communicate(timeout=100)
        assert output, errors
        results.append(json.loads(output))
    assert results[0][0] == results[1][0]
    output, errors = start().communicate(timeout=100)
    assert json.loads(output) == [results[0][0], 0], errors
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "string", "format": "date-time"}, '"2024-02-29T1'),
        ({"type": "string", "format": "uri"}, '"https://example.com/'),
        ({"type": "integer", "minimum": 0}, "12"),
    ],
)
def test_common_values_are_found_out_once(value: dict[str, object], text: str) -> None:
    """Token sets inside of common formats and ranges are those of the vocabulary: another grammar makes none."""
    known = vocabulary(False)
    made = []
    for names in (["a"], ["b", "c"]):
        schema = {"type": "object", "properties": dict.fromkeys(names, value), "required": names}
        constraint = Grammar.from_json_schema(schema, whitespace="compact").bind(known)
        matcher = constraint.matcher()
        assert matcher.accept_bytes(f'{{"{names[0]}":'.encode())
        before = constraint.counters()["mask_token_sets"]
        for byte in text.encode():
            matcher.allowed_tokens()
            assert matcher.accept(byte)
        made.append(constraint.counters()["mask_token_sets"] - before)
    assert made[0] > 1 and made[1] == 0
