r"""Patterns of the formats that Pydantic adds to the specification's formats.

Pydantic's own formats (``uuid4``, ``ipv4network``, ``base64``, ...) are enforced in any schema. Those that begin with
``python-`` are this library's own (see `toolgrammar.core.schema.pydantic.schema`): the
specification's ``date-time`` demands an offset and has leap seconds, and Python's ``datetime`` has neither.

Pydantic 2 accepts every string that matches. Where its own language is not regular, or has many spellings of the same
value, the pattern is narrower: prefix lengths of IPv6 networks are multiples of 16, hosts have ASCII letters, digits
and dashes only, and so on.
"""

from __future__ import annotations

from functools import cache

from .format_patterns import DATE, H16, IPV4, IPV6, OCTET

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
_OFFSET = r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_NAIVE = rf"{DATE}[Tt]{_CLOCK}"

# Pydantic reads durations with 365 days in a year and 30 in a month, and takes at most 999,999,999 days in all.
_TIME_PART = r"T(?:\d{1,7}H(?:\d{1,7}M)?(?:\d{1,7}S)?|\d{1,7}M(?:\d{1,7}S)?|\d{1,7}(?:\.\d{1,6})?S)"
_DATE_PART = r"(?:\d{1,4}Y(?:\d{1,5}M)?(?:\d{1,7}D)?|\d{1,5}M(?:\d{1,7}D)?|\d{1,7}D|\d{1,6}W)"
_TIMEDELTA = rf"-?P(?:{_DATE_PART}(?:{_TIME_PART})?|{_TIME_PART})"

_UUID = r"[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{}[0-9A-Fa-f]{{3}}-[89ABab][0-9A-Fa-f]{{3}}-[0-9A-Fa-f]{{12}}"


def _ipv4_networks() -> str:
    """Return the pattern of IPv4 networks: the bits after the prefix are zero."""
    patterns = [IPV4]
    for prefix in range(33):
        whole, bits = divmod(prefix, 8)
        octets = [OCTET] * whole
        if bits:
            octets.append("(?:" + "|".join(map(str, range(0, 256, 1 << (8 - bits)))) + ")")
        octets += ["0"] * (4 - len(octets))
        patterns.append(r"\.".join(octets) + f"/{prefix}")
    return "(?:" + "|".join(patterns) + ")"


_IPV6_NETWORK = rf"(?:(?:{IPV6})(?:/128)?|::/0|" + "|".join(
    rf"(?:{H16}:){{{groups}}}:/{16 * groups}" for groups in range(1, 8)
) + ")"  # fmt: skip
_IPV4_INTERFACE = rf"{IPV4}(?:/(?:3[0-2]|[12]?\d))?"
_IPV6_INTERFACE = rf"(?:{IPV6})(?:/(?:12[0-8]|1[01]\d|[1-9]?\d))?"

# The unused bits of the last digit are zero, as strict decoders require.
_BASE64 = r"(?:[{0}]{{4}})*(?:[{0}][AQgw]==|[{0}]{{2}}[AEIMQUYcgkosw048]=)?"
_STANDARD, _URL_SAFE = r"A-Za-z0-9+\/", r"A-Za-z0-9_\-"


