"""Steps that a mask or the grammar has promised: the matcher takes them, or nothing more is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import REPORT, InternalError

if TYPE_CHECKING:
    from .matcher import Matcher


def take(matcher: Matcher, step: int | bytes) -> None:
    """Advance a matcher by a token, or by bytes.

    Raises:
        InternalError: it refuses them.
    """
    if not (matcher.accept_bytes(step) if isinstance(step, bytes) else matcher.accept(step)):
        raise refused(matcher, step)


def refused(matcher: Matcher, step: int | bytes) -> InternalError:
    """Return the error of a token that a mask allows, or of bytes that are forced, and that the matcher refuses."""
    if isinstance(step, bytes):
        return InternalError(f"the matcher refuses the text {step!r}, which must follow: {matcher!r}", hint=REPORT)
    data = matcher.constraint.vocabulary.tokens[step]
    return InternalError(
        f"the mask allows the token {step} ({data!r}), which the matcher refuses: {matcher!r}", hint=REPORT
    )
