"""Tests of agents with a model that follows a script, and of backends against their laws.

`ScriptedModel` is a real `LocalModel`: real grammar, real masks, real decoding loop. Only the logits are scripted, so a
test sees what would happen with a model that wants to say just this. `check_backend` is for backends of your own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from .basics.forks import shared_lock
from .conversation.messages import Message
from .errors import ContextOverflowError, ModelError, ToolGrammarError
from .generation.backend import Backend, BatchBackend, Session, closed_error
from .generation.driver import look_ahead
from .generation.token_sequence import Forward
from .models.local_model import LocalModel
from .models.prompts import refuse_images
from .models.sessions import OpenSessions, check_crop, check_new_tokens
from .vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Reply", "Script", "ScriptedModel", "byte_vocabulary", "check_backend", "render_reply"]

Reply = Union[str, Message]
Script = Union[Sequence[Reply], Callable[[Sequence[Message]], Reply]]

_MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")

#: Tokens that are preferred where the grammar forbids the script: they close what is open.
_CLOSING = (b"<", b"]", b"}", b'"')

#: Numbers of bytes that must agree for text and script to have met again, largest first.
_MEETING = (12, 6, 3)


def byte_vocabulary() -> Vocabulary:
    """Return a vocabulary of every single byte, the Hermes markers, and an end of text."""
    tokens: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
    tokens += [marker.encode() for marker in _MARKERS]
    tokens.append(None)
    return Vocabulary(tokens, eos=[len(tokens) - 1], special={"<|im_end|>": len(tokens) - 1})


def render_reply(reply: Reply) -> str:
    """Return the text that the model would write: a message's text, then its calls in the Hermes format."""
    if isinstance(reply, str):
        return reply
    calls = [
        "<tool_call>\n"
        + json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
        + "\n</tool_call>"
        for call in reply.tool_calls
    ]
    return "\n".join([reply.text, *calls] if reply.text else calls)


