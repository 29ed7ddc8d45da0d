"""Tokenizer and chat template of a model folder, in the files of Hugging Face, without transformers."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..conversation.messages import Message
from ..errors import MissingDependencyError, ModelError
from ..vocabulary.vocabulary import Vocabulary
from .chat_template import ChatTemplate
from .local_backend import LocalBackend
from .prompts import encode_inside, plain_prompt, template_ids

#: The members of ``tokenizer_config.json`` that name control tokens.
_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class FolderBackend(LocalBackend):
    """The common part of the backends whose models are folders with ``tokenizer.json``.

    A subclass adds `new_session`.

    Args:
        folder: the folder.
        size: number of logits of the model.
        ends: ids that end a text, in addition to that of ``tokenizer_config.json``.
        context_window: maximum number of tokens of a sequence.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.
        tool_format: the wire format of the model's tool calls; None: detect it from the chat template.
        extra: the extra of this package that has the libraries.

    Raises:
        MissingDependencyError: the package tokenizers is not installed.
        ModelError: a file cannot be read.
        VocabularyError: the exact bytes of the tokenizer's tokens are not known.
    """

    def __init__(
        self,
        folder: Path,
        *,
        size: int,
        ends: Collection[int],
        context_window: int,
        prefix_cache: int,
        tool_format: str | None,
        extra: str,
    ) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise MissingDependencyError(
                f"the tokenizer of {str(folder)!r} needs the package tokenizers",
                hint=f"pip install 'toolgrammar[{extra}]'",
            ) from error
        # The setting that reads names of control tokens as text belongs to a tokenizer; two need no lock.
        self._controls, self._plain = (_tokenizer(folder, tokenizers.Tokenizer) for _ in range(2))
        self._plain.encode_special_tokens = True
        config = read_json(folder, "tokenizer_config.json", optional=True)
        bos_name, eos_name = (_name_of(config.get(key) or "") for key in ("bos_token", "eos_token"))
        ids = {name: self._controls.token_to_id(name) for name in _control_names(config)}
        ids = {name: token_id for name, token_id in ids.items() if token_id is not None}
        eos = ids.get(eos_name)
        self._bos = ids.get(bos_name)
        vocabulary = Vocabulary.from_transformers(
            SimpleNamespace(  # the attributes of a tokenizer of transformers that are read
                backend_tokenizer=self._controls,
                all_special_tokens=list(ids),
                all_special_ids=list(ids.values()),
                eos_token_id=None if eos is None or eos >= size else eos,
            ),
            size=size,
            extra_eos=[token_id for token_id in ends if 0 <= token_id < size],
        )
        source = _template(folder, config)
        self._template = ChatTemplate.of(source, vocabulary.special, bos=bos_name, eos=eos_name)
        super().__init__(
            str(folder),
            vocabulary,
            context_window,
            prefix_cache=prefix_cache,
            tool_format=tool_format,
            chat_template=source,
            takes_thinking=True,
        )

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text`` in the middle of a text; names of control tokens are read as text."""
        self._sessions.check()
        return encode_inside(lambda piece: _ids(self._plain, piece), self.vocabulary, text)

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation, by the chat template of the folder if there is one."""
        if not messages:
            added = self._controls.encode("", add_special_tokens=True).ids  # what the tokenizer adds to every text
            return [self._bos] if self._bos is not None and self._bos in added else []
        if self._template is None:
            return plain_prompt(messages, tool_prompt, self.vocabulary, self.encode, self._bos)
        pieces = self._template.render_prompt(messages, tools, tool_prompt, thinking)
        return template_ids(pieces, self.encode, lambda text: _ids(self._controls, text), self.vocabulary)

    @abstractmethod
    def new_session(self) -> Any:
        """Return an empty sequence, without the prefix cache."""


def check_folder(path: str, needed: Mapping[str, str], scheme: str, made_by: str) -> Path:
    """Return the folder of a model, which has all files that are needed.

    Args:
        path: the folder.
        needed: patterns of files, and the description of each.
        scheme: the scheme of the address.
        made_by: the hint: the program that writes such folders.

    Raises:
        ModelError: the folder does not exist, or lacks files; the error names them.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        problem = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ModelError(f"{path!r} {problem}", hint=f"{scheme}:FOLDER; {made_by}")
    found = {pattern for pattern in needed if any(path.is_file() for path in folder.glob(pattern))}
    absent = [f"{pattern} ({purpose})" for pattern, purpose in needed.items() if pattern not in found]
    if absent:
        raise ModelError(f"the folder {path!r} lacks {', '.join(absent)}", hint=made_by)
    return folder


def read_json(folder: Path, name: str, *, optional: bool = False) -> dict[str, Any]:
    """Return the object in a JSON file of a folder; an empty one if the file is optional and absent.

    Raises:
        ModelError: it cannot be read, or is no object.
    """
    path = folder / name
    if optional and not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error}", hint="write the folder again") from error
    if not isinstance(value, dict):
        raise ModelError(f"{str(path)!r} is not a JSON object", hint="write the folder again")
    return value


def token_ids_of(value: Any) -> list[int]:
    """Return the ids of a member such as ``eos_token_id``: absent, a number, or a list."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, int) and not isinstance(each, bool)]


def _tokenizer(folder: Path, kind: Any) -> Any:
    """Return the tokenizer of a folder; ``kind`` is the class ``tokenizers.Tokenizer``."""
    path = str(folder / "tokenizer.json")
    try:
        return kind.from_file(path)
    except Exception as error:  # the package raises its own, without a common class
        raise ModelError(f"{path!r} cannot be read: {error}", hint="write the folder again") from error


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def _name_of(token: Any) -> str:
    """Return the name of a token in ``tokenizer_config.json``: ``"<s>"`` or ``{"content": "<s>", ...}``."""
    return str(token["content"] if isinstance(token, Mapping) else token)


def _control_names(config: Mapping[str, Any]) -> list[str]:
    """Return the names of the control tokens that ``tokenizer_config.json`` declares."""
    names = [_name_of(config[key]) for key in _NAMED if config.get(key)]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(key) or []
        names += map(_name_of, more.values() if isinstance(more, Mapping) else more)
    added = config.get("added_tokens_decoder") or {}
    names += [_name_of(token) for token in added.values() if token.get("special")]
    return list(dict.fromkeys(names))


def _template(folder: Path, config: Mapping[str, Any]) -> str:
    """Return the chat template of a folder; empty if there is none.

    It is a file or a member of ``tokenizer_config.json``; of several named ones, that with the name ``default``.
    """
    file = folder / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"{str(file)!r} cannot be read: {error}", hint="write the folder again") from error
    source = config.get("chat_template") or ""
    if isinstance(source, list):
        named = {each.get("name"): each.get("template") for each in source if isinstance(each, Mapping)}
        source = named.get("default") or next(iter(named.values()), "")
    return str(source)
