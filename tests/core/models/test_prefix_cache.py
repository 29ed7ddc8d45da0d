"""The prompt prefix cache: what was computed is not computed again, and nothing that went wrong is ever kept."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import CancelledError, JsonMode, Message, Model, ModelError, load_model
from toolgrammar.core.basics.resident import Space, held
from toolgrammar.core.models import prefix_cache
from toolgrammar.core.models.numpy_llama import backend, network
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.models.numpy_llama.network import DecoderSession
from toolgrammar.core.models.prefix_cache import BESIDE, PrefixCache

SCHEMA = {"enum": ["yes", "no", "perhaps", "nobody knows"]}
LONG = {"type": "string", "minLength": 20, "maxLength": 30}
SYSTEM = Message("system", "You are a helpful assistant that knows a great many tools. " * 8)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each forward pass of the embedded model reads."""
    counts: list[int] = []
    extend_rows = network.extend_rows

    def counting(*given: Any) -> Any:
        counts.extend(len(ids) for _, ids in given[1])
        return extend_rows(*given)

    monkeypatch.setattr(network, "extend_rows", counting)
    monkeypatch.setattr(backend, "extend_rows", counting)
    return counts


def ask(model: Model, *messages: Message) -> Message:
    """The answer to a conversation."""
    generation = model.generate([SYSTEM, *messages], json_mode=JsonMode(SCHEMA), temperature=0.0)
    assert generation.usage.cached_tokens <= generation.usage.prompt_tokens
    return generation.message


def test_next_turn_reads_only_what_is_new(counted: list[int]) -> None:
    """The prompt of a conversation's next turn costs what was added to it, and the answer is the same as without."""
    model, plain = load_model("embedded"), load_model("embedded", prefix_cache=0)
    conversation = [Message("user", "Hello, who are you and what can you do?")]
    for question in ("And then?", "Why?", "Really?"):
        turn = model.count_tokens([SYSTEM, *conversation])
        counted.clear()
        answer = ask(model, *conversation)
        first = counted[0]
        assert answer == ask(plain, *conversation)
        assert first >= turn if len(conversation) == 1 else first < 40 < turn / 4
        conversation += [answer, Message("user", question)]
    counters = model.backend.prefixes.counters()
    assert (counters.hits, counters.misses, counters.sessions) == (2, 1, 1)
    usage = model.generate([SYSTEM, *conversation], json_mode=JsonMode(SCHEMA)).usage
    assert usage.prompt_tokens - 40 < usage.cached_tokens < usage.prompt_tokens


def test_another_conversation_with_the_same_tools_gets_a_copy(counted: list[int]) -> None:
    """Two conversations that share their beginning take turns, and each goes on from its own."""
    model = load_model("embedded")
    one, two = [Message("user", "First, tell me a long story.")], [Message("user", "Second, sing a song for me.")]
    ask(model, *one)
    counted.clear()
    answer = ask(model, *two)
    assert counted[0] < model.count_tokens([SYSTEM, *two]) / 3
    assert model.backend.prefixes.counters().sessions == 2
    for conversation, last in ((one, ask(model, *one)), (two, answer)):
        counted.clear()
        ask(model, *conversation, last, Message("user", "go on"))
        assert counted[0] < 40
    assert model.backend.prefixes.counters().sessions == 2


def test_same_prompt_again_reads_one_token(counted: list[int]) -> None:
    """Asking the same again costs the last token of the prompt, which is needed for its logits."""
    model = load_model("embedded")
    first = ask(model, Message("user", "hi"))
    counted.clear()
    assert ask(model, Message("user", "hi")) == first
    assert counted[0] == 1


def test_logits_are_those_of_a_fresh_session() -> None:
    """Whatever was kept before, a session's logits depend on its tokens alone."""
    backend, plain = EmbeddedBackend(), EmbeddedBackend(prefix_cache=0)
    random = np.random.default_rng(0)
    prompts: list[list[int]] = []
    for _ in range(25):
        base = prompts[random.integers(len(prompts))] if prompts and random.random() < 0.8 else []
        ids = base[: random.integers(len(base) + 1)] + random.integers(0, 300, random.integers(1, 60)).tolist()
        prompts.append(ids)
        with closing(backend.start()) as session, closing(plain.start()) as fresh:
            np.testing.assert_allclose(session.extend(ids), fresh.extend(ids), atol=1e-4)
            assert session.length == len(ids)
            more = random.integers(0, 300, 5).tolist()
            session.extend(more)
            session.crop(len(ids) + 2)
            np.testing.assert_allclose(session.extend([7]), fresh.extend([*more[:2], 7]), atol=1e-4)
    assert backend.prefixes.counters().hits > 5


