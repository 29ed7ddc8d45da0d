"""Models in ONNX folders (``onnx:PATH``), run by onnxruntime-genai. Needs the extra ``onnx``."""

from __future__ import annotations

__all__: list[str] = []
