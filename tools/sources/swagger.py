"""Operations of Swagger 2.0 in the form of OpenAPI 3.

Swagger has the parameters' types beside their names, bodies and form fields among the parameters, and media types apart
from both. References are kept as they are: they are resolved in the Swagger document.

Source: Swagger 2.0; OpenAPI Specification 3.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgrammar.core.errors import Place, SchemaError

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
#: Keys of a parameter that are not part of its schema.
_OF_PARAMETERS = frozenset({"name", "in", "description", "required", "allowEmptyValue", "collectionFormat"})
#: collectionFormat -> style, explode. OpenAPI 3 has no style for values between tabs.
_STYLES = {
    "csv": (None, False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}


def as_openapi_3(
    operation: Mapping[str, Any], stated: Iterable[Mapping[str, Any]], document: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an operation of Swagger 2.0 as an operation of OpenAPI 3.

    Args:
        operation: the operation.
        stated: its parameters, those of its path item included, references resolved.
        document: the document, for the media types that it declares for all operations.

    Raises:
        SchemaError: a parameter has no form in OpenAPI 3.
    """
    consumes = operation.get("consumes") or document.get("consumes")
    media_types = [media for media in consumes if isinstance(media, str)] if isinstance(consumes, list) else []
    parameters: list[dict[str, Any]] = []
    fields: list[Mapping[str, Any]] = []
    body: dict[str, Any] | None = None
    for parameter in stated:
        if parameter.get("in") == "body":
            content = {media: {"schema": parameter.get("schema", {})} for media in media_types or ["application/json"]}
            body = {"content": content, **_some(parameter, "description", "required")}
        elif parameter.get("in") == "formData":
            fields.append(parameter)
        else:
            style = _style(parameter, str(parameter.get("in")))
            parameters.append(
                {**_some(parameter, "name", "in", "description", "required"), "schema": _schema(parameter), **style}
            )
    if fields:
        body = _form(fields, media_types)
    rest = {key: value for key, value in operation.items() if key not in ("parameters", "consumes")}
    return {**rest, "parameters": parameters, **({"requestBody": body} if body is not None else {})}


def _form(fields: list[Mapping[str, Any]], media_types: list[str]) -> dict[str, Any]:
    """Return form fields as one request body: a multipart form if one is a file, or if the operation takes no other."""
    files = any(field.get("type") == "file" for field in fields)
    multipart = files or (_MULTIPART in media_types and _FORM not in media_types)
    properties = {}
    for field in fields:
        properties[str(field.get("name"))] = {**_schema(field), **_some(field, "description")}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [str(field.get("name")) for field in fields if field.get("required") is True]
    if required:
        schema["required"] = required
    encoding = {}
    for field in fields:
        if field.get("type") == "array":
            style = _style(field, "query")
            encoding[str(field.get("name"))] = {"style": "form", **style}
    body: dict[str, Any] = {"schema": schema, **({"encoding": encoding} if encoding else {})}
    return {"content": {_MULTIPART if multipart else _FORM: body}, **({"required": True} if required else {})}


def _schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that has its keywords beside its name."""
    schema = {key: value for key, value in parameter.items() if key not in _OF_PARAMETERS}
    if schema.get("type") == "file":
        return {**schema, "type": "string", "format": "binary"}
    return schema


def _style(parameter: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return ``style`` and ``explode`` of a parameter that is a list; nothing for another.

    Raises:
        SchemaError: OpenAPI 3 has no style for its format in this place.
    """
    if parameter.get("type") != "array":
        return {}
    stated = parameter.get("collectionFormat", "csv")
    if stated not in _STYLES or (stated != "csv" and place not in ("query", "formData")):
        name = parameter.get("name")
        raise SchemaError(
            f"a list in the format {stated!r} cannot be written in a {place} parameter",
            hint="use csv, or in the query also ssv, pipes or multi",
            place=Place(parameter=name if isinstance(name, str) else None),
        )
    style, explode = _STYLES[stated]
    return {"explode": explode, **({"style": style} if style else {})}


def _some(source: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: source[key] for key in keys if key in source}