def test_memory_is_bounded_and_the_oldest_go_first() -> None:
    """The kept sequences never take more than the bound; what does not fit at all is freed at once."""
    backend = EmbeddedBackend(prefix_cache=3_000_000)
    for start in range(8):
        with closing(backend.start()) as session:
            session.extend(list(range(start, start + 300)))
        counters = backend.prefixes.counters()
        assert counters.nbytes <= 3_000_000
    assert 1 <= counters.sessions < 8 and counters.evictions == 8 - counters.sessions
    with closing(backend.start()) as session:
        session.extend(list(range(7, 320)))
        assert session.cached_tokens == 300
    tiny = EmbeddedBackend(prefix_cache=1)
    with closing(tiny.start()) as session:
        session.extend(list(range(100)))
    assert tiny.prefixes.counters().sessions == 0


def test_off_by_option() -> None:
    """``prefix_cache=0`` keeps nothing; a negative bound is refused."""
    model = load_model("embedded", prefix_cache=0)
    ask(model, Message("user", "hi"))
    assert model.backend.prefixes.counters().sessions == 0
    with pytest.raises(ModelError, match="prefix_cache cannot be -1"):
        load_model("embedded", prefix_cache=-1)


@pytest.mark.parametrize("when", [0, 1, 3])
def test_sequence_of_a_failed_pass_is_not_kept(monkeypatch: pytest.MonkeyPatch, when: int) -> None:
    """An exception inside the model reaches the caller, what it touched is freed, and the next request is fine."""
    model, plain = load_model("embedded"), load_model("embedded", prefix_cache=0)
    expected = ask(plain, Message("user", "hi"))
    ask(model, Message("user", "another question, to have something kept"))
    forward, passes, closed = network._forward, [0], [0]
    close = DecoderSession.close

    def failing(*args: Any) -> Any:
        passes[0] += 1
        result = forward(*args)  # the cache is already written
        if passes[0] == when + 1:
            raise MemoryError("no more")
        return result

    def counting(self: DecoderSession) -> None:
        closed[0] += 1
        close(self)

    monkeypatch.setattr(network, "_forward", failing)
    monkeypatch.setattr(DecoderSession, "close", counting)
    with pytest.raises(MemoryError):
        model.generate(
            [SYSTEM, Message("user", "hi")], json_mode=JsonMode(LONG), temperature=1.0, seed=1, max_tokens=50
        )
    assert closed == [1]
    monkeypatch.undo()
    assert ask(model, Message("user", "hi")) == expected


def test_logits_that_are_no_numbers_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence whose model gave NaN is freed, for its cache may hold them too."""
    backend = EmbeddedBackend()
    extend = DecoderSession.extend
    monkeypatch.setattr(DecoderSession, "extend", lambda self, ids: extend(self, ids) * np.float32("nan"))
    with closing(backend.start()) as session:
        session.extend(list(range(50)))
    assert backend.prefixes.counters().sessions == 0


def test_session_whose_first_pass_failed_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error with a reused beginning, the same session still starts from nothing."""
    backend, plain = EmbeddedBackend(), EmbeddedBackend(prefix_cache=0)
    with closing(backend.start()) as session:
        session.extend(list(range(50)))
    session, fresh = backend.start(), plain.start()
    with pytest.raises(ModelError, match="not one of"):
        session.extend([*range(50), 10**9])
    assert session.length == 0
    np.testing.assert_allclose(session.extend([1, 2, 3]), fresh.extend([1, 2, 3]), atol=1e-5)
    session.close()
    session.close()
    with pytest.raises(ModelError, match="closed"):
        session.extend([1])
    with pytest.raises(ModelError, match="closed"):
        session.crop(0)


