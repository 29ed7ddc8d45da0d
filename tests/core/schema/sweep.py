"""Judge what is written under random schemas (see ``writing.py``) for as long as is wanted, one schema for each seed.

    python -m tests.core.schema.sweep [--first SEED] [--seconds SECONDS]

Faults are told as they are found; the last line says how many schemas were judged. ``.ci/sanitize`` runs it on modules
that are built with the sanitizers of the C compiler.
"""

from __future__ import annotations

import argparse
import time

from .writing import Tally, WritingError, judge_seed


def main() -> int:
    """Return the exit status: 1 if there are faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=10_000_000, help="the first seed")
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    tally = Tally()
    faults, seed, end = 0, options.first, time.monotonic() + options.seconds
    while time.monotonic() < end:
        try:
            judge_seed(seed, tally)
        except WritingError as error:
            faults += 1
            print(f"seed {seed}: {error}", flush=True)
        seed += 1
    print(f"{seed - options.first:,} schemas, {faults} faults, {tally.refused} refused; {tally}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
