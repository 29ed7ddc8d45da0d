"""SGLang's contract for grammar backends, with its own classes and draft trees, on the CPU and without an engine."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import json
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
if importlib.util.find_spec("sglang") is None:
    pytest.skip("SGLang is not installed", allow_module_level=True)


def _stub(name: str) -> types.ModuleType:
    """Return a module that has every class."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)

    def attribute(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return type(wanted, (), {})

    module.__getattr__ = attribute  # type: ignore[method-assign]
    return module


# SGLang imports torchvision, of which there is no build for each torch; transformers must not see the stand-in.
STUBS = [f"torchvision{name}" for name in ("", ".transforms", ".transforms.functional", ".transforms.v2", ".io")]
STUBS = STUBS if importlib.util.find_spec("torchvision") is None else []
sys.modules.update({name: _stub(name) for name in STUBS})
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        from sglang.srt.constrained import base_grammar_backend as base
        from sglang.srt.constrained import reasoner_grammar_backend  # noqa: F401
        from sglang.srt.entrypoints.openai.protocol import Function, Tool
        from sglang.srt.function_call.function_call_parser import FunctionCallParser
        from sglang.srt.speculative.spec_utils import traverse_tree
    except ImportError as error:
        pytest.skip(f"SGLang cannot be imported here: {error}", allow_module_level=True)
    finally:
        for stub in STUBS:
            del sys.modules[stub]

from toolgrammar.adapters.sglang import NAME, register  # noqa: E402
from toolgrammar.adapters.sglang import backend as sglang_backend  # noqa: E402
from toolgrammar.adapters.sglang.backend import Backend, GrammarObject, create_backend  # noqa: E402
from toolgrammar.adapters.sglang.plugin import require_supported  # noqa: E402
from toolgrammar.core import LimitError, ModelError, apply_mask, fill_masks  # noqa: E402
from toolgrammar.core.masks import COMPILED  # noqa: E402

WIDTH = 300  # the model has more logits than the tokenizer has tokens
WORDS = (WIDTH + 31) // 32


def tokenizer() -> Any:
    """Return a byte-level tokenizer with an end of text, a marker of reasoning and a marker of calls."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    raw = tokenizers.Tokenizer(tokenizers.models.BPE({char: number for number, char in enumerate(alphabet)}, []))
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    made.add_special_tokens({"additional_special_tokens": ["</think>", "<call>"]})
    return made


TOKENIZER = tokenizer()
EOS, THINK_END, CALL = (TOKENIZER.convert_tokens_to_ids(name) for name in ("<|end|>", "</think>", "<call>"))
SCHEMA = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2}


def arguments(**options: Any) -> types.SimpleNamespace:
    """Return options of SGLang's server."""
    return types.SimpleNamespace(**{"reasoning_parser": None, "enable_strict_thinking": False, **options})


@pytest.fixture(scope="module")
def backend() -> Any:
    """Return the backend that SGLang makes for its server."""
    register()
    register()
    return base.GRAMMAR_BACKEND_REGISTRY[NAME](arguments(), TOKENIZER, WIDTH, {EOS})


def requested(backend: Any, kind: str, text: str, reasoning: bool = False) -> Any:
    """Return what SGLang gets for a request, and put it where SGLang's scheduler does."""
    value, is_cached = backend.get_cached_or_future_value((kind, text), reasoning)
    if is_cached:
        return value
    template = value.result(timeout=60)
    backend.set_cache((kind, text), template.copy())
    return template


def ids(text: str) -> list[int]:
    """Return the tokens of a text."""
    return list(TOKENIZER.encode(text, add_special_tokens=False))


def generated(grammar: Any, seed: int = 0, limit: int = 400) -> str:
    """Return what a model without sense writes under the masks of a batch, in which a second row is free."""
    torch.manual_seed(seed)
    written: list[int] = []
    for _ in range(limit):
        mask = grammar.allocate_vocab_mask(WIDTH, 2, "cpu")
        type(grammar).fill_vocab_mask_batched([base.GrammarRow(1, grammar)], mask)
        assert (mask[0] == -1).all()
        logits = torch.randn(2, WIDTH)
        free = logits[0].clone()
        grammar.apply_vocab_mask(logits=logits, vocab_mask=grammar.move_vocab_mask(mask, "cpu"))
        assert torch.equal(logits[0], free) or torch.isinf(logits[0]).any()
        written.append(int(logits[1].argmax()))
        grammar.accept_token(written[-1])
        if grammar.is_terminated():
            break
    assert written[-1] == EOS
    return str(TOKENIZER.decode(written[:-1]))


def test_signatures() -> None:
    """Our classes take what SGLang's base classes do: every parameter, by the same name."""
    for ours, theirs in ((GrammarObject, base.BaseGrammarObject), (Backend, base.BaseGrammarBackend)):
        for name, member in vars(ours).items():
            original = getattr(theirs, name, None)
            if callable(original) and not name.startswith("__"):
                wanted = list(inspect.signature(original).parameters)
                assert list(inspect.signature(getattr(ours, name)).parameters)[: len(wanted)] == wanted, (name, member)
    called = {"accept_token", "rollback", "is_terminated", "allocate_vocab_mask", "fill_vocab_mask", "reset_vocab_mask"}
    called |= {"move_vocab_mask", "apply_vocab_mask", "copy", "fill_vocab_mask_batched"}
    assert called <= set(vars(GrammarObject))


def test_registration() -> None:
    """SGLang's command line knows the backend's name, once."""
    from sglang.srt.arg_groups import choices

    register()
    assert choices.GRAMMAR_BACKEND_CHOICES.count(NAME) == 1


@pytest.mark.parametrize("version", ["0.5.22", "0.6.0", "1.0", "0.4.9.post1"])
def test_versions(version: str) -> None:
    """Another version of SGLang is refused with both bounds."""
    with pytest.raises(ModelError, match=r">=0\.5\.23,<0\.6\.0"):
        require_supported(version)
    require_supported("0.5.23.post2")


def test_json(backend: Any) -> None:
    """A schema with uniqueItems, which SGLang's own backends refuse or drop, is kept; its template is copied."""
    texts = [generated(requested(backend, "json", json.dumps(SCHEMA)), seed) for seed in range(4)]
    for text in texts:
        items = json.loads(text)
        assert len(items) == len(set(items)) >= 2 and set(items) <= set("abc")
    assert isinstance(json.loads(generated(requested(backend, "json", "$$ANY$$"), 3, 5_000)), object)


def test_other_kinds(backend: Any) -> None:
    """Regular expressions, EBNF and structural tags are enforced."""
    assert generated(requested(backend, "regex", "ab{2,3}|c")) in ("abb", "abbb", "c")
    assert generated(requested(backend, "ebnf", 'root ::= root "a" | "b"{2}')).startswith("bb")
    tag = {"format": {"type": "tag", "begin": "<call>", "content": {"type": "regex", "pattern": "x|y"}, "end": "!"}}
    grammar = requested(backend, "structural_tag", json.dumps(tag))
    for token in (CALL, *ids("x!"), EOS):
        grammar.accept_token(token)
    assert grammar.is_terminated()
    with pytest.raises(ValueError, match="not allowed"):
        requested(backend, "structural_tag", json.dumps(tag)).accept_token(ids("<")[0])


def test_tool_calls_of_sglang(backend: Any) -> None:
    """The constraint that SGLang itself makes for required tool calls is enforced."""
    parameters = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
    tools = [Tool(type="function", function=Function(name="count", description="", parameters=parameters, strict=True))]
    kind, value = FunctionCallParser(tools, "qwen25").get_structure_constraint("auto")
    assert kind == "structural_tag"
    text = value if isinstance(value, str) else json.dumps(value.model_dump(mode="json", by_alias=True))
    grammar = requested(backend, kind, text)
    call = '<tool_call>\n{"name":"count", "arguments":{"n": 2}}\n</tool_call>'
    for token in ids(f"So: {call}"):
        grammar.accept_token(token)
    other = requested(backend, kind, text)
    for token in ids(call.partition("2")[0]):
        other.accept_token(token)
    with pytest.raises(ValueError, match="not allowed"):
        other.accept_token(ids("3")[0])


@pytest.mark.parametrize("parser", sorted(FunctionCallParser.ToolCallParserEnum))
def test_tool_parsers_of_sglang(backend: Any, parser: str) -> None:
    """Whatever constraint SGLang makes for tools of a model's family is read."""
    parameters = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
        "required": ["n"],
    }
    functions = [("f", parameters), ("g", None)]
    tools = [
        Tool(type="function", function=Function(name=name, description="", parameters=schema, strict=True))
        for name, schema in functions
    ]
    if parser == "response_template":
        pytest.skip("this parser needs a template of its own")
    for choice in ("auto", "required"):
        constraint = FunctionCallParser(tools, parser).get_structure_constraint(choice)
        if constraint is None:  # not every parser has a constraint
            continue
        kind, value = constraint
        if hasattr(value, "model_dump"):
            value = value.model_dump(mode="json", by_alias=True)
        grammar = requested(
            backend, kind.replace("json_schema", "json"), value if isinstance(value, str) else json.dumps(value)
        )
        assert isinstance(grammar, GrammarObject), grammar.error_message


