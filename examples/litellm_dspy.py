"""DSPy over a model in this process, by the LiteLLM provider: a signature is answered in its types.

Run it: python examples/litellm_dspy.py
"""

from __future__ import annotations

import dspy

from toolgrammar.adapters.litellm import register
from toolgrammar.core.testing import ScriptedModel


class Sort(dspy.Signature):
    """Sort a letter."""

    letter: str = dspy.InputField()
    urgent: bool = dspy.OutputField()
    drawer: int = dspy.OutputField()


# A script instead of a model, so that the example says the same each time; "smollm2" and "hf:PATH" are real ones.
provider = register({"small": ScriptedModel(['{"urgent": true, "drawer": 4}'])})
dspy.configure(lm=dspy.LM("toolgrammar/small", cache=False), adapter=dspy.JSONAdapter())
answer = dspy.Predict(Sort)(letter="Pay by Friday!")
print(answer.urgent, answer.drawer)
provider.close()
