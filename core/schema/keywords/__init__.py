"""JSON Schema keywords: a row for each, with its data and its functions, in a module for each kind of value.

`row` defines a row, `shapes` the checks of keyword values by their shape, `values` checks that these share, and
`refusals` the errors of keywords that cannot be enforced. `objects`, `arrays`, `strings`, `numbers` and
`any_value` have the keywords that constrain values of these types (`counts`: minima and maxima of counts), `applied`
has the keywords that apply schemas to the same value, `live` ours for values that a program or a conversation gives,
and `other` the keywords that constrain nothing.
`toolgrammar.core.schema.read.keywords` joins them to one table.
"""

from __future__ import annotations

__all__: list[str] = []
