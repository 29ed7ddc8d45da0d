"""Closing a model frees what it holds, whatever is going on, and is told clearly afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import (
    ConstraintCache,
    Grammar,
    JsonMode,
    Model,
    ModelError,
    load_model,
)
from toolgrammar.core.basics.resident import _allocator
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.testing import ScriptedModel

MODE = JsonMode({"type": "array", "items": {"type": "integer"}, "maxItems": 9})


@pytest.fixture(params=["embedded", "hf"])
def model(request: pytest.FixtureRequest) -> Model:
    """A model of each kind, loaded afresh."""
    return load_model("embedded" if request.param == "embedded" else f"hf:{request.getfixturevalue('hf_folder')}")


def weights_of(model: Model) -> weakref.ref[Any]:
    """The weights, not kept alive."""
    backend: Any = model.backend
    return weakref.ref(backend.network if isinstance(backend, EmbeddedBackend) else backend._model)


def opened(model: Model) -> int:
    """How many sessions are open or kept."""
    gc.collect()
    backend: Any = model.backend
    return len(backend._sessions) + backend.prefixes.counters().sessions


def test_closing_frees_weights_sessions_and_grammars(model: Model) -> None:
    """After a conversation, a batch and a stream that nobody reads on, nothing is left; closing twice is allowed."""
    weights = weights_of(model)
    model.generate("What is the weather like?", json_mode=MODE, max_tokens=40)
    model.generate_batch(["What is", "the weather like"], json_mode=MODE, max_tokens=40)
    stream = model.stream("x", max_tokens=400, temperature=1.0, seed=1)
    next(stream)
    assert opened(model) > 0 and len(model.cache) > 0
    model.close()
    assert opened(model) == 0 and len(model.cache) == 0
    assert weights() is None
    with pytest.raises(ModelError, match="the model is closed"):
        list(stream)
    model.close()
    assert opened(model) == 0


def test_a_closed_model_says_so(model: Model) -> None:
    """Whatever is asked of a closed model, the error is the same; what needs no weights still answers."""
    name, window = model.name, model.context_window
    with model as same:
        assert same is model
        session = model.backend.start()
        session.extend([1, 2, 3])
    asked: list[Callable[[], Any]] = [
        lambda: model.generate("x"),
        lambda: list(model.stream("x")),
        lambda: model.generate_batch(["x", "y"]),
        lambda: model.generate_json("x", {"type": "integer"}),
        lambda: model.count_tokens("x"),
        lambda: asyncio.run(model.agenerate("x")),
        lambda: asyncio.run(model.agenerate_batch(["x"])),
        model.backend.start,
    ]
    for ask in asked:
        with pytest.raises(ModelError, match="the model is closed"):
            ask()
    with pytest.raises(ModelError, match="closed"):
        session.extend([4])
    session.close()
    assert (model.name, model.context_window) == (name, window)
    assert opened(model) == 0


def test_leaving_with_an_error_closes(model: Model) -> None:
    """An exception inside the block passes through, and the model is closed."""
    with pytest.raises(ZeroDivisionError), model:
        raise ZeroDivisionError
    with pytest.raises(ModelError, match="the model is closed"):
        model.generate("x")


def test_closing_while_others_generate(model: Model) -> None:
    """Generations in other threads, alone and in a batch, end with the error at their next step, and leak nothing."""
    begun = threading.Semaphore(0)
    errors: list[BaseException] = []

    def work(ask: Callable[..., Any]) -> None:
        def step() -> bool:
            begun.release()
            return False

        try:
            ask(max_tokens=3000, temperature=1.0, seed=1, cancel=step, grammar=Grammar.from_regex("[a-z]{2900}"))
        except ModelError as error:
            errors.append(error)

    asks: list[Callable[..., Any]] = [
        lambda **options: model.generate("x", **options),
        lambda **options: model.generate_batch(["x", "y"], **options),
    ]
    threads = [threading.Thread(target=work, args=(ask,)) for ask in asks]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert begun.acquire(timeout=30)
    model.close()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert len(errors) == 2 and all("the model is closed" in str(error) for error in errors)
    del errors[:]
    assert opened(model) == 0


def test_a_shared_cache_of_grammars_is_left_alone() -> None:
    """Closing one of two models that share a cache leaves it to the other."""
    cache = ConstraintCache()
    first, second = (Model(EmbeddedBackend(), cache=cache) for _ in range(2))
    first.generate("x", json_mode=MODE, max_tokens=40)
    first.close()
    assert len(cache) > 0
    assert second.generate("x", json_mode=MODE, max_tokens=40).text


def test_a_backend_that_cannot_be_closed() -> None:
    """A backend without ``close`` is let alone, and its model is closed all the same."""
    with ScriptedModel(["a", "b"]) as model:
        assert model.generate("x").text == "a"
    with pytest.raises(ModelError, match="the model is closed"):
        model.generate("x")


@pytest.mark.parametrize("way", ["whole", "stream", "async", "tools"])
def test_what_a_request_made_is_free_at_its_end(way: str) -> None:
    """The states of a grammar that the cache has dropped are free when their last answer ends, without the
    garbage collector."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 5}},
        "required": ["a"],
        "additionalProperties": False,
    }
    model = load_model("embedded")
    options: dict[str, Any] = {"max_tokens": 30, "temperature": 1.0, "seed": 1}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}

    def ask() -> None:
        if way == "stream":
            assert list(model.stream("hi", json_mode=JsonMode(schema), **options))
        elif way == "async":
            assert asyncio.run(model.agenerate_json("hi", schema, **options))
        elif way == "tools":
            assert model.generate("hi", tools=[tool], tool_choice="required", **options).tool_calls
        else:
            assert model.generate_json("hi", schema, **options)

    ask()  # what is made once
    model.cache.clear()
    gc.collect()
    gc.disable()
    try:
        ask()
        stores = [weakref.ref(each.constraint.program.store) for each in model.cache._entries.values()]
        model.cache.clear()
        for _ in range(100):
            if not any(store() for store in stores):
                break
            time.sleep(0.05)  # the scheduler's thread ends
        assert stores and not any(store() for store in stores)
    finally:
        gc.enable()
        model.close()


