"""The embedded model in double precision, for tests that compare what is drawn alone and in shared passes."""

from __future__ import annotations

import numpy as np

from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend


def in_double_precision() -> EmbeddedBackend:
    """Return the embedded model, so precise that the order of sums, another in a shared pass, changes no draw."""
    backend = EmbeddedBackend()
    network = backend.network
    assert network is not None
    for part in (network, *network.layers):
        for name, value in vars(part).items():
            if isinstance(value, np.ndarray):
                setattr(part, name, value.astype(np.float64))
    return backend
