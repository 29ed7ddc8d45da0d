"""Memory that is given back: what threads freed is resident no longer, or is used by the next one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from toolgrammar.core.basics.resident import LEAST_BYTES

#: A process whose threads take turns: each fills memory and frees it, but for small pieces in between. It prints how
#: much of it is resident in the end.
TURNS = """
import sys, threading
import numpy as np
from toolgrammar.adapters.cli.memory import keep_little

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "little":
    keep_little()
turn, kept = threading.Lock(), []
ready = threading.Barrier(8)

def fill(size):
    ready.wait()
    with turn:
        arrays = []
        for _ in range(2**26 // size):
            arrays.append(np.ones(size, np.uint8))
            kept.append(bytearray(2_000))
    del arrays
    ready.wait()

for size in (2**16, 2**19):
    before = resident()
    threads = [threading.Thread(target=fill, args=(size,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(resident() - before)
"""


def grown(mode: str, **environment: str) -> list[int]:
    """Bytes by which the process grows, for small arrays and for large ones."""
    command = [sys.executable, "-c", TURNS, mode]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, env={**env, **environment})
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this system does not say what is resident")
@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ()), reason="no glibc")
def test_what_threads_freed_is_not_kept_for_each_of_them() -> None:
    """After eight threads that each had 64 MB in turn, little more is resident than one of them had; by default, glibc
    keeps what each had. A variable of the environment has precedence."""
    small, large = grown("little")
    assert small < 1.5 * 2**26 and large < 2 * LEAST_BYTES
    assert grown("default")[0] > 4 * small
    assert grown("little", MALLOC_ARENA_MAX="8")[0] > 4 * small
