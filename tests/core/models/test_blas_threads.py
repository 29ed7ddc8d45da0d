"""The bound on the threads of BLAS holds while forward passes run, and is gone after the last of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import load_model
from toolgrammar.core.models.blas_threads import blas_threads
from toolgrammar.core.models.numpy_llama import network

threadpoolctl = pytest.importorskip("threadpoolctl", reason="threadpoolctl is not installed")


@pytest.fixture(autouse=True)
def _several_threads() -> Iterator[None]:
    """BLAS has two threads outside of a bound, also where the processes of the tests have one each."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert threads() <= {2}
        yield


def threads() -> set[int]:
    """The numbers of threads that the loaded BLAS libraries use now."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}


def test_the_last_restores() -> None:
    """Bounds that overlap end with the last of them, in whatever order they end."""
    before = threads()
    first, second = blas_threads(1), blas_threads(1)
    with first:
        assert threads() <= {1}
        second.__enter__()
    assert threads() <= {1}
    second.__exit__(None, None, None)
    assert threads() == before


def test_an_error_restores() -> None:
    """An error in a forward pass ends its bound."""
    before = threads()
    with pytest.raises(ZeroDivisionError), blas_threads(1):
        raise ZeroDivisionError
    assert threads() == before


def test_threads_bound_one_after_the_other() -> None:
    """The end of a bound lets another thread set the next one: threadpoolctl leaves it to one thread at a time."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is None:
        pytest.skip("this threadpoolctl lets every thread set a bound")
    clear(force=True)  # the fixture is of the main thread
    seen: list[set[int]] = []

    def bounded() -> None:
        with blas_threads(1):
            seen.append(threads())

    for _ in range(2):
        thread = threading.Thread(target=bounded)
        thread.start()
        thread.join()
    assert len(seen) == 2 and all(each <= {1} for each in seen)


def test_a_forward_pass_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forward pass runs in one thread, unless more are asked for."""
    seen = []

    def forward(network: Any, rows: Any) -> Any:
        seen.append(threads())
        return np.zeros((len(rows[0][1]), network.config.dim), np.float32)

    monkeypatch.setattr(network, "_forward", forward)
    with load_model("embedded", context_window=64, max_rows=1) as model:
        model.generate("Hello", max_tokens=1)
    assert seen and all(each <= {1} for each in seen)
