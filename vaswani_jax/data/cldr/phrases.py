"""The phrases of the demo's text: dates, amounts and names, in any locale.

The `babel` package writes a phrase in any locale with the words of the Unicode CLDR.
The lists below choose by code what is written about.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import babel

# ISO codes of what most readers have heard of.
TERRITORIES = """
    AE AF AL AM AO AR AT AU AZ BA BD BE BG BO BR BW BY CA CD CH CI CL CM CN CO CR CU CY
    CZ DE DK DO DZ EC EE EG ES ET FI FJ FR GB GE GH GR GT HN HR HU ID IE IL IN IQ IR IS
    IT JM JO JP KE KH KR KW KZ LA LB LK LT LU LV LY MA MD ME MG MK MM MN MT MX MY MZ NA
    NG NI NL NO NP NZ OM PA PE PH PK PL PT PY QA RO RS RU RW SA SD SE SG SI SK SN SV SY
    TH TN TR TZ UA UG US UY UZ VE VN YE ZA ZM ZW
""".split()
LANGUAGES = """
    af am ar az be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl he hi hr hu hy
    id is it ja ka kk ko lt lv mk mn ms mt nb ne nl pl pt ro ru sk sl sq sr sv sw ta te
    th tr uk ur vi zh
""".split()
CURRENCIES = """
    AUD BRL CAD CHF CNY CZK DKK EUR GBP HUF IDR ILS INR JPY KRW MXN NOK NZD PLN RUB SEK
    THB TRY USD ZAR
""".split()
CURRENCIES_WITH_SIGN = "BRL CAD CNY EUR GBP ILS INR JPY KRW USD".split()
UNITS = """
    area-acre area-hectare area-square-kilometer area-square-meter digital-gigabyte
    digital-megabyte energy-kilocalorie energy-kilowatt-hour frequency-megahertz
    length-centimeter length-foot length-inch length-kilometer length-meter length-mile
    length-millimeter mass-gram mass-kilogram mass-pound power-kilowatt power-watt
    speed-kilometer-per-hour speed-mile-per-hour temperature-celsius volume-cubic-meter
    volume-liter volume-milliliter