@dataclass(eq=False)
class _Session:
    """A session whose logits prefer the script's next bytes.

    Args:
        vocabulary: the vocabulary of the model.
        ids_of: its tokens by their bytes.
        target: the reply that the script has next.
        length_of_prompt: returns the number of tokens of the prompt, which may be replaced while the reply is written.
        window: number of tokens that fit.
    """

    vocabulary: Vocabulary
    ids_of: Mapping[bytes, int]
    target: bytes
    length_of_prompt: Callable[[], int]
    window: int
    cached_tokens = 0

    def __post_init__(self) -> None:
        self._is_closed = False
        self._longest = max(map(len, self.ids_of))
        self._prompt_length = self.length_of_prompt()
        self._ids: list[int] = []
        self._written = bytearray()
        self._positions: list[tuple[int, int]] = []  # after each token: how much is written, how much counts as said

    @property
    def length(self) -> int:
        return len(self._ids)

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens, and return the logits after them: those of a reply prefer what the script says next."""
        if self._is_closed:
            raise closed_error("session")
        if len(self._ids) < self._prompt_length:  # the prompt is new, or was replaced
            self._prompt_length = self.length_of_prompt()
        for token_id in check_new_tokens(token_ids, len(self._ids), self.window, self.vocabulary.size):
            written, said = self._positions[-1] if self._positions else (0, 0)
            if len(self._ids) >= self._prompt_length:  # a token of the reply
                for byte in self.vocabulary.tokens[token_id] or b"":
                    self._written.append(byte)
                    said = self._advance(said)
                written = len(self._written)
            self._ids.append(token_id)
            self._positions.append((written, said))
        return self._logits(self.target[self._positions[-1][1] :])

    def _advance(self, said: int) -> int:
        """Return how much of the script counts as said after one more byte, which the grammar may have chosen."""
        if self.target[said : said + 1] == self._written[-1:]:
            return said + 1
        # The grammar wrote something else: go on after the next place where the script says the same.
        for size in _MEETING:
            recent = bytes(self._written[-size:])
            if len(recent) == size and (place := self.target.find(recent, said)) >= 0:
                return place + size
        return said

    def _logits(self, wanted: bytes) -> npt.NDArray[np.float32]:
        """Return logits that prefer, in this order: the longest token of the text that is wanted next, the end of the
        answer where nothing is wanted, and tokens that close what is open."""
        logits = np.zeros(self.vocabulary.size, dtype=np.float32)
        for rank, data in enumerate(_CLOSING):
            if data in self.ids_of:
                logits[self.ids_of[data]] = 5.0 + rank
        if not wanted:  # control tokens close what text could go on in for ever
            for token_id in self.vocabulary.special.values():
                logits[token_id] = 20.0
        for token_id in self.vocabulary.eos:  # what the grammar does not let it say, it leaves unsaid
            logits[token_id] = 10.0 if wanted else 100.0
        for size in range(1, min(self._longest, len(wanted)) + 1):
            token = self.ids_of.get(wanted[:size])
            if token is not None:
                logits[token] = 50.0 + size
        return logits

    def crop(self, length: int) -> None:
        check_crop(length, len(self._ids))
        del self._ids[length:], self._positions[length:]
        del self._written[self._positions[-1][0] if self._positions else 0 :]

    def close(self) -> None:
        self._is_closed = True
        self.crop(0)


class _Backend:
    """A backend whose sessions follow the script."""

    tool_format = "hermes"
    chat_template = None
    takes_thinking = False

    def __init__(self, script: Script, vocabulary: Vocabulary, context_window: int) -> None:
        self.name = "scripted"
        self.vocabulary = vocabulary
        self.context_window = context_window
        self.requests: list[tuple[Message, ...]] = []
        self._script = script
        self._ids_of = {data: token for token, data in reversed(list(enumerate(vocabulary.tokens))) if data}
        if missing := sum(bytes((byte,)) not in self._ids_of for byte in range(256)):
            raise ModelError(
                f"the vocabulary has no token for {missing} of the 256 bytes",
                hint="a scripted model spells any text, so it needs them all",
            )
        self._longest = max(map(len, self._ids_of))
        self._replies = 0
        self._local = threading.local()
        self._sessions: OpenSessions[_Session] = OpenSessions()
        self._lock = shared_lock(self, "_lock", threading.Lock())

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text: at each place the longest one."""
        data = text.encode("utf-8", "surrogatepass")
        ids: list[int] = []
        index = 0
        while index < len(data):
            size = next(
                size
                for size in range(min(self._longest, len(data) - index), 0, -1)
                if data[index : index + size] in self._ids_of
            )
            ids.append(self._ids_of[data[index : index + size]])
            index += size
        return ids

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """Return the tokens of a prompt, a line for each message, and keep the messages for the next session."""
        refuse_images(messages)
        self._local.messages = tuple(messages)
        if not messages:
            self._local.prompt_length = 0
            return []
        ids = self.encode(tool_prompt)
        for message in messages:
            ids.extend(self.encode(f"{message.role}: {render_reply(message)}\n"))
        ids.extend(self.encode("assistant: "))
        self._local.prompt_length = len(ids)
        return ids

    def close(self) -> None:
        self._sessions.close()

    def start(self) -> _Session:
        """Return a session that writes the next reply of the script."""
        self._sessions.check()
        messages = self._local.messages
        with self._lock:
            self.requests.append(messages)
            number = self._replies
            self._replies += 1
        if callable(self._script):
            reply = self._script(messages)
        elif number < len(self._script):
            reply = self._script[number]
        else:
            raise ModelError(
                f"the script has {len(self._script)} replies, and request number {number + 1} came",
                hint="give ScriptedModel as many replies as the agent asks for, or a function",
            )
        target = render_reply(reply).encode("utf-8", "surrogatepass")
        length = lambda: self._local.prompt_length  # noqa: E731
        session = _Session(self.vocabulary, self._ids_of, target, length, self.context_window)
        self._sessions.add(session)
        return session


