"""``typing.TypedDict`` for Pydantic on Python before 3.12, where it only takes the one of ``typing_extensions``."""

from __future__ import annotations

import operator
import sys
import types
import typing
from typing import Any

import typing_extensions


def readable(annotation: Any) -> Any:
    """The annotation with every ``typing.TypedDict`` in it replaced by its equal from ``typing_extensions``.

    Keys, required keys and annotations stay as they are. On Python 3.12 and later nothing changes.
    """
    if sys.version_info >= (3, 12):
        return annotation
    return _Rewriter().rewrite(annotation)


class _Rewriter:
    """Remembers the classes it has replaced, so that recursive ones end."""

    def __init__(self) -> None:
        self.replaced: dict[Any, Any] = {}

    def rewrite(self, annotation: Any) -> Any:
        if typing.is_typeddict(annotation):
            return self._typed_dict(annotation)
        origin = typing.get_origin(annotation)
        if origin is None or origin is typing.Literal:
            return annotation
        arguments = typing.get_args(annotation)
        if origin is typing.Annotated:
            rebuilt = (self.rewrite(arguments[0]), *arguments[1:])
            return operator.getitem(typing.cast(Any, typing.Annotated), rebuilt)
        rewritten = tuple(argument if isinstance(argument, list) else self.rewrite(argument) for argument in arguments)
        if rewritten == arguments:
            return annotation
        if origin is typing.Union or origin is getattr(types, "UnionType", None):
            return typing.Union[rewritten]
        return origin[rewritten] if hasattr(origin, "__class_getitem__") else annotation

    def _typed_dict(self, cls: Any) -> Any:
        if type(cls).__module__ != "typing":
            return cls
        if cls in self.replaced:
            return self.replaced[cls]
        hints = typing.get_type_hints(cls, include_extras=True)
        fields: dict[str, Any] = {}
        make: Any = typing_extensions.TypedDict
        result = make(cls.__name__, fields)
        self.replaced[cls] = result
        for key, hint in hints.items():
            hint = self.rewrite(hint)
            result.__annotations__[key] = hint
        result.__required_keys__ = cls.__required_keys__
        result.__optional_keys__ = cls.__optional_keys__
        result.__doc__ = cls.__doc__
        result.__module__ = cls.__module__
        return result
