# What compiled modules call in C; see their ``.pxd``.
