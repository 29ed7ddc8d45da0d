"""The embedded model: a small transformer in NumPy, for demonstrations and tests."""
