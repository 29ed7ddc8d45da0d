"""Train the tokenizer of the embedded model and write ``core/models/numpy_llama/data/embedded_tokenizer.txt``.

Run it from the repository root, in an environment with the ``tokenizers`` package: ``python
benchmarks/train_embedded_tokenizer.py``. The result depends only on this file and on the version of Python.

The text it is trained on, all of which may be used freely:

- JSON tool calls, JSON Schemas and English sentences about them, made below from templates and word lists
  that were written for this purpose;
- the docstrings of Python's standard library (Python Software Foundation License), for ordinary English and code.
"""

# ruff: noqa: SIM905 - a word list reads better as words than as a list of strings
from __future__ import annotations

import importlib
import inspect
import json
import random
from collections.abc import Iterator
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from toolgrammar.core.models.numpy_llama.bpe import split_pieces
from toolgrammar.core.models.numpy_llama.embedded import TOKENIZER
from toolgrammar.core.vocabulary.token_bytes import byte_alphabet

SIZE = 4096
EOS = ("<|im_end|>", "<|endoftext|>")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKERS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

MODULES = (
    "argparse ast asyncio base64 bisect calendar cmath codecs collections concurrent.futures configparser contextlib "
    "copy csv ctypes dataclasses datetime decimal difflib email enum fileinput fractions ftplib functools getpass glob "
    "gzip hashlib heapq hmac html http.client imaplib inspect io ipaddress itertools json locale logging lzma mailbox "
    "math mimetypes multiprocessing operator optparse os pathlib pickle platform pprint queue random re sched secrets "
    "shlex shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess tarfile tempfile textwrap "
    "threading time timeit tokenize traceback turtle types typing unittest urllib.parse urllib.request uuid warnings "
    "wave weakref webbrowser xml.etree.ElementTree zipfile zoneinfo builtins"
).split()

VERBS = (
    "get set add create delete update find search list send book cancel convert compute translate open close read "
    "write fetch lookup start stop play pause plan order buy sell check schedule summarize count"
).split()
NOUNS = (
    "weather forecast flight hotel room message email calendar event contact file document image song playlist stock "
    "price currency temperature distance route restaurant recipe movie ticket order invoice customer product account "
    "balance payment device light thermostat reminder alarm note task project issue user profile location address "
    "database table record query report article news translation map train bus car rental reservation meeting"
).split()
PLACES = (
    "Paris London Berlin Tokyo Madrid Rome Oslo Vienna Boston Chicago Sydney Toronto Mumbai Cairo Lima Seoul Dublin "
    "Zurich Lisbon Prague Athens Helsinki Warsaw Montreal Nairobi Jakarta"
).split()
PEOPLE = "Alice Bob Carol David Emma Frank Grace Henry Isabel James Maria Noah Olivia Peter Sarah Thomas".split()
WORDS = (
    "red green blue small large fast slow new old open closed high low medium urgent normal active inactive pending "
    "done celsius fahrenheit metric imperial economy business first daily weekly monthly true north south east west"
).split()
FIELDS = (
    "name id city country date time start_date end_date location unit units query limit offset amount currency from to "
    "title description email phone address street zip_code latitude longitude quantity price total status priority "
    "category tags language format url path file_name user_id order_id items options filters sort_by page page_size "
    "max_results include_details temperature humidity value type content subject body recipients attendees duration"
).split()
QUESTIONS = (
    "What is the {noun} in {place}?",
    "Please {verb} the {noun} for {person} in {place}.",
    "Can you {verb} a {noun} from {place} to {other} for {count} people on {day}?",
    "I would like to {verb} {count} {noun}s before {day}, please.",
    "{person} asked me to {verb} the {noun}. Could you do that for me?",
    "How many {noun}s are there in {place}, and which of them is the {word} one?",
    "Find the {word} {noun} near {place} and send it to {person}.",
    "Here is the {noun} you asked for: it is {word}, and it costs {count} dollars.",
    "The {noun} in {place} is {word} today, with a temperature of {count} degrees.",
    "I am sorry, but I could not {verb} the {noun}. Which {noun} do you mean?",
)
SYSTEM = (
    "You are a helpful assistant.",
    "You may call one or more functions to assist with the user query.",
    "You are provided with function signatures within <tools></tools> XML tags:",
    "For each function call, return a json object with function name and arguments within XML tags:",
    "To call a tool, write a JSON object with its name and its arguments. Otherwise answer in plain text.",
    "If a required argument is missing, ask the user for it. Do not make up values.",
)


def docstrings() -> Iterator[str]:
    """The docstrings of the standard library's modules, and of the classes and functions in them."""
    seen: set[str] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        members = [module, *(member for _, member in sorted(vars(module).items(), key=lambda item: item[0]))]
        for member in list(members):
            if inspect.isclass(member):
                members.extend(value for _, value in sorted(vars(member).items(), key=lambda item: item[0]))
        for member in members:
            documented = inspect.ismodule(member) or inspect.isclass(member) or inspect.isroutine(member)
            text = inspect.getdoc(member) if documented else None
            if text and text not in seen:
                seen.add(text)
                yield text


