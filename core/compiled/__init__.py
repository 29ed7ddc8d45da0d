"""Support of the compiled modules: their list, growable arrays, hashing, and a stand-in for an absent Cython."""
