"""A model writes one program over three tools, instead of three calls.

    python examples/program_shop.py

The ids stay inside of the program: only what it returns reaches the model. The model follows a script here; any model
of `load_model` writes such programs under the grammar.
"""

from typing import NewType

from pydantic import BaseModel

from toolgrammar.core import Message
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet, program_tool

CustomerId = NewType("CustomerId", str)
OrderId = NewType("OrderId", str)


class Customer(BaseModel):
    """A customer of the shop."""

    id: CustomerId
    name: str


class Order(BaseModel):
    """An order."""

    id: OrderId
    total: float


def find_customer(name: str) -> Customer:
    """Find a customer by name."""
    return Customer(id=CustomerId("C-902"), name=name)


def orders_of(customer: CustomerId) -> list[Order]:
    """List the orders of a customer, the oldest first."""
    return [Order(id=OrderId("O-1"), total=79.0), Order(id=OrderId("O-2"), total=24.5)]


def cancel_order(order: OrderId) -> bool:
    """Cancel an order."""
    return True


PROGRAM = """customer = find_customer(name="Mia Lund")
last = orders_of(customer=customer.id)[-1]
cancel_order(order=last.id)
return last.total"""


def main() -> None:
    """Run the program that the model writes, and one that is not well-typed."""
    functions = [find_customer, orders_of, cancel_order]
    writes = Message("assistant", f"```python\n{PROGRAM}\n```")
    model = ScriptedModel([writes, Message("assistant", "Cancelled: 24.50 are refunded.")])
    asked = "Cancel Mia Lund's last order. How much does she get back?"
    run = model.run(asked, tools=functions, programs=True, max_tokens=500).result
    print("the result that the model reads:", next(one.content for one in run.messages if one.role == "tool"))
    print(run.text)
    wrong = {"name": "run_program", "arguments": {"input": 'orders_of(find_customer("Mia Lund").name)'}}
    tools = ToolSet([program_tool(functions)])
    print(str(tools.execute(wrong).error).partition("; ")[2].partition(" (tool")[0])


if __name__ == "__main__":
    main()
