"""Reading of JSON Schema: options, references, and keys by which schemas are compared."""
