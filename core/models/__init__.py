"""Models: what a model must show (`protocol`), and the backends that show it."""
