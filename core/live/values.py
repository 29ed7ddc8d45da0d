"""Sources of live values: the callables that a user gives, and their names in schemas."""

from __future__ import annotations

import contextvars
import secrets
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from ..basics.annotated import with_keyword
from ..dependent.live import KEYWORD, LONGEST
from ..errors import InvalidSchemaError, LimitError
from ..json import escape
from ..schema.read.live import has_values

#: Default time in seconds that a callable may take.
TIMEOUT = 10.0

#: The arguments that models do not see, of the present context.
GIVEN: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar(
    "toolgrammar_given", default=MappingProxyType({})
)


@dataclass(frozen=True)
class Values:
    """Values of a parameter that a callable gives while a call is written.

    In a function's signature: ``Annotated[str, Values(lambda call: ids_of(call["project"]), after=("project",))]``.

    Args:
        ask: is given the arguments that are already written, as a mapping, and returns a finite iterable of JSON
            values, or a JSON Schema (a dict) that the value must satisfy; or an awaitable of one. A function without
            parameters is called without arguments.
        after: the names of the arguments that it reads; the grammar writes them before this one. None: all that stand
            before the parameter in the signature. Only these are in the mapping, without optional ones that the call
            leaves out.
        timeout: seconds that it may take.
        longest: number of bytes, and of tokens, that a token budget reserves for the value until the values are known.
    """

    ask: Callable[..., Any]
    after: Sequence[str] | None = None
    timeout: float = TIMEOUT
    longest: int = LONGEST
    #: The keyword that names them in a schema.
    KEYWORD: ClassVar[str] = KEYWORD
    #: A name in ``after`` that is neither a parameter nor given is an error; else the callable says what it means.
    is_strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise InvalidSchemaError(
                f"Values takes a callable, not {type(self.ask).__name__}",
                hint="a fixed list of values is Literal[...], or an enum in the schema",
            )
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, (int, float)) or not self.timeout > 0:
            raise InvalidSchemaError(f"Values(timeout={self.timeout!r})", hint="give a number of seconds above 0")
        if isinstance(self.after, str):
            object.__setattr__(self, "after", (self.after,))
        elif self.after is not None:
            object.__setattr__(self, "after", tuple(self.after))

    @property
    def name(self) -> str:
        """A name by which tools of this process find the object, as long as it is alive. It cannot be guessed, so that
        clients of a server name no callables."""
        name: str | None = self.__dict__.get("_name")
        if name is None:
            name = f"toolgrammar-values-{secrets.token_hex(16)}"
            object.__setattr__(self, "_name", name)
            _NAMED[name] = self
        return name

    @staticmethod
    def named(name: object) -> Values | None:
        """Return the object of a name; None if there is none."""
        return _NAMED.get(name) if isinstance(name, str) else None

    @staticmethod
    def of(source: Any) -> Values:
        """Return a `Values`, or that of a callable: the same one for the same callable."""
        return source if isinstance(source, Values) else _wrapped(source)

    def mark(self, source: str) -> dict[str, Any]:
        """Return the value of ``x-values`` for this object under a name."""
        mark: dict[str, Any] = {"source": source}
        if self.after is not None:
            mark["after"] = list(self.after)
        if self.longest != LONGEST:
            mark["longest"] = self.longest
        return mark

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Return the JSON Schema of an annotated type."""
        return with_keyword(handler(core_schema), KEYWORD, self.mark(self.name))


#: The objects that have a name, as long as they are alive.
_NAMED: weakref.WeakValueDictionary[str, Values] = weakref.WeakValueDictionary()


_wrapped = lru_cache(maxsize=4_096)(Values)


@contextmanager
def given(**arguments: Any) -> Iterator[None]:
    """Give callables of live values arguments that the model neither sees nor writes: a user, a state, a connection.

    A callable whose `Values` names one in ``after`` has it in its mapping::

        with given(user=user):
            model.generate(..., tools=[close_ticket])

    Args:
        **arguments: any values, for requests that begin in the context (this thread, or this task of ``asyncio``). An
            argument of the call of the same name comes first.
    """
    token = GIVEN.set({**GIVEN.get(), **arguments})
    try:
        yield
    finally:
        GIVEN.reset(token)


def named_values(schema: Any) -> tuple[Any, dict[str, Values]]:
    """Return a schema in which each callable has a name that only depends on its place, and the callables by name.

    Args:
        schema: a JSON Schema in which ``x-values`` may be a callable, a `Values`, or the name of one (`Values.name`).
            It is not changed.

    Raises:
        LimitError: it is nested too deeply.
    """
    if not has_values(schema):
        return schema, {}
    sources: dict[str, Values] = {}

    def named(part: Any, name: str) -> Any:
        """Return a part of the schema with each callable replaced by ``name``, the JSON pointer of the part."""
        if isinstance(part, (list, tuple)):
            return [named(value, f"{name}/{index}") for index, value in enumerate(part)]
        if not isinstance(part, Mapping):
            return part
        made = {key: named(value, f"{name}/{escape(str(key))}") for key, value in part.items() if key != KEYWORD}
        if KEYWORD not in part:
            return made
        mark = part[KEYWORD]
        if isinstance(mark, Values) or callable(mark):
            sources[name] = Values.of(mark)
            mark = sources[name].mark(name)
        elif (values := Values.named(_fields(mark).get("source"))) is not None:
            sources[name] = values
            mark = {**_fields(mark), "source": name}
        return {**made, KEYWORD: mark}

    try:
        return named(schema, "#"), sources
    except RecursionError:
        raise LimitError("the schema is nested too deeply", hint="flatten it with $ref") from None


def with_sources(schema: Any, sources: Mapping[str, Any]) -> Any:
    """Return a copy of a schema in which ``x-values`` has names that every tool of this process understands."""
    if isinstance(schema, (list, tuple)):
        return [with_sources(part, sources) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: with_sources(part, sources) for key, part in schema.items()}
    fields = _fields(schema.get(KEYWORD))
    name = fields.get("source")
    if isinstance(name, str) and name in sources:
        made[KEYWORD] = {**fields, "source": Values.of(sources[name]).name}
    return made


def _fields(mark: Any) -> Mapping[str, Any]:
    """Return the fields of a value of ``x-values``, which may be the name of its source alone."""
    return mark if isinstance(mark, Mapping) else {"source": mark}