@pytest.mark.parametrize(
    ("kind", "text"),
    [("json", '{"type": 3}'), ("json", "{"), ("regex", "("), ("ebnf", "root ::="), ("structural_tag", "{}")],
)
def test_bad_requests(backend: Any, kind: str, text: str) -> None:
    """A malformed request is an invalid grammar with its reason, for this request alone."""
    grammar = requested(backend, kind, text)
    assert isinstance(grammar, base.InvalidGrammarObject)
    assert len(grammar.error_message) > 20


def test_rollback_and_end(backend: Any) -> None:
    """Rolling back undoes the end of a text too, and tokens after it count though they are ignored."""
    grammar = requested(backend, "regex", "[ab]*")
    masks = grammar.allocate_vocab_mask(WIDTH, 2, "cpu")
    grammar.fill_vocab_mask(masks, 0)
    for token in (*ids("ab"), EOS, 5, 6):
        grammar.accept_token(token)
    assert grammar.is_terminated()
    grammar.rollback(2)
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.rollback(2)
    grammar.fill_vocab_mask(masks, 1)
    assert torch.equal(masks[0], masks[1])
    grammar.reset_vocab_mask(masks)
    assert (masks == -1).all()


def test_masks_are_ours(backend: Any) -> None:
    """Rows of a batch are the masks of the matchers; logits beyond the vocabulary are forbidden."""
    grammars = [requested(backend, "regex", pattern) for pattern in ("a|b", "[0-9]+", "x*")]
    masks = grammars[0].allocate_vocab_mask(WIDTH + 100, 4, "cpu")
    grammars[0].fill_vocab_mask_batched([base.GrammarRow(row, one) for row, one in zip((3, 0, 2), grammars)], masks)
    expected = np.zeros((3, WORDS), dtype=np.uint32)
    fill_masks([one._matcher for one in grammars], expected)
    assert (masks[[3, 0, 2], :WORDS].numpy().view(np.uint32) == expected).all()
    assert (masks[1] == -1).all() and (masks[[3, 0, 2], WORDS:] == 0).all()
    ours, theirs = torch.zeros(3, WIDTH), torch.zeros(3, WIDTH)
    apply_mask(ours, torch.from_numpy(expected.view(np.int32)))
    grammars[0].apply_vocab_mask(theirs, masks[[3, 0, 2], :WORDS].contiguous())
    assert torch.equal(ours, theirs)


