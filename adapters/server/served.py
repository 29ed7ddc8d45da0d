"""The models of a server, and the options of requests to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from toolgrammar.core.generation import OPTIONS, GenerateParams
from toolgrammar.core.grammar import ConstraintCache
from toolgrammar.core.models import Model, load_model

from .. import _shared
from .fields import Fields, RequestError, at_field
from .images import ImageFetcher, RequestImages
from .named_values import NamedValues
from .parts import OWN
from .rows import Form

#: Fields of requests that hold texts, images or tokens, in any protocol. Each other one may hold schemas and tools.
_TEXTS = {"messages", "input", "prompt", "suffix", "system", "instructions", "template", "images", "context"}


def _parts_with_schemas(body: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a request that may hold schemas: with the tools of a tool search's output."""
    yield from (value for name, value in body.items() if name not in _TEXTS)
    items = body.get("input")
    if isinstance(items, list):
        yield from (item["tools"] for item in items if isinstance(item, dict) and "tools" in item)


class Served:
    """The models of a server, by name.

    Args:
        models: a model or its address, or several by the names that clients give.
        defaults: options of requests that do not say otherwise.
        max_schema: maximum number of bytes of all schemas of a request, as JSON.
        values: the values that schemas may name in ``x-values``; see `NamedValues`.
        fetch_images: hosts from which images are fetched; see `ImageFetcher`.
        max_fetched: maximum number of bytes of the fetched images of a request.

    Raises:
        ModelError: a model cannot be loaded, or a host is not valid.
        InvalidSchemaError: a value cannot be named in schemas.
    """

    def __init__(
        self,
        models: str | Model | Mapping[str, str | Model],
        defaults: GenerateParams | None = None,
        *,
        max_schema: int = 1 << 20,
        values: Mapping[str, Any] | None = None,
        fetch_images: Collection[str] = (),
        max_fetched: int = 4 << 20,
    ) -> None:
        self._values = NamedValues(values or {})
        self._fetcher = ImageFetcher(fetch_images) if fetch_images else None
        self._max_fetched = max_fetched
        if not isinstance(models, Mapping):
            models = {models if isinstance(models, str) else models.name: models}
        self.defaults = defaults or GenerateParams()
        self._max_schema = max_schema
        self._own: list[Model] = []
        self._loaded: dict[str, _shared.LoadedModel] = {}
        try:
            for name, model in models.items():
                if isinstance(model, str):
                    model = load_model(model)
                    self._own.append(model)
                self._loaded[name] = _shared.LoadedModel(model)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def fields(self, body: Any, form: Form) -> Fields:
        """Return the fields of a request's body whose schemas are not too large: that is checked before they are read.

        Args:
            body: its JSON.
            form: what it may have.

        Raises:
            RequestError: the body is not an object, or its schemas are too large (413).
        """
        if not isinstance(body, dict):
            return Fields(body, form)
        try:
            size = sum(len(json.dumps(part)) for part in _parts_with_schemas(body))
        except RecursionError:
            raise RequestError("the body is nested too deeply", hint="send schemas of fewer levels") from None
        if size > self._max_schema:
            raise RequestError(
                f"the schemas of the request have {size:,} bytes of JSON",
                hint=f"at most {self._max_schema:,} are taken",
                status=413,
            )
        return Fields(body, form)

    def model(self, name: str) -> Model:
        """Return the model of a name.

        Raises:
            RequestError: there is none (404).
        """
        return self._loaded_model(name).model()

    def described(self, form: Callable[[str, Model], Any]) -> list[Any]:
        """Return each model in some form, which is made of its name and itself."""
        return [form(name, self.model(name)) for name in self]

    def images(self, name: str) -> RequestImages:
        """Return the check of the images of a request to a model.

        Raises:
            RequestError: there is no such model (404).
        """
        return RequestImages(self.model(name), self._fetcher, self._max_fetched)

    def _loaded_model(self, name: str) -> _shared.LoadedModel:
        return self._loaded[self.own_name(name)]

    def own_name(self, name: str) -> str:
        """Return the name under which a model is served.

        Raises:
            RequestError: there is none (404).
        """
        # Ollama's clients name a model with or without the tag that it has by default.
        for each in (name, f"{name}:latest", name.removesuffix(":latest")):
            if each in self._loaded:
                return each
        raise RequestError(
            f"unknown model {name!r}", field="model", hint=f"the models are {sorted(self._loaded)}", status=404
        )

    def params(
        self,
        name: str,
        options: Mapping[str, Any],
        own: Fields | None,
        tools: Sequence[Mapping[str, Any]] = (),
        choice: Any = None,
        schema: Any = None,
    ) -> GenerateParams:
        """Return the options of a request to a model; None means not given.

        Args:
            name: of the model.
            options: fields of `GenerateParams`, from fields of the protocol.
            own: those of the request's field ``toolgrammar``; None: it has no such field.
            tools: OpenAI-style dicts.
            choice: of a tool, in any form that `_shared.tool_choice` knows.
            schema: of the answer; None: its text is free.

        Raises:
            RequestError: an option, the choice or a schema cannot be met, or an option is given in both ways.
        """
        loaded = self._loaded_model(name)
        grammar = options.get("grammar")
        if grammar is not None and (tools or schema is not None):
            other = "tools" if tools else "a schema of the answer"
            raise RequestError(f"grammar cannot be combined with {other}", field="grammar", hint="give one of them")
        defaults = {option: getattr(self.defaults, option) for option in OPTIONS}
        given = {option: value for option, value in options.items() if value is not None}
        extension = {} if own is None else {key: value for key, value in own.of(*OWN).items() if value is not None}
        for option in given.keys() & extension:
            place = f"toolgrammar.{option}"
            raise RequestError(f"{place} is given in a field of its own too", field=place, hint="give it once")
        for option, value in (*given.items(), *extension.items()):  # one by one, so that an error names the field
            with at_field(f"toolgrammar.{option}" if option in extension else option):
                _shared.generation_params({option: value})
        given |= extension
        params = _shared.generation_params({**defaults, **given})
        with at_field("tool_choice"):
            _shared.tool_choice(choice, [*map(_shared.tool_name, tools)])
        schema = self._values.bound(schema)
        with at_field("tools"):
            return loaded.with_tools(params, [self._bound(tool) for tool in tools], choice, schema)

    def _bound(self, tool: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a tool whose ``x-values`` has names of this process."""
        function = tool["function"]
        parameters = self._values.bound(function.get("parameters"), function["name"])
        return tool if parameters is None else {**tool, "function": {**function, "parameters": parameters}}

    def relieve(self) -> None:
        """Drop the grammars that are kept for later requests; those in use stay."""
        for loaded in self._loaded.values():
            cache = getattr(loaded.model(), "cache", None)
            if isinstance(cache, ConstraintCache):
                cache.clear()

    def close(self) -> None:
        """Close the models that were loaded here by their addresses."""
        for model in self._own:
            model.close()
