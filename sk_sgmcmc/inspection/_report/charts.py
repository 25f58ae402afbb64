"""Charts as SVG inside of HTML: the map of topics, and shares of a topic over time."""

import numpy as np

from .markup import joined, percent, tag

_WIDTH, _HEIGHT = 760.0, 520.0  # of the map
_FILLED, _FILLED_EACH = 0.16, 0.02  # largest share of the map that circles cover: in total, and per circle on average
_LETTER, _LINE = 7.0, 15.0  # estimated width of a letter of a label, and its height
_LONGEST = 26  # characters of a label on the map


def _n(value):
    """A coordinate with one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def topic_map(topics, labels, positions, shares, titles):
    """The map: each topic is a link to its description, with its number in a circle whose area is its share."""
    x, y, radius = _layout(positions, shares)
    placed = _label_places(labels, x, y, radius, shares)
    points = []
    for i in np.argsort(-shares, kind="stable"):
        label = placed.get(i)
        points.append(
            tag(
                "a",
                tag("circle", class_="touch", cx=_n(x[i]), cy=_n(y[i]), r=_n(max(radius[i], 14.0))),
                tag("circle", class_="disc", cx=_n(x[i]), cy=_n(y[i]), r=_n(radius[i])),
                tag("text", topics[i], class_="number", x=_n(x[i]), y=_n(y[i]), dy="0.35em"),
                label
                and tag("text", label[2], class_=f"label {label[3]}", x=_n(label[0]), y=_n(label[1]), dy="0.35em"),
                href=f"#topic-{topics[i]}",
                aria_label=titles[i],
                data_topic=topics[i],
            )
        )
    return tag("svg", *points, class_="map", viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="group",
               aria_label="Map of the topics")  # fmt: skip


def _layout(positions, shares):
    """Centres and radii of circles, in the units of the picture."""
    span = np.ptp(positions, axis=0)
    total = max(shares.sum(), 1e-12)
    filled = min(_FILLED, _FILLED_EACH * shares.size) * _WIDTH * _HEIGHT
    radius = np.maximum(np.sqrt(filled * shares / total / np.pi), 4.0)
    margin = radius.max() + 8.0
    room = np.array([_WIDTH, _HEIGHT]) - 2.0 * margin
    scale = min((r / s for r, s in zip(room, span, strict=True) if s > 1e-9), default=1.0)
    centre = (positions.max(axis=0) + positions.min(axis=0)) / 2.0
    x, y = ((positions - centre) * scale + np.array([_WIDTH, _HEIGHT]) / 2.0).T
    return x, y, radius


def _label_places(labels, x, y, radius, shares):
    """Places of labels next to circles, by topic, the largest first; a label without free space is left out.

    A place is a point, the text, and the side of the text that is at the point: start, middle or end.
    """
    taken = [(x[i] - radius[i], y[i] - radius[i], x[i] + radius[i], y[i] + radius[i]) for i in range(x.size)]
    places = {}
    for i in np.argsort(-shares, kind="stable"):
        text = labels[i] if len(labels[i]) <= _LONGEST else labels[i][: _LONGEST - 1] + "…"
        width = _LETTER * sum(2.0 if ord(c) > 0x2E7F else 1.0 for c in text)
        for side, above in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, -0.8), (-0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)):
            at = x[i] + side * (radius[i] + 4.0)
            level = y[i] + above * (radius[i] + (0.55 * _LINE if side == 0 else 0.0))
            left = at - width * (0.0 if side > 0 else 1.0 if side < 0 else 0.5)
            box = (left, level - _LINE / 2.0, left + width, level + _LINE / 2.0)
            inside = box[0] > 2.0 and box[2] < _WIDTH - 2.0 and box[1] > 2.0 and box[3] < _HEIGHT - 2.0
            if text and inside and not any(_overlap(box, other) for j, other in enumerate(taken) if j != i):
                taken.append(box)
                places[i] = (at, level, text, "start" if side > 0 else "end" if side < 0 else "middle")
                break
    return places


def _overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# -- time --------------------------------------------------------------------------------------------------------------


def as_numbers(times):
    """Times as floats, for horizontal positions."""
    times = times.astype("datetime64[us]").astype(np.int64) if times.dtype.kind == "M" else times
    return times.astype(np.float64)


def _with_decimals(values, width):
    """Numbers as texts, with as many decimals as a range of this width needs."""
    decimals = max(0, 1 - int(np.floor(np.log10(width)))) if width > 0.0 else 3
    return [f"{value:.{decimals}f}" for value in values]


def time_names(times):
    """Texts of times: years, months or days of dates if they are no finer."""
    if times.dtype.kind == "f":
        return _with_decimals(times.tolist(), np.ptp(times))
    if times.dtype.kind != "M":
        return [str(time) for time in times.tolist()]
    for unit in ("Y", "M", "D", "m"):
        coarse = times.astype(f"datetime64[{unit}]")
        if (coarse.astype(times.dtype) == times).all():
            break
    return [text.replace("T", " ") for text in np.datetime_as_string(coarse).tolist()]


def _scaled(times, share, width, height, top):
    at = as_numbers(times)
    x = width * (at - at[0]) / (at[-1] - at[0])
    return x, height - height * np.asarray(share) / max(top, 1e-12)


def _path(x, y):
    return " ".join(f"{_n(a)},{_n(b)}" for a, b in zip(x, y, strict=True))


def sparkline(times, share):
    """A small line without axes, for lists."""
    x, y = _scaled(times, share.mean, 96.0, 22.0, share.mean.max())
    return tag("svg", tag("polyline", points=_path(x + 2.0, y + 2.0)), class_="spark", viewBox="0 0 100 26",
               aria_hidden="true", focusable="false")  # fmt: skip


def time_chart(times, share):
    """The share of a topic over time, with its interval as a band; what it shows is also said in words."""
    width, height, left, top = 380.0, 130.0, 46.0, 10.0
    largest = share.high.max()
    x, mean = _scaled(times, share.mean, width, height, largest)
    (_, low), (_, high) = (_scaled(times, part, width, height, largest) for part in (share.low, share.high))
    names, peak = time_names(times), int(share.mean.argmax())
    words = (
        f"Share over time: {percent(share.mean[0])} in {names[0]}, {percent(share.mean[-1])} in {names[-1]}; "
        f"highest in {names[peak]} with {percent(share.mean[peak])}."
    )
    x, mean, low, high = x + left, mean + top, low + top, high + top
    band = joined([_path(x, low), _path(x[::-1], high[::-1])], " ")
    lines = [
        tag("line", class_="grid", x1=_n(left), x2=_n(left + width), y1=_n(y), y2=_n(y))
        for y in (top, top + height / 2.0, top + height)
    ]
    heights = [
        tag("text", percent(value), x=_n(left - 5.0), y=_n(y), dy="0.35em", class_="end")
        for value, y in ((largest, top), (largest / 2.0, top + height / 2.0), (0.0, top + height))
    ]
    few = [tag("circle", cx=_n(a), cy=_n(b), r="2.5") for a, b in zip(x, mean, strict=True)] if x.size < 13 else []
    return tag(
        "svg", *lines, *heights, *_axis(times, left, width, top + height + 16.0), tag("polygon", points=band),
        tag("polyline", points=_path(x, mean)), *few, class_="chart", viewBox="0 0 440 166", role="img",
        aria_label=words,
    )  # fmt: skip


def _axis(times, left, width, y):
    """Names along the horizontal axis: round numbers, or some of the dates."""
    at = as_numbers(times)
    if times.dtype.kind == "M":
        names = time_names(times)
        wanted = np.linspace(at[0], at[-1], 5 if max(map(len, names)) < 8 else 3)
        places = sorted({int(np.abs(at - value).argmin()) for value in wanted})
        marks = [(at[i], names[i]) for i in places]
    else:
        step = 10.0 ** np.floor(np.log10(np.ptp(at) / 4.0))
        step *= next(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * step >= np.ptp(at) / 5.0)
        values = np.arange(np.ceil(at[0] / step), np.floor(at[-1] / step) + 1.0) * step
        marks = list(zip(values, _with_decimals(values, 10.0 * step), strict=True))
    x = [left + width * (value - at[0]) / (at[-1] - at[0]) for value, _ in marks]
    sides = ["start" if a < left + 25.0 else "end" if a > left + width - 25.0 else "middle" for a in x]
    return [
        tag("text", name, x=_n(a), y=_n(y), class_=side) for a, (_, name), side in zip(x, marks, sides, strict=True)
    ]
