"""DSPy over a model in this process, by the LiteLLM provider: a signature is answered in its types.

Run it: python examples/litellm_dspy.py
"""

from __future__ import annotations

from typing import Literal

import dspy

from toolgrammar.adapters.litellm import register
from toolgrammar.core.testing import ScriptedModel


class Sort(dspy.Signature):
    """Sort a letter."""

    letter: str = dspy.InputField()
    urgent: bool = dspy.OutputField()
    drawer: Literal["bills", "friends"] = dspy.OutputField()


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
# The script prefers an invalid answer, which the grammar excludes: DSPy sends the types of the signature as a schema.
provider = register({"small": ScriptedModel(["I sort no letters."])})
dspy.configure(lm=dspy.LM("toolgrammar/small", cache=False), adapter=dspy.JSONAdapter())
answer = dspy.Predict(Sort)(letter="Pay by Friday!")
print(answer.urgent, answer.drawer)
provider.close()