def test_a_batch_is_filled_by_one_call(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call finds the known masks of a batch; the others are derived, and are known the next time."""
    calls: list[list[int]] = []
    fill = sglang_backend.fill_known
    monkeypatch.setattr(
        sglang_backend, "fill_known", lambda texts, rows: (calls.append(fill(texts, rows)), calls[-1])[1]
    )
    grammars = [requested(backend, "regex", f"[a-z]{{{number}}}[0-9]") for number in range(1, 33)]
    masks = grammars[0].allocate_vocab_mask(WIDTH, 32, "cpu")
    rows = [base.GrammarRow(row, one) for row, one in enumerate(grammars)]
    for _ in range(2):
        grammars[0].fill_vocab_mask_batched(rows, masks)
    assert len(calls) == 2 and len(calls[0]) == 32
    assert calls[1] == [] or not COMPILED


def test_draft_trees(backend: Any) -> None:
    """SGLang's walk of a draft tree fills the rows that a draft reaches, and leaves the text as it was."""
    grammar = requested(backend, "json", json.dumps(SCHEMA))
    before = grammar.copy().allocate_vocab_mask(WIDTH, 2, "cpu")
    grammar.fill_vocab_mask(before, 0)
    # A chain of ["a","b" and after ["a", a second branch with a repeated item.
    chain, branch = ids('["a","b"]'), ids('"a"')
    draft = [0, *chain, *branch]
    size = len(draft)
    following = torch.full((size,), -1)
    sibling = torch.full((size,), -1)
    following[: len(chain)] = torch.arange(1, len(chain) + 1)
    following[len(chain) + 1 : size - 1] = torch.arange(len(chain) + 2, size)
    fork = chain.index(ids(",")[0]) + 2  # the node after the comma
    sibling[fork] = len(chain) + 1
    masks = grammar.allocate_vocab_mask(WIDTH, size, "cpu")
    traverse_tree(following, sibling, torch.tensor(draft), grammar, masks, WIDTH)
    filled = [bool((row != -1).any()) for row in masks]
    assert filled[: len(chain) + 1] == [True] * (len(chain) + 1)
    # The repeated item is refused at its letter: only the branch's quotation mark is reached.
    assert filled[len(chain) + 1 :] == [True, False, False]
    grammar.fill_vocab_mask(before, 1)
    assert torch.equal(before[0], before[1])
    assert json.loads(generated(grammar))


def test_random_draft_trees(backend: Any) -> None:
    """For random trees, the rows are those of texts that take the path token by token."""
    random = np.random.default_rng(2)
    letters = ids('[]"abc, ')
    for _ in range(60):
        size = int(random.integers(2, 12))
        draft = [0, *(letters[at] for at in random.integers(0, len(letters), size - 1))]
        parents = [-1, *(int(random.integers(0, node)) for node in range(1, size))]
        following, sibling = torch.full((size,), -1), torch.full((size,), -1)
        last: dict[int, int] = {}
        for node in range(1, size):
            (sibling if parents[node] in last else following)[last.get(parents[node], parents[node])] = node
            last[parents[node]] = node
        start = ids('["a",')[: int(random.integers(0, 6))]
        grammar = requested(backend, "json", json.dumps(SCHEMA))
        for token in start:
            grammar.accept_token(token)
        masks = grammar.allocate_vocab_mask(WIDTH, size, "cpu")
        traverse_tree(following, sibling, torch.tensor(draft), grammar, masks, WIDTH)
        for node in range(size):
            path, at = [], node
            while at > 0:
                path.append(draft[at])
                at = parents[at]
            probe = requested(backend, "json", json.dumps(SCHEMA))
            expected = probe.allocate_vocab_mask(WIDTH, 1, "cpu")
            try:
                for token in [*start, *path[::-1]]:
                    probe.accept_token(token)
                probe.fill_vocab_mask(expected, 0)
            except ValueError:
                pass
            assert torch.equal(masks[node], expected[0]), (node, draft, parents)


def test_reasoning() -> None:
    """With a reasoning parser, masks begin after the reasoning, and rolling back over its end works."""
    backend = create_backend(arguments(reasoning_parser="qwen3"), TOKENIZER, WIDTH, {EOS})
    grammar = requested(backend, "regex", "ab", reasoning=True)
    grammar.maybe_init_reasoning(True)
    masks = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    for token in ids("well"):
        grammar.fill_vocab_mask(masks, 0)
        assert (masks == -1).all()
        grammar.accept_token(token)
    grammar.accept_token(THINK_END)
    grammar.fill_vocab_mask(masks, 0)
    assert int(np.unpackbits(masks.numpy().view(np.uint8)).sum()) == 1
    grammar.accept_token(ids("a")[0])
    grammar.rollback(2)
    masks.fill_(-1)
    grammar.fill_vocab_mask(masks, 0)
    assert (masks == -1).all()


def test_limits_end_one_request(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grammar that meets a limit while a text is written ends this request, and not SGLang's scheduler."""
    grammar = requested(backend, "ebnf", 'root ::= "a" root | "b"')
    grammar.accept_token(ids("a")[0])

    class Full:
        """A matcher of a grammar that has grown too large."""

        def fill_mask(self, row: Any) -> None:
            raise LimitError("too many states")

        def accept(self, token: int) -> bool:
            raise LimitError("too many states")

    monkeypatch.setattr(grammar, "_matcher", Full())
    with pytest.raises(ValueError, match="too many states"):
        grammar.accept_token(ids("a")[0])
    masks = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(masks, 0)
    bits = np.unpackbits(masks.numpy().view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == [EOS]
    with pytest.raises(ValueError, match="too many states"):
        grammar.accept_token(EOS)


def test_a_limit_met_along_a_draft_is_undone_with_it(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang fills masks along a draft and rolls back: a limit that is met there does not end the request."""
    grammar = requested(backend, "regex", "a*b")
    masks = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    matcher = grammar._matcher

    def full(row: Any) -> None:
        raise LimitError("too many states")

    class Full:
        """The matcher after the draft, where the grammar has grown too large."""

        fill_mask = staticmethod(full)
        accept, rollback = matcher.accept, matcher.rollback

    grammar.accept_token(ids("a")[0])
    monkeypatch.setattr(grammar, "_matcher", Full())
    grammar.fill_vocab_mask(masks, 0)
    grammar.rollback(1)
    monkeypatch.setattr(grammar, "_matcher", matcher)
    grammar.accept_token(ids("b")[0])


def test_templates_are_bounded(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang's cache of templates does not grow with the number of different requests."""
    monkeypatch.setattr("toolgrammar.adapters.sglang.backend.MAX_TEMPLATES", 10)
    for number in range(30):
        requested(backend, "regex", f"x{{{number}}}y")
    assert len(backend.cache) == 10
