"""The request fields ``logprobs`` and ``top_logprobs``."""

from __future__ import annotations

from toolgrammar.core.models import LocalModel, Model

from .. import rows
from ..fields import Fields, RequestError
from ..rows import Rows

#: Maximum number of likely tokens that are told at each place.
MAX_LIKELIEST = 20

LIKELIEST = rows.WHOLE(schema={"minimum": 0, "maximum": MAX_LIKELIEST})
LOGPROBS: Rows = {"logprobs": rows.FLAG, "top_logprobs": LIKELIEST}


def asked_logprobs(fields: Fields, model: Model) -> int | None:
    """Return how many likely tokens ``logprobs`` (a flag) and ``top_logprobs`` ask for; None: no log-probabilities.

    Raises:
        RequestError: they go not together, or the model shows none.
    """
    wanted, count = fields["logprobs"], fields["top_logprobs"]
    if count and not wanted:
        path = fields.path("top_logprobs")
        raise RequestError(f"{path} is given without logprobs", field=path, hint="give logprobs=true, too")
    return checked(count or 0, "top_logprobs" if count else "logprobs", model) if wanted else None


def checked(count: int, name: str, model: Model) -> int:
    """Return a number of likely tokens.

    Raises:
        RequestError: there are not so many, or the model shows none.
    """
    if not 0 <= count <= MAX_LIKELIEST:
        raise RequestError(f"{name} is {count}", field=name, hint=f"from 0 to {MAX_LIKELIEST}")
    if not isinstance(model, LocalModel):
        raise RequestError("this model shows no log-probabilities", field=name, hint="leave it out")
    return count
