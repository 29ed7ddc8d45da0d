"""The tools of ``toolgrammar demo``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field


def get_weather(
    city: Annotated[str, Field(min_length=2, max_length=14, pattern="^[A-Z][a-z]+$")],
    unit: Literal["celsius", "fahrenheit"],
    days: Annotated[int, Field(ge=1, le=7)] = 1,
) -> str:
    """Weather forecast for a city.

    Args:
        city: Name of the city.
        unit: Unit of the temperatures.
        days: How many days ahead.
    """
    return f"{city}: 18 degrees {unit}, for {days} day(s)"


def convert_currency(
    amount: Annotated[float, Field(ge=0, le=1_000_000)],
    source: Literal["EUR", "USD", "JPY"],
    target: Literal["EUR", "USD"],
) -> str:
    """Convert an amount of money.

    Args:
        amount: How much.
        source: From this currency.
        target: Into this currency.
    """
    return f"{amount:g} {source} in {target}"


class BookTable(BaseModel):
    """Book a table in a restaurant."""

    people: int = Field(ge=1, le=12, description="For how many")
    time: str = Field(pattern="^(1[89]|2[0-2]):[0-5]0$", description="When, for example 19:30")
    outside: bool = Field(description="Outside, if there is room")