class OverError(Exception):
    """The request is wanted no more."""


@pytest.mark.parametrize("way", ["whole", "stream", "async"])
def test_what_a_request_that_an_error_ended_made_is_free_with_the_error(way: str) -> None:
    """The states of a grammar of a request that ended in long work, with an error, are free when the error is, without
    the garbage collector: the error does not refer to itself."""
    pattern = "^(?=[a-z]*a[a-z]{30}b)(?=[a-z]*c[a-z]{30}d)(?=[a-z]*e[a-z]{25}f)[a-z]*$"
    model = load_model("embedded")
    checks = 0

    def cancel() -> bool:
        nonlocal checks
        checks += 1
        if checks > 20:
            raise OverError
        return False

    mode = JsonMode({"type": "string", "pattern": pattern})
    options: dict[str, Any] = {"max_tokens": 3_000, "temperature": 1.0, "seed": 1, "cancel": cancel, "json_mode": mode}

    async def ask_async() -> None:
        with contextlib.suppress(OverError):
            await model.agenerate("hi", **options)
            pytest.fail("it did not end")

    def ask() -> None:
        if way == "async":
            asyncio.run(ask_async())
            return
        with contextlib.suppress(OverError):
            if way == "stream":
                list(model.stream("hi", **options))
            else:
                model.generate("hi", **options)
            pytest.fail("it did not end")

    ask()  # what is made once
    model.cache.clear()
    gc.collect()
    before = {id(each) for each in _allocator().owners.values()}
    gc.disable()
    try:
        checks = 0
        ask()
        model.cache.clear()
        for _ in range(100):
            if all(each() is None for each in list(_allocator().owners.values()) if id(each) not in before):
                break
            time.sleep(0.05)  # the scheduler's thread ends
        else:
            pytest.fail("a store is not free")
    finally:
        gc.enable()
        model.close()
