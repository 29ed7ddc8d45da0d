"""Lazy byte automaton over the nodes of a language. It knows no vocabulary."""
