"""A picture of a receipt, read as an object: a vision model sees the picture, the grammar makes the answer valid.

    pip install 'toolgrammar[transformers,images]'
    python examples/receipt.py hf:Qwen/Qwen2.5-VL-3B-Instruct

The argument is the address of any model that sees: of transformers, of llama.cpp, or on a server.
"""

from __future__ import annotations

import sys
from typing import Literal

from PIL import Image, ImageDraw
from pydantic import BaseModel, Field

from toolgrammar.core import ImagePart, Message, TextPart, load_model

LINES = ["CAFE NORTH", "Bread 3.50", "Soup 7.20", "Tea 2.80", "TOTAL EUR 13.50"]


class Item(BaseModel):
    """A line of a receipt."""

    name: str = Field(max_length=24)
    price: float = Field(ge=0, le=10_000, multiple_of=0.01)


class Receipt(BaseModel):
    """What a receipt says."""

    shop: str = Field(max_length=24)
    items: list[Item] = Field(min_length=1, max_length=6)
    currency: Literal["EUR", "GBP", "USD"]
    total: float = Field(ge=0, le=100_000, multiple_of=0.01)


def picture() -> Image.Image:
    """Draw the receipt."""
    page = Image.new("RGB", (160, 20 * len(LINES) + 20), "white")
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(LINES):
        pen.text((12, 20 * number + 12), line, fill="black")
    return page.resize((3 * page.width, 3 * page.height))


def main() -> None:
    """Read the receipt with the model of the address, and print what it says and whether it adds up."""
    with load_model(sys.argv[1]) as model:
        question = [Message("user", (ImagePart.of(picture()), TextPart("What does this receipt say?")))]
        receipt = model.generate_json(question, Receipt, max_tokens=2_000)
    for item in receipt.items:
        print(f"{item.price:9.2f}  {item.name}")
    print(f"{receipt.total:9.2f}  {receipt.currency}, {receipt.shop}")
    print("adds up:", abs(sum(item.price for item in receipt.items) - receipt.total) < 0.005)  # valid is not right


if __name__ == "__main__":
    main()
