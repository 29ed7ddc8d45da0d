"""Dialect of one server, learned from its refusals: forms of requests and JSON Schema keywords that it rejects."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from .schema_dialects import named_keywords
from .servers import Form
from .transport import RefusedError

#: Maximum number of refused requests that are remembered.
_REMEMBERED = 1_024

#: Maximum number of steps that leave out keywords named in a refusal, before all optional keywords are left out.
_NAMED_STEPS = 3

#: Number of refused schemas, without optional keywords, after which a form is not tried any more.
_HOPELESS = 3


class Dialect:
    """Refusals of one server so far.

    Attributes:
        unknown: JSON Schema keywords that it does not know: without them it took what it had refused before.
    """

    def __init__(self) -> None:
        self.unknown: frozenset[str] = frozenset()
        self._refused: dict[str, frozenset[str]] = {}  # by request: the keywords to leave out next; none: another form
        self._doubtful: set[str] = set()  # refused once with a status that may have had another reason
        self._hopeless: dict[str, set[str]] = {}  # by form: requests that were refused without their extra keywords
        self._taken: set[str] = set()  # forms that it took at least once

    def descend(self, make: Callable[[Collection[str]], list[Form]]) -> Descent:
        """Return the forms of one request.

        Args:
            make: makes the forms, the strongest first, without the keywords that it is given.
        """
        return Descent(self, make)

    def after(self, request: str) -> frozenset[str] | None:
        """Return the keywords to leave out of a request that is known to be refused; None if it is not."""
        return self._refused.get(request)

    def is_hopeless(self, form: str) -> bool:
        """Return True if the server seems not to know a form at all."""
        return form not in self._taken and len(self._hopeless.get(form, ())) >= _HOPELESS

    def learn(self, steps: Collection[_Step], taken: str) -> None:
        """Remember what was refused, now that the server has taken the form ``taken`` instead."""
        if len(self._refused) + len(steps) > _REMEMBERED:
            self._refused.clear()
            self._doubtful.clear()
            self._hopeless.clear()
        self._taken.add(taken)
        for step in steps:
            if not step.is_sure and step.request not in self._doubtful:
                self._doubtful.add(step.request)
                continue
            self._refused[step.request] = step.without
            if not step.without:
                self._hopeless.setdefault(step.form, set()).add(step.request)
            if step.form == taken and step.is_named:
                self.unknown |= step.without


class _Step(NamedTuple):
    """One refusal: of which form and request, what was left out next, and how certain that is."""

    form: str
    request: str
    without: frozenset[str]
    is_named: bool
    is_sure: bool


class Descent:
    """Forms of one request, the strongest first; each is tried with fewer keywords before the next one is.

    Iterate over it, and call `refuse` or `take` for each form; after `take`, nothing more comes.

    Attributes:
        refusals: those of this request, in order.
    """

    def __init__(self, dialect: Dialect, make: Callable[[Collection[str]], list[Form]]) -> None:
        self._dialect = dialect
        self._make = make
        self._steps: list[_Step] = []
        self.refusals: list[RefusedError] = []

    def __iter__(self) -> Iterator[Form]:
        first = self._make(self._dialect.unknown)
        for form in first:
            if form is not first[-1] and self._dialect.is_hopeless(form.name):
                continue
            yield from self._variants(form)

    def _variants(self, form: Form) -> Iterator[Form]:
        """Yield a form, and after each refusal the same with fewer keywords."""
        unknown = self._dialect.unknown
        for number in range(_NAMED_STEPS + 2):
            request = json.dumps([form.name, form.fields], sort_keys=True)
            leave = self._dialect.after(request)
            if leave is None:
                before = len(self.refusals)
                yield form
                if len(self.refusals) == before:
                    return
                refusal = self.refusals[-1]
                named = named_keywords(refusal.reason, form.keywords) if number < _NAMED_STEPS else frozenset()
                leave = named or form.keywords
                self._steps.append(_Step(form.name, request, leave, bool(named), refusal.is_sure))
            if not leave:
                return
            unknown = unknown | leave
            weaker = next((other for other in self._make(unknown) if other.name == form.name), None)
            if weaker is None:
                return
            form = weaker

    def refuse(self, refusal: RefusedError) -> None:
        """Record that the server refused the last form."""
        self.refusals.append(refusal)

    def take(self, form: Form) -> None:
        """Record that the server took a form, so that the other forms were the reason for the refusals."""
        self._dialect.learn(self._steps, form.name)
