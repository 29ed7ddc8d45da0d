"""Models in ONNX folders (``onnx:PATH``), run by onnxruntime-genai on a CPU or GPU. They need the extra ``onnx``."""

from __future__ import annotations

__all__: list[str] = []
