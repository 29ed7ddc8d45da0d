"""Tiny vision models of transformers with random weights, each with its real processor."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
}
TOWER = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def png(width: int, height: int, seed: int = 0, mode: str = "RGB", form: str = "PNG", **options: Any) -> bytes:
    """A file of noise."""
    from PIL import Image

    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, form, **options)
    return file.getvalue()


def says_size(width: int, height: int) -> bytes:
    """The file of one pixel of which its head says another size."""
    file = bytearray(png(1, 1))
    file[16:24] = struct.pack(">II", width, height)
    file[29:33] = struct.pack(">I", zlib.crc32(file[12:29]))
    return bytes(file)


def _tokenizer(*special: str, **named: str) -> Any:
    """A tokenizer of bytes, with control tokens and the names that a processor knows some of them by."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {char: number for number, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    raw = Tokenizer(models.BPE(vocabulary, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>", extra_special_tokens=named
    )
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>", *special]})
    return made


def _template(image: str, parts_only: bool = False) -> str:
    """ChatML; ``parts_only``: a content that is a text is lost, as templates of vision models lose it."""
    parts = "{% for c in m.content %}{% if c.type == 'image' %}IMAGE{% else %}{{ c.text }}{% endif %}{% endfor %}"
    content = (
        parts if parts_only else f"{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{parts}{{% endif %}}"
    )
    turns = f"{{% for m in messages %}}<|im_start|>{{{{ m.role }}}}\n{content}<|im_end|>\n{{% endfor %}}"
    return turns.replace("IMAGE", image) + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


def _llava() -> tuple[Any, Any]:
    import transformers as hf

    own = _tokenizer("<image>", image_token="<image>")
    images = hf.LlavaImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    processor = hf.LlavaProcessor(
        image_processor=images,
        tokenizer=own,
        patch_size=14,
        vision_feature_select_strategy="default",
        chat_template=_template("<image>", parts_only=True),
        num_additional_image_tokens=1,
    )
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(vocab_size=len(own), **TEXT),
        vision_config=hf.CLIPVisionConfig(image_size=28, patch_size=14, projection_dim=32, **TOWER),
        image_token_id=own.convert_tokens_to_ids("<image>"),
    )
    return processor, hf.LlavaForConditionalGeneration(config)


def _llava_next() -> tuple[Any, Any]:
    import transformers as hf

    own = _tokenizer("<image>", image_token="<image>")
    grid = [[28, 56], [56, 28], [56, 56]]
    processor = hf.LlavaNextProcessor(
        image_processor=hf.LlavaNextImageProcessorPil(
            size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}, image_grid_pinpoints=grid
        ),
        tokenizer=own,
        patch_size=14,
        vision_feature_select_strategy="default",
        chat_template=_template("<image>"),
        num_additional_image_tokens=1,
    )
    config = hf.LlavaNextConfig(
        text_config=hf.LlamaConfig(vocab_size=len(own), **TEXT),
        vision_config=hf.CLIPVisionConfig(image_size=28, patch_size=14, projection_dim=32, **TOWER),
        image_token_id=own.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=grid,
    )
    return processor, hf.LlavaNextForConditionalGeneration(config)


