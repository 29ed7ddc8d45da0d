"""Every family of transformers models that we name: pieces, crops, reused beginnings and batches, against the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from packaging.version import Version

from toolgrammar.core.models.prefix_cache import PrefixCache
from toolgrammar.core.models.sessions import OpenSessions
from toolgrammar.core.models.transformers.backend import HFSession, _pass_packed, _Traits
from toolgrammar.core.models.transformers.packed import packing_fault

from ....devices import DEVICE

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


WINDOW = 256
SHAPE = {"vocab_size": 300, "initializer_range": 0.3, "eos_token_id": 1, "bos_token_id": 1, "pad_token_id": 1}
ROTARY = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": WINDOW,
}
GROUPED = {**ROTARY, "num_key_value_heads": 2}
OLD = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": WINDOW}
PLAIN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}

#: Configuration class, class of the model, shape.
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", GROUPED),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", OLD),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", ROTARY),
    "gpt_neo": (
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        {
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "max_position_embeddings": WINDOW,
            "window_size": 8,
        },
    ),
    "gptj": ("GPTJConfig", "GPTJForCausalLM", {**OLD, "rotary_dim": 4}),
    "gpt_bigcode": ("GPTBigCodeConfig", "GPTBigCodeForCausalLM", OLD),
    "codegen": ("CodeGenConfig", "CodeGenForCausalLM", {**OLD, "rotary_dim": 4}),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        {**PLAIN, "ffn_dim": 48, "max_position_embeddings": WINDOW, "word_embed_proj_dim": 32},
    ),
    "xglm": (
        "XGLMConfig",
        "XGLMForCausalLM",
        {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": WINDOW},
    ),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "mpt": ("MptConfig", "MptForCausalLM", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": WINDOW}),
    "falcon": ("FalconConfig", "FalconForCausalLM", {**PLAIN, "alibi": False}),
    "falcon_alibi": ("FalconConfig", "FalconForCausalLM", {**PLAIN, "alibi": True}),
    "phi": ("PhiConfig", "PhiForCausalLM", GROUPED),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", GROUPED),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**GROUPED, "head_dim": 8}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 8}),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 8}),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**GROUPED, "sliding_window": None}),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", {**GROUPED, "num_local_experts": 4}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", GROUPED),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        "Qwen2MoeForCausalLM",
        {**GROUPED, **EXPERTS, "shared_expert_intermediate_size": 16},
    ),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**GROUPED, "head_dim": 8}),
    "qwen3_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", {**GROUPED, **EXPERTS, "head_dim": 8}),
    "qwen3_next": (
        "Qwen3NextConfig",
        "Qwen3NextForCausalLM",
        {
            **GROUPED,
            **EXPERTS,
            "head_dim": 8,
            "shared_expert_intermediate_size": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", GROUPED),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", GROUPED),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", GROUPED),
    "cohere": ("CohereConfig", "CohereForCausalLM", GROUPED),
    "granite": ("GraniteConfig", "GraniteForCausalLM", GROUPED),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", GROUPED),
    "deepseek_v3": (
        "DeepseekV3Config",
        "DeepseekV3ForCausalLM",
        {
            **ROTARY,
            "num_key_value_heads": 4,
            "n_routed_experts": 4,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "qk_nope_head_dim": 8,
            "first_k_dense_replace": 1,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
        },
    ),
    "gpt_oss": (
        "GptOssConfig",
        "GptOssForCausalLM",
        {**GROUPED, "head_dim": 8, "num_local_experts": 4, "sliding_window": 8},
    ),
    "lfm2": ("Lfm2Config", "Lfm2ForCausalLM", {**GROUPED, "layer_types": ["conv", "full_attention"]}),
    "jamba": (
        "JambaConfig",
        "JambaForCausalLM",
        {
            **GROUPED,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "mamba_d_state": 4,
            "use_mamba_kernels": False,
        },
    ),
    "mamba": ("MambaConfig", "MambaForCausalLM", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}),
    "rwkv": (
        "RwkvConfig",
        "RwkvForCausalLM",
        {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32, "context_length": 64},
    ),
}


#: Families whose sequences cannot share forward passes: they have attention code of their own, or a recurrent state.
APART = {
    *("gpt_neo", "gptj", "codegen", "xglm", "bloom", "mpt", "falcon", "falcon_alibi"),
    *("qwen3_next", "deepseek_v3", "lfm2", "jamba", "mamba", "rwkv"),
}
if Version(transformers.__version__) >= Version("5.24"):  # which calls the registered attention functions in these too
    APART -= {"gptj", "codegen"}


class Checked:
    """A model of random weights, and what it must say."""

    def __init__(self, family: str) -> None:
        configuration, kind, shape = FAMILIES[family]
        if not hasattr(transformers, kind):
            pytest.skip(f"this transformers has no {kind}")
        torch.manual_seed(0)
        self.model = (
            getattr(transformers, kind)(getattr(transformers, configuration)(**SHAPE, **shape)).to(DEVICE).eval()
        )

    def start(self) -> HFSession:
        """A session."""
        return HFSession(self.model, DEVICE, WINDOW, _Traits(OpenSessions(), self.model.config.vocab_size))

    def expect(self, found: Any, ids: list[int]) -> None:
        """Compare logits with those of one plain forward pass."""
        with torch.inference_mode():
            expected = (
                self.model(input_ids=torch.tensor([ids], device=DEVICE), use_cache=False)
                .logits[0, -1]
                .float()
                .cpu()
                .numpy()
            )
        np.testing.assert_allclose(found, expected, atol=1e-3 * max(1.0, np.abs(expected).max()))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_model(family: str) -> None:
    """However the tokens came into a session, a reused one or a row of a batch, its logits are the model's."""
    checked = Checked(family)
    random = np.random.default_rng(0)

    def some(most: int) -> list[int]:
        return [int(token) for token in random.integers(2, 300, int(random.integers(1, most)))]

    session, ids = checked.start(), list[int]()
    for _ in range(14):
        if ids and random.random() < 0.4:
            del ids[int(random.integers(0, len(ids) + 1)) :]
            session.crop(len(ids))
        new = some(9)
        ids += new
        checked.expect(session.extend(new), ids)

    cache, base = PrefixCache(10**9), some(2) * 30
    for tail in ([], some(9), some(9), some(20)):
        reusing = cache.start(checked.start)
        checked.expect(reusing.extend(base + tail), base + tail)
        checked.expect(reusing.extend([5, 6]), [*base, *tail, 5, 6])
        reusing.close()

    assert (packing_fault(checked.model) is None) == (family not in APART)
    if family in APART:
        return
    texts: dict[int, list[int]] = {}
    sessions: dict[int, HFSession] = {}
    for step in range(8):
        rows = []
        for key, text in texts.items():
            if random.random() < 0.3:
                del text[int(random.integers(0, len(text) + 1)) :]
                sessions[key].crop(len(text))
            if random.random() < 0.8:
                rows.append((key, some(5)))
        if len(texts) < 4:
            rows += [(100 * step + number, base[:20] + some(9)) for number in range(2)]
        for key, new in rows:
            texts.setdefault(key, []).extend(new)
            sessions.setdefault(key, checked.start())
        mine = [sessions[key] for key, _ in rows]
        for (key, _), logits in zip(rows, _pass_packed(checked.model, mine, [list(texts[key]) for key, _ in rows])):
            checked.expect(logits, texts[key])
