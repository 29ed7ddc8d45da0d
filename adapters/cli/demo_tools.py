"""The tools of ``toolgrammar demo``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field


def get_weather(
    city: Annotated[str, Field(min_length=2, max_length=14, pattern="^[A-Z][a-z]+$")],
    unit: Literal["celsius", "fahrenheit"],
) -> str:
    """Current weather in a city.

    Args:
        city: Name of the city.
        unit: Unit of the temperature.
    """
    return f"18 degrees {unit} and sunny in {city}"


def convert_currency(
    amount: Annotated[float, Field(ge=0, le=1_000_000)],
    source: Literal["USD", "EUR", "JPY"],
    target: Literal["USD", "EUR", "JPY"],
) -> str:
    """Convert an amount of money from one currency to another.

    Args:
        amount: How much.
        source: Convert from this currency.
        target: Convert to this currency.
    """
    dollars = {"USD": 1.0, "EUR": 1.15, "JPY": 0.0064}
    return f"{amount:g} {source} are {amount * dollars[source] / dollars[target]:.2f} {target}"


def book_table(
    restaurant: Annotated[str, Field(min_length=2, max_length=30)],
    people: Annotated[int, Field(ge=1, le=12)],
    time: Annotated[str, Field(pattern="^([1-9]|1[0-2])(:[0-5][0-9])?(am|pm)$")],
) -> str:
    """Book a table in a restaurant.

    Args:
        restaurant: Name of the restaurant.
        people: For how many.
        time: When, for example 8pm.
    """
    return f"table number 12 for {people} at {restaurant}, {time}"
