"""Models of llama.cpp (``gguf:``)."""