def _base64_text(last: str) -> str:
    """Return the pattern of ASCII text in base64: the first of the eight bits of every byte is zero."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last

    def digits(zero: int) -> str:
        """Return a class of the digits that have no bit of ``zero``."""
        return "[" + "".join("\\" + c if c in "-/" else c for i, c in enumerate(alphabet) if not i & zero) + "]"

    # Four digits of six bits are three bytes; their first bits are the 32 of the first digit, then an 8, then a 2.
    first, second, third = digits(32), digits(8), digits(2)
    whole = f"{first}{second}{third}{digits(0)}"
    return f"(?:{whole})*(?:{first}{digits(8 | 7)}==|{first}{second}{digits(2 | 1)}=)?"


# A host that needs no mapping (UTS 46) and is no number, as WHATWG's URL standard reads hosts.
_LABEL = r"[a-z0-9]{1,16}(?:-[a-z0-9]{1,16}){0,2}"
_LAST_LABEL = r"[a-z][a-z0-9]{0,15}(?:-[a-z0-9]{1,16}){0,2}"
_HOST = rf"(?:(?:{_LABEL}\.){{0,5}}{_LAST_LABEL}|{IPV4}|\[(?:{IPV6})\])"
_PORT = r"(?::(?:6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3}))?"
_PCHAR = r"(?:[A-Za-z0-9._~!$&()*+,;=:@-]|%[0-9A-F]{2})"
_USER = r"(?:[A-Za-z0-9._~-]{1,64}(?::[A-Za-z0-9._~-]{0,64})?@)?"
_PATH = rf"(?:\/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[\/?])*)?(?:#(?:{_PCHAR}|[\/?])*)?"
_SPECIAL = r"(?:https?|wss?|ftp|file)"
_URL = (
    rf"(?:(?:https?|wss?|ftp):\/\/{_USER}{_HOST}{_PORT}{_PATH}"
    rf"|file:\/\/\/{_PCHAR}*(?:\/{_PCHAR}*)*"
    rf"|(?!{_SPECIAL}:)[a-z][a-z0-9+.-]*:(?:\/\/{_USER}{_HOST}{_PORT}{_PATH}|{_PCHAR}+))"
)
_DSN = rf"[a-z][a-z0-9+.-]*:\/\/{_USER}{_HOST}{_PORT}(?:,{_HOST}{_PORT})*(?:\/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[\/?])*)?"

# The library email-validator, as Pydantic calls it: no quoted names, no address as domain, no domain for special use.
_SPECIAL_USE = r"(?:arpa|invalid|local|localhost|onion|test|example|alt|internal|lan|home|localdomain|domain|corp)"


def _email(end: str) -> str:
    """Return the pattern of e-mail addresses that ``end`` follows."""
    local = r"[A-Za-z0-9_+-]{1,30}(?:\.[A-Za-z0-9_+-]{1,30})?"
    return rf"{local}@(?:{_LABEL}\.){{1,4}}(?!{_SPECIAL_USE}{end})[a-z]{{2,12}}"


_REAL = r"(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?"
# Literal text, classes, groups without flags, and one repetition at most: always a regular expression for Python.
_REGEX_CLASS = r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_])+\]"
_REGEX_ATOM = rf"(?:[A-Za-z0-9 _,;:@#%&=<>!~'\"\/\-]|\\[dDwWsS.\\^$*+?{{}}\[\]()|\-]|\.|{_REGEX_CLASS})"
_REGEX_PIECE = rf"{_REGEX_ATOM}(?:[*+?]|\{{\d{{1,2}}\}})?"
_REGEX_GROUP = rf"(?:\((?:\?:)?(?:{_REGEX_PIECE})*(?:\|(?:{_REGEX_PIECE})*)*\)[*+?]?)"

PATTERNS = {
    "python-date": DATE,
    "python-time": rf"{_CLOCK}{_OFFSET}?",
    "python-naive-time": _CLOCK,
    "python-datetime": rf"{_NAIVE}{_OFFSET}?",
    "python-naive-datetime": _NAIVE,
    "python-aware-datetime": rf"{_NAIVE}{_OFFSET}",
    "python-timedelta": _TIMEDELTA,
    "python-email": _email("$"),
    "python-name-email": rf"[A-Za-z]{{1,20}}(?: [A-Za-z]{{1,20}})? <{_email('>')}>",
    "python-url": _URL,
    "python-multi-host-url": _DSN,
    "python-complex": rf"[+-]?{_REAL}(?:[+-]{_REAL}j)?|[+-]?{_REAL}j",
    "python-regex": rf"\^?(?:{_REGEX_PIECE}|{_REGEX_GROUP})*(?:\|(?:{_REGEX_PIECE}|{_REGEX_GROUP})*)*\$?",
    "python-hex": "(?:[0-9A-Fa-f]{2})*",
    "python-base64-text": _base64_text("+/"),
    "python-base64url-text": _base64_text("-_"),
    "base64": _BASE64.format(_STANDARD),
    "base64url": _BASE64.format(_URL_SAFE),
    **{f"uuid{version}": _UUID.format(version) for version in (1, 3, 4, 5, 6, 7, 8)},
    "ipv4network": _ipv4_networks(),
    "ipv6network": _IPV6_NETWORK,
    "ipv4interface": _IPV4_INTERFACE,
    "ipv6interface": _IPV6_INTERFACE,
    "ipvanyaddress": rf"{IPV4}|{IPV6}",
    "ipvanynetwork": rf"{_ipv4_networks()}|{_IPV6_NETWORK}",
    "ipvanyinterface": rf"{_IPV4_INTERFACE}|{_IPV6_INTERFACE}",
    "multi-host-uri": _DSN,
    "fraction": r"[+-]?\d{1,30}(?:\/[1-9]\d{0,29})?",
}


@cache
def time_zones() -> tuple[str, ...]:
    """Return the names of the time zones that are installed."""
    from zoneinfo import available_timezones

    return tuple(sorted(available_timezones())) or ("UTC",)
