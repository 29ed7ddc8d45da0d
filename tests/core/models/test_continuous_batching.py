"""Requests that run at the same time share forward passes, and each gets what it would get alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from toolgrammar.core import (
    BudgetError,
    Event,
    Finish,
    GenerateParams,
    Generation,
    GenerationTimeoutError,
    Grammar,
    JsonMode,
    Model,
    ModelError,
    load_model,
)
from toolgrammar.core.basics.pauses import LONG_SECONDS, pause
from toolgrammar.core.generation.scheduler import MIN_SHARED, PASS_TOKENS, Scheduler
from toolgrammar.core.validation import is_valid

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 10**6}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny matrices are quicker on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


Load = Callable[..., Any]


@pytest.fixture(scope="module")
def load(hf_folder: Path) -> Load:
    """Load the tiny Llama, by default in double precision: so the order of sums changes no draw."""
    return lambda **options: load_model(f"hf:{hf_folder}", **{"dtype": "float64", **options})


def requests(count: int) -> list[tuple[str, GenerateParams]]:
    """Prompts of many lengths, with different languages, budgets and ways to draw."""
    kinds: list[dict[str, Any]] = [
        {"json_mode": JsonMode(PERSON)},
        {"json_mode": JsonMode(PERSON), "temperature": 0.0},
        {"json_mode": JsonMode({"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2, "maxItems": 6})},
        {"json_mode": JsonMode(PERSON), "max_tokens": 40, "top_p": 0.9},
        {"stop": ("e", "a"), "max_tokens": 20},
        {"json_mode": JsonMode({"type": "string", "pattern": "^[a-f]{3,30}$"}), "jump_forward": False, "top_k": 5},
    ]
    return [
        (
            f"{number} asks" + " and asks" * (number * 7 % 23),
            GenerateParams(**{"temperature": 1.0, "seed": number, "max_tokens": 60, **kinds[number % len(kinds)]}),
        )
        for number in range(count)
    ]


def results(generations: Sequence[Generation]) -> list[Any]:
    """What does not depend on what was computed before."""
    return [(each.token_ids, each.message, each.finish_reason, each.cut) for each in generations]


@contextmanager
def opened(model: Any) -> Iterator[Any]:
    """A model, whose sequences are all freed in the end."""
    with model:
        yield model
        scheduler = model.scheduler
        assert scheduler is not None
        wait_for(lambda: scheduler.counters().running == scheduler.counters().waiting == 0)
        assert not model.backend.prefixes._open


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def alone(load: Load) -> Callable[[Sequence[tuple[str, GenerateParams]]], list[Any]]:
    """Results of requests that share nothing."""
    model = load(max_rows=1, prefix_cache=0)
    assert model.scheduler is None
    return lambda asked: results([model.generate(prompt, params) for prompt, params in asked])


def test_fifty_threads_get_what_each_would_get_alone(load: Load, alone: Callable[..., Any]) -> None:
    """Greedy or by seed, with and without a grammar; the passes are shared, and every answer is valid."""
    asked = requests(50)
    with opened(load(max_rows=16)) as model, ThreadPoolExecutor(50) as pool:
        together = list(pool.map(lambda request: model.generate(*request), asked))
        counters = model.scheduler.counters()
    assert results(together) == alone(asked)
    for (_, params), generation in zip(asked, together):
        if params.json_mode is not None:
            assert is_valid(json.loads(generation.text), params.json_mode.schema)
    assert counters.most_rows == 16
    assert counters.passes < 0.5 * counters.rows


def test_tasks_of_an_event_loop_share_passes_too(load: Load, alone: Callable[..., Any]) -> None:
    """More tasks at once than the event loop has threads; streams and whole answers."""
    asked = requests(40)

    async def stream(model: Model, prompt: str, params: GenerateParams) -> list[Event]:
        return [event async for event in model.astream(prompt, params)]

    async def main(model: Model) -> tuple[list[Generation], list[list[Event]]]:
        whole = await asyncio.gather(*(model.agenerate(*request) for request in asked))
        return whole, await asyncio.gather(*(stream(model, *request) for request in asked[:12]))

    with opened(load()) as model:
        whole, streams = asyncio.run(main(model))
        assert model.scheduler.counters().most_rows == 32
    assert results(whole) == alone(asked)
    for events, generation in zip(streams, whole):
        assert isinstance(events[-1], Finish) and events[-1].reason == generation.finish_reason
        assert "".join(getattr(event, "text", "") for event in events) == generation.text


def test_memory_is_bounded(load: Load, alone: Callable[..., Any]) -> None:
    """Sequences that grow beyond the bound are taken out and read again, and nothing is lost."""
    asked = [
        (f"{number}", GenerateParams(max_tokens=150, temperature=1.0, seed=number, json_mode=JsonMode({"type": "array",
            "items": {"type": "integer"}, "minItems": 30})))
        for number in range(8)
    ]  # fmt: skip
    with opened(load(max_running_tokens=400)) as model:
        together = model.generate_batch([prompt for prompt, _ in asked], [params for _, params in asked])
        counters = model.scheduler.counters()
    assert results(together) == alone(asked)
    assert 0 < counters.most_tokens <= 400 and counters.preempted > 0
    with opened(load(max_running_tokens=20)) as model:  # less than one takes: one after another
        together = model.generate_batch([prompt for prompt, _ in asked[:3]], [params for _, params in asked[:3]])
        assert model.scheduler.counters().most_rows == 1
    assert results(together) == alone(asked[:3])


def test_those_who_leave_free_their_row(load: Load) -> None:
    """A stream that is closed, a task that is cancelled and a request whose callback says so make room."""
    endless = GenerateParams(max_tokens=4000, temperature=1.0, grammar=Grammar.from_regex("(a|b|c|d){3000}"))
    with opened(load(max_rows=3)) as model:
        streams = [model.stream("x", endless, seed=number) for number in range(2)]
        for stream in streams:
            next(stream)
        cancelled = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            cancel = pool.submit(lambda: list(model.stream("y", endless, cancel=cancelled.is_set)))
            wait_for(lambda: model.scheduler.counters().running == 3)
            late = model.stream("z", max_tokens=2)
            queued = ThreadPoolExecutor(1)
            first = queued.submit(next, late)
            wait_for(lambda: model.scheduler.counters().waiting == 1)
            cancelled.set()
            assert cancel.result().pop().reason == "cancelled"
        first.result()
        queued.shutdown()
        late.close()
        for stream in streams:
            stream.close()
        wait_for(lambda: model.scheduler.counters().running == 0)

        async def main() -> None:
            task = asyncio.create_task(model.agenerate("x", endless))
            while not model.scheduler.counters().running:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())


def test_those_who_wait_can_leave_and_time_out(load: Load) -> None:
    """A request that was not admitted yet is over when its time is, or when it is cancelled."""
    endless = GenerateParams(max_tokens=4000, temperature=1.0, grammar=Grammar.from_regex("(a|b|c|d){3000}"))
    with opened(load(max_rows=2)) as model:
        streams = [model.stream("x", endless, seed=number) for number in range(2)]
        for stream in streams:
            next(stream)
        with pytest.raises(GenerationTimeoutError):
            model.generate("late", timeout=0.05)
        begun = time.monotonic()
        events = list(model.stream("late", cancel=lambda: time.monotonic() > begun + 0.05))
        assert isinstance(events[-1], Finish) and events[-1].reason == "cancelled"
        assert model.scheduler.counters().running == 2
        for stream in streams:
            stream.close()


def test_one_that_fails_does_no_harm(load: Load, alone: Callable[..., Any]) -> None:
    """Where a shared pass fails, each request has one of its own, and only those that fail again get the error."""
    asked = requests(9)
    with opened(load()) as model:
        backend, whole = model.backend, model.backend.extend_many
        (poison,) = backend.encode("Q")
        failed: list[int] = []

        def extend_many(rows: Any) -> Any:
            if any(poison in ids for _, ids in rows):
                failed.append(len(rows))
                raise RuntimeError("out of memory")
            return whole(rows)

        backend.extend_many = extend_many
        prompts = [*(prompt for prompt, _ in asked), "Q"]
        params = [*(params for _, params in asked), GenerateParams()]
        outcomes = model.generate_batch(prompts, params, return_errors=True)
    error = outcomes.pop()
    assert isinstance(error, RuntimeError) and str(error) == "out of memory"
    assert failed == [10, 1]
    assert results(outcomes) == alone(asked)


def test_a_request_that_cannot_be_met_does_no_harm(load: Load, alone: Callable[..., Any]) -> None:
    """Errors of planning and of the budget come to those who asked for it."""
    asked = requests(4)
    with opened(load()) as model, ThreadPoolExecutor(8) as pool:
        good = [pool.submit(model.generate, *request) for request in asked]
        with pytest.raises(BudgetError):
            model.generate("x", json_mode=JsonMode(PERSON), max_tokens=2)
        assert results([each.result() for each in good]) == alone(asked)


def test_long_prompts_do_not_hold_up_the_others(load: Load) -> None:
    """A prompt is read in pieces, and each pass serves every running request; first come, first served."""
    with opened(load(max_rows=4, prefix_cache=0)) as model:
        passes: list[list[int]] = []
        whole = model.backend.extend_many

        def extend_many(rows: Any) -> Any:
            passes.append([len(ids) for _, ids in rows])
            return whole(rows)

        model.backend.extend_many = extend_many
        writing = model.stream("x", max_tokens=60, temperature=1.0)
        next(writing)
        prompts = [f"{number} " + "long " * (700 if number == 0 else 1) for number in range(12)]
        model.generate_batch(prompts, max_tokens=3)
        list(writing)
    assert max(map(sum, passes)) <= PASS_TOKENS and max(map(len, passes)) == 4
    reading = [row for row in passes if max(row) > 64]
    assert len(reading) >= 2
    assert all(min(row) >= 1 for row in passes)
    assert sum(len(row) > 1 for row in reading) >= len(reading) - 1  # others go on beside it


def test_nobody_waits_for_ever(load: Load) -> None:
    """With ever new requests, an old one that needs much room is admitted in its turn."""
    with opened(load(max_rows=8, max_running_tokens=300, prefix_cache=0)) as model:
        stop = threading.Event()
        done: list[int] = []

        def short(number: int) -> None:
            while not stop.is_set():
                model.generate(f"{number}", max_tokens=20, temperature=1.0)
                done.append(number)

        with ThreadPoolExecutor(6) as pool:
            for number in range(6):
                pool.submit(short, number)
            wait_for(lambda: len(done) > 6)
            before = len(done)
            try:
                model.generate("long " * 55, max_tokens=5)
                after = len(done) - before
            finally:
                stop.set()
    assert after < 40  # those that ran already, and no endless row of later ones


def test_a_common_beginning_is_read_once(load: Load) -> None:
    """Requests that come together with the same tools or instructions copy what the first of them has read."""
    with opened(load()) as model:
        prompts = ["You know these tools. " * 20 + f"Question {number}" for number in range(8)]
        answers = model.generate_batch(prompts, max_tokens=1)
        counters = model.scheduler.counters()
    size = answers[0].usage.prompt_tokens
    assert size > 2 * MIN_SHARED
    assert counters.tokens < 2 * size
    assert [each.usage.cached_tokens > size // 2 for each in answers] == [False] + [True] * 7


class Asking(BaseModel):
    """A type whose validator asks the model."""

    n: int

    @field_validator("n")
    @classmethod
    def _ask(cls, value: int) -> int:
        assert MODEL[0].generate("again?", json_mode=JsonMode({"enum": ["yes"]})).text == '"yes"'
        return value


MODEL: list[Model] = []


def test_a_validator_may_ask_the_model(load: Load) -> None:
    """What runs in the scheduler's thread does not wait for itself."""
    with opened(load()) as model:
        MODEL.append(model)
        assert isinstance(model.generate_json("x", Asking, max_tokens=30, seed=1), Asking)
        MODEL.clear()


