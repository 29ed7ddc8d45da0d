"""Sets of JSON numbers: bounds, multiples, and how readers take what is written.

Readers take digits alone for an exact integer, and a number with a point or an exponent for the nearest double; so do
both validators, Python's and Rust's, in schemas and in values. From 2**53 on, where doubles are farther apart than
integers, the two differ: then the 1e23 of a schema is 99999999999999991611392, and either form of a text is compared as
it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, gcd, inf, lcm

#: Maximum number of digits before the point, and after it.
MAX_DIGITS = 30

#: Maximum number of digits of the bounds that integers reach. (The greatest double, of 309 digits, is the bound of many
#: schemas that mean none.)
MAX_BOUND = 100

#: Maximum number of significant digits at which different decimals are always different doubles (IEEE 754-2019,
#: section 5.12.2).
MAX_EXACT = 15

#: Below this, each integer is a double.
EXACT_INTEGERS = 2**53

#: Maximum numerator of a ``multipleOf``: its residues are automaton states.
MAX_RESIDUES = 1_000_000

#: Maximum number of multiples in a range that are listed one by one.
MAX_LISTED = 200

#: Number of multiples, on each side of the one nearest to zero, that are listed of a step with too many residues where
#: the range has more than `MAX_LISTED`.
MAX_NEAR = 1_000

#: Maximum factor that is looked for in a step with too many residues.
_MAX_FACTOR = 1_000


@dataclass(frozen=True)
class NumberRange:
    """Numbers between two bounds, with further conditions.

    Attributes:
        integer: only integers.
        least: lower bound; None: there is none.
        least_excluded: the lower bound itself is excluded.
        most: upper bound; None: there is none.
        most_excluded: the upper bound itself is excluded.
        fractional: no integers.
        multiples: only multiples of each of these steps.
        not_multiples: no multiples of any of these steps.
        exact: fractions have at most `MAX_EXACT` significant digits, so that different numbers are different doubles.
            With ``fractional`` they always do: no double is then an integer.
    """

    integer: bool = False
    least: Decimal | None = None
    least_excluded: bool = False
    most: Decimal | None = None
    most_excluded: bool = False
    fractional: bool = False
    multiples: tuple[Decimal, ...] = ()
    not_multiples: tuple[Decimal, ...] = ()
    exact: bool = False

    def at_least(self, bound: Decimal, strict: bool) -> NumberRange:
        """Return the numbers that are not below a bound (``strict``: that are above it)."""
        if self.least is not None and (self.least, self.least_excluded) >= (bound, strict):  # it is as strict already
            return self
        return replace(self, least=bound, least_excluded=strict)

    def at_most(self, bound: Decimal, strict: bool) -> NumberRange:
        """Return the numbers that are not above a bound (``strict``: that are below it)."""
        if self.most is not None and (self.most, not self.most_excluded) <= (bound, not strict):
            return self
        return replace(self, most=bound, most_excluded=strict)

    def meet(self, other: NumberRange) -> NumberRange:
        """Return the numbers that are in both ranges."""
        low = other if other._starts_above(self) else self
        high = other if other._ends_below(self) else self
        return NumberRange(
            integer=self.integer or other.integer,
            least=low.least,
            least_excluded=low.least_excluded,
            most=high.most,
            most_excluded=high.most_excluded,
            fractional=self.fractional or other.fractional,
            multiples=_common(self.multiples + other.multiples),
            not_multiples=tuple(dict.fromkeys(self.not_multiples + other.not_multiples)),
            exact=self.exact,
        )

    def _starts_above(self, other: NumberRange) -> bool:
        """Return True if the lower bound is the stricter one of two."""
        if self.least is None or other.least is None:
            return self.least is not None
        return (self.least, self.least_excluded) > (other.least, other.least_excluded)

    def _ends_below(self, other: NumberRange) -> bool:
        """Return True if the upper bound is the stricter one of two."""
        if self.most is None or other.most is None:
            return self.most is not None
        return (self.most, not self.most_excluded) < (other.most, not other.most_excluded)

    @property
    def digits(self) -> int:
        """Maximum number of digits of an integer: at least those of the bounds, up to `MAX_BOUND`."""
        bounds = (self.least, self.least_excluded), (self.most, self.most_excluded)
        return max(
            bound.adjusted() + 1 + strict if bound and MAX_DIGITS <= bound.adjusted() + 1 <= MAX_BOUND else MAX_DIGITS
            for bound, strict in bounds
        )

    def is_below(self, other: NumberRange) -> bool:
        """Return True if the bounds show that each number is less than any of another range."""
        return self.most is not None and other.least is not None and self.most < other.least

    @property
    def is_empty(self) -> bool:
        """True if the conditions obviously contradict one another; False: not known."""
        if self.integer and self.fractional:
            return True
        if any(_divides(other, step) for other in self.not_multiples for step in self.multiples):
            return True
        if self.least is None or self.most is None:
            return False
        low, high = self.least, self.most
        if self.integer:
            first, last = ceil(low), floor(high)
            return first + (self.least_excluded and first == low) > last - (self.most_excluded and last == high)
        return low > high or (low == high and (self.least_excluded or self.most_excluded))

    def contains(self, value: float) -> bool:
        """Return True if a decoded number is in the range: bounds are compared with what it is read as, multiples with
        its shortest spelling."""
        number, spelled = as_read(value), exact(value)
        if not number.is_finite():  # `json.loads` reads 1e400 as infinity
            return False
        whole = number == number.to_integral_value()
        if (self.integer and not whole) or (self.fractional and whole):
            return False
        if self.least is not None and (number < self.least or (self.least_excluded and number == self.least)):
            return False
        if self.most is not None and (number > self.most or (self.most_excluded and number == self.most)):
            return False
        return all(_divides(step, spelled) for step in self.multiples) and not any(
            _divides(step, spelled) for step in self.not_multiples
        )


def _divides(step: Decimal, number: Decimal) -> bool:
    return (Fraction(number) / Fraction(step)).denominator == 1


def _common(steps: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    """Return the least common multiple of some steps as the only step, unless it alone has too many residues; no step,
    if there are none."""
    if len(steps) < 2:
        return steps
    common = least_common(steps)
    return (common,) if any(map(is_long, steps)) or not is_long(common) else tuple(dict.fromkeys(steps))


def least_common(steps: tuple[Decimal, ...]) -> Decimal:
    """Return the least common multiple of some steps."""
    fractions = [Fraction(step) for step in steps]
    least = Fraction(lcm(*(step.numerator for step in fractions)), gcd(*(step.denominator for step in fractions)))
    with localcontext() as context:
        context.prec = 400  # denominators are products of 2 and 5: the decimal ends
        return Decimal(least.numerator) / Decimal(least.denominator)


def is_long(step: Decimal) -> bool:
    """Return True if a step has too many residues for an automaton: then its multiples are narrowed where they are not
    few (see `number_terms.Numbers.term`)."""
    return in_digits(step)[0] > MAX_RESIDUES


def listed_multiples(what: NumberRange) -> list[Decimal] | None:
    """Return the multiples in a range, its bounds included, if they are to be listed; else None.

    That is where the automaton of the remainders would be large. For several conditions, they are listed if there are
    at most `MAX_LISTED`; for steps with too many residues always, but only those next to zero if there are more.
    """
    steps = what.multiples + what.not_multiples
    if not what.multiples:
        return None
    is_narrowed = is_long(least_common(what.multiples))
    if (len(steps) < 2 or what.least is None or what.most is None) and not is_narrowed:
        return None
    step = Fraction(least_common(what.multiples))
    # The multiples are counted in steps from zero: those of the bounds, and the first and the last that is listed.
    low = None if what.least is None else ceil(Fraction(what.least) / step)
    high = None if what.most is None else floor(Fraction(what.most) / step)
    if low is not None and high is not None and high - low < MAX_LISTED:
        first, last = low, high
    elif not is_narrowed:
        return None
    else:
        nearest = 0  # to zero
        if low is not None and low > 0:
            nearest = low
        elif high is not None and high < 0:
            nearest = high
        reach = min(MAX_NEAR, max(0, floor(10**what.digits / step) - abs(nearest)))  # beyond, no number is written
        first = nearest - reach if low is None else max(low, nearest - reach)
        last = nearest + reach if high is None else min(high, nearest + reach)
    with localcontext() as context:
        context.prec = 400  # see `_common`
        multiples = [step * count for count in range(first, last + 1)]
        numbers = [Decimal(number.numerator) / Decimal(number.denominator) for number in multiples]
    return [number for number in numbers if not any(_divides(step, number) for step in what.not_multiples)]


def leaves_out(what: NumberRange) -> bool:
    """Return True if `listed_multiples` leaves out common multiples of several steps in a range: each step has few
    residues, all together have too many, and the range has too many multiples."""
    if len(what.multiples) < 2 or any(map(is_long, what.multiples)):
        return False
    step = least_common(what.multiples)
    if not is_long(step):
        return False
    if what.least is None or what.most is None:
        return True
    return (Fraction(what.most) - Fraction(what.least)) / Fraction(step) >= MAX_LISTED


def in_digits(step: Decimal) -> tuple[int, int]:
    """Return a step as ``(numerator, places)``, where it is ``numerator / 10**places``."""
    whole, _, decimals = format(step, "f").partition(".")
    decimals = decimals.rstrip("0")
    return int(whole + decimals), len(decimals)


def short_divisor(step: Decimal) -> Decimal:
    """Return a step that divides a step with too many residues, and has not too many itself."""
    numerator, places = in_digits(step)
    divisor = 1
    for factor in range(2, _MAX_FACTOR):
        while numerator % factor == 0 and divisor * factor <= MAX_RESIDUES:
            numerator //= factor
            divisor *= factor
    return Decimal(divisor).scaleb(-places)


def is_kept(step: Decimal) -> bool:
    """Return True if a double that is read for a multiple of a step is one, however many digits the multiple has: for
    halves, quarters and so on, as all doubles that are farther apart are multiples of them; and for powers of ten, of
    which a text has few digits."""
    fraction = Fraction(step)
    return in_digits(step)[0] == 1 or (fraction.numerator == 1 and fraction.denominator.bit_count() == 1)


def exact(value: float) -> Decimal:
    """Return a decoded number as the decimal of its shortest spelling; zero has no sign."""
    return Decimal(value) if isinstance(value, int) else Decimal(float.__repr__(value)) if value else Decimal(0)


def as_read(value: float) -> Decimal:
    """Return a decoded number as it is compared with others: exactly, but a fraction by its shortest spelling, which
    has the same order among doubles and integers."""
    is_large = isinstance(value, float) and EXACT_INTEGERS <= abs(value) < inf
    return Decimal(value) if is_large else exact(value)


def is_short_integer(value: object) -> bool:
    """Return True if a value is an integer other than zero of at most `MAX_EXACT` digits."""
    return type(value) is int and 0 < abs(value) < 10**MAX_EXACT