class ScriptedModel(LocalModel):
    """Model whose logits follow a script, as far as the grammar allows.

    Where the grammar does not let it, it goes on as soon as the two agree again, and closes what is open when the
    script is over.

    Args:
        replies: what to say, one reply for each request, in order: a text as the model would write it, or a `Message`
            whose tool calls are written in the Hermes format; or a function from the conversation to a reply.
        vocabulary: its tokens, every single byte among them; by default those bytes and a few markers.
        context_window: how many tokens (by default: bytes) fit; also the budget of a request that gives none.

    Attributes:
        requests: the conversations that were asked for so far.

    Raises:
        ModelError: the vocabulary lacks a byte; or, when generating, there are no more replies.

    Law: a reply that the grammar admits is written exactly.
    """

    def __init__(self, replies: Script, *, vocabulary: Vocabulary | None = None, context_window: int = 200_000) -> None:
        if isinstance(replies, (str, Message)):
            raise ModelError("the replies of a scripted model are a list", hint="ScriptedModel([reply])")
        self._scripted = _Backend(replies, vocabulary or byte_vocabulary(), context_window)
        super().__init__(self._scripted, default_max_tokens=context_window)

    @property
    def requests(self) -> list[tuple[Message, ...]]:
        """The conversations that were asked for so far."""
        return self._scripted.requests


def check_backend(backend: Backend, *, tolerance: float = 1e-3) -> None:
    """Check the laws of a `Backend`, its sessions and (if it has them) its batches on a short text; then close it.

    Args:
        backend: the backend, which has room for 64 tokens at least.
        tolerance: maximum difference of logits that should be equal, as a share of the greatest one.

    Raises:
        AssertionError: a law is broken; says which.
    """
    prompt = _check_tokens(backend)
    ids = (prompt * 8)[: max(8, min(len(prompt), 24))]
    _check_sessions(backend, ids, tolerance)
    if isinstance(backend, BatchBackend):
        _check_batches(backend, backend, ids, tolerance)
    model = LocalModel(backend)
    wanted = ["yes", "no"]
    generations = model.generate_batch(["Is it?", "Really?"], output_type={"enum": wanted}, temperature=1.0, seed=1)
    _law(all(json.loads(one.text) in wanted for one in generations), "a batch writes what its grammar allows")
    session = backend.start()
    session.extend(ids)
    model.close()
    model.close()
    _law(_refuses(ModelError, lambda: session.extend(ids[:1])), "closing the backend closes its sessions")
    _law(_refuses(ModelError, backend.start), "a closed backend starts no session")


def _law(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"broken: {law}")


def _refuses(error: type[ToolGrammarError], act: Callable[[], object]) -> bool:
    """Return True if an action raises an error of this type."""
    try:
        act()
    except error:
        return True
    return False


def _are_near(logits: npt.NDArray[np.float32], expected: npt.NDArray[np.float32], tolerance: float) -> bool:
    finite = np.isfinite(expected)
    return bool(np.abs(logits - expected)[finite].max() <= tolerance * max(1.0, np.abs(expected[finite]).max()))


def _check_tokens(backend: Backend) -> list[int]:
    """Check vocabulary, tokenizer and prompts; return the tokens of a prompt."""
    vocabulary = backend.vocabulary
    controls = set(vocabulary.special.values())
    spelled = "".join(vocabulary.special)
    for text in ('{"city": "Oslo"}', " the  weather\n", spelled):
        ids = backend.encode(text)
        _law(not controls & set(ids), "encode writes no control token, also where the text spells one")
        _law(all(0 <= token_id < vocabulary.size for token_id in ids), "token ids are in the vocabulary")
    _law(backend.encode("") == [], "the empty text has no tokens")
    options: dict[str, Any] = {"thinking": False} if backend.takes_thinking else {}
    for given in ({}, options):
        plain, attack = (
            backend.encode_prompt([Message("user", text)], **given) for text in ("It is?", f"It is {spelled}")
        )
        _law(bool(plain), "a prompt has tokens")
        _law(all(0 <= token_id < vocabulary.size for token_id in plain), "token ids are in the vocabulary")
        counts = (sum(token_id in controls for token_id in ids) for ids in (plain, attack))
        _law(len(set(counts)) == 1, "what a message spells is no control token")
    return plain


