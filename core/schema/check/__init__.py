"""Checks before lowering: well formed, enforceable, satisfiable."""
