"""Reading of JSON Schema: the options, references, and keys by which schemas are compared.

References are followed inside the document and the given registry, never over the network.
"""

from __future__ import annotations

__all__: list[str] = []
