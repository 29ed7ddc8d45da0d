"""Terms of JSON numbers: their spellings, and exact comparison of decimal text with bounds and multiples.

A number is written canonically (RFC 8259 section 6): no leading zeros, at most 30 digits before and 30 after the point
(before it as many as a bound of the schema has, if these are more, so that no schema refuses its own bound);
or in scientific notation with one digit before the point, as Python, JavaScript and C write it, and finite as a double.
The limits on digits are ours, so that every number ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from math import inf, isfinite, nextafter
from sys import float_info

from ...language.terms import Terms
from ...unicode.charset import CharSet
from .numbers import (
    EXACT_INTEGERS,
    MAX_BOUND,
    MAX_DIGITS,
    MAX_EXACT,
    NumberRange,
    as_read,
    exact,
    in_digits,
    is_kept,
    is_long,
    listed_multiples,
    short_divisor,
)

#: The greatest double in its shortest spelling: with the exponent 308, mantissas end here.
_GREATEST = Decimal(repr(float_info.max))

#: By a digit: the digits above it, and those below it, as the code points where membership flips (`Terms.chars_of`).
_ABOVE = {str(digit): (ord("1") + digit, ord("9") + 1) for digit in range(9)}
_BELOW = {str(digit): (ord("0"), ord("0") + digit) for digit in range(1, 10)}

_DIGITS, _NONZERO, _OTHERS, _E = map(CharSet.of, ("0123456789", "123456789", "+-.eE", "eE"))


class Numbers:
    """Terms of numbers in one store."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.digit = terms.chars(_DIGITS)
        self.any_digits = terms.repeat(self.digit, 0, None)
        self.nonzero = terms.chars(_NONZERO)
        self.point = terms.literal(".")
        self.minus = terms.literal("-")
        self.no_digits = terms.repeat(terms.chars(_OTHERS), 0, None)
        self.sign = terms.repeat(self.minus, 0, 1)
        # Within the limits on digits: integers without a sign, fractions, and fractions that are zero.
        more = terms.repeat(self.digit, 0, MAX_DIGITS - 1)
        self.integer = terms.alt([terms.literal("0"), terms.seq(self.nonzero, more)])
        self.fraction = terms.seq(self.point, terms.repeat(self.digit, 1, MAX_DIGITS))
        self.zero_fraction = terms.seq(self.point, terms.repeat(terms.literal("0"), 1, MAX_DIGITS))
        # What every bound needs.
        self.e = terms.chars(_E)
        self.zeros = terms.repeat(terms.literal("0"), 0, None)
        self.any_fraction = terms.repeat(terms.seq(self.point, self.any_digits), 0, 1)

    def term(self, what: NumberRange, *, any_spelling: bool) -> int:
        """Return the spellings of the numbers of a range.

        Multiples of a step with too many residues are narrowed (see `listed_multiples`). The complement of its
        multiples is narrowed to numbers that are below the step, or that a divisor of the step does not divide.

        Args:
            what: the range.
            any_spelling: an integer may also be spelled ``1.0`` or ``1e3``. Multiples never have an exponent.
        """
        key = ("number", what, any_spelling)
        term = self.terms.memo.get(key)
        if term is None:
            term = self.terms.memo[key] = self._term(what, any_spelling)
        return term

    def listed(self, values: Sequence[int]) -> int:
        """Return every spelling of some integers (see `is_short_integer`).

        Law: this is the union of the terms, in any spelling, of the ranges of one integer each.
        """
        terms = self.terms
        scientific: dict[tuple[int, int], list[str]] = {}  # by exponent, and digits of the mantissa after the point
        for value in values:
            digits = str(abs(value))
            fraction = digits[1:].rstrip("0")
            mantissa = ("-" if value < 0 else "") + digits[0] + ("." + fraction if fraction else "")
            scientific.setdefault((len(digits) - 1, len(fraction)), []).append(mantissa)
        parts = [terms.seq(terms.words([str(value) for value in values]), terms.repeat(self.zero_fraction, 0, 1))]
        for (exponent, least), mantissas in scientific.items():
            more = terms.repeat(terms.literal("0"), 0, exponent - least)
            if not least:  # no point without a digit after it
                longer = terms.seq(self.point, terms.repeat(terms.literal("0"), 1, exponent))
                more = terms.repeat(longer, 0, 1) if exponent else terms.EPSILON
            sign = terms.repeat(terms.literal("+"), 0, 1)
            leading = terms.repeat(terms.literal("0"), 0, 3 - len(str(exponent)))  # at most three digits in all
            written = terms.sequence([self.e, sign, leading, terms.literal(str(exponent))])
            parts.append(terms.sequence([terms.words(mantissas), more, written]))
        return terms.alt(parts)

    def _term(self, what: NumberRange, any_spelling: bool) -> int:
        """Return the spellings of the numbers of a range. Where multiples or exactness matter, spellings are bounded in
        length, so that readers of doubles reach the same verdict."""
        terms = self.terms
        has_steps = bool(what.multiples or what.not_multiples)
        decimals = any_spelling or not what.integer  # texts with a point or an exponent are wanted, too
        if what.fractional:
            parts = [self._fractional()]
            if has_steps:  # multiples have no exponent
                parts.append(self._plain_syntax(False))
        elif has_steps and decimals:
            parts = [self._plain_syntax(what.integer, what.digits)]
        else:
            parts = [self._syntax(what.integer, any_spelling, what.digits)]
        # A multiple of 0.01 has two decimals; what a reader takes it for has no more, if it is spelled in few digits.
        is_coarse = decimals and any(not is_kept(step) for step in what.multiples)
        if what.fractional or is_coarse or (what.exact and not what.integer) or what.not_multiples:
            few_digits = terms.seq(terms.repeat(terms.seq(self.no_digits, self.digit), 0, MAX_EXACT), self.no_digits)
            all_whole = all(map(_is_whole, what.not_multiples))
            parts.append(terms.alt([self._whole(), few_digits]) if all_whole else few_digits)
        if what.exact and not what.integer:  # subnormal doubles have fewer digits
            parts.append(terms.not_(terms.sequence([terms.ALL, self.e, self._exponent_below(-307)])))
        listed = listed_multiples(what)
        if listed is None:
            parts += [self._multiple(step) for step in what.multiples]
            parts += [self._not_multiple(step) for step in what.not_multiples]
        else:
            parts.append(terms.alt([self._spellings(number) for number in listed]))
        if what.least is not None:
            parts.append(self._bounded(what.least, what.least_excluded, self._at_least, inf, decimals))
        if what.most is not None:
            parts.append(self._bounded(what.most, what.most_excluded, self._at_most, -inf, decimals))
        return terms.and_(parts)

    def _bounded(
        self, bound: Decimal, strict: bool, within: Callable[[Decimal, bool], int], towards: float, decimals: bool
    ) -> int:
        """Return the texts that are read as numbers on one side of a bound.

        Args:
            bound: the bound.
            strict: it is excluded.
            within: `_at_least` or `_at_most`.
            towards: the infinity on that side.
            decimals: texts with a point or an exponent are wanted, too.
        """
        terms = self.terms
        if not decimals or not bound:  # above zero, no number that can be written is read as zero
            return within(bound, strict)
        double = _double_within(bound, strict, towards)
        read = terms.EMPTY if double is None else within(double, False)
        if bound.copy_abs() < EXACT_INTEGERS:  # no integer is between the bound and this double
            return read
        whole = self._whole()
        return terms.alt([terms.and_([whole, within(bound, strict)]), terms.and_([terms.not_(whole), read])])

    def normal(self) -> int:
        """Return the numbers that are plain, or have a normalised mantissa: not ``0.01e2``."""
        terms = self.terms
        unsigned = self._magnitude(Decimal(0), above=True, strict=False)
        return terms.seq(self.sign, unsigned)

    def equal(self, value: float) -> int:
        """Return at least the texts that a JSON reader reads as this number: ``1``, ``1.0``, ``1e0``, ``1.0e-0``. For
        negations: what is left has none of them.

        Readers round a number with a fraction or an exponent to the nearest double: all decimals between the midpoints
        to the neighbouring doubles are read as the same number (both midpoints are here; one of them may round to a
        neighbour). Integers without either are read exactly: from 2**53 on only the number itself is equal among these.
        """
        terms, number = self.terms, as_read(value)
        itself = NumberRange().at_least(number, False).at_most(number, False)
        if not number:
            return self.term(itself, any_spelling=True)
        same = [self.term(itself, any_spelling=True)] if number.copy_abs() >= EXACT_INTEGERS else []
        if number.copy_abs() > Decimal(float_info.max) or (same and Decimal(float(number)) != number):
            return terms.alt(same)  # no double is equal to it
        low, high = _midpoints(float(value))
        near = terms.and_([self._syntax(False, True), self._at_least(low, False), self._at_most(high, False)])
        return terms.alt([terms.and_([near, terms.not_(self._whole())]), *same]) if same else near

    # -- spelling ----------------------------------------------------------------------------------------------

    def _syntax(self, integer: bool, any_spelling: bool, digits: int = MAX_DIGITS) -> int:
        key = ("number syntax", integer, any_spelling, digits)
        syntax = self.terms.memo.get(key)
        if syntax is None:
            terms = self.terms
            syntax = self._make_syntax(integer, any_spelling)
            if digits > MAX_DIGITS:
                syntax = terms.alt([syntax, self._integers_of(digits)])
            self.terms.memo[key] = syntax
        return syntax

    def _integers_of(self, digits: int) -> int:
        """Return the integers of at most so many digits, without a point or an exponent."""
        terms = self.terms
        whole = terms.seq(self.nonzero, terms.repeat(self.digit, 0, digits - 1))
        return terms.seq(self.sign, whole)

    def _make_syntax(self, integer: bool, any_spelling: bool) -> int:
        """Return the term of all numbers in JSON's spelling; of integers, with ``any_spelling`` those with a zero
        fraction or an exponent, too."""
        terms = self.terms
        if not integer:
            optional = terms.repeat(self.fraction, 0, 1)
            plain, scientific = terms.seq(self.integer, optional), self._finite(terms.seq(self.digit, optional))
            return terms.seq(self.sign, terms.alt([plain, scientific]))
        if not any_spelling:
            return terms.seq(self.sign, self.integer)
        forms = [terms.seq(self.integer, terms.repeat(self.zero_fraction, 0, 1))]
        # d.ddd e n is an integer if n is at least the number of d after the point; at most 17 of them, as a double has.
        for digits in range(18):
            fraction = terms.seq(self.point, terms.repeat(self.digit, digits, digits)) if digits else terms.EPSILON
            above = terms.sequence([self.digit, fraction, self.e, self._exponent_above(digits - 1)])
            forms.append(terms.and_([self._finite(terms.seq(self.digit, fraction), positive=True), above]))
        return terms.seq(self.sign, terms.alt(forms))

    def _whole(self) -> int:
        """Return the texts without a point or an exponent, which readers take exactly."""
        return self.terms.seq(self.sign, self.any_digits)

    def _plain_syntax(self, integer: bool, digits: int = MAX_DIGITS) -> int:
        """Return the numbers without an exponent; integers have at most zeros after the point."""
        terms = self.terms
        fraction = self.zero_fraction if integer else self.fraction
        plain = terms.sequence([self.sign, self.integer, terms.repeat(fraction, 0, 1)])
        return terms.alt([plain, self._integers_of(digits)]) if digits > MAX_DIGITS else plain

    def _fractional(self) -> int:
        """Return numbers that are no integers: with a digit other than zero after the point (``1.50``), or with a
        normalised mantissa and a negative exponent (``2e-3``). Left out are those with a positive one (``1.25e1``)."""
        terms = self.terms
        nonzero = terms.seq(terms.ALL, terms.sequence([self.point, self.any_digits, self.nonzero, self.any_digits]))
        plain = terms.and_([self._plain_syntax(False), nonzero])
        mantissa = terms.seq(self.nonzero, terms.repeat(self.fraction, 0, 1))
        below = terms.sequence([mantissa, self.e, self._exponent_below(0)])
        small = terms.seq(self.sign, terms.and_([self._finite(mantissa), below]))
        return terms.alt([plain, small])

    def _multiple(self, of: Decimal) -> int:
        """Return the multiples, without an exponent, of a step ``numerator / 10**places``: the digits up to ``places``
        after the point, read as one integer, are a multiple of the numerator, and all digits beyond are zero."""
        numerator, places = in_digits(of)
        return self.terms.seq(self.sign, self.terms.multiples(numerator, places))

    def _not_multiple(self, of: Decimal) -> int:
        """Return the numbers that are no multiples of a step; if it has too many residues, not all of them."""
        if not is_long(of):
            return self.terms.not_(self._multiple(of))
        other = self._multiple(short_divisor(of))
        below = [
            self.terms.and_([self._at_least(low, True), self._at_most(high, True)])
            for low, high in ((Decimal(0), of), (of.copy_negate(), Decimal(0)))
        ]
        return self.terms.alt([self.terms.not_(other), *below])

    def _spellings(self, number: Decimal) -> int:
        """Return the spellings of one number without an exponent, also with more digits than `_plain_syntax` has."""
        terms = self.terms
        whole, _, fraction = format(number.copy_abs(), "f").partition(".")
        fraction = fraction.rstrip("0")
        sign = terms.literal("-") if number < 0 else terms.EPSILON if number > 0 else self.sign
        behind = terms.seq(terms.literal("." + fraction), terms.repeat(terms.literal("0"), 0, None))
        return terms.sequence([sign, terms.literal(whole), behind if fraction else terms.repeat(behind, 0, 1)])

    def _finite(self, mantissa: int, *, positive: bool = False) -> int:
        """Return the numbers with a mantissa of a term, of one digit before the point, and an exponent, that are finite
        as doubles and, unless the mantissa is zero, not read as zero.

        Exponents are those from -323 to 307; 308 up to the greatest double, 1.7976931348623157e308; -324 only with the
        mantissas 3 to 9, which are read as the least double, 5e-324. ``positive``: without negative exponents.
        """
        terms, digit = self.terms, self.digit

        def exponents(*ways: int) -> int:
            return terms.seq(self.e, terms.alt(ways))

        def ending(start: str, last: str) -> int:
            """Return some digits, followed by one of the last digits."""
            return terms.seq(terms.literal(start), terms.chars(CharSet.of(last)))

        plus = terms.repeat(terms.literal("+"), 0, 1)
        hundreds = terms.sequence([terms.chars(CharSet.of("012")), digit, digit])
        to_299 = terms.alt([terms.repeat(digit, 1, 2), hundreds])
        to_307 = terms.alt([to_299, ending("30", "01234567")])
        to_323 = terms.alt([to_299, ending("30", "0123456789"), ending("31", "0123456789"), ending("32", "0123")])
        upper, lower = terms.seq(plus, to_307), terms.seq(self.minus, to_323)
        # With the exponent 308: mantissas of at most as many digits as the greatest double has, up to its own.
        places = len(_GREATEST.as_tuple().digits) - 1
        few = terms.sequence([digit, terms.repeat(terms.seq(self.point, terms.repeat(digit, 1, places)), 0, 1)])
        greatest = self._plain(_GREATEST.scaleb(-_GREATEST.adjusted()), above=False, strict=False)
        found = [
            terms.seq(mantissa, exponents(upper) if positive else exponents(upper, lower)),
            terms.seq(terms.and_([mantissa, few, greatest]), exponents(terms.seq(plus, terms.literal("308")))),
        ]
        if not positive:
            least = terms.and_([mantissa, terms.chars(CharSet.of("3456789"))])
            found.append(terms.seq(least, exponents(terms.literal("-324"))))
        return terms.alt(found)

    # -- comparison --------------------------------------------------------------------------------------------

    def _at_least(self, bound: Decimal, strict: bool) -> int:
        """Return the numbers from a bound on (``strict``: above it)."""
        terms = self.terms
        if bound > 0 or (bound == 0 and strict):
            return self._magnitude(bound, above=True, strict=strict)
        negative = terms.seq(self.minus, self._magnitude(bound.copy_abs(), above=False, strict=strict))
        return terms.alt([self._unsigned(), negative])

    def _at_most(self, bound: Decimal, strict: bool) -> int:
        """Return the numbers up to a bound (``strict``: below it)."""
        terms = self.terms
        if bound < 0 or (bound == 0 and strict):
            return terms.seq(self.minus, self._magnitude(bound.copy_abs(), above=True, strict=strict))
        positive = self._magnitude(bound, above=False, strict=strict)
        return terms.alt([positive, terms.seq(self.minus, self._unsigned())])

    def _unsigned(self) -> int:
        """Return all texts without a sign."""
        terms = self.terms
        return terms.seq(self.digit, terms.ALL)

    def _magnitude(self, bound: Decimal, *, above: bool, strict: bool) -> int:
        """Return the unsigned numbers, plain or scientific, above (or below) a bound that is not negative."""
        terms = self.terms
        plain = self._plain(bound, above=above, strict=strict)
        scientific = self._scientific(bound, above=above, strict=strict)
        return terms.alt([plain, scientific])

    def _plain(self, bound: Decimal, *, above: bool, strict: bool) -> int:
        terms = self.terms
        if bound >= 10**MAX_BOUND:  # no plain number has so many digits
            return terms.EMPTY if above else terms.sequence([self.digit, self.any_digits, self.any_fraction])
        whole, _, fraction = format(bound, "f").partition(".")
        fraction = fraction.rstrip("0")
        differs = self._integers(whole, above=above)
        equal = terms.seq(terms.literal(whole), self._fractions(fraction, above=above, strict=strict))
        return terms.alt([terms.seq(differs, self.any_fraction), equal])

    def _integers(self, whole: str, *, above: bool) -> int:
        """Return the integers above (below) one that is given by its digits: above ``"23"``, they are ``2[4-9]``,
        ``[3-9]\\d`` and ``[1-9]\\d{2,}``."""
        terms = self.terms
        parts = []
        size = len(whole)
        beyond = _ABOVE if above else _BELOW
        for index, digit in enumerate(whole):  # the first digit that differs
            if digit in beyond:
                differs = terms.chars_of(beyond[digit])
                if index == 0 and size > 1:  # no leading zero
                    differs = terms.and_([differs, self.nonzero])
                rest = terms.repeat(self.digit, size - index - 1, size - index - 1)
                parts.append(terms.sequence([terms.literal(whole[:index]), differs, rest]))
        if above:  # those with more digits
            parts.append(terms.seq(self.nonzero, terms.repeat(self.digit, size, None)))
        elif size > 1:  # those with fewer digits
            parts.append(terms.literal("0"))
            parts.append(terms.seq(self.nonzero, terms.repeat(self.digit, 0, size - 2)))
        return terms.alt(parts)

    def _fractions(self, fraction: str, *, above: bool, strict: bool) -> int:
        """Return the optional fractions above (below) one of these digits, of which the last is not zero: above
        ``"25"``, they are ``.25`` with a later digit other than zero, ``.2[6-9]`` and ``.[3-9]`` with any digits
        after."""
        terms = self.terms
        parts = []
        if not strict:
            equal = terms.sequence([self.point, terms.literal(fraction), self.zeros])
            parts.append(equal if fraction else terms.alt([terms.EPSILON, equal]))
        if above:
            tail = terms.sequence([self.zeros, self.nonzero, self.any_digits])
            parts.append(terms.sequence([self.point, terms.literal(fraction), tail]))
        beyond = _ABOVE if above else _BELOW
        for index, digit in enumerate(fraction):  # the first digit that differs
            same = terms.literal(fraction[:index])
            if digit in beyond:
                parts.append(terms.sequence([self.point, same, terms.chars_of(beyond[digit]), self.any_digits]))
            if not above:  # a proper prefix is smaller, since the bound's last digit is not zero
                prefix = terms.seq(self.point, same)
                parts.append(prefix if index else terms.alt([terms.EPSILON, prefix]))
        return terms.alt(parts)

    def _scientific(self, bound: Decimal, *, above: bool, strict: bool) -> int:
        """Compare ``d.ddd e n`` by exponent first, then by mantissa; a zero mantissa is zero, whatever the exponent."""
        terms = self.terms
        any_exponent = terms.seq(self.e, terms.ALL)
        fraction = terms.repeat(terms.seq(self.point, self.zeros), 0, 1)
        zero = terms.sequence([terms.literal("0"), fraction, any_exponent])
        # A mantissa below one is not normalised: only an exact zero may begin with "0".
        positive = terms.seq(self.nonzero, self.any_fraction)
        if bound == 0:
            if above:
                nonzero = terms.seq(positive, any_exponent)
                return nonzero if strict else terms.alt([nonzero, zero])
            return terms.EMPTY if strict else zero
        _, digits, _ = bound.as_tuple()
        exponent = bound.adjusted()
        mantissa = Decimal((0, digits, 1 - len(digits)))
        within = terms.and_([positive, self._plain(mantissa, above=above, strict=strict)])
        same = terms.sequence([within, self.e, self._exponents(exponent, self._exponent_equal)])
        further = self._exponents(exponent, self._exponent_above if above else self._exponent_below)
        parts = [same, terms.sequence([positive, self.e, further])]
        if not above:
            parts.append(zero)
        return terms.alt(parts)

    def _signed(self, sign: str, digits: int) -> int:
        terms = self.terms
        mark = terms.repeat(terms.literal("+"), 0, 1) if sign == "+" else terms.literal("-")
        return terms.sequence([mark, terms.repeat(terms.literal("0"), 0, 2), digits])

    def _exponents(self, exponent: int, compared: Callable[[int], int]) -> int:
        """Return the result of one of the next three methods, memoised: bounds of the same length share it."""
        key = ("exponents", exponent, compared.__name__)
        term = self.terms.memo.get(key)
        if term is None:
            term = self.terms.memo[key] = compared(exponent)
        return term

    def _exponent_equal(self, exponent: int) -> int:
        digits = self.terms.literal(str(abs(exponent)))
        signs = "+-" if exponent == 0 else "+" if exponent > 0 else "-"
        return self.terms.alt([self._signed(sign, digits) for sign in signs])

    def _exponent_above(self, exponent: int) -> int:
        terms = self.terms
        if exponent >= 0:
            return self._signed("+", self._integers(str(exponent), above=True))
        below = self._signed("-", self._integers(str(-exponent), above=False))
        return terms.alt([self._signed("+", self.any_digits), below])

    def _exponent_below(self, exponent: int) -> int:
        terms = self.terms
        if exponent > 0:
            below = self._signed("+", self._integers(str(exponent), above=False))
            return terms.alt([self._signed("-", self.any_digits), below])
        return self._signed("-", self._integers(str(-exponent), above=True))


