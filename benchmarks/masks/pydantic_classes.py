"""Whether what is written under the Pydantic classes of installed packages passes their own validation.

    python -m benchmarks masks/pydantic_classes openai mcp langchain_core --walks 6 --most 200

Every Pydantic class of the packages is compiled; random texts of its grammar are given to ``model_validate_json``. What
is refused by a validator that the class's author wrote (any Python function in the class's schema) is counted
apart, as are classes that cannot be compiled, with the reasons.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import core_schema

from toolgrammar.core import Grammar, ToolGrammarError, Vocabulary

BYTES = Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[256])

#: Kinds of errors that Pydantic's own validation raises; all others are of functions of Python.
OWN = set(get_args(core_schema.ErrorType)) - {"value_error", "assertion_error"}


class TooSlow(Exception):
    """One class took longer than it may."""


def classes_of(package: str, seconds: float = 60.0) -> list[type[BaseModel]]:
    """Return the Pydantic classes that the modules of a package define."""
    found: dict[str, type[BaseModel]] = {}
    until = time.monotonic() + seconds
    for module in _modules(package):
        for value in list(vars(module).values()):
            if not (inspect.isclass(value) and issubclass(value, BaseModel)) or value in (BaseModel, RootModel):
                continue
            if value.__module__.split(".")[0] == package.split(".")[0] and "[" not in value.__name__:
                found[f"{value.__module__}.{value.__qualname__}"] = value
        if time.monotonic() > until:
            break
    return [found[name] for name in sorted(found)]


def _modules(package: str) -> Iterator[Any]:
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.walk_packages(getattr(root, "__path__", []), f"{package}.", onerror=lambda name: None):
        if any(part.startswith(("test", "_test", "__main__")) for part in info.name.split(".")):
            continue
        try:
            yield importlib.import_module(info.name)
        except BaseException:  # modules of optional dependencies
            continue


def walk(grammar: Grammar, seed: int) -> bytes:
    """Return a random text of a grammar: some random steps, and then the shortest way to the end."""
    draw = random.Random(seed)
    matcher = grammar.bind(BYTES).matcher()
    data = b""
    for _ in range(draw.choice([0, 10, 40, 120])):
        allowed = [token for token in matcher.allowed_tokens() if token < 256]
        few = [token for token in allowed if 32 <= token < 127] if draw.random() < 0.95 else allowed
        if not allowed or (matcher.is_accepting and draw.random() < 0.2):
            break
        token = draw.choice(few or allowed)
        if not matcher.accept(token):
            raise AssertionError(f"the mask allows what is refused after {data!r}")
        data += bytes([token])
    return data + matcher.shortest_completion()


def is_custom(error: ValidationError) -> bool:
    """Return whether every problem comes from a function of Python."""
    return all(each["type"] not in OWN for each in error.errors(include_url=False))


def judge(cls: type[BaseModel], walks: int, limit: int = 20) -> tuple[str, str]:
    """Return what came of one class: ``passed``, ``custom``, ``refused``, ``slow`` or ``wrong``, and the reason."""

    def expire(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(limit)
    custom = ""
    try:
        try:
            grammar = Grammar.from_json_schema(cls, additional_properties=False)
            grammar.check()
        except ToolGrammarError as error:
            return "refused", f"{type(error).__name__}: {error.message}"
        except TooSlow:
            raise
        except Exception as error:  # Pydantic has no schema for it
            return "no schema", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        for seed in range(walks):
            text = walk(grammar, seed)
            try:
                cls.model_validate_json(text)
            except ValidationError as error:
                if not is_custom(error):
                    return "wrong", f"{text.decode()[:300]} -> {error.errors(include_url=False)[0]}"[:600]
                custom = str(error.errors(include_url=False)[0]["msg"])
            except (TypeError, KeyError, AttributeError, NotImplementedError, RecursionError) as error:
                custom = f"a validator raised {type(error).__name__}"
        return ("custom", custom) if custom else ("passed", "")
    except TooSlow:
        return "slow", f"more than {limit} s"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: list[str] | None = None) -> int:
    """Judge the packages, print a table and the wrong ones; 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--walks", type=int, default=6, help="texts for each class")
    parser.add_argument("--most", type=int, default=10_000, help="classes of each package")
    parser.add_argument("--json", help="write the counts to this file")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table: dict[str, Counter[str]] = {}
    for package in options.packages:
        try:
            found = classes_of(package)
        except BaseException as error:
            print(f"{package}: cannot be imported ({type(error).__name__}: {error})")
            continue
        random.Random(0).shuffle(found)
        counts = table[package] = Counter()
        reasons: Counter[str] = Counter()
        for cls in found[: options.most]:
            verdict, reason = judge(cls, options.walks)
            counts[verdict] += 1
            if verdict in ("wrong", "slow"):
                print(f"{verdict} {cls.__module__}.{cls.__qualname__}: {reason}", flush=True)
            elif verdict in ("refused", "no schema"):
                reasons[f"{verdict}: {reason[:150]}"] += 1
        print(f"{package}: {len(found[: options.most])} classes, {dict(counts)}", flush=True)
        for reason, count in reasons.most_common(8):
            print(f"    {count} {reason}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({name: dict(counts) for name, counts in table.items()}, file, indent=1)
    return 1 if any(counts["wrong"] for counts in table.values()) else 0
