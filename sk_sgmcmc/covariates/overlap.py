"""Whether documents with a value of one covariate were seen where an average sets it, or a regression extrapolates.

A regression on metadata compares levels of a covariate "with everything else equal". If a level was seen only at some
years, no document shows what it would be like at others, and only the terms of the formula say so: a line through all
years is continued. The intervals do not contain this, since they take the terms for granted.

Here documents count as not seen with a value if they lie in a part of another covariate that the documents with the
value miss entirely: above all of their numbers, below them, or at a level that none of them has. There is a warning if
these are most of the documents over which an average is. Few documents with a value miss much by chance, which proves
nothing. One of the parts must therefore be so large that as many documents, taken at random, would miss it with a
probability of at most `_BY_CHANCE`.

Two numbers, each with more than two values, are not compared: their joint range has no simple form, and where they
nearly determine each other, the intervals are wide.
"""

from typing import NamedTuple

import numpy as np

from ..utils._warnings import warn_user

_LARGE = 0.5  # Share of documents that were not seen with a value, above which there is a warning.
_BY_CHANCE = 1e-4
_SHOWN = 4  # Most values that a message names.
_MOST_AT = 8  # Most values of ``at=`` that a message spells out.


class Unseen(NamedTuple):
    """The documents with which a value was not seen.

    Parameters
    ----------
    share : float
        Their share of the documents over which an average is.
    other : str
        The covariate in which they lie elsewhere.
    seen : tuple or list
        The range, or the levels, of that covariate with which the value was seen.
    held : object, default=None
        The value at which averages fix that covariate, if they fix it.
    holding_helps : bool
        Whether averages would differ if they held it elsewhere.
    """

    share: float
    other: str
    seen: tuple | list | None
    held: object = None
    holding_helps: bool = True


class Overlap:
    """The documents of a regression, and those over which it is averaged.

    Parameters
    ----------
    fitted : ObservedMetadata
        Of the documents of the regression.
    average : Counterfactuals
    cluster : ndarray of int, shape (n_docs,), default=None
        Documents with equal numbers were not sampled one by one, and count as one where chance is concerned.
    is_contrast : bool
        Whether averages are only compared. Unless two covariates interact, a difference does not depend on the value at
        which the other one is held, so holding it does not help.
    """

    def __init__(self, fitted, average, cluster=None, is_contrast=False):
        self.fitted, self.average, self.cluster, self.is_contrast = fitted, average, cluster, is_contrast
        self.encoder, self._columns, self._found = average.encoder, {}, {}

    def not_seen(self, settings, is_seen_together=False):
        """The `Unseen` of each pair of a covariate and a value that was not seen with a large share of documents.

        ``settings`` are dicts from covariates to values, which count as seen together if ``is_seen_together``.
        """
        found = {}
        for setting in settings:
            held = {**self.average.given, **setting}
            for name, value in setting.items():
                for other in self.encoder.covariates:
                    if other != name and not (is_seen_together and other in setting):
                        unseen = self._unseen(name, value, other, held.get(other))
                        if unseen.share > max(_LARGE, found[name, value].share if (name, value) in found else 0.0):
                            found[name, value] = unseen
        return found

    def _unseen(self, name, value, other, held):
        key = name, value, other, held
        if key not in self._found:
            self._found[key] = self._computed(*key)
        return self._found[key]

    def _computed(self, name, value, other, held):
        is_missed, seen = self._part(name, value, other)
        if is_missed is None:
            return Unseen(0.0, other, seen)
        share = self.fitted.weights[is_missed(self._column(other))].sum()
        if held is not None and self.is_contrast and share > _LARGE and not self.encoder.interact(name, other):
            return Unseen(share, other, seen, held, holding_helps=False)
        if held is None:
            observed = self.average.observed
            column = self.encoder.column_of(observed.table, self.average.place(other))
            return Unseen(observed.weights[is_missed(column)].sum(), other, seen)
        return Unseen(float(is_missed(np.array([self.average.value_of(other, held)]))[0]), other, seen, held)

    def _part(self, name, value, other):
        """Where the documents with a value lie: a function of values of ``other`` that tells which they miss, and more.

        The other result is the range, a pair, or the list of levels of ``other`` in which the value was seen. The
        function is None if nothing is missed.
        """
        value, own, column = self.average.value_of(name, value), self._column(name), self._column(other)
        if not self._has_levels(name):
            return self._levels_seen_at(value, own, column, other) if self._has_levels(other) else (None, None)
        has = own == value
        n, known = self._n_samples(has), self._is_known(other)
        if not np.any(has & known):
            return None, None
        if self._has_levels(other):
            with_it = np.unique(column[has & known])
            missed = [each for each in np.setdiff1d(column[known], with_it) if self._too_large(column == each, n)]
            return (lambda x: np.isin(x, missed)) if missed else None, self._names(other, with_it)
        first, last = column[has & known].min(), column[has & known].max()
        if not (self._too_large(column < first, n) or self._too_large(column > last, n)):
            return None, (first, last)
        return lambda x: (x < first) | (x > last), (first, last)

    def _levels_seen_at(self, value, own, column, other):
        """As `_part` for a number: it misses the levels of ``other`` whose documents all lie above or below it."""
        missed, seen = [], []
        for level in np.unique(column[self._is_known(other)]):
            has = (column == level) & ~np.isnan(own)
            if not has.any():
                continue
            first, last, n = own[has].min(), own[has].max(), self._n_samples(has)
            is_missed = (value < first and self._too_large(own < first, n)) or (
                value > last and self._too_large(own > last, n)
            )
            (missed if is_missed else seen).append(level)
        return (lambda x: np.isin(x, missed)) if missed else None, self._names(other, seen)

    def _column(self, name):
        if name not in self._columns:
            self._columns[name] = self.encoder.column_of(self.fitted.table, self.average.place(name)).astype(np.float64)
        return self._columns[name]

    def _is_known(self, name):
        """Which rows have a value of a covariate that is neither missing nor unknown."""
        column = self._column(name)
        return ~np.isnan(column) & ((column >= 0) | (not self._is_coded(name)))

    def _is_coded(self, name):
        return not self.average.is_number(name)

    def _has_levels(self, name):
        """Whether a covariate has levels, or is a number with at most two values."""
        return self._is_coded(name) or np.unique(self._column(name)).size <= 2

    def _names(self, name, values):
        if not self._is_coded(name):
            return [float(each) for each in values]
        levels = self.encoder.levels[self.average.place(name)]
        return [levels[int(each)] for each in values]

    def _n_samples(self, rows):
        """Number of documents, or of their clusters, with some of the rows of metadata."""
        docs = rows[self.fitted.place]
        return int(docs.sum()) if self.cluster is None else np.unique(self.cluster[docs]).size

    def _too_large(self, rows, n):
        """Whether ``n`` documents hardly miss these rows by chance."""
        return (1.0 - self.fitted.weights[rows].sum()) ** n < _BY_CHANCE

    def range_of(self, name):
        """The smallest and the largest number among the documents of the regression."""
        return np.nanmin(self._column(name)), np.nanmax(self._column(name))


