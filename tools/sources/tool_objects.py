"""Tool objects of agent frameworks and SDKs, recognised by their attributes: no framework is imported.

Each recogniser takes an object and its name, and returns its tool, or None if the object is not of its kind. The schema
is the object's full one, not what the framework would send. The tool runs what the object carries to run.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from toolgrammar.core.errors import Place, SchemaError

from ..tool import Tool, text_parameters
from .classes import parameters_of, without_fields
from .python import is_function
from .tool_dicts import about, grammar_of, list_in, parameter_map, tools_from_dict

_ONE_TEXT = {"type": "object", "properties": {"__arg1": {"type": "string"}}, "required": ["__arg1"]}

#: Bases of LangChain's marks of arguments that the model does not give.
_INJECTED = ("InjectedToolArg", "_DirectlyInjectedToolArg")


def _langchain(source: Any, name: str) -> Tool | None:
    """LangChain's ``BaseTool``; ``extras`` may defer it."""
    if not hasattr(source, "tool_call_schema"):
        return None
    description = _description(source)
    metadata = getattr(source, "metadata", None) or {}
    is_deferred = (getattr(source, "extras", None) or {}).get("defer_loading") is True
    only_async = getattr(source, "func", True) is None and getattr(source, "coroutine", None) is not None
    run = _of_dict(source.ainvoke if only_async else source.invoke)
    if metadata.get("type") == "custom_tool":  # of langchain-openai, whose argument has this name
        parameters: Any = text_parameters(grammar_of(metadata.get("format"), name), "__arg1")
    elif getattr(source, "args_schema", True) is None and "tool_input" in (getattr(source, "args", None) or ()):
        parameters = _ONE_TEXT  # LangChain itself gives the model this schema
    else:
        parameters = parameters_of(_langchain_class(source), name)
    return Tool(name, description, parameters, function=run, deferred=is_deferred)


def _langchain_class(source: Any) -> Any:
    """Return the class of a LangChain tool's arguments, or their schema, without what LangChain injects.

    It is ``args_schema``, by which the tool validates. ``tool_call_schema`` is made of it by LangChain and lacks its
    aliases and configuration, so it counts only where a subclass has defined it, or where there is no class.
    """
    own = getattr(source, "args_schema", None)
    definer = next((each for each in type(source).__mro__ if "tool_call_schema" in vars(each)), type(source))
    is_langchains = definer.__module__.startswith("langchain_core.")
    if not is_langchains or not (inspect.isclass(own) and issubclass(own, BaseModel)):
        return source.tool_call_schema
    return without_fields(own, [name for name, field in own.model_fields.items() if _is_injected(field)])


def _is_injected(field: Any) -> bool:
    """Return True if LangChain fills in a field of a tool's class: it is marked so, or its type is."""
    marks = (typing.get_origin(field.annotation) or field.annotation, *field.metadata)
    classes = (mark if inspect.isclass(mark) else type(mark) for mark in marks)
    return any(base.__name__ in _INJECTED for each in classes for base in each.__mro__)


def _crewai(source: Any, name: str) -> Tool | None:
    """CrewAI's ``BaseTool``."""
    if not hasattr(source, "args_schema"):
        return None
    schema = parameters_of(source.args_schema, name)
    return Tool(name, _description(source), schema, function=getattr(source, "run", None))


def _autogen(source: Any, name: str) -> Tool | None:
    """AutoGen's ``BaseTool``. The token that a call wants is made by the package that the tool came with."""
    if not callable(getattr(source, "args_type", None)):
        return None
    token = getattr(sys.modules.get("autogen_core"), "CancellationToken", None)
    run = None
    if token is not None and callable(getattr(source, "run_json", None)):

        async def run(**arguments: Any) -> Any:
            cancellation = token()
            try:
                return await source.run_json(arguments, cancellation)
            except asyncio.CancelledError:
                cancellation.cancel()
                raise

    schema = parameters_of(source.args_type(), name)
    return Tool(name, _description(source), schema, function=run)


def _mcp(source: Any, name: str) -> Tool | None:
    """A ``Tool`` of the ``mcp`` package (1 or 2), or a function tool of Anthropic's, which has a ``call``."""
    key = next((k for k in ("inputSchema", "input_schema") if isinstance(getattr(source, k, None), Mapping)), None)
    if key is None:
        return None
    fields = source.model_dump(by_alias=True) if isinstance(source, BaseModel) else vars(source)
    call = getattr(source, "call", None)
    run = _of_dict(call) if callable(call) else None
    description = _description(source)
    return Tool(name, description, dict(getattr(source, key)), function=run, **about(fields))