def _check_sessions(backend: Backend, ids: list[int], tolerance: float) -> None:
    """Check the laws of one session: pieces, crops, forks and errors change no logits."""
    whole, pieces = backend.start(), backend.start()
    _law(whole.length == 0, "a new session is empty")
    expected = whole.extend(ids)
    _law(
        expected.shape == (backend.vocabulary.size,) and expected.dtype == np.float32,
        "logits are float32, one for each token of the vocabulary",
    )
    _law(whole.length == len(ids) and 0 <= whole.cached_tokens <= len(ids), "a session counts its tokens")

    def same(logits: npt.NDArray[np.float32], law: str) -> None:
        _law(_are_near(logits, expected, tolerance), law)

    for token_id in ids[:-1]:
        pieces.extend([token_id])
    same(pieces.extend(ids[-1:]), "tokens may come one by one")
    pieces.extend(ids[:3])
    pieces.crop(len(ids) - 2)
    _law(pieces.length == len(ids) - 2, "crop shortens a session")
    same(pieces.extend(ids[-2:]), "a sequence goes on after a crop")
    pieces.crop(0)
    same(pieces.extend(ids), "a sequence begins again after a crop to nothing")
    _law(_refuses(ModelError, lambda: pieces.extend([])), "no tokens are an error")
    many = ids[:1] * (backend.context_window + 1 - len(ids))
    _law(_refuses(ContextOverflowError, lambda: pieces.extend(many)), "tokens beyond the context window are an error")
    _law(_refuses(ModelError, lambda: pieces.crop(len(ids) + 1)), "crop does not lengthen")
    _law(pieces.length == len(ids), "an error leaves the sequence as it was")
    pieces.crop(len(ids) - 1)
    same(pieces.extend(ids[-1:]), "an error leaves the sequence as it was")
    whole.crop(len(ids) - 1)
    same(whole.extend(ids[-1:]), "sessions are independent")
    tree = Forward(tuple(ids[:4]), parents=(-1, 0, -1, 2))
    rows = look_ahead(whole, tree)
    _law(whole.length == len(ids), "a look ahead leaves the sequence as it was")
    for row, branch in ((rows[1], ids[:2]), (rows[3], ids[2:4])):
        _law(_are_near(row, whole.extend(branch), tolerance), "a look ahead along branches gives their logits")
        whole.crop(len(ids))
    whole.close()
    pieces.close()
    pieces.close()
    _law(_refuses(ModelError, lambda: pieces.extend(ids)), "a closed session takes no tokens")
    again = backend.start()
    same(again.extend(ids), "a sequence may be reused")
    again.close()


class _Row(NamedTuple):
    """A sequence of a batch: its session, and the tokens that it must have."""

    session: Session
    expected: list[int]


def _check_batches(backend: Backend, batches: BatchBackend, ids: list[int], tolerance: float) -> None:
    """Check that rows of shared forward passes have the logits of sessions of their own."""

    def alone(tokens: list[int]) -> npt.NDArray[np.float32]:
        session = backend.start()
        logits = session.extend(tokens)
        session.close()
        return logits

    if not batches.can_batch():
        return
    rows: dict[int, _Row] = {}  # by number

    def step(*more: tuple[int, list[int]]) -> None:
        """Append tokens to rows in one forward pass; rows that are new begin."""
        unread = []
        for row, tokens in more:
            if row not in rows:
                session = batches.begin(tokens)
                _law(session.length < len(tokens), "a sequence begins with no more than all but the last token")
                rows[row] = _Row(session, [])
            session, expected = rows[row]
            expected += tokens
            unread.append((session, expected[session.length :]))
        for (row, _), logits in zip(more, batches.extend_many(unread), strict=True):
            session, expected = rows[row]
            _law(session.length == len(expected), "a row counts its tokens")
            _law(_are_near(logits, alone(expected), tolerance), "a row is as a session alone")

    step((0, ids), (7, ids[:3]))
    step((7, ids[3:]))
    rows[0].session.crop(len(ids) - 2)
    del rows[0].expected[-2:]
    step((7, ids[:1]), (0, ids[-1:]))
    rows.pop(7).session.close()
    step((7, ids[1:4]), (0, ids[:2]), (8, ids))
    one, other = rows[0].session, rows[7].session
    _law(_refuses(ModelError, lambda: batches.extend_many([(one, ids[:1]), (other, [])])), "no tokens are an error")
    many = ids[:1] * (backend.context_window + 1)
    tries = lambda: batches.extend_many([(one, ids[:1]), (other, many)])  # noqa: E731
    _law(_refuses(ContextOverflowError, tries), "tokens beyond the window are an error")
    step((0, ids[:1]), (7, ids[:1]))
    for session, _ in rows.values():
        session.close()
    _law(_refuses(ModelError, lambda: batches.extend_many([(one, ids)])), "a closed sequence takes no tokens")
