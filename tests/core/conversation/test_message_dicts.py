"""Messages as dicts: contents in all forms, calls, and what is no message."""

from __future__ import annotations

import base64

import pytest

from toolgrammar.core import ImagePart, Message, ModelError, TextPart, ToolCall, load_model
from toolgrammar.core.conversation.message_dicts import message_of, parts_of, past_call

PIXEL = base64.b64encode(b"\x89PNG").decode()


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, ""),
        ("text", "text"),
        ([], ""),
        (["a", {"type": "text", "text": "b"}], "ab"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}], ""),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "5"}]}], "5"),
        (
            ["see", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}],
            (TextPart("see"), ImagePart(data=b"\x89PNG", media_type="image/png")),
        ),
        ([{"type": "image_url", "image_url": "https://a/b.png"}], (ImagePart(url="https://a/b.png"),)),
        (
            [{"type": "image", "base64": PIXEL, "mime_type": "image/png"}],
            (ImagePart(data=b"\x89PNG", media_type="image/png"),),
        ),
        (
            [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}],
            (ImagePart(data=b"\x89PNG", media_type="image/png"),),
        ),
        ([{"type": "image", "url": "https://a/b.png"}], (ImagePart(url="https://a/b.png"),)),
        ([{"type": "input_image", "image_url": "https://a/b.png"}], (ImagePart(url="https://a/b.png"),)),
    ],
)
def test_parts(content: object, parts: object) -> None:
    """Content in every form that frameworks use becomes text, or texts and images."""
    assert parts_of(content) == parts


def test_images_beside_a_content_are_before_it() -> None:
    """A message in Ollama's form has its images, bytes or Base64, before its text, and other values are errors."""
    image = ImagePart(b"\x89PNG")
    for content, parts in (("see", (TextPart("see"),)), (["see", {"type": "image", "image": b"x"}], None)):
        made = message_of({"role": "user", "content": content, "images": [PIXEL, b"\x89PNG"]}).content
        assert made == (image, image, *(parts or (TextPart("see"), ImagePart(b"x"))))
    for bad in (PIXEL, [3], 3):
        with pytest.raises(ModelError, match=r"images of a message|not in Base64"):
            message_of({"role": "user", "content": "see", "images": bad})


def test_unknown_content_is_refused() -> None:
    """Content that no model reads is an error, not left out in silence."""
    with pytest.raises(ModelError, match="input_audio"):
        parts_of([{"type": "input_audio", "input_audio": {}}])


CALL = {"function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({}, "role None"),
        ({"role": "usr", "content": "x"}, "'usr'"),
        ({"role": ["user"], "content": "x"}, "role"),
        ({"role": "user"}, "no content"),
        ({"role": "user", "content": 5}, "content of a message is 5"),
        ({"role": "user", "content": [5]}, "type None"),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, "text of a message is 5"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "address of an image is None"),
        ({"role": "user", "content": [{"type": "image", "source": 5}]}, "image"),
        ({"role": "user", "content": [{"type": "image", "data": "a"}]}, "Base64"),
        ({"role": "user", "content": [{"type": "image", "data": 5}]}, "Base64"),
        ({"role": "user", "content": "x", "name": 5}, "name of a message is 5"),
        ({"role": "assistant", "tool_calls": 5}, "tool_calls of a message is 5"),
        ({"role": "assistant", "tool_calls": "f"}, "tool_calls of a message is 'f'"),
        ({"role": "assistant", "tool_calls": [5]}, "contains the malformed call 5"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "contains the malformed call"),
        ({"role": "assistant", "tool_calls": [{**CALL, "id": 5}]}, "id of a message is 5"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 5}}]}, "'f' are 5"),
    ],
)
def test_wrong_messages_are_refused(message: dict[str, object], words: str) -> None:
    """A dict that is no message is an error of ours that names what is wrong."""
    with pytest.raises(ModelError) as error:
        message_of(message)
    assert words in str(error.value)


def test_openai_message() -> None:
    """A message in OpenAI's form keeps its calls, and its result's id."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    assert message_of({"role": "assistant", "content": None, "tool_calls": [call]}) == Message(
        "assistant", tool_calls=(ToolCall("c1", "f", {"x": 1}, raw='{"x": 1}'),)
    )
    assert message_of({"role": "tool", "content": "5", "tool_call_id": "c1", "name": "f"}) == Message(
        "tool", "5", tool_call_id="c1", name="f"
    )
    assert message_of({"role": "developer", "content": "Be brief."}).role == "system"


def test_malformed_past_call_is_kept() -> None:
    """A malformed call in the history is rendered without arguments and says that it was malformed."""
    call = past_call("c1", "f", '{"x": ')
    assert (call.arguments, call.raw) == ({}, '{"x": ')
    assert call.error is not None


def test_arguments_too_deep_to_read_are_kept() -> None:
    """Arguments that nest too deep for Python's parser are a malformed call, not an exception of Python's."""
    call = past_call("c1", "f", '{"x": ' + "[" * 200_000)
    assert call.arguments == {} and call.error is not None


def test_call_before_tools() -> None:
    """The call of OpenAI's older form is read; keys that say nothing are passed over."""
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}, "refusal": None}
    assert message_of(old).tool_calls == (ToolCall("", "f", {}, raw="{}"),)


def test_dicts_as_prompt() -> None:
    """A model takes dicts, messages, and both in one conversation, to the same answer."""
    with load_model("embedded") as model:
        answers = {
            model.generate(prompt, max_tokens=8).raw  # type: ignore[arg-type]
            for prompt in (
                "Hello",
                {"role": "user", "content": "Hello"},
                [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
                [Message("user", "Hello")],
            )
        }
        assert len(answers) == 1
        assert model.generate([{"role": "system", "content": "Be brief."}, Message("user", "Hello")], max_tokens=8).raw
        for wrong in (None, 5, b"x", [], [5], ["x"], [[]]):
            with pytest.raises(ModelError, match="a prompt is a text, a message"):
                model.generate(wrong)  # type: ignore[arg-type]
