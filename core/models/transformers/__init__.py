"""Models of Hugging Face transformers (``hf:``)."""
