"""For LangChain's `create_agent`: a final answer that has to pass the validators of its class.

::

    agent = create_agent(model, tools, response_format=ValidatedStrategy(Order))
"""

from __future__ import annotations

from typing import Any

from toolgrammar.core.errors import MissingDependencyError

try:
    from langchain.agents.structured_output import ProviderStrategy
except ImportError as error:
    raise MissingDependencyError(
        "toolgrammar.adapters.langchain.agents needs langchain, which is not installed or too old",
        hint="pip install langchain",
    ) from error

__all__ = ["ValidatedStrategy"]


class ValidatedStrategy(ProviderStrategy[Any]):
    """LangChain's provider strategy, which also shows the model's adapter the class of the answer.

    LangChain's own hands on its JSON Schema only, so that the first answer to which a validator objects ends the agent.
    With this one the model is told, and asked again, twice at most. It is for `ChatToolGrammar` alone.

    Args:
        schema: the Pydantic class.
    """

    def to_model_kwargs(self) -> dict[str, Any]:
        """Return what the agent binds to the model."""
        return {"response_format": self.schema}
