"""Languages of numbers, strings and formats, and the spelling of values."""
