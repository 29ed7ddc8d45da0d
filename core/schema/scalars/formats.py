r"""Formats of JSON Schema that are regular, as terms: each from the grammar in its own specification.

============================  ===============================================================================
date, time, date-time         RFC 3339 section 5.6 without the year 0; leap years and leap seconds are exact
duration                      RFC 3339 appendix A
email                         RFC 5321 section 4.1.2 (Mailbox)
ipv4, ipv6                    RFC 2673 section 3.2 (dotted quad), RFC 4291 section 2.2
uuid                          RFC 4122 section 3
idn-email                     RFC 6531 section 3.3
uri, uri-reference            RFC 3986 appendix A
iri, iri-reference            RFC 3987 section 2.2
uri-template                  RFC 6570 section 2
json-pointer                  RFC 6901 section 3
relative-json-pointer         draft-handrews-relative-json-pointer-01
============================  ===============================================================================

The others of the specification are not regular: see `bounded_formats`. Those of Pydantic, and
our own, are in `python_formats` and `dates`. Any other name is an annotation.
"""

from __future__ import annotations

from ...language.terms import Terms
from ...regex.compile import regex_term
from ...unicode.charset import CharSet
from . import dates, python_formats
from .bounded_formats import BOUNDED
from .format_patterns import DATE, IPV4, IPV6

_OFFSET = r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_TIME = rf"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?{_OFFSET}"

_SECONDS = r"\d+S"
_MINUTES = rf"\d+M(?:{_SECONDS})?"
_HOURS = rf"\d+H(?:{_MINUTES})?"
_DURATION_TIME = rf"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DAYS = r"\d+D"
_MONTHS = rf"\d+M(?:{_DAYS})?"
_YEARS = rf"\d+Y(?:{_MONTHS})?"
_DURATION = rf"P(?:(?:{_DAYS}|{_MONTHS}|{_YEARS})(?:{_DURATION_TIME})?|{_DURATION_TIME}|\d+W)"


def _email(more: str = "") -> str:
    """Return the pattern of e-mail addresses, with more characters in atoms, quoted strings and labels."""
    text = rf"[A-Za-z0-9!#$%&'*+\/=?^_`{{|}}~{more}-]"
    label = rf"[A-Za-z0-9{more}](?:[A-Za-z0-9{more}-]*[A-Za-z0-9{more}])?"
    return (
        rf"(?:{text}+(?:\.{text}+)*"
        rf'|"(?:[ !#-\[\]-~{more}]|\\[ -~])*")'
        rf"@(?:{label}(?:\.{label})*|\[(?:{IPV4}|IPv6:{IPV6})\])"
    )


_PERCENT = r"%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9._~\-"
_SUB_DELIMS = r"!$&'()*+,;="
_IP_LITERAL = rf"\[(?:{IPV6}|[vV][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMS}:]+)\]"
# RFC 3987: what an IRI has beyond a URI, anywhere, and in its query.
_UCSCHAR = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}" + "".join(
    rf"\u{{{plane:X}{'1000' if plane == 0xE else '0000'}}}-\u{{{plane:X}FFFD}}" for plane in range(1, 0xF)
)
_IPRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"


def _identifiers(unreserved: str, private: str = "") -> tuple[str, str]:
    """Return the patterns of URIs, or IRIs, and of relative references.

    Args:
        unreserved: the unreserved characters.
        private: more characters that may be in a query.
    """
    char = rf"(?:[{unreserved}{_SUB_DELIMS}:@]|{_PERCENT})"
    no_colon = rf"(?:[{unreserved}{_SUB_DELIMS}@]|{_PERCENT})+"
    user = rf"(?:[{unreserved}{_SUB_DELIMS}:]|{_PERCENT})*"
    name = rf"(?:[{unreserved}{_SUB_DELIMS}]|{_PERCENT})*"
    authority = rf"(?:{user}@)?(?:{_IP_LITERAL}|{name})(?::\d*)?"
    segments = rf"(?:\/{char}*)*"
    absolute = rf"\/(?:{char}+{segments})?"
    tail = rf"(?:\?(?:{char}|[\/?{private}])*)?(?:#(?:{char}|[\/?])*)?"
    return (
        rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:\/\/{authority}{segments}|{absolute}|{char}+{segments})?{tail}",
        rf"(?:\/\/{authority}{segments}|{absolute}|{no_colon}{segments})?{tail}",
    )


_URI, _RELATIVE = _identifiers(_UNRESERVED)
_IRI, _IRELATIVE = _identifiers(_UNRESERVED + _UCSCHAR, _IPRIVATE)

