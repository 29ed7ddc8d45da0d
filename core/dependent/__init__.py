"""Dependent nodes: where a grammar depends on the text so far (names that must not repeat, `uniqueItems`).

This is the one place where the text takes part (data-dependent grammars: Jim, Mandelbaum, Walker 2010, "Semantics and
algorithms for data-dependent grammars"); the states of the automaton stay independent of it. The automaton and the
masks ask three questions about a dependent node:

- `Resolution.static`: which language bounds it, whatever the text?
- `Resolution.resolve`: which language has it after this text?
- `Written.endings`: after which continuations of this text is there no language, as they repeat a name?

The contract:

- A state is *open* while it has a thread at a dependent node. Only `Resolution` meets open states; what it returns is
  closed.
- ``resolve(text)`` is a function of the text alone: it does not matter in which pieces the text was written, what was
  undone before, or which fork asks. It returns a part of the static language.
- Every closed state has a finishing text. A node that ends a name (`unless_repeated`) forbids it if it is a repeated
  one; it stands only after names of a *roomy* language, of which others go on (see `is_roomy`). Other nodes forbid some
  continuations of the text, of which others are left.
- A node that ends a name adds no states: only tokens that end a repeated name are tried. Others add a state for each
  set of earlier values, also for those that tokens of one mask would write.
"""

from __future__ import annotations

__all__: list[str] = []
