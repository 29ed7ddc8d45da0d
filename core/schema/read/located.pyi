# Types of a compiled module (Cython in pure-Python mode).
from typing import Any, Final

COMPILED: bool

class Located:
    schema: Final[Any]
    scope: Final[Any]
    key: Final[object]
    pointer: Final[str]
    entered: bool
    def __init__(
        self,
        schema: Any,
        start: str = "",
        above: Located | None = None,
        steps: tuple[str | int, ...] = (),
        scope: Any = None,
    ) -> None: ...
    def child(self, *steps: str | int) -> Located: ...
    def under(self, keyword: str) -> Located: ...
    def below(self, schema: Any, steps: tuple[str | int, ...]) -> Located: ...
    def items(self, keyword: str) -> list[Located]: ...
    def members(self, keyword: str) -> dict[str, Located]: ...

class SignedSchema:
    located: Final[Located]
    positive: Final[bool]
    def __init__(self, located: Located, positive: bool = True) -> None: ...

def signed(located: Located, positive: bool = True) -> SignedSchema: ...
