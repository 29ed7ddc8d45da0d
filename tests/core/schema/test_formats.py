"""Formats: each is the language of its specification, judged by the official suite's optional tests."""

from __future__ import annotations

import datetime
import gzip
import json
import random
from pathlib import Path

import pydantic
import pytest

from toolgrammar.core import Grammar, UnsupportedSchemaError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.schema.scalars.bounded_formats import BOUNDED
from toolgrammar.core.schema.scalars.formats import REFUSED, SPECIFIED, format_term

from ...vocabularies import BYTES

SUITE = Path(__file__).resolve().parents[4] / "shared" / "data" / "json-schema-test-suite-2020-12.json.gz"
CASES = {
    "date": (["2024-02-29", "2000-02-29", "1999-12-31"], ["2023-02-29", "1900-02-29", "2024-13-01", "2024-4-1"]),
    "time": (["12:00:00Z", "23:59:60Z", "08:59:60+09:00", "08:30:06.283185+05:30"], ["24:00:00Z", "12:00:00", "22:59:60Z", "12:60:00Z"]),
    "date-time": (["1985-04-12T23:20:50.52Z", "1990-12-31t15:59:50-08:00"], ["1985-04-12 23:20:50Z", "2023-02-30T00:00:00Z"]),
    "duration": (["P4DT12H30M5S", "P1Y2M", "PT36H", "P3W"], ["P", "PT", "P1D2H", "P2D1Y", "4DT12H", "P1W2D"]),
    "email": (["joe.bloggs@example.com", '"joe b"@x.org', "a@[127.0.0.1]"], ["a@", ".a@b.c", "a..b@c.d", "a b@c.d"]),
    "idn-email": (["실례@실례.테스트", "a@b.c", "ä.b@ü"], ["2962", "a b@c", "@x"]),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "urn:ü"], ["/abc", "\\\\x", "http://[x]"]),
    "iri-reference": (["/âππ", "#ƒrägmênt", ""], ["\\\\WINDOWS", "a b"]),
    "uri-template": (["http://x/{term:1}/{+a,b*}", ""], ["{a", "a}", "{}", "{v:0}", "a b"]),
    "ipv4": (["127.0.0.1", "0.0.0.0"], ["256.0.0.1", "01.2.3.4", "1.2.3"]),
    "ipv6": (["::1", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "a::b"], ["1:2:3", "::1::", "12345::", "1:2:3:4:5:6:7:8:9"]),
    "uuid": (["2EB8AA08-aa98-11ea-B4Aa-73B441D16380"], ["2eb8aa08-aa98-11ea-b4aa73b441d16380", "x"]),
    "uri": (["http://a.b/c?d#e", "urn:x:y", "ldap://[2001:db8::7]/c=GB?objectClass?one"], ["//a/b", "a b:c", "http://[x]", "http:// x"]),
    "uri-reference": (["/a/b", "#frag", "http://a.b", ""], ["\\\\a", "#a\\b", "a b"]),
    "json-pointer": (["", "/a~1b/~0", "/foo/0"], ["a", "/~", "/~2"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["/a", "-1/a", "01/a", "0##"]),
}  # fmt: skip


def accepts(name: str, value: str) -> bool:
    """Whether the grammar of the format takes a string."""
    return Grammar.from_json_schema({"type": "string", "format": name}).matches(json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize("name", sorted(CASES))
def test_cases(name: str) -> None:
    """Typical members and near misses."""
    good, bad = CASES[name]
    assert [value for value in good if not accepts(name, value)] == []
    assert [value for value in bad if accepts(name, value)] == []


@pytest.mark.parametrize("name", sorted(SPECIFIED - BOUNDED.keys()))
def test_official_suite(name: str) -> None:
    """The suite's optional tests: all are judged right."""
    if not SUITE.is_file():
        pytest.skip("the official suite is not beside the repository")
    groups = json.loads(gzip.decompress(SUITE.read_bytes()))["tests"][f"optional/format/{name}"]
    for group in groups:
        for test in group["tests"]:
            if isinstance(test["data"], str):
                assert accepts(name, test["data"]) == test["valid"], test


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_formats_are_named(name: str) -> None:
    """A format that cannot be enforced exactly is an error; unknown names are annotations."""
    with pytest.raises(UnsupportedSchemaError) as caught:
        Grammar.from_json_schema({"properties": {"a": {"type": "string", "format": name}}})
    assert (caught.value.place.pointer, caught.value.place.keyword) == ("/properties/a", "format")
    assert name in caught.value.message or name.startswith("python-")
    assert accepts("int32-or-whatever", "anything")


@pytest.mark.parametrize("name", ["date", "date-time", "python-date", "python-datetime", "python-aware-datetime"])
def test_years_are_those_of_datetime(name: str) -> None:
    """From 1 to 9999; a text that the standard library reads, the second 60 aside, is one of the format."""
    rest = {"date": "", "python-date": ""}.get(name, "T23:59:59Z")
    for day in ("0000-01-01", "0000-02-29", "0001-01-01", "0004-02-29", "1000-12-31", "9999-12-31", "0010-06-30"):
        try:
            datetime.date.fromisoformat(day)
            is_date = True
        except ValueError:
            is_date = False
        assert accepts(name, day + rest) == is_date, day
    text = json.loads(
        Grammar.from_json_schema({"type": "string", "format": name}).bind(BYTES).matcher().shortest_completion()
    )
    assert datetime.datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    assert pydantic.TypeAdapter(datetime.date if len(text) == 10 else datetime.datetime).validate_python(text)
    if name == "date-time":
        assert accepts(name, "9999-12-31T23:59:60Z") and not accepts(name, "9999-12-31T23:58:60Z")


def test_leap_seconds_are_those_of_utc() -> None:
    """``:60`` stands at 23:59 UTC alone, whatever the offset (RFC 3339 section 5.7 and appendix D)."""
    terms = Terms()
    times = format_term(terms, "time")
    walk = random.Random(0)
    for here in range(24 * 60):
        ahead = (here - (23 * 60 + 59)) % 1440
        for sign, right in (("+", ahead), ("-", -ahead % 1440)):
            for offset in (right, *walk.sample(range(1440), 2)):
                text = f"{here // 60:02}:{here % 60:02}:60{sign}{offset // 60:02}:{offset % 60:02}"
                assert terms.matches(times, text) == (offset == right), text
        assert terms.matches(times, f"{here // 60:02}:{here % 60:02}:60Z") == (ahead == 0)


def test_formats_meet_lengths_and_patterns() -> None:
    """A format is one more constraint."""
    grammar = Grammar.from_json_schema({"format": "date", "pattern": "^2024", "type": "string"})
    assert grammar.matches('"2024-02-29"') and not grammar.matches('"2023-01-01"')
    assert Grammar.from_json_schema({"format": "date"}).matches("12")
