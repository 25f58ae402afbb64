"""HTML as text: elements whose contents are escaped, numbers, and bars with intervals."""

import html
import re

_VOID = {"link", "meta"}
# Characters that HTML does not allow.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already, so that it is not escaped again."""

    __slots__ = ()


def escaped(value):
    """A value as HTML; any text that is not `Markup` is escaped."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def joined(parts, between=""):
    """Parts one after the other, as HTML; None and nested lists are allowed."""
    return Markup(escaped(between).join(_flat(parts)))


def _flat(parts):
    for part in parts:
        if isinstance(part, (list, tuple)):
            yield from _flat(part)
        elif part is not None:
            yield escaped(part)


def tag(name, /, *children, **attributes):
    """An element with children and attributes; underscores of attributes become hyphens, and None leaves one out."""
    given = [
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    start = f"<{name}{''.join(given)}>"
    return Markup(start if name in _VOID else f"{start}{joined(children)}</{name}>")


def any_script(text, **attributes):
    """Text in any script, whose direction is that of its first letter, and which does not affect the text around."""
    return tag("bdi", text, **attributes)


def percent(share):
    """A share as a percentage, with three digits at most."""
    value = 100.0 * share
    if 0.0 < value < 0.005:
        return "<0.01%"
    return f"{_decimals(value)}%"


def percent_interval(low, high):
    """The ends of an interval of shares, in percent."""
    return f"[{_decimals(100.0 * low)}, {_decimals(100.0 * high)}]"


def points(difference):
    """A difference between shares in percentage points, with its sign."""
    value = 100.0 * difference
    return f"{'−' if value < 0 else '+'}{_decimals(abs(value))}"


def _decimals(value):
    return f"{value:.1f}".replace("-", "−") if abs(value) >= 0.995 else f"{value:.2f}".replace("-", "−")


def number(value):
    """A number with three digits."""
    if value != value:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def bar(mean, low, high, largest):
    """A bar from 0 to a mean, with a line from the low to the high end of its interval."""
    ends = [min(max(100.0 * value / largest, 0.0), 100.0) if largest > 0 else 0.0 for value in (mean, low, high)]
    return _positioned("bar", ends)


def dot(mean, low, high, largest):
    """A dot at a mean and a line for its interval, on an axis from minus to plus ``largest`` with 0 in the middle."""
    scale = 50.0 / largest if largest > 0 else 0.0
    return _positioned("dot", [min(max(50.0 + scale * value, 0.0), 100.0) for value in (mean, low, high)])


def _positioned(kind, ends):
    mean, low, high = (f"{end:.1f}".removesuffix(".0") for end in ends)
    return tag("span", class_=kind, style=f"--m:{mean}%;--l:{low}%;--h:{high}%", aria_hidden="true")
