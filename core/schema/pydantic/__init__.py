"""JSON Schemas of Pydantic types, as strict as Pydantic's own validation of JSON text.

Where Pydantic's own ``model_json_schema`` says less than its validation asks, the difference is added here.
"""

from __future__ import annotations

__all__: list[str] = []