def _smolagents(source: Any, name: str) -> Tool | None:
    """Smolagents' ``Tool``: a map of inputs; inputs that are ``nullable`` are optional."""
    inputs = getattr(source, "inputs", None)
    if not isinstance(inputs, Mapping) or not callable(getattr(source, "forward", None)):
        return None
    schema = parameter_map(inputs, name)
    return Tool(name, _description(source), schema, function=source if callable(source) else None)


def _llama_index(source: Any) -> Tool | None:
    """LlamaIndex's ``BaseTool``: a ``metadata`` with the schema, and an output with the raw value."""
    metadata: Any = getattr(source, "metadata", None)
    name = _name(metadata)
    if name is None or not hasattr(metadata, "fn_schema"):
        return None
    schema = metadata.fn_schema
    schema = metadata.get_parameters_dict() if schema is None else parameters_of(schema, name)
    only_async = inspect.iscoroutinefunction(getattr(source, "real_fn", None)) or not hasattr(source, "call")
    if getattr(source, "requires_context", False) is True:
        run = None  # it runs inside of a workflow only
    elif only_async:

        async def run(**arguments: Any) -> Any:
            return _raw(await source.acall(**arguments))

    else:

        def run(**arguments: Any) -> Any:
            return _raw(source.call(**arguments))

    return Tool(name, _description(metadata), schema, function=run)


def _raw(output: Any) -> Any:
    """Return the value inside of LlamaIndex's ``ToolOutput``."""
    return getattr(output, "raw_output", output)


def _dspy(source: Any, name: str) -> Tool | None:
    """DSPy's ``Tool``: the schema of each argument, without a default if it is required."""
    arguments = getattr(source, "args", None)
    if not isinstance(arguments, Mapping) or not hasattr(source, "arg_types"):
        return None
    needed = [key for key, schema in arguments.items() if not isinstance(schema, Mapping) or "default" not in schema]
    schema = {"type": "object", "properties": dict(arguments), **({"required": needed} if needed else {})}
    run = source.acall if inspect.iscoroutinefunction(getattr(source, "func", None)) else source
    return Tool(name, _description(source, "desc"), schema, function=run if callable(run) else None)


def _pydantic_ai(source: Any, name: str) -> Tool | None:
    """Pydantic AI's ``Tool``; one that takes the context of a run cannot be called outside of it."""
    made: Any = getattr(source, "function_schema", None)
    if not isinstance(getattr(made, "json_schema", None), Mapping):
        return None

    async def run(**arguments: Any) -> Any:
        return await made.call(made.validator.validate_python(arguments), None)  # None: the context of the run

    function = None if getattr(source, "takes_ctx", True) else run
    return Tool(name, _description(source), dict(made.json_schema), function=function)


def _openai_agents(source: Any, name: str) -> Tool | None:
    """``FunctionTool`` of OpenAI's Agents SDK. The context of a call is made by the package that the tool came with."""
    schema = getattr(source, "params_json_schema", None)
    if not isinstance(schema, Mapping):
        return None
    make: Any = getattr(sys.modules.get("agents.tool_context"), "ToolContext", None)
    run = None
    if make is not None and callable(getattr(source, "on_invoke_tool", None)):

        async def run(**arguments: Any) -> Any:
            text = json.dumps(arguments, ensure_ascii=False)
            context = make(context=None, tool_name=name, tool_call_id="call", tool_arguments=text)
            return await source.on_invoke_tool(context, text)

    return Tool(name, _description(source), dict(schema), function=run)


def _agent_framework(source: Any, name: str) -> Tool | None:
    """``FunctionTool`` of Microsoft's Agent Framework; a declaration runs nothing."""
    if not hasattr(source, "input_model") or not callable(getattr(source, "parameters", None)):
        return None

    async def run(**arguments: Any) -> Any:
        return await source.invoke(arguments=arguments, skip_parsing=True)

    function = None if getattr(source, "declaration_only", False) else run
    return Tool(name, _description(source), source.parameters(), function=function)


def _definition(source: Any, name: str) -> Tool | None:
    """Pydantic AI's ``ToolDefinition``: a schema and nothing to run."""
    schema = getattr(source, "parameters_json_schema", None)
    if not isinstance(schema, Mapping) or isinstance(source, BaseModel):
        return None
    return Tool(name, _description(source), dict(schema))


def _adk(source: Any, name: str) -> Tool | None:
    """The Agent Development Kit's ``BaseTool``, which declares itself as Gemini's ``FunctionDeclaration``."""
    if not callable(getattr(source, "_get_declaration", None)):
        return None
    declaration = source._get_declaration()
    if declaration is None:
        raise SchemaError(
            "the tool runs at a provider; it has no schema that a call could follow",
            hint="give a function with a schema instead",
            place=Place(tool=name),
        )
    (tool,) = _tools_of(declaration)

    async def run(**arguments: Any) -> Any:
        return await source.run_async(args=arguments, tool_context=None)

    return Tool(tool.name, tool.description, tool.parameters, function=run)


