"""Dialect of one server, learned from rejected requests: forms and JSON Schema keywords that it does not support."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from .form import Form
from .schema_dialects import named_keywords
from .transport import RefusedError

#: Maximum number of memoised rejected requests.
_REMEMBERED = 1_024

#: Maximum number of steps that remove the keywords named in a rejection, before all optional keywords are removed.
_NAMED_STEPS = 3

#: Rejections of what the server compiles because of its size, which fewer keywords do not change enough.
_TOO_LARGE = re.compile(r"too (large|complex|many)|exceeds|compiled grammar|maximum number", re.I)

#: Number of rejected schemas without optional keywords after which a form is no longer tried.
_HOPELESS = 3


class Dialect:
    """Rejections of one server so far.

    Attributes:
        unknown: JSON Schema keywords that it does not support: it accepted a rejected request without them.
        taken: names of the forms that it has accepted.
        too_large: size of the smallest form that it rejected because of its size; None if there is none.
    """

    def __init__(self) -> None:
        self.unknown: frozenset[str] = frozenset()
        self.taken: set[str] = set()
        self.too_large: int | None = None
        self._refused: dict[str, frozenset[str]] = {}  # by request: keywords to remove; empty: try another form
        self._doubtful: set[str] = set()  # rejected once, with a status that may have another reason
        self._hopeless: dict[str, set[str]] = {}  # by form: requests that were rejected without optional keywords

    def descend(self, make: Callable[[Collection[str]], list[Form]]) -> Descent:
        """Return the forms of one request.

        Args:
            make: makes the forms, the strongest first, without given keywords.
        """
        return Descent(self, make)

    def after(self, request: str) -> frozenset[str] | None:
        """Return the keywords to remove from a request that is known to be rejected; None if it is not."""
        return self._refused.get(request)

    def is_hopeless(self, form: str) -> bool:
        """Return True if the server seems not to support a form."""
        return form not in self.taken and len(self._hopeless.get(form, ())) >= _HOPELESS

    def learn(self, steps: Collection[_Step], taken: str) -> None:
        """Record the rejections, after the server has accepted the form ``taken``. A rejection that may have another
        cause (``is_sure`` False) counts only when it happens a second time."""
        if len(self._refused) + len(steps) > _REMEMBERED:
            self._refused.clear()
            self._doubtful.clear()
            self._hopeless.clear()
        self.taken.add(taken)
        for step in steps:
            if not step.is_sure and step.request not in self._doubtful:
                self._doubtful.add(step.request)
                continue
            self._refused[step.request] = step.without
            if step.size:
                self.too_large = min(step.size, self.too_large or step.size)
                continue
            if not step.without:
                self._hopeless.setdefault(step.form, set()).add(step.request)
            if step.form == taken and step.is_named:
                self.unknown |= step.without


class _Step(NamedTuple):
    """One rejection.

    Attributes:
        form: name of the form.
        request: the request, as JSON.
        without: the keywords that are removed next; empty: another form is tried next.
        is_named: the server named them.
        is_sure: the request is certainly the reason.
        size: size of the form, if that is the reason; else 0.
    """

    form: str
    request: str
    without: frozenset[str]
    is_named: bool
    is_sure: bool
    size: int


class Descent:
    """Forms of one request, the strongest first; each is tried with fewer keywords before the next form.

    Iterate over it, and call `refuse` or `take` for each form; the iteration ends after `take`.

    Attributes:
        refusals: the rejections of this request, in order.
    """

    def __init__(self, dialect: Dialect, make: Callable[[Collection[str]], list[Form]]) -> None:
        self._dialect = dialect
        self._make = make
        self._steps: list[_Step] = []
        self.refusals: list[RefusedError] = []

    def __iter__(self) -> Iterator[Form]:
        """Yield the forms to try, without those that the server has refused often or that are too large for it. The
        last form needs no support of the server, and is always tried."""
        possible = self._make(self._dialect.unknown)
        limit = self._dialect.too_large
        for form in possible:
            is_last = form is possible[-1]
            is_too_large = bool(form.size) and limit is not None and form.size >= limit
            if not is_too_large and (is_last or not self._dialect.is_hopeless(form.name)):
                yield from self._variants(form)

    def _variants(self, form: Form) -> Iterator[Form]:
        """Yield a form, and after each rejection (the caller has called `refuse`) the same form with fewer keywords:
        without those that the server names, or without all unusual ones. It ends when the form is taken, too large, or
        cannot be weakened further. Known rejections are not asked for again."""
        unknown = self._dialect.unknown
        for number in range(_NAMED_STEPS + 2):  # then once without all unusual keywords, and once to see its refusal
            request = json.dumps([form.name, form.fields], sort_keys=True)
            without = self._dialect.after(request)
            if without is None:
                count = len(self.refusals)
                yield form
                if len(self.refusals) == count:  # it was taken
                    return
                refusal = self.refusals[-1]
                named = named_keywords(refusal.reason, form.keywords) if number < _NAMED_STEPS else frozenset()
                # A failure without a reason, too, is more likely to be the size than a keyword.
                size = form.size if not refusal.is_sure or _TOO_LARGE.search(refusal.reason) else 0
                without = frozenset() if size else named or form.keywords
                is_named = bool(named) and not size
                self._steps.append(_Step(form.name, request, without, is_named, refusal.is_sure, size))
            if not without:
                return
            unknown = unknown | without
            weaker = next((other for other in self._make(unknown) if other.name == form.name), None)
            if weaker is None:
                return
            form = weaker

    def refuse(self, refusal: RefusedError) -> None:
        """Record that the server rejected the last form."""
        self.refusals.append(refusal)

    def take(self, form: Form) -> None:
        """Record that the server accepted a form, so the rejections were caused by the other forms."""
        self._dialect.learn(self._steps, form.name)
