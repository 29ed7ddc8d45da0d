"""Lowering of conjunctions to nodes of the language."""
