"""Dependent nodes: where a grammar depends on the text so far (names that must not repeat, `uniqueItems`, `x-values`,
the names that a program has bound).

Only this package uses the text so far (data-dependent grammars: Jim, Mandelbaum, Walker 2010, "Semantics and algorithms
for data-dependent grammars"); the states of the automaton do not depend on it. The automaton and the masks ask three
questions about a dependent node:

- `Resolution.static`: which language bounds it for every text?
- `Resolution.resolve`: which language does it have after this text?
- `Written.endings`: which continuations of this text does it forbid, because they repeat a name?

The contract:

- A state is *open* if it has a thread at a dependent node, else *closed*. Only `Resolution` handles open states; it
  returns closed ones. The first state of a text, and that after a control token, are closed too.
- ``resolve(text)`` is a function of the text alone, independent of the pieces in which it was written, of undone tokens
  and of forks. It returns a subset of the static language. Live values (`live.py`) are also a function of what their
  callables answered for this text, once; in a completion, where they are not known, of the room that is kept for them.
- Every closed state has a completion. A node that ends a name (`unless_repeated`) forbids it if it is repeated; it is
  used only after names of a *roomy* language, in which every prefix has infinitely many continuations (`is_roomy`).
  So is the node after the deciding member of an object (`DistinctObjects`), which may forbid some texts of its rest.
  A node of live values is where other continuations are left, or raises an error if there are none (`ALL`): so tokens
  that end at it are tested too. Other nodes forbid some continuations of the text, but never all.
- A node that ends a name adds no states: only tokens that end a repeated name are tested. The node after a deciding
  member adds one for each set of rivals: none for an object without rivals. Other nodes add a state for each set of
  earlier values, including those that the tokens of one mask would write.
"""

from __future__ import annotations

__all__: list[str] = []
