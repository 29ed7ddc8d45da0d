"""Tokens as long as a vocabulary may have them: masks agree with what is accepted, on a small stack too."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolgrammar.core import Vocabulary, VocabularyError
from toolgrammar.core.vocabulary import MAX_TOKEN_BYTES

SCRIPT = """
import sys, threading
from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.vocabulary import MAX_TOKEN_BYTES as size

words = [b"[" * size, b'{"a":' * (size // 5), b'[{"a": ' * (size // 7), b'"' + b"a" * (size - 2) + b'"']
words += [b"[" * (size // 2) + b"]" * (size // 2), b" " * size, b"1" * size, b"[0, " * (size // 4)]
vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + words + [None], eos=[256 + len(words)])
nested = {"type": "array", "items": {"$ref": "#"}}
schemas = [True, nested, {**nested, "maxItems": 3}, {"const": "a" * (size - 2)}, {"enum": ["a" * (size - 2), "b"]}]

def work():
    for schema in schemas:
        for whitespace in ("single", "flexible"):
            matcher = Grammar.from_json_schema(schema, whitespace=whitespace).bind(vocabulary).matcher()
            allowed = set(matcher.allowed_tokens())
            for token in range(256, 256 + len(words)):
                accepted = matcher.accept(token)
                assert accepted == (token in allowed), (schema, token)
                if accepted:
                    matcher.rollback(1)
            print(len(allowed))

threading.stack_size(int(sys.argv[1]))
thread = threading.Thread(target=work)
thread.start()
thread.join()
print("done")
"""


def test_long_tokens_take_no_stack() -> None:
    """A process with a stack of 256 KB fills masks over the longest tokens, and none of them is lost."""
    command = [sys.executable, "-c", SCRIPT, str(256 * 1024)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, (result.returncode, result.stderr[-2_000:])
    *counts, last = result.stdout.split()
    assert last == "done" and len(counts) == 10 and min(map(int, counts)) > 0


def test_longer_tokens_are_refused() -> None:
    """One byte more is an error that names the token."""
    assert Vocabulary([b"x" * MAX_TOKEN_BYTES], eos=[]).size == 1
    with pytest.raises(VocabularyError, match=f"token 1 has {MAX_TOKEN_BYTES + 1:,} bytes"):
        Vocabulary([b"x", b"x" * (MAX_TOKEN_BYTES + 1)], eos=[])
