"""`LiveSchema`: a schema whose values a program or a conversation gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..dependent.live import KEYWORD
from ..schema.keywords.live import COPIED, SEEN
from ..schema.read.keywords import KEYWORDS
from ..schema.read.live import LIVE, has_keyword, in_order, places_of, without_values
from .asking import LiveValues
from .check import check_values
from .values import Values, named_values, with_sources


class LiveKeyword(NamedTuple):
    """A keyword of live values in a schema.

    Attributes:
        pointer: the JSON pointer of the schema that has it.
        keyword: its name.
        is_asked: a callable gives the values.
    """

    pointer: str
    keyword: str
    is_asked: bool


@dataclass(frozen=True)
class LiveSchema:
    """A JSON Schema that may have ``x-values``, ``x-seen`` or ``x-copied``.

    Attributes:
        schema: the schema; it is not changed.
    """

    schema: Any

    @property
    def is_live(self) -> bool:
        """True if it may have one of these keywords."""
        return has_keyword(self.schema, LIVE)

    @property
    def has_values(self) -> bool:
        """True if callables may give values of it."""
        return has_keyword(self.schema, (KEYWORD,))

    @property
    def needs_conversation(self) -> bool:
        """True if it has strings that come from a conversation."""
        return has_keyword(self.schema, (SEEN, COPIED))

    def named(self) -> tuple[Any, dict[str, Values]]:
        """Return the schema with a name for each callable that only depends on its place, and the callables by name."""
        return named_values(self.schema)

    def ordered(self) -> Any:
        """Return the schema in which each property stands after those that its callable reads.

        Raises:
            InvalidSchemaError: the values of properties of one object read each other.
        """
        return in_order(self.schema)

    def plain(self) -> Any:
        """Return the schema without these keywords, for models; the same object if it has none."""
        return without_values(self.schema)

    def with_sources(self, sources: Mapping[str, Any]) -> Any:
        """Return the schema with names of callables that every tool of this process understands."""
        return with_sources(self.schema, sources)

    def places(self, in_grammar: bool = False) -> Iterator[str]:
        """Yield the pointers of the keywords whose values a server does not enforce.

        Args:
            in_grammar: it has the grammar, with the values of the conversation.
        """
        return places_of(self.schema, (KEYWORD,) if in_grammar else LIVE)

    def first(self) -> LiveKeyword | None:
        """Return the first such keyword; None if there is none. Data and properties of such a name do not count."""
        found: set[str] = set()  # the keywords in schemas; `places` also yields names in data and properties

        def note(inner: dict[str, Any]) -> dict[str, Any]:
            found.update(keyword for keyword in LIVE if keyword in inner)
            return inner

        if self.is_live:
            KEYWORDS.map_schemas(self.schema, note)
        for place in self.places():
            pointer, _, keyword = place.rpartition("/")
            if keyword in found:
                return LiveKeyword(pointer, keyword, keyword == KEYWORD)
        return None

    def check(self, value: Any, live: LiveValues, tool: str | None = None) -> None:
        """Check a whole value against what its callables say; arguments and errors as of `check_values`."""
        check_values(self.schema, value, live, tool)
