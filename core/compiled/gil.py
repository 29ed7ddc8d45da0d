"""The rule of concurrency of the kernel, and whether this interpreter has a GIL.

Which thread may touch an object:

- A *store* (`LazyAutomaton`: its terms, nodes, rows and states) and the `MaskEngine`s over it: only the thread that
  holds the store's lock. All grammars of a store share its states, so one derivation runs at a time.
- A `VocabularyIndex`, including its `NameTokens`: every thread. Its trie never changes; a token set or survey does not
  change once it is memoised. Memos with a bound are `RecentMemo`s, which have a lock of their own; the token sets that
  all grammars share are entries of a dictionary that are added one at a time and never removed.
- A `Matcher`, a `MaskTable`: the one thread that uses it.
- Everything else that threads share (`Grammar`, `Constraint`, `Vocabulary`, caches) is written under its own lock, or
  by the assignment of one attribute.

One exception, only with a GIL: a memoised mask or step is looked up without the store's lock, in a single call of
compiled code, during which no other thread runs. Without a GIL, such a call takes the lock. Grammars with different
stores never wait for each other.

With a GIL, walks of the trie and derivations hold it. Their loops are not free of Python objects: a step to a state
that is not yet known derives it, which allocates by Python's allocator, enters it in dictionaries and may call the
grammar. And a thread that released the GIL gets it back only after the switch interval (`sys.getswitchinterval`, 5 ms)
if another one runs Python code: several hundred times the mean of a mask. So it is released only around copies for a
whole batch (`fill_masks`, `apply_mask`) and products of matrices. Threads that shall run at the same time need an
interpreter without a GIL.
"""

from __future__ import annotations

import sys

#: True if one thread runs at a time: always, but for CPython built without a GIL (PEP 703).
HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