def _idefics3(kind: str, template: str) -> tuple[Any, Any]:
    """An Idefics 3, or a SmolVLM, which reads images in the same way."""
    import transformers as hf
    from transformers.models.smolvlm import processing_smolvlm

    from toolgrammar.core.models.transformers.vision import images_only

    # SmolVLM's processor says with it how many frames a video has, and is not made without it.
    processing_smolvlm.num2words = processing_smolvlm.num2words or str
    rows = [f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)]
    named = {
        "image_token": "<image>",
        "fake_image_token": "<fake_token_around_image>",
        "global_image_token": "<global-img>",
        "end_of_utterance_token": "<end_of_utterance>",
    }
    own = _tokenizer(*named.values(), *rows, **named)
    read = getattr(hf, f"{kind}ImageProcessorPil")
    processor = images_only(getattr(hf, f"{kind}Processor"))(
        image_processor=read(size={"longest_edge": 112}, max_image_size={"longest_edge": 56}),
        tokenizer=own,
        image_seq_len=4,
        chat_template=template,
        **({"video_processor": None} if kind == "SmolVLM" else {}),
    )
    config = getattr(hf, f"{kind}Config")(
        text_config={"model_type": "llama", "vocab_size": len(own), "pad_token_id": own.pad_token_id, **TEXT},
        vision_config={"image_size": 56, "patch_size": 14, **TOWER},
        image_token_id=own.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    return processor, getattr(hf, f"{kind}ForConditionalGeneration")(config)


def _gemma3() -> tuple[Any, Any]:
    import transformers as hf

    named = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    own = _tokenizer("<bos>", *named.values(), **named)
    own.bos_token = "<bos>"
    ids = own.convert_tokens_to_ids
    processor = hf.Gemma3Processor(
        image_processor=hf.Gemma3ImageProcessorPil(size={"height": 56, "width": 56}),
        tokenizer=own,
        image_seq_length=4,
        chat_template="<bos>" + _template("<start_of_image>"),
    )
    layers = ["sliding_attention", "full_attention"]
    config = hf.Gemma3Config(
        text_config={"vocab_size": len(own), "head_dim": 8, "sliding_window": 16, "layer_types": layers, **TEXT},
        vision_config={"image_size": 56, "patch_size": 14, **TOWER},
        mm_tokens_per_image=4,
        image_token_id=ids("<image_soft_token>"),
        boi_token_index=ids("<start_of_image>"),
        eoi_token_index=ids("<end_of_image>"),
    )
    return processor, hf.Gemma3ForConditionalGeneration(config)


def _internvl() -> tuple[Any, Any]:
    import transformers as hf

    from toolgrammar.core.models.transformers.vision import images_only

    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    own = _tokenizer(*named.values(), **named)
    size = {"height": 56, "width": 56}
    processor = images_only(hf.InternVLProcessor)(
        image_processor=hf.GotOcr2ImageProcessorPil(size=size, crop_to_patches=True, min_patches=1, max_patches=4),
        tokenizer=own,
        image_seq_length=4,
        chat_template=_template("<IMG_CONTEXT>"),
    )
    config = hf.InternVLConfig(
        text_config={"model_type": "qwen2", "vocab_size": len(own), **TEXT},
        vision_config={"image_size": [56, 56], "patch_size": [14, 14], **TOWER},
        image_token_id=own.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
        downsample_ratio=0.5,
    )
    return processor, hf.InternVLForConditionalGeneration(config)


def _gemma4() -> tuple[Any, Any]:
    import transformers as hf

    from toolgrammar.core.models.transformers.vision import images_only

    named = {
        "image_token": "<|image|>",
        "boi_token": "<|image>",
        "eoi_token": "<image|>",
        "audio_token": "<|audio|>",
        "boa_token": "<|audio>",
        "eoa_token": "<audio|>",
    }
    own = _tokenizer("<bos>", *named.values(), "<|video|>", **named)
    own.bos_token = "<bos>"
    ids = own.convert_tokens_to_ids
    processor = images_only(hf.Gemma4Processor)(
        feature_extractor=None,
        image_processor=hf.Gemma4ImageProcessorPil(patch_size=4, max_soft_tokens=70),
        tokenizer=own,
        video_processor=None,
        image_seq_length=70,
        chat_template="<bos>" + _template("<|image|>"),
    )
    text = {
        "vocab_size": len(own),
        "vocab_size_per_layer_input": len(own),
        "hidden_size_per_layer_input": 8,
        "head_dim": 8,
        "global_head_dim": 8,
        "sliding_window": 512,
        "layer_types": ["sliding_attention", "full_attention"],
    }
    config = hf.Gemma4Config(
        text_config={**TEXT, **text},
        vision_config={
            "patch_size": 4,
            "num_key_value_heads": 4,
            "head_dim": 8,
            "position_embedding_size": 64,
            **TOWER,
        },
        audio_config=None,
        image_token_id=ids("<|image|>"),
        boi_token_id=ids("<|image>"),
        eoi_token_id=ids("<image|>"),
        video_token_id=ids("<|video|>"),
        audio_token_id=ids("<|audio|>"),
        boa_token_id=ids("<|audio>"),
        eoa_token_index=ids("<audio|>"),
    )
    return processor, hf.Gemma4ForConditionalGeneration(config)


def _qwen(kind: str, processor: str, text: dict[str, Any], tower: dict[str, Any]) -> tuple[Any, Any]:
    """A Qwen, whose positions are in three dimensions (M-RoPE)."""
    import transformers as hf

    from toolgrammar.core.models.transformers.vision import images_only

    marks = {"vision_start": "<|vision_start|>", "vision_end": "<|vision_end|>", "image": "<|image_pad|>"}
    own = _tokenizer(*marks.values(), "<|video_pad|>", "<|endoftext|>", image_token="<|image_pad|>")
    rope = {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0, **text.pop("rope", {})}
    config = getattr(hf, f"{kind}Config")(
        text_config={"vocab_size": len(own), "rope_parameters": rope, **TEXT, **text},
        vision_config={"depth": 2, "hidden_size": 32, "num_heads": 4, **tower},
        **{f"{name}_token_id": own.convert_tokens_to_ids(mark) for name, mark in marks.items()},
        video_token_id=own.convert_tokens_to_ids("<|video_pad|>"),
    )
    made = images_only(getattr(hf, processor))(
        image_processor=hf.Qwen2VLImageProcessorPil(
            patch_size=tower.get("patch_size", 14), size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 64}
        ),
        tokenizer=own,
        chat_template=_template("".join((marks["vision_start"], marks["image"], marks["vision_end"]))),
    )
    return made, getattr(hf, f"{kind}ForConditionalGeneration")(config)


_WIDE = {"intermediate_size": 64, "out_hidden_size": 32}
_GRID = {**_WIDE, "patch_size": 16, "num_position_embeddings": 64}
_LINEAR = {
    "head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "rope": {"partial_rotary_factor": 0.5},
}

#: By family: makes a processor and a model.
FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "qwen2_vl": lambda: _qwen("Qwen2VL", "Qwen2VLProcessor", {}, {"embed_dim": 32, "mlp_ratio": 2}),
    "qwen2_5_vl": lambda: _qwen(
        "Qwen2_5_VL", "Qwen2_5_VLProcessor", {}, {**_WIDE, "fullatt_block_indexes": [1], "window_size": 112}
    ),
    "qwen3_vl": lambda: _qwen(
        "Qwen3VL", "Qwen3VLProcessor", {"head_dim": 8}, {**_GRID, "deepstack_visual_indexes": [0]}
    ),
    "qwen3_5": lambda: _qwen("Qwen3_5", "Qwen3VLProcessor", dict(_LINEAR), _GRID),
    "llava": _llava,
    "llava_next": _llava_next,
    "idefics3": lambda: _idefics3("Idefics3", _template("<image>", parts_only=True)),
    "gemma3": _gemma3,
    "internvl": _internvl,
    "smolvlm": lambda: _idefics3("SmolVLM", _template("<image>")),
    "gemma4": _gemma4,
}


def write_vision(folder: Path, family: str) -> Path:
    """Write a model of a family, the same each time."""
    import torch

    torch.manual_seed(0)
    processor, model = FAMILIES[family]()
    ends = processor.tokenizer
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = ends.eos_token_id, ends.pad_token_id
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
