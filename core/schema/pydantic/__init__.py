"""JSON Schemas of Pydantic types, as strict as Pydantic's own validation."""