def warn_of_extrapolation(regression, average, settings, documents, *, is_contrast=False, is_seen_together=False):
    """Warn once if averages at some settings are over documents with which their values were not seen.

    Parameters
    ----------
    regression : PriorMean or RegressionMean
        What is averaged. It is checked only if it has documents of its own, ``observed``, with ``weights``.
    average, is_contrast
        As for `Overlap`.
    settings, is_seen_together
        As for `Overlap.not_seen`.
    documents : str
        The arguments by which other documents are passed.
    """
    if regression.observed is None:
        return
    overlap = Overlap(regression.observed, average, regression.weights.cluster, is_contrast)
    found = overlap.not_seen(settings, is_seen_together)
    if not found:
        return
    alike = {}
    for (name, value), unseen in found.items():
        alike.setdefault((name, unseen.other), []).append((not unseen.holding_helps, unseen.share, value))
    (name, other), entries = max(alike.items(), key=lambda item: len(item[1]))
    first = max(entries, key=lambda entry: entry[:2])[-1]
    unseen = found[name, first]
    where = f"with {other}={_listed(unseen.seen)}"
    if isinstance(unseen.seen, tuple):
        where = "at {}={:g} to {:g}, of {:g} to {:g}".format(other, *unseen.seen, *overlap.range_of(other))
    elsewhere = f"; {unseen.share:.0%} of the documents lie elsewhere"
    if unseen.held is not None and unseen.holding_helps:
        elsewhere = f", not with {other}={_listed([unseen.held])}"
    elif unseen.held is not None:
        elsewhere += f", and holding {other} changes no difference, as the formula has no interaction {name}:{other}"
    rest = [value for *_, value in entries if value != first]
    if len(rest) > _SHOWN:
        more = f" The same holds for {len(rest)} other values of {name}."
    else:
        more = f" The same holds for {name}={_listed(rest)}." if rest else ""
    overlapping = f"Pass only documents that overlap in {other}, by {documents}"
    if unseen.held is not None and unseen.holding_helps:
        overlapping = f"Hold {other} where it was seen with all values of {name}"
    fine = list(dict.fromkeys(_item(each[name]) for each in settings if (name, each.get(name)) not in found))
    leave_out = f"; or leave such values out, by at={fine!r}" if 1 < len(fine) <= _MOST_AT else ""
    warn_user(
        f"{name}={_listed([first])} was seen only {where}{elsewhere}. Its mean there is an extrapolation by the "
        f"regression, and may be far off; intervals take its form for granted.{more} {overlapping}{leave_out}."
    )


def _item(value):
    """A value without its NumPy type."""
    return getattr(value, "item", lambda: value)()


def _listed(values):
    """Values for a message, at most `_SHOWN` of them."""
    items = [_item(each) for each in values]
    shown = ", ".join(f"{each:g}" if isinstance(each, float) else repr(each) for each in items[:_SHOWN])
    return (shown or "no value") + (f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")
