"""The server over a transformers model: clients at the same time share forward passes, and get what each gets alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from jsonschema import Draft202012Validator

from toolgrammar.adapters.openai import async_client
from toolgrammar.adapters.server import Limits
from toolgrammar.core import Model, load_model

from .conftest import openai_tool

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SCHEMA: Any = {
    "type": "object",
    "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{3}$"}, "seats": {"enum": [1, 2, 3]}},
    "required": ["code", "seats"],
    "additionalProperties": False,
}
CLIENTS = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """A Llama of random weights with a byte tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    folder: Path = tmp_path_factory.mktemp("llama")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={name: number for number, name in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken("<|end|>", special=True)])
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>").save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(alphabet) + 1, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    with load_model(f"hf:{folder}") as loaded:
        yield loaded


async def ask(client: openai.AsyncOpenAI, number: int) -> tuple[str, str]:
    """One client's call: a whole answer, or a stream; a seed and a prompt of its own."""
    asked: Any = {
        "model": "m", "messages": [{"role": "user", "content": f"Book number {number}."}], "seed": number,
        "temperature": 1.0, "tools": [openai_tool("book", SCHEMA)], "tool_choice": "required",
        "parallel_tool_calls": False, "max_tokens": 200,
    }  # fmt: skip
    if number % 2:
        (call,) = (await client.chat.completions.create(**asked)).choices[0].message.tool_calls or ()
        return call.function.name, call.function.arguments  # type: ignore[union-attr]
    name = arguments = ""
    async for chunk in await client.chat.completions.create(**asked, stream=True):
        for one in chunk.choices[0].delta.tool_calls or ():
            assert one.function is not None
            name += one.function.name or ""
            arguments += one.function.arguments or ""
    return name, arguments


def test_clients_share_forward_passes(model: Model) -> None:
    """Eight at a time, four of them streamed: each valid and the same as alone, in at most half the forward passes."""
    backend: Any = model.backend  # type: ignore[attr-defined]
    rows: list[int] = []
    handle = backend._model.register_forward_pre_hook(
        lambda module, args, kwargs: rows.append(kwargs["input_ids"].numel()), with_kwargs=True
    )

    async def run() -> tuple[list[Any], int, list[Any], int]:
        async with async_client({"m": model}, limits=Limits(max_running=CLIENTS)) as client:
            alone = [await ask(client, number) for number in range(CLIENTS)]
            before = len(rows)
            rows.clear()
            together = await asyncio.gather(*(ask(client, number) for number in range(CLIENTS)))
            return alone, before, together, len(rows)

    try:
        alone, before, together, passes = asyncio.run(run())
    finally:
        handle.remove()
    assert together == alone and passes * 2 <= before
    for name, arguments in together:
        assert name == "book"
        Draft202012Validator(SCHEMA).validate(json.loads(arguments))


def test_a_client_that_leaves_the_batch_does_not_disturb_it(model: Model) -> None:
    """One of them breaks off in the middle; the others get what they get alone, and the model goes on serving."""

    async def leave(client: openai.AsyncOpenAI) -> None:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Talk."}], "max_tokens": 1500}
        stream = await client.chat.completions.create(**asked, temperature=1.0, seed=1, stream=True)
        async for _ in stream:
            break
        await stream.close()

    async def run() -> None:
        async with async_client({"m": model}, limits=Limits(max_running=CLIENTS)) as client:
            alone = [await ask(client, number) for number in range(3)]
            together = await asyncio.gather(leave(client), *(ask(client, number) for number in range(3)))
            assert together[1:] == alone
            assert await ask(client, 1) == alone[1]

    asyncio.run(run())