_TEMPLATE_LITERAL = rf"(?:[!#$&'()*+,\-.\/0-9:;=?@A-Z\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|{_PERCENT})"
_VARCHAR = rf"(?:[A-Za-z0-9_]|{_PERCENT})"
_VARSPEC = rf"{_VARCHAR}+(?:\.{_VARCHAR}+)*(?::[1-9]\d{{0,3}}|\*)?"
_TEMPLATE = rf"(?:{_TEMPLATE_LITERAL}|\{{[+#.\/;?&=,!@|]?{_VARSPEC}(?:,{_VARSPEC})*\}})*"

_POINTER = r"(?:\/(?:[^~\/]|~[01])*)*"

_PATTERNS = {
    "date": DATE,
    "time": _TIME,
    "duration": _DURATION,
    "email": _email(),
    "idn-email": _email(r"\u{80}-\u{10FFFF}"),  # RFC 6531: every character beyond ASCII
    "ipv4": IPV4,
    "ipv6": IPV6,
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "uri-reference": rf"(?:{_URI}|{_RELATIVE})",
    "iri": _IRI,
    "iri-reference": rf"(?:{_IRI}|{_IRELATIVE})",
    "uri-template": _TEMPLATE,
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9]\d*)(?:#|{_POINTER})",
}

#: Formats of the specification (Draft 2020-12 validation, section 7.3).
SPECIFIED = frozenset(_PATTERNS) | {"date-time"} | BOUNDED.keys()

#: All formats that are enforced: those of the specification, Pydantic's and our own.
ENFORCED = SPECIFIED | python_formats.PATTERNS.keys() | dates.FORMATS.keys() | {"zoneinfo"}

#: Refused: a string that holds JSON of a type without an easy pattern.
REFUSED = frozenset({"python-json"})


def format_term(terms: Terms, name: str, *, outer: bool = False) -> int:
    """Return the strings of a format, as far as they are a regular language; past and future dates are those of today.

    Args:
        terms: where the term is made.
        name: one of `ENFORCED`.
        outer: of a format of `BOUNDED`, its outer language instead of its inner one.
    """
    bounds = BOUNDED.get(name)
    day = dates.today() if name in dates.FORMATS else None
    key = ("format", name, day, bounds is not None and outer)
    term = terms.memo.get(key)
    if term is None:
        if bounds is not None:
            term = (bounds.outer if outer else bounds.inner)(terms)
        elif name == "date-time":
            between = terms.chars(CharSet.of("Tt"))
            term = terms.sequence([format_term(terms, "date"), between, format_term(terms, "time")])
        elif day is not None:  # a date with a bound, as a look-ahead
            any_date = python_formats.PATTERNS[dates.FORMATS[name].any_date]
            bound = dates.bound(name, day).removeprefix("^")
            term = regex_term(terms, f"(?={bound}){any_date}", whole=True)
        elif name in python_formats.PATTERNS:
            term = regex_term(terms, python_formats.PATTERNS[name], whole=True)
        elif name == "zoneinfo":
            term = terms.words(list(python_formats.time_zones()))
        else:
            term = regex_term(terms, _PATTERNS[name], whole=True)
            if name == "time":
                term = terms.alt([term, _leap_second(terms)])
        terms.memo[key] = term
    return term


def time_of_day(terms: Terms) -> int:
    """Return the strings of the format ``time``, without leap seconds."""
    return regex_term(terms, _TIME, whole=True)


def _leap_second(terms: Terms) -> int:
    """Return ``23:59:60`` in UTC as local time at every offset (RFC 3339, section 5.7 and appendix D)."""
    return terms.alt([terms.seq(terms.literal(f"{hour:02}:"), _leap_minute(terms, hour, "")) for hour in range(24)])


def _leap_minute(terms: Terms, hour: int, minute: str) -> int:
    """Return the rest of a local time that is ``23:59:60`` in UTC, after its hour and 0 to 2 digits of its minute.

    After ``01:29`` it is ``:60+01:30`` or ``:60-22:30``. What follows a digit is built when a text has it.
    """

    def build(terms: Terms) -> int:
        if len(minute) < 2:
            digits = "0123456789" if minute else "012345"
            return terms.alt(
                [terms.seq(terms.literal(each), _leap_minute(terms, hour, minute + each)) for each in digits]
            )
        day = 24 * 60  # in minutes
        ahead = (hour * 60 + int(minute) - (23 * 60 + 59)) % day  # of UTC
        behind = (-ahead) % day
        offsets = [f"+{ahead // 60:02}:{ahead % 60:02}", f"-{behind // 60:02}:{behind % 60:02}"]
        zulu = ["Z", "z"] if ahead == 0 else []
        return terms.seq(regex_term(terms, r":60(?:\.\d+)?", whole=True), terms.words(offsets + zulu))

    return terms.deferred(("leap second", hour, minute), build, least=len("59:60Z") - len(minute))
