"""Wire formats whose arguments are one JSON object."""