def test_closing_ends_everyone(load: Load) -> None:
    """Requests that run, wait or come later get the error, and the thread ends."""
    model = load(max_rows=2)
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(model.generate, str(number), max_tokens=4000, temperature=1.0) for number in range(4)]
        wait_for(lambda: model.scheduler.counters().waiting > 0)
        model.close()
        for each in running:
            with pytest.raises(ModelError, match="closed"):
                each.result(timeout=60)
    with pytest.raises(ModelError, match="closed"):
        model.generate("x")
    wait_for(lambda: not any(each.name == "toolgrammar-scheduler" for each in threading.enumerate()))


def test_closing_while_a_prompt_is_read_says_so(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose conversation is just being rendered when the model is closed is told that, and nothing else."""
    model = load()
    backend: Any = model.backend
    render = backend._tokenizer.apply_chat_template
    rendering = threading.Event()

    def slow(*turns: Any, **options: Any) -> Any:
        rendering.set()
        wait_for(lambda: backend._sessions._is_closed)
        return render(*turns, **options)

    monkeypatch.setattr(backend._tokenizer, "apply_chat_template", slow)
    with ThreadPoolExecutor(1) as pool:
        request = pool.submit(model.generate, "x", max_tokens=3)
        assert rendering.wait(60)
        model.close()
        with pytest.raises(ModelError, match="closed"):
            request.result(timeout=60)
    for ask in (backend.can_batch, backend.new_session):
        with pytest.raises(ModelError, match="closed"):
            ask()


def test_a_fault_of_the_scheduler_reaches_everyone(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a thread that failed; the next request is fine."""
    with opened(load()) as model:
        assert model.scheduler is not None
        with monkeypatch.context() as broken:
            broken.setattr(Scheduler, "_make_room", lambda self: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                model.generate("x", max_tokens=3)
        assert model.generate("x", max_tokens=3).token_ids


@pytest.mark.parametrize("way", ["left", "thread"])
def test_a_program_may_end_meanwhile(hf_folder: Path, way: str) -> None:
    """Streams that are left open do not hold up the end of a program nor break it; a thread gets its answer."""
    program = f"""
import threading
from toolgrammar.core import Grammar, load_model
model = load_model("hf:{hf_folder}")
ask = dict(max_tokens=4000, temperature=1.0)
streams = [model.stream("x", grammar=Grammar.from_regex("(a|b|c|d){{3500}}"), **ask) for _ in range(3)]
for stream in streams:
    next(stream)
if {way == "thread"}:
    threading.Thread(target=lambda: print(len(model.generate("x", grammar=Grammar.from_regex("(a|b){{20}}"), **ask).text))).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("20" if way == "thread" else "")


def test_options_are_checked(load: Load) -> None:
    """Numbers out of range, and models that share no passes, are errors."""
    for options in ({"max_rows": 0}, {"max_running_tokens": 0}, {"max_rows": "2"}):
        with pytest.raises(ModelError):
            load(**options)
    with pytest.raises(ModelError, match="max_rows"):
        load_model("onnx:missing", max_rows=2)


def test_exact_choices_are_the_same_together(load: Load) -> None:
    """Requests that look ahead along branches get what each gets alone; each choice takes one pass more."""
    schema = {"enum": ["celsius", "centi", "kelvin", "kelvins", "fahrenheit"]}
    options = {"output_type": schema, "exact_choice": True, "temperature": 1.0}
    asked = [(f"{number} asks" * (number + 1), GenerateParams(seed=number, **options)) for number in range(12)]
    single = load(max_rows=1, prefix_cache=0)
    expected = [single.generate(prompt, params) for prompt, params in asked]
    with opened(load(max_rows=5, max_running_tokens=400)) as model, ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda request: model.generate(*request), asked))
    assert results(together) == results(expected)
    for one, other in zip(together, expected, strict=True):
        (first,), (second,) = one.choices, other.choices
        assert first.value == second.value and first.passes == second.passes == 1
        assert all(abs(first.probabilities[name] - share) < 1e-6 for name, share in second.probabilities.items())


def test_a_long_step_does_not_stop_the_passes(load: Load, alone: Callable[..., Any]) -> None:
    """While the grammar of one request takes long after its prompt is read, the others end; then it ends too, and each
    gets what it would get alone."""
    asked = requests(6)
    expected = alone(asked)
    is_done, is_held = threading.Event(), threading.Event()

    def cancel() -> bool:
        """Take long in the first step after the prompt, with pauses, until the others are done."""
        if threading.current_thread().name == "toolgrammar-scheduler" and not is_held.is_set():
            is_held.set()
            end = time.thread_time() + 2 * LONG_SECONDS
            while time.thread_time() < end:
                pass
            deadline = time.monotonic() + 60
            while not is_done.wait(0.005) and time.monotonic() < deadline:
                pause()
        return False

    with opened(load(max_rows=8)) as model, ThreadPoolExecutor(8) as pool:
        prompt, params = requests(1)[0]
        long = pool.submit(model.generate, prompt, replace(params, cancel=cancel))
        assert is_held.wait(60)
        together = list(pool.map(lambda request: model.generate(*request), asked))
        assert not long.done()
        is_done.set()
        assert results([long.result()]) == expected[:1]
        assert model.scheduler.counters().handed_over == 1
    assert results(together) == expected