def value(random_: random.Random, depth: int = 0) -> Any:
    """A JSON value of the kinds that tool arguments have."""
    kind = random_.randrange(9 if depth < 2 else 6)
    if kind == 0:
        return random_.choice([True, False, None])
    if kind == 1:
        return random_.randrange(10 ** random_.randrange(1, 6))
    if kind == 2:
        return round(random_.uniform(-100, 1000), random_.randrange(1, 4))
    if kind == 3:
        day = (random_.randrange(2020, 2031), random_.randrange(1, 13), random_.randrange(1, 29))
        clock = f"T{random_.randrange(24):02}:{random_.randrange(60):02}:00Z" if random_.random() < 0.3 else ""
        return "{:04}-{:02}-{:02}".format(*day) + clock
    if kind == 4:
        return random_.choice(PLACES + PEOPLE + WORDS + NOUNS)
    if kind == 5:
        return sentence(random_) if random_.random() < 0.3 else f"{random_.choice(PEOPLE).lower()}@example.com"
    if kind == 6:
        return [value(random_, 2) for _ in range(random_.randrange(4))]
    return {field: value(random_, depth + 1) for field in random_.sample(FIELDS, random_.randrange(1, 4))}


def sentence(random_: random.Random) -> str:
    """A sentence that a user or an assistant might write."""
    return random_.choice(QUESTIONS).format(
        verb=random_.choice(VERBS),
        noun=random_.choice(NOUNS),
        place=random_.choice(PLACES),
        other=random_.choice(PLACES),
        person=random_.choice(PEOPLE),
        word=random_.choice(WORDS),
        count=random_.randrange(2, 60),
        day=random_.choice(["Monday", "Tuesday", "Friday", "Sunday", "today", "tomorrow", "next week"]),
    )


def tool_name(random_: random.Random) -> str:
    """A tool's name."""
    verb, noun = random_.choice(VERBS), random_.choice(NOUNS)
    return f"{verb}_{noun}" if random_.random() < 0.8 else verb + noun.capitalize()


def schema(random_: random.Random) -> dict[str, Any]:
    """The description of a tool, with the JSON Schema of its arguments."""
    noun = random_.choice(NOUNS)
    fields = random_.sample(FIELDS, random_.randrange(1, 6))
    properties: dict[str, Any] = {}
    for field in fields:
        kind = random_.choice(["string", "string", "integer", "number", "boolean", "array", "object"])
        body: dict[str, Any] = {"type": kind, "description": f"The {field.replace('_', ' ')} of the {noun}."}
        if kind == "array":
            body["items"] = {"type": random_.choice(["string", "number"])}
        elif kind == "string" and random_.random() < 0.4:
            body["enum"] = random_.sample(WORDS, 3)
        elif kind in ("integer", "number"):
            body.update(minimum=0, maximum=100) if random_.random() < 0.3 else body.update(default=10)
        properties[field] = body
    parameters = {"type": "object", "properties": properties, "required": fields[: random_.randrange(1, 4)]}
    name = tool_name(random_)
    return {
        "type": "function",
        "function": {"name": name, "description": f"Use this to get the {noun}.", "parameters": parameters},
    }


def corpus() -> Iterator[str]:
    """Everything the tokenizer is trained on."""
    yield from docstrings()
    random_ = random.Random(0)
    for number in range(12_000):
        separators = (",", ":") if number % 5 == 0 else (", ", ": ")
        indent = 2 if number % 11 == 0 else None
        call = {"name": tool_name(random_), "arguments": {f: value(random_) for f in random_.sample(FIELDS, 3)}}
        yield sentence(random_) + " " + sentence(random_)
        yield json.dumps(call, separators=separators if indent is None else None, indent=indent)
        if number % 4 == 0:
            yield random_.choice(SYSTEM) + "\n" + json.dumps(schema(random_), separators=separators)
    for role in ("system", "user", "assistant", "tool"):
        yield from [f"{role}\n"] * 1000


def main() -> None:
    """Train, and write the file."""
    tokenizer = Tokenizer(BPE())
    # The pieces are cut by the very function that will cut them later; the trainer only turns them into bytes.
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=SIZE - len(MARKERS) - len(SPECIAL),
        initial_alphabet=sorted(byte_alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator((list(split_pieces(text)) for text in corpus()), trainer)
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    # The trainer numbers the single bytes in the order of its alphabet; we number them by their value.
    alphabet = byte_alphabet()
    single = sorted((token for token, _ in by_id if len(token) == 1), key=alphabet.__getitem__)
    joined = [token for token, _ in by_id if len(token) > 1]
    head = [f"#special {name}" for name in SPECIAL] + [f"#eos {name}" for name in EOS]
    head += [f"#marker {text}" for text in MARKERS]
    TOKENIZER.parent.mkdir(exist_ok=True)
    TOKENIZER.write_text("\n".join([*head, "", *single, *joined]) + "\n", encoding="utf-8")
    count = len(single) + len(joined) + len(MARKERS) + len(SPECIAL)
    print(f"{TOKENIZER}: {count} tokens, {TOKENIZER.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
