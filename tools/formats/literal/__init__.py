"""Wire formats whose arguments are literals: of Python, or of Gemma."""
