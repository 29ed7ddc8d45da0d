"""``typing.TypedDict`` for Pydantic on Python before 3.12, where it only takes the one of ``typing_extensions``."""

from __future__ import annotations

import operator
import sys
import types
import typing
from typing import Any

import typing_extensions


def readable(annotation: Any) -> Any:
    """Return the annotation with every ``typing.TypedDict`` in it replaced by its equal from ``typing_extensions``.

    Keys, required keys, annotations and configuration stay as they are. On Python 3.12 and later nothing changes.
    """
    if sys.version_info >= (3, 12):
        return annotation
    return _Rewriter().rewrite(annotation)


class _Rewriter:
    """Remembers the classes it has replaced, so that recursive ones end."""

    def __init__(self) -> None:
        self.replaced: dict[Any, Any] = {}

    def rewrite(self, annotation: Any) -> Any:
        """Return an annotation with the classes in it replaced, at any depth; itself, if there are none."""
        if typing_extensions.is_typeddict(annotation):
            return self._typed_dict(annotation)
        origin = typing_extensions.get_origin(annotation)
        if origin is None or origin is typing.Literal or origin is typing_extensions.Literal:
            return annotation
        arguments = typing_extensions.get_args(annotation)
        if origin is typing.Annotated:
            rebuilt = (self.rewrite(arguments[0]), *arguments[1:])
            return operator.getitem(typing.cast(Any, typing.Annotated), rebuilt)
        rewritten = tuple(argument if isinstance(argument, list) else self.rewrite(argument) for argument in arguments)
        if rewritten == arguments:
            return annotation
        if origin is typing.Union or origin is getattr(types, "UnionType", None):
            return typing.Union[rewritten]
        try:
            return origin[rewritten if len(rewritten) > 1 else rewritten[0]]
        except TypeError:  # left as it is; Pydantic says what is wrong with it
            return annotation

    def _typed_dict(self, cls: Any) -> Any:
        """Return the same class from ``typing_extensions`` if it, or one inside it, is of ``typing``."""
        if cls in self.replaced:
            return self.replaced[cls]
        self.replaced[cls] = cls  # what a class that refers to itself sees meanwhile
        try:
            hints = typing_extensions.get_type_hints(cls, include_extras=True)
        except NameError:
            return cls  # told with the name that is missing when the schema is made
        if type(cls).__module__ != "typing" and not self._reaches_typing(cls, set()):
            return cls
        fields: dict[str, Any] = {}
        make: Any = typing_extensions.TypedDict
        result = make(cls.__name__, fields)
        self.replaced[cls] = result
        for key, hint in hints.items():
            result.__annotations__[key] = self.rewrite(hint)
        result.__required_keys__ = cls.__required_keys__
        result.__optional_keys__ = cls.__optional_keys__
        for name in ("__doc__", "__module__", "__pydantic_config__"):
            if hasattr(cls, name):
                setattr(result, name, getattr(cls, name))
        return result

    def _reaches_typing(self, annotation: Any, seen: set[Any]) -> bool:
        """Return True if a ``typing.TypedDict`` is somewhere in an annotation."""
        if typing_extensions.is_typeddict(annotation):
            if type(annotation).__module__ == "typing":
                return True
            if annotation in seen:
                return False
            seen.add(annotation)
            try:
                hints = typing_extensions.get_type_hints(annotation, include_extras=True)
            except NameError:
                return False
            return any(self._reaches_typing(hint, seen) for hint in hints.values())
        if typing_extensions.get_origin(annotation) is None:
            return False
        return any(self._reaches_typing(part, seen) for part in typing_extensions.get_args(annotation))
