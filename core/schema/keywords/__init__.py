"""JSON Schema keywords: a row for each, with its data and its functions, in a module for each kind of value.

`row` says what a row has. `objects`, `arrays`, `strings`, `numbers` and `any_value` have the keywords that constrain
values of these types, `applied` those that apply schemas to the same value, and `other` those that constrain
nothing. `toolgrammar.core.schema.read.keywords` puts them together to one table.
"""

from __future__ import annotations

__all__: list[str] = []