def _double_within(bound: Decimal, strict: bool, towards: float) -> Decimal | None:
    """Return the first double from a bound on towards an infinity (``strict``: after the bound), in its shortest
    spelling; None if there is no finite one.

    Law: what is written from there on is read as a double within the bound, since rounding is monotonic. Readers of
    doubles (JSON Schema's validators, Pydantic) round 9.99999999999999999999 to 10, which may be excluded.
    """
    is_lower = towards > 0
    if bound.copy_abs() > Decimal(float_info.max):  # all doubles are within it, or none
        if (bound < 0) != is_lower:
            return None
        return exact(-float_info.max if is_lower else float_info.max)
    double = float(bound)  # the nearest one: perhaps on the other side of the bound
    read = as_read(double)
    is_outside = read < bound if is_lower else read > bound
    if is_outside or (strict and read == bound):
        double = nextafter(double, towards)
    return exact(double) if isfinite(double) else None


def _midpoints(value: float) -> tuple[Decimal, Decimal]:
    """Return the midpoints between a double and its neighbours: between them, decimals round to it (IEEE 754-2019,
    section 4.3.1)."""
    with localcontext() as context:
        context.prec = 1_200  # a double has at most 767 digits
        low, high = (Decimal(value) + _next(value, end) for end in (-inf, inf))
        return low / 2, high / 2


def _next(value: float, towards: float) -> Decimal:
    """Return the next double, as if exponents had no maximum."""
    double = nextafter(value, towards)
    return Decimal(double) if isfinite(double) else Decimal(2**1024).copy_sign(Decimal(towards))


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()
