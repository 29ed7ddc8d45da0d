"""The styles of arguments in structural tags: JSON Schemas of objects whose members are written as tags."""

from __future__ import annotations

from ..schema.scalars.value_syntax import Arguments, Mark

_NAMES = r"""[^\s<>"'=]+"""


def _layouts(end: str, *forms: tuple[str, str, str, str], raw: str | None = None) -> tuple[Arguments, ...]:
    """Return layouts of arguments.

    Args:
        end: the markup that ends a value.
        forms: of each layout the markup before a name, between name and value, after a value, and between members.
        raw: the markup between the name and the value of a string, where it differs.
    """
    return tuple(
        Arguments(
            names=_NAMES,
            before_name=_markup(before),
            after_name=_markup(between),
            after_value=_markup(after),
            separator=_markup(separator),
            raw_end=end,
            after_name_raw=None if raw is None else _markup(raw),
        )
        for before, between, after, separator in forms
    )


def _markup(text: str) -> Mark:
    """Return markup without control tokens."""
    return ((text, False),) if text else ()


def _dsml(tag: str) -> tuple[Arguments, ...]:
    name, end = f'<{tag}parameter name="', f"</{tag}parameter>"
    forms = [(name, '" string="false">', end, separator) for separator in ("\n", "")]
    return _layouts(end, *forms, raw='" string="true">')


#: The styles of JSON Schemas that can be enforced, each in the layouts that models are trained to write, and without
#: white space. xgrammar takes other white space too.
STYLES: dict[str, tuple[Arguments, ...]] = {
    "qwen_xml": _layouts(
        "</parameter>",
        ("<parameter=", ">\n", "\n</parameter>", "\n"),
        ("<parameter=", ">", "</parameter>", "\n"),
        ("<parameter=", ">", "</parameter>", ""),
    ),
    "minimax_xml": _layouts(
        "</parameter>",
        ('<parameter name="', '">', "</parameter>", "\n"),
        ('<parameter name="', '">', "</parameter>", ""),
    ),
    "deepseek_xml": _dsml("｜DSML｜"),
    "deepseek_v4_1_xml": _dsml("｜DSML｜ "),
    "glm_xml": _layouts(
        "</arg_value>",
        ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", "\n"),
        ("<arg_key>", "</arg_key><arg_value>", "</arg_value>", ""),
    ),
}
