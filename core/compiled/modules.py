"""The list of compiled modules, for ``setup.py``, the interpreted form, and the tests.

Names are relative to ``toolgrammar.core``.
"""

from __future__ import annotations

#: Modules in Cython's pure-Python mode, each compiled to an extension of the same name in the same folder.
COMPILED = (
    "compiled.arrays",
    "compiled.int_map",
    "language.frontier",
    "language.node_search",
    "language.node_store",
    "language.nodes",
    "language.term_store",
    "language.terms",
    "dependent.written",
    "regex.assertions",
    "regex.parser",
    "regex.syntax",
    "automaton.byte_rows",
    "automaton.positions",
    "automaton.states",
    "masks.class_survey",
    "masks.comparison",
    "masks.fewest_tokens",
    "masks.mask_engine",
    "masks.mask_logits",
    "masks.masks",
    "masks.matcher",
    "masks.subtrees",
    "masks.token_costs",
    "masks.token_set",
    "masks.token_sets",
    "masks.trie",
    "masks.trie_walk",
    "repair.readings",
    "repair.search",
    "models.numpy_llama.block_rows",
)

#: Modules of integer constants, which are C constants for compiled modules.
CONSTANTS = ("automaton.encoding", "language.node_kinds", "language.term_kinds")