""".split()
DURATIONS = ("year", "month", "week", "day", "hour", "minute", "second")
DATE_FORMATS = ("full", "long", "medium", "short")
DATE_SKELETONS = ("yMMMEd", "yMMMM", "yMMM", "yQQQQ", "MMMMd", "MMMd", "MMMEd")
# Words or letters (long or short) for a number of zeros.
COMPACT_STYLES = (("long", 3), ("long", 6), ("long", 9), ("short", 6), ("short", 9))
# The format of an interval, and the most days between its ends.
INTERVAL_SKELETONS = (("MMMd", 20), ("yMMMd", 60), ("yMMMM", 330))
# A hundred years, so that two digits name one year.
FIRST_DAY, LAST_DAY = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)


@dataclasses.dataclass(frozen=True)
class Phrase:
    """Something that babel can write in any locale.

    Attributes:
        kind: What it is, such as "territory".
        code: Which of its kind, such as "DE".
        write: Returns its text when called with `locale=`.
    """

    kind: str
    code: str
    write: Callable[..., str]


def list_pattern(size: int, style: str, *, locale: babel.Locale) -> str:
    """Return how a locale lists things, such as "{0}, {1} und {2}".

    Raises:
        LookupError: The locale has no such list.
    """
    from babel import lists

    gaps = [f"{{{index}}}" for index in range(size)]
    pattern = lists.format_list(gaps, style, locale)  # type: ignore[arg-type]
    # Babel writes the last thing twice where the locale inherits the pattern for two.
    if any(pattern.count(gap) != 1 for gap in gaps):
        raise LookupError(f"{locale} has no {style} list of {size}")
    return pattern


def all_phrases(rng: random.Random) -> Iterator[Phrase]:
    """Yield every phrase, about dates and numbers that `rng` draws.

    Args:
        rng: Draws the dates, the numbers over 60 and the prices.

    Yields:
        About 50,000 phrases, the same in the same order for the same `rng`.
    """
    century = range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1)
    days = [datetime.date.fromordinal(day) for day in sorted(rng.sample(century, 2000))]
    counts = [*range(1, 61), *rng.sample(range(61, 1000), 60)]
    counts += rng.sample(range(1000, 10_000), 60)
    units = sorted(rng.sample(range(1, 2000), 60))
    prices = [number + cents for number in units for cents in (0, 0.25, 0.49)]
    yield from _names()
    yield from _dates(days)
    yield from _intervals(days, rng)
    yield from _durations(rng)
    yield from _quantities([*counts, *(number + 0.5 for number in range(20))])
    yield from _money(counts, prices)


def _phrase(
    kind: str, code: str, write: Callable[..., str], *args: object, **options: object
) -> Phrase:
    return Phrase(kind, code, functools.partial(write, *args, **options))


def _names() -> Iterator[Phrase]:
    """Yield territories, languages, dialects, months and weekdays."""
    from babel import localedata

    for code in TERRITORIES:
        yield _phrase("territory", code, _name, "territories", code)
    for code in LANGUAGES:
        yield _phrase("language", code, _name, "languages", code)
    for identifier in sorted(localedata.locale_identifiers()):
        language, _, territory = identifier.partition("_")
        if language in LANGUAGES and territory in TERRITORIES:
            yield _phrase("dialect", identifier, _dialect, language, territory)
    for month in range(1, 13):
        path = "stand-alone", "wide", month
        yield _phrase("month", f"month {month}", _name, "months", *path)
    for day in range(7):
        path = "stand-alone", "wide", day
        yield _phrase("weekday", f"weekday {day}", _name, "days", *path)


def _name(table: str, *path: str | int, locale: babel.Locale) -> str:
    entry = getattr(locale, table)
    for key in path:
        entry = entry[key]
    return str(entry)


def _dialect(language: str, territory: str, *, locale: babel.Locale) -> str:
    return f"{locale.languages[language]} ({locale.territories[territory]})"


def _dates(days: Sequence[datetime.date]) -> Iterator[Phrase]:
    """Yield dates in the locale's formats, and times of day."""
    from babel import dates

    for day in days:
        for style in DATE_FORMATS:
            yield _phrase("date", style, dates.format_date, day, style)
        for skeleton in DATE_SKELETONS:
            kind = "date" if "d" in skeleton else "period"
            write = functools.partial(dates.format_skeleton, skeleton, day, fuzzy=False)
            yield _phrase(kind, skeleton, write)
    for minutes in range(0, 24 * 60, 5):
        time = datetime.time(minutes // 60, minutes % 60)
        yield _phrase("time", "short time", dates.format_time, time, "short")


def _intervals(days: Sequence[datetime.date], rng: random.Random) -> Iterator[Phrase]:
    for skeleton, most_days in INTERVAL_SKELETONS:
        for first in days[::2]:
            last = first + datetime.timedelta(days=rng.randint(1, most_days))
            if last.year == first.year:
                yield _phrase(
                    "interval", skeleton, _interval, first, last, skeleton=skeleton
                )


def _interval(
    first: datetime.date, last: datetime.date, *, skeleton: str, locale: babel.Locale
) -> str:
    from babel import dates

    # Babel would write the first day twice in a pattern that it did not split.
    if any(len(parts) != 2 for parts in locale.interval_formats[skeleton].values()):
        raise LookupError(skeleton)
    return dates.format_interval(first, last, skeleton, locale=locale)


def _durations(rng: random.Random) -> Iterator[Phrase]:
    """Yield durations, and times relative to now, before and after it."""
    for unit in DURATIONS:
        for count in range(1, 61):
            yield _phrase("duration", f"{unit}:", _duration, (unit, count))
            yield _phrase("relative", f"{unit}:", _relative, unit, count)
            yield _phrase("relative", f"{unit}:", _relative, unit, -count)
    for large, small in itertools.pairwise(DURATIONS):
        for _ in range(150):
            counts = (large, rng.randint(1, 23)), (small, rng.randint(1, 6))
            yield _phrase("duration", f"{large} {small}:", _duration, *counts)


def _relative(
    unit: str, count: int, *, add_direction: bool = True, locale: babel.Locale
) -> str:
    from babel import dates

    return dates.format_timedelta(
        dict(dates.TIMEDELTA_UNITS)[unit] * count,
        granularity=unit,  # type: ignore[arg-type]
        threshold=math.inf,
        add_direction=add_direction,
        locale=locale,
    )


def _duration(*counts: tuple[str, int], locale: babel.Locale) -> str:
    write = functools.partial(_relative, add_direction=False, locale=locale)
    texts = [write(unit, count) for unit, count in counts]
    return list_pattern(len(texts), "unit", locale=locale).format(*texts)


def _quantities(values: Sequence[int | float]) -> Iterator[Phrase]:
    """Yield measures, percentages, and thousands to billions."""
    from babel import numbers, units

    for unit, length, value in itertools.product(UNITS, ("long", "short"), values):
        kind = f"{length} unit"
        yield _phrase(kind, unit, units.format_unit, value, unit, length)
    for value in values:
        if value <= 100:
            share = decimal.Decimal(str(value)) / 100
            write = functools.partial(numbers.format_percent, share)
            yield _phrase("percent", "percent", write, decimal_quantization=False)
        for style, zeros in COMPACT_STYLES if value < 1000 else ():
            number = int(value * 10**zeros)
            write = functools.partial(numbers.format_compact_decimal, number)
            code = f"{style} {zeros}"
            yield _phrase("compact", code, write, format_type=style, fraction_digits=1)


def _money(
    values: Sequence[int | float], prices: Sequence[int | float]
) -> Iterator[Phrase]:
    """Yield sums with the currency's name, and prices with its sign."""
    from babel import numbers

    by_name = functools.partial(
        numbers.format_currency, format_type="name", currency_digits=False
    )
    for currency, value in itertools.product(CURRENCIES, values):
        yield _phrase("sum", currency, by_name, value, currency)
    for currency in CURRENCIES_WITH_SIGN:
        for price in prices:
            yield _phrase("price", currency, numbers.format_currency, price, currency)
