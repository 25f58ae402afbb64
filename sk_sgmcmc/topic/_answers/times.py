"""Times given as text, in the order of time."""

import re
from datetime import UTC, datetime

import numpy as np

from ...utils._warnings import warn_user

# As text, these are in the order of time.
_SORTED = re.compile(r"\d{4}(-?Q[1-4]|-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d)?)?)?)?")
_FORMATS = (
    "%b %Y", "%B %Y", "%b-%Y", "%B-%Y", "%b %y", "%b-%y", "%Y %b", "%Y %B", "%Y-%b", "%d %b %Y", "%d %B %Y", "%d-%b-%Y",
    "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%b. %d, %Y", "%Y-%m-%d", "%Y-%m", "%Y/%m/%d",
    "%Y/%m", "%Y.%m.%d", "%Y.%m", "%m/%Y", "%m-%Y", "%m.%Y", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
    "%a %b %d %H:%M:%S %z %Y", "%a, %d %b %Y %H:%M:%S %z",
)  # fmt: skip
# Day and month may be either way round: parsed where only one way is possible for all.
_EITHER = (("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y"), ("%d/%m/%y", "%m/%d/%y"), ("%d.%m.%Y",), ("%d.%m.%y",))
_NAMES = (
    "jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?|"
    "mon(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?"
)
_LIKE_A_DATE = re.compile(rf"\d{{1,4}}[-/.]\d{{1,2}}\b|\b({_NAMES})\b|\bq[1-4]\b|\b\d{{4}}q[1-4]\b", re.IGNORECASE)


def parsed_texts(times):
    """Texts that are dates or whole numbers as such, if as text they need not be in order; anything else as it is.

    Warns of texts that look like dates and cannot be parsed: they are sorted as text.

    Parameters
    ----------
    times : ndarray of shape (n_documents,)
    """
    if times.dtype.kind not in "OU" or not times.size or not all(isinstance(time, str) for time in times):
        return times
    texts, place = np.unique(times.astype(str), return_inverse=True)
    if texts.size < 2 or all(_SORTED.fullmatch(text) for text in texts):
        return times
    if all(re.fullmatch(r"[0-9]{1,18}", text) for text in texts):
        return texts.astype(np.int64)[place] if len(set(map(len, texts))) > 1 else times
    found = next((dates for dates in (_dates(texts, form) for form in _FORMATS) if dates is not None), None)
    for forms in _EITHER if found is None else ():
        possible = [dates for dates in (_dates(texts, form) for form in forms) if dates is not None]
        found = possible[0] if len(possible) == 1 else found
    if found is not None:
        return found[place]
    like_dates = [text for text in texts if _LIKE_A_DATE.search(text)]
    if 2 * len(like_dates) >= texts.size:
        warn_user(
            f"`times` holds texts such as {str(like_dates[0])!r}, which are sorted as text, not in time. Pass dates, "
            "for example pandas.to_datetime(times, format=...), or a categorical whose levels are in order."
        )
    return times


def _dates(texts, form):
    """The texts as dates in UTC, all in one format; None if one of them is not in it."""
    try:
        found = [datetime.strptime(text.strip(), form) for text in texts]
    except ValueError:
        return None
    return np.array([each if each.tzinfo is None else each.astimezone(UTC).replace(tzinfo=None) for each in found],
                    dtype="datetime64[us]")  # fmt: skip