def _agno(source: Any, name: str) -> Tool | None:
    """Agno's ``Function``: one of a toolkit gets its schema only once it is processed; a copy is."""
    if not hasattr(source, "entrypoint") or not hasattr(source, "skip_entrypoint_processing"):
        return None
    if source.entrypoint is not None and not source.skip_entrypoint_processing:
        source = source.model_copy()
        source.process_entrypoint()
    return Tool(name, _description(source), dict(source.parameters), function=source.entrypoint)


def _with_parameters(source: Any, name: str) -> Tool | None:
    """An object with a schema and a function: Haystack's ``Tool``, FastMCP's, Qwen-Agent's."""
    parameters = getattr(source, "parameters", None)
    if not isinstance(parameters, (Mapping, list)) or hasattr(source, "parameters_json_schema"):
        return None
    description = _description(source)
    (tool,) = tools_from_dict({"name": name, "description": description, "parameters": parameters})
    run: Any = None
    if callable(getattr(source, "invoke", None)):
        run = source.invoke
        if getattr(source, "function", True) is None and callable(getattr(source, "invoke_async", None)):
            run = source.invoke_async
    elif callable(getattr(source, "fn", None)):
        run = source.fn
    elif callable(getattr(source, "call", None)):  # Qwen-Agent's takes the arguments as JSON text

        def run(**arguments: Any) -> Any:
            return source.call(json.dumps(arguments, ensure_ascii=False))

    return Tool(name, description, tool.parameters, function=run)


def _collection(source: Any) -> list[Tool] | None:
    """An object that holds tools by name: LangGraph's ``ToolNode``, Agno's ``Toolkit``, Pydantic AI's toolsets."""
    by_name: dict[str, Any] = {}
    for key in ("tools_by_name", "functions", "async_functions", "tools"):
        part = getattr(source, key, None)
        if isinstance(part, Mapping) and part and all(isinstance(name, str) for name in part):
            by_name = {**part, **by_name}  # an earlier attribute has precedence
    if not by_name or isinstance(source, Mapping):
        return None
    return [tool for one in by_name.values() for tool in _tools_of(one)]


def _tools_of(source: Any) -> list[Tool]:
    """Return the tools of an object inside another; see `recognise`.

    Raises:
        SchemaError: it is of no known kind.
    """
    tools = recognise(source)
    if tools is None:
        raise SchemaError(
            f"cannot make a tool of a value of the type {type(source).__name__}", hint="give the tools one by one"
        )
    return tools


def _model(source: Any) -> list[Tool] | None:
    """A Pydantic object of an SDK, by its dict: genai's, Ollama's, Cohere's tools."""
    if not isinstance(source, BaseModel):
        return None
    listed = getattr(source, "tools", None)
    if isinstance(listed, list):
        return [tool for one in listed for tool in _tools_of(one)]
    fields = source.model_dump(mode="json", by_alias=True, exclude_none=True)
    listed = list_in(fields)
    return [tool for one in ([fields] if listed is None else listed) for tool in tools_from_dict(one)]


#: Recognisers of objects with a name. In this order: an object of a later kind may have the attributes of an earlier
#: one, not the other way round.
NAMED: tuple[Callable[[Any, str], Tool | None], ...] = (
    _langchain,
    _crewai,
    _autogen,
    _mcp,
    _smolagents,
    _dspy,
    _pydantic_ai,
    _openai_agents,
    _agent_framework,
    _definition,
    _agno,
    _adk,
    _with_parameters,
)


def recognise(source: Any) -> list[Tool] | None:
    """Return the tools that a framework's object holds, None if it is of no known kind.

    Raises:
        SchemaError: it is of a known kind, and cannot be a tool; names the tool and the reason.
    """
    if is_function(source):  # which may have any attributes
        return None
    name = _name(source)
    named = (recogniser(source, name) for recogniser in NAMED) if name is not None else iter(())
    tool = _llama_index(source) or next(filter(None, named), None)
    if tool is not None:
        return [tool]
    tools = _collection(source)
    return _model(source) if tools is None else tools


def _of_dict(call: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """Return a function of one dict as a function of keyword arguments; async if it is."""
    if inspect.iscoroutinefunction(call):

        async def arun(**arguments: Any) -> Any:
            return await call(arguments)

        return arun

    def run(**arguments: Any) -> Any:
        return call(arguments)

    return run


def _name(source: Any) -> str | None:
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _description(source: Any, attribute: str = "description") -> str:
    text = getattr(source, attribute, "")
    return text if isinstance(text, str) else ""
