"""A process that is forked while other threads work can work itself, or says why not; it never waits for ever."""

from __future__ import annotations

import ast
import importlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import ConstraintCache, Grammar, ModelError, load_model
from toolgrammar.core.basics import forks
from toolgrammar.core.basics.pauses import ended_by

from ...vocabularies import BYTES

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

ROOT = Path(__file__).parents[3]

#: Locks that are only tried, or that forks renew by themselves.
KNOWN_APART = {"core/basics/pauses.py", "core/generation/write.py", "core/masks/warming.py"}


def in_child(work: Callable[[], object]) -> str:
    """Do some work in a forked process; return what it raised, ``""`` for nothing, or its signal."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        signal.alarm(60)
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    _, status = os.waitpid(process, 0)
    return text or ("" if status == 0 else f"status {status}")


def _schema(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string", "maxLength": 9}}, "required": [name]}


def test_a_forked_process_answers_while_others_generate() -> None:
    """Whatever three threads are in the midst of, a child of that moment answers, and so do they afterwards."""
    model = load_model("embedded")
    is_over = False
    errors: list[BaseException] = []

    def work(number: int) -> None:
        done = 0
        while not is_over:
            done += 1
            try:
                model.generate_json("x", _schema(f"a{number}_{done}"), max_tokens=40, allow_cut=True)
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        outcomes = [
            in_child(lambda: model.generate_json("x", _schema("a"), max_tokens=40, allow_cut=True)) for _ in range(6)
        ]
    finally:
        is_over = True
        for thread in threads:
            thread.join(60)
    assert outcomes == [""] * 6 and not errors


def test_a_fork_waits_for_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that another thread imports is whole in the forked process, which does not wait for that thread."""
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(1)\nVALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> None:
        assert importlib.import_module("slow_to_import").VALUE == 7

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    assert in_child(work) == ""
    thread.join()


def test_what_another_thread_holds_for_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a thread holds a lock past the wait, the child is told so where it needs the lock, and works elsewhere."""
    monkeypatch.setattr(forks, "WAIT_SECONDS", 0.05)
    cache = ConstraintCache()
    schema = {"type": "string", "pattern": "^(a|b)*a(a|b){9}$"}
    grammar = Grammar.from_json_schema(schema)
    begun, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        is_over.wait(60)

    def work() -> None:
        with ended_by(hold):
            cache.bind(grammar, BYTES)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    try:
        refused = in_child(lambda: grammar.matches("x"))
        others = in_child(lambda: cache.from_json_schema(schema, BYTES).matcher())  # nobody makes it in the child
        again = in_child(lambda: ConstraintCache().from_json_schema(schema, BYTES))
    finally:
        is_over.set()
        thread.join(60)
    assert refused.startswith(ModelError.__name__) and "forked" in refused
    assert others == again == ""
    assert grammar.bind(BYTES).matcher().accept_bytes(b'"ab')


def test_forks_know_every_lock() -> None:
    """No lock of the code is made without its owner's name for it."""
    unknown = []
    for path in (path for room in ("core", "tools", "adapters") for path in (ROOT / room).rglob("*.py")):
        tree: list[Any] = list(ast.walk(ast.parse(path.read_text())))
        known = {id(call.args[2]) for call in tree if _calls(call, "shared_lock")}
        for call in tree:
            is_lock = _calls(call, "Lock") or _calls(call, "RLock")
            if is_lock and id(call) not in known and str(path.relative_to(ROOT)) not in KNOWN_APART:
                unknown.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert not unknown


def _calls(node: Any, name: str) -> bool:
    return isinstance(node, ast.Call) and (
        getattr(node.func, "id", None) == name or getattr(node.func, "attr", None) == name
    )
