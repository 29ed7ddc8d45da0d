r"""The formats of the specification that are regular, each as a language, from the grammar of its own specification.

============================  ===============================================================================
date, time, date-time         RFC 3339 section 5.6; leap years are exact, leap seconds are written in UTC
duration                      RFC 3339 appendix A
email                         RFC 5321 section 4.1.2 (Mailbox)
ipv4, ipv6                    RFC 2673 section 3.2 (dotted quad), RFC 4291 section 2.2
uuid                          RFC 4122 section 3
uri, uri-reference            RFC 3986 appendix A
json-pointer                  RFC 6901 section 3
relative-json-pointer         draft-handrews-relative-json-pointer-01
============================  ===============================================================================

The others of the specification are not: what they ask cannot be read off the characters (punycode in ``hostname``,
for one), or is not done yet. They are refused. A name that the specification does not know is an annotation.
"""

from __future__ import annotations

from ..language.regex import regex_term
from ..language.terms import Terms

_DATE = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_OFFSET = r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_TIME = (
    rf"(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?{_OFFSET}"
    r"|23:59:60(?:\.\d+)?(?:[Zz]|[+-]00:00))"
)

_SECONDS = r"\d+S"
_MINUTES = rf"\d+M(?:{_SECONDS})?"
_HOURS = rf"\d+H(?:{_MINUTES})?"
_DURATION_TIME = rf"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DAYS = r"\d+D"
_MONTHS = rf"\d+M(?:{_DAYS})?"
_YEARS = rf"\d+Y(?:{_MONTHS})?"
_DURATION = rf"P(?:(?:{_DAYS}|{_MONTHS}|{_YEARS})(?:{_DURATION_TIME})?|{_DURATION_TIME}|\d+W)"

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"(?:{_OCTET}(?:\.{_OCTET}){{3}})"
_H16 = r"[0-9A-Fa-f]{1,4}"
_LS32 = rf"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = (
    rf"(?:(?:{_H16}:){{6}}{_LS32}"
    rf"|::(?:{_H16}:){{5}}{_LS32}"
    rf"|(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}"
    rf"|(?:(?:{_H16}:){{0,1}}{_H16})?::(?:{_H16}:){{3}}{_LS32}"
    rf"|(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}"
    rf"|(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}"
    rf"|(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}"
    rf"|(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}"
    rf"|(?:(?:{_H16}:){{0,6}}{_H16})?::)"
)

_ATEXT = r"[A-Za-z0-9!#$%&'*+\/=?^_`{|}~-]"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EMAIL = (
    rf"(?:{_ATEXT}+(?:\.{_ATEXT}+)*"
    r'|"(?:[ !#-\[\]-~]|\\[ -~])*")'
    rf"@(?:{_LABEL}(?:\.{_LABEL})*|\[(?:{_IPV4}|IPv6:{_IPV6})\])"
)

_PERCENT = r"%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9._~\-"
_SUB_DELIMS = r"!$&'()*+,;="
_PCHAR = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:@]|{_PERCENT})"
_SEGMENT_NO_COLON = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}@]|{_PERCENT})+"
_USER = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:]|{_PERCENT})*"
_REG_NAME = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}]|{_PERCENT})*"
_IP_LITERAL = rf"\[(?:{_IPV6}|[vV][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMS}:]+)\]"
_AUTHORITY = rf"(?:{_USER}@)?(?:{_IP_LITERAL}|{_REG_NAME})(?::\d*)?"
_PATH_ABEMPTY = rf"(?:\/{_PCHAR}*)*"
_PATH_ABSOLUTE = rf"\/(?:{_PCHAR}+(?:\/{_PCHAR}*)*)?"
_PATH_ROOTLESS = rf"{_PCHAR}+(?:\/{_PCHAR}*)*"
_PATH_NOSCHEME = rf"{_SEGMENT_NO_COLON}(?:\/{_PCHAR}*)*"
_TAIL = rf"(?:\?(?:{_PCHAR}|[\/?])*)?(?:#(?:{_PCHAR}|[\/?])*)?"
_URI = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:\/\/{_AUTHORITY}{_PATH_ABEMPTY}|{_PATH_ABSOLUTE}|{_PATH_ROOTLESS})?{_TAIL}"
_RELATIVE = rf"(?:\/\/{_AUTHORITY}{_PATH_ABEMPTY}|{_PATH_ABSOLUTE}|{_PATH_NOSCHEME})?{_TAIL}"

_POINTER = r"(?:\/(?:[^~\/]|~[01])*)*"

_PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "uri-reference": rf"(?:{_URI}|{_RELATIVE})",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9]\d*)(?:#|{_POINTER})",
}

#: Formats of the specification that are enforced.
ENFORCED = frozenset(_PATTERNS)

#: Formats of the specification that are refused (Draft 2020-12 validation, section 7.3).
REFUSED = frozenset({"hostname", "idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "regex"})


def format_term(terms: Terms, name: str) -> int:
    """The strings of an enforced format."""
    return regex_term(terms, _PATTERNS[name], whole=True)
