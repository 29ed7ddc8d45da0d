"""A response format for LangChain's `create_agent` whose answers pass the validators of their class.

::

    from toolgrammar.adapters.langchain import ValidatedStrategy

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
    """LangChain's provider strategy, with the validators of the answer's class.

    LangChain's own strategy passes on the JSON Schema of the class, not the class. The first answer that a validator
    rejects then ends the agent. With this strategy `ChatToolGrammar` asks the model again, twice at most, with the
    validator's message. Other chat models do not understand it.

    Args:
        schema: the Pydantic class.
    """

    def to_model_kwargs(self) -> dict[str, Any]:
        """Return the arguments that the agent binds to the model."""
        return {"response_format": self.schema}
