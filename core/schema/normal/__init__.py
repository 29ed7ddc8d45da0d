"""Normal form of schemas: unions of conjunctions, with constraints for each type."""