def test_copy_that_fails_only_costs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no memory for a copy, the prompt is computed again."""
    backend, plain = EmbeddedBackend(), EmbeddedBackend(prefix_cache=0)
    with closing(backend.start()) as session:
        session.extend(list(range(50)))

    def refuse(self: DecoderSession, length: int) -> DecoderSession:
        raise MemoryError

    monkeypatch.setattr(DecoderSession, "fork", refuse)
    with closing(backend.start()) as session, closing(plain.start()) as fresh:
        ids = [*range(30), 5, 6]
        np.testing.assert_allclose(session.extend(ids), fresh.extend(ids), atol=1e-5)
        assert session.cached_tokens == 0


def test_an_engine_that_cannot_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence without copies is taken over if more of it is used again than lost, and stays otherwise."""
    monkeypatch.setattr(DecoderSession, "fork", lambda self, length: None)
    backend = EmbeddedBackend()
    plain = EmbeddedBackend(prefix_cache=0)

    def read(ids: list[int]) -> int:
        with closing(backend.start()) as session, closing(plain.start()) as other:
            np.testing.assert_allclose(session.extend(ids), other.extend(ids), atol=1e-4)
            return session.cached_tokens

    ids = [number % 250 for number in range(100)]
    assert read(ids) == 0
    assert read(ids[:40] + [251] * 60) == 0  # loses 60 of 100
    assert backend.prefixes.counters().sessions == 2
    assert read(ids[:60] + [252] * 40) == 60  # loses 40
    assert backend.prefixes.counters().sessions == 2
    assert read(ids[:60] + [252] * 40 + [7]) == 100  # goes on
    assert read(ids) == 60


def test_cancelled_generation_leaves_a_sound_sequence() -> None:
    """A stream that is left, or cancelled, may be kept: what it has read is right."""
    model, plain = load_model("embedded"), load_model("embedded", prefix_cache=0)
    stream = model.stream(
        [SYSTEM, Message("user", "hi")], json_mode=JsonMode(LONG), temperature=1.0, seed=1, trace=True
    )
    next(stream)
    stream.close()
    steps = iter(range(100))
    with pytest.raises(CancelledError):
        model.generate([SYSTEM, Message("user", "hi")], json_mode=JsonMode(LONG), cancel=lambda: next(steps) > 2)
    assert ask(model, Message("user", "hi")) == ask(plain, Message("user", "hi"))


def test_threads_do_not_share_a_sequence() -> None:
    """Many threads that ask for the same beginnings at once all get right answers."""
    model, plain = load_model("embedded"), load_model("embedded", prefix_cache=0)
    questions = [Message("user", f"question number {number % 3}") for number in range(12)]
    expected = {question.text: ask(plain, question) for question in questions[:3]}
    answers: list[tuple[str, Message]] = []

    def work(question: Message) -> None:
        answers.append((question.text, ask(model, question)))

    threads = [threading.Thread(target=work, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 12 and all(answer == expected[text] for text, answer in answers)
    assert all(json.loads(answer.text) for _, answer in answers)


class Kept:
    """A sequence of so many bytes that can be stored."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.is_closed = False

    def keeps(self, length: int) -> bool:
        """It can be reduced to any length."""
        return True

    def close(self) -> None:
        """Free it."""
        self.is_closed = True


class Grammars:
    """Grammars of so many bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.space = Space(self)

    def byte_count(self) -> int:
        """Their bytes."""
        return self.size


@pytest.mark.parametrize("yields", [True, False])
def test_sequences_and_grammars_have_one_budget(yields: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What grammars take beyond their free share is taken from the sequences, down to a quarter of their limit, if both
    are in the same memory; the newest sequence is stored all the same, up to the limit itself."""
    mb = 2**20
    cache = PrefixCache(400 * mb, yields=yields)
    sequences = []

    def stored(nbytes: int) -> int:
        sequences.append(Kept(nbytes))
        cache.give(sequences[-1], range(20), 10)  # type: ignore[arg-type]
        counters = cache.counters()
        assert counters.nbytes == sum(each.nbytes for each in sequences if not each.is_closed)
        return counters.nbytes // mb

    grammars = Grammars(BESIDE)
    assert held() >= BESIDE  # of all in this process; here, what other tests hold does not count
    monkeypatch.setattr(prefix_cache, "held", lambda: grammars.size if hasattr(grammars, "space") else 0)
    assert [stored(50 * mb) for _ in range(9)][-1] == 400
    grammars.size += 101 * mb
    assert stored(50 * mb) == (250 if yields else 400)
    grammars.size += 1_000 * mb
    assert stored(50 * mb) == (100 if yields else 400)
    assert stored(300 * mb) == (300 if yields else 400)
    assert stored(401 * mb) == (300 if yields else 400)
    del grammars.space
    for _ in range(9):
        stored(50 * mb)
    assert cache.counters().nbytes == 400 * mb
