r"""Our grammars as a validator for Bowtie, the cross-implementation harness of JSON Schema.

    pip install bowtie-json-schema                      # Python 3.11 or newer
    git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite
    export PYTHONPATH=.  # of the repository
    bowtie suite -i direct:benchmarks.masks.bowtie_harness:toolgrammar \
        JSON-Schema-Test-Suite/tests/draft2020-12 | bowtie summary

An instance is valid if the grammar of the schema has its JSON text. Schemas that are refused, and instances that a
grammar left out and reported (`Grammar.narrowed`), are skipped with the reason; nothing is an error. References to
other documents are those of Bowtie's registry; ``format`` is an annotation, as the specifications have it.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any

from toolgrammar.core import Grammar, ToolGrammarError, UnsatisfiableSchemaError

DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
)
HOME = "https://pypi.org/project/toolgrammar/"


class Connection:
    """Answers Bowtie's commands (IHOP, version 1)."""

    def __init__(self) -> None:
        self._dialect = DIALECTS[0]

    async def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one command."""
        if message["cmd"] == "start":
            return {
                "version": 1,
                "implementation": {
                    "language": "python",
                    "language_version": platform.python_version(),
                    "name": "toolgrammar",
                    "version": version("toolgrammar"),
                    "homepage": HOME,
                    "documentation": HOME,
                    "issues": HOME,
                    "source": HOME,
                    "dialects": list(DIALECTS),
                    "os": platform.system(),
                    "os_version": platform.release(),
                },
            }
        if message["cmd"] == "dialect":
            self._dialect = message["dialect"]
            return {"ok": True}
        if message["cmd"] == "run":
            return {"seq": message["seq"], **self._judged(message["case"])}
        return {}

    def _judged(self, case: dict[str, Any]) -> dict[str, Any]:
        schema = case["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": self._dialect, **schema}
        try:
            grammar = Grammar.from_json_schema(
                schema, whitespace="flexible", property_order="any", registry=case.get("registry", {}), formats=False
            )
            grammar.program  # noqa: B018
        except UnsatisfiableSchemaError:
            return {"results": [{"valid": False} for _ in case["tests"]]}
        except ToolGrammarError as error:
            return {"skipped": True, "message": str(error)}
        results: list[dict[str, Any]] = []
        for test in case["tests"]:
            if grammar.matches(json.dumps(test["instance"], ensure_ascii=False)):
                results.append({"valid": True})
            elif grammar.narrowed:
                results.append({"skipped": True, "message": str(grammar.narrowed[0])})
            else:
                results.append({"valid": False})
        return {"results": results}


def toolgrammar() -> type[Connection]:
    """Return a maker of connections, as Bowtie's direct connectables are."""
    return Connection
