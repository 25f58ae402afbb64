"""Topic proportions of documents: draws, and tables by topic, document and time."""

import re
import reprlib
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

import numpy as np

from ...kernels.models.lda import proportions as kernels
from ...metrics import coherence, exclusivity
from ...metrics.completion import DirichletPrior, over_documents, prior_of_draw, used_words, word_major
from ...utils import as_table, row_keys
from ...utils._numbers import checked_count, interval_ends, interval_tails
from ...utils._seeds import counter_uniforms, keys_of_copies, mix64, salt64
from ...utils._tables import declared_levels
from ...utils._warnings import warn_user
from .topics import largest

# Texts of these formats are in order of time if sorted as text.
_SORTED = re.compile(r"\d{4}(-?Q[1-4]|-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d)?)?)?)?")
_FORMATS = (
    "%b %Y", "%B %Y", "%b-%Y", "%B-%Y", "%b %y", "%b-%y", "%Y %b", "%Y %B", "%Y-%b", "%d %b %Y", "%d %B %Y", "%d-%b-%Y",
    "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%b. %d, %Y", "%Y-%m-%d", "%Y-%m", "%Y/%m/%d",
    "%Y/%m", "%Y.%m.%d", "%Y.%m", "%m/%Y", "%m-%Y", "%m.%Y", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
    "%a %b %d %H:%M:%S %z %Y", "%a, %d %b %Y %H:%M:%S %z",
)  # fmt: skip
# Groups of formats that differ in the order of day and month, used if exactly one of a group parses all texts.
_EITHER = (("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y"), ("%d/%m/%y", "%m/%d/%y"), ("%d.%m.%Y",), ("%d.%m.%y",))
_NAMES = (
    "jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?|"
    "mon(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?"
)
_LIKE_A_DATE = re.compile(rf"\d{{1,4}}[-/.]\d{{1,2}}\b|\b({_NAMES})\b|\bq[1-4]\b|\b\d{{4}}q[1-4]\b", re.IGNORECASE)


def parsed_texts(times):
    """Parse texts of dates or whole numbers, unless their order as text is their order in time.

    Other values are returned unchanged. Warns of texts that look like dates and cannot be parsed, because they are
    sorted as text.

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
    """Parse texts as dates in UTC by one format; return None if a text does not match it."""
    try:
        found = [datetime.strptime(text.strip(), form) for text in texts]
    except ValueError:
        return None
    return np.array([each if each.tzinfo is None else each.astimezone(UTC).replace(tzinfo=None) for each in found],
                    dtype="datetime64[us]")  # fmt: skip


# Sweeps over a document before its first draw, and between draws. The latter are fewer, because topics change little
# from one draw to the next and assignments are kept.
_FIRST_SWEEPS, _SWEEPS = 20, 5
_LEAST = 1e-30  # lower limit of probabilities, so that no word is impossible


class DrawnDirichlet(DirichletPrior):
    """A `DirichletPrior` under which proportions can be drawn."""

    def draw_proportions(self, indptr, words, counts, token_ptr, phi, *rest):
        """Draw the proportions of documents given topics ``phi``; arguments as for the kernel, without the prior."""
        kernels.draw_proportions(indptr, words, counts, token_ptr, phi, self.alpha, *rest)


def proportion_draws(corpus, topics, doc_topic_prior, *, random_state=0, groups=None, n_jobs=None):
    """Draw the proportions of documents once for each draw of the topics.

    Parameters
    ----------
    corpus : Corpus
        Documents.
    topics : list of callable or ndarray
        Draws of the topics, as for `document_completion`.
    doc_topic_prior : array or callable
        As for `document_completion`.
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed. The random numbers of a document depend on it and on the content of the document, not on the others.
    groups : ndarray of shape (n_docs,), default=None
        Groups of documents over which draws will be averaged. Equal documents then have different random numbers. None:
        equal documents have equal draws.
    n_jobs : int or None, default=None
        Number of threads over documents; it does not affect the draws.

    Yields
    ------
    proportions : ndarray of shape (n_docs, n_topics)
        A new array for each draw; rows sum to 1.
    """
    keys = row_keys(corpus.to_csr())
    keys = keys if groups is None else keys_of_copies(keys, groups, *corpus.keys_beside())
    keys = mix64(keys ^ salt64(random_state))
    token_ptr = np.concatenate([[0], np.cumsum(corpus.tokens_per_pair)])
    used, (part,) = used_words(corpus)
    z = np.zeros(token_ptr[-1], dtype=np.uint16)
    for s, draw in enumerate(topics):
        phi = np.maximum(word_major(draw, corpus.n_words, used), _LEAST)
        prior = prior_of_draw(doc_topic_prior, s, len(topics), corpus.n_docs, phi.shape[1], DrawnDirichlet)
        theta, streams = np.empty((corpus.n_docs, phi.shape[1])), mix64(keys + np.uint64(s + 1))
        fresh, n_sweeps = int(s == 0), _FIRST_SWEEPS if s == 0 else _SWEEPS

        def call(start, stop, phi=phi, prior=prior, theta=theta, streams=streams, fresh=fresh, n_sweeps=n_sweeps):
            prior.draw_proportions(
                part.indptr, part.words, part.counts, token_ptr, phi, streams, fresh, n_sweeps, start, stop, z, theta
            )

        over_documents(call, part, phi.shape[1] * n_sweeps, n_jobs)
        yield theta


MOST_TIMES = 200  # largest number of different times in a table without bins


def spread(draws, tails):
    """Mean and interval ends of draws over their first axis, (mean, low, high)."""
    return draws.mean(axis=0), *interval_ends(draws, tails)


def mean_proportions(draws, filled):
    """Mean of each draw of proportions over the documents that have tokens, (n_draws, n_topics)."""
    if not filled.any():
        raise ValueError("X holds no tokens, so topics have no shares; pass documents with words.")
    return np.stack([each[filled].mean(axis=0) for each in draws])


def info_table(components, X, shares, stability, agree, n_words, interval, feature_names, topic_names):
    """Table with a row of summaries for each topic: share, quality, stability and top words."""
    share, low, high = spread(shares, interval_tails(interval))
    n_top = min(10, components.shape[1])
    several = n_top > 1
    words = [", ".join(str(feature_names[w]) for w in largest(topic, n_words)) for topic in components]
    columns = {
        "topic": np.arange(len(components)),
        "name": topic_names,
        "share": share,
        "low": low,
        "high": high,
        "coherence": coherence(components, X, n_words=n_top) if several else np.zeros(len(components)),
        "exclusivity": exclusivity(components, n_words=n_top),
        "stability": stability,
    }
    if len(agree) > 1:
        columns["chains_agree"] = agree.all(axis=0)
    return as_table(columns | {"top_words": words})


def candidates(proportions, counts, n):
    """Indices of the ``2 * n`` different documents with the largest proportion of each topic, (n_topics, n_candidates).

    Of documents with equal rows of ``counts`` only the one with the largest proportion is a candidate.
    """
    _, place = np.unique(row_keys(counts), return_inverse=True)
    n = min(2 * n, place.max() + 1)
    return np.array([_largest_different(column, place.ravel(), n) for column in proportions.T])


def _largest_different(values, place, n):
    """As `largest`, but with at most one index for each value of ``place``."""
    n_read = n
    while True:
        order = largest(values, n_read)
        different = order[np.sort(np.unique(place[order], return_index=True)[1])]
        if different.size >= n or n_read >= values.size:
            return different[:n]
        n_read *= 4


def most_typical(candidates, means, n):
    """The ``n`` candidates of each topic with the largest mean proportion, in decreasing order, (n_topics, n).

    ``means`` are the proportions of the candidates' topics, (n_topics, n_candidates).
    """
    order = np.argsort(-means, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(candidates, order, axis=1)


def checked_texts(texts, n_docs):
    """Check that there is a text for each of ``n_docs`` documents, and return texts as a sequence; None if None."""
    if texts is None:
        return None
    if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) != 1:
        raise ValueError(f"texts must be a list or an array with a text for each document; got {reprlib.repr(texts)}.")
    texts = texts if hasattr(texts, "__len__") else list(texts)
    if len(texts) != n_docs:
        raise ValueError(f"There are {len(texts)} texts, but X has {n_docs} documents; give one text for each.")
    return texts


def document_table(candidates, draws, n, texts, interval, topic_names):
    """Table of the ``n`` candidates of each topic with the largest mean proportion, with a row for each.

    ``draws`` are proportions of the documents ``np.unique(candidates)``, of shape (n_draws, n_documents, n_topics).
    """
    some, topic = np.unique(candidates), np.arange(len(candidates))[:, None]
    means = draws.mean(axis=0)[np.searchsorted(some, candidates), topic]
    chosen = most_typical(candidates, means, n)
    n_topics, n = chosen.shape
    topic, place = np.repeat(topic, n), np.searchsorted(some, chosen.ravel())
    mean, low, high = spread(draws[:, place, topic], interval_tails(interval))
    columns = {
        "topic": topic,
        "name": np.repeat(np.asarray(topic_names, dtype=object), n),
        "rank": np.tile(np.arange(1, n + 1), n_topics),
        "document": chosen.ravel(),
        "proportion": mean,
        "low": low,
        "high": high,
    }
    if texts is not None:
        columns["text"] = np.asarray(texts, dtype=object)[chosen.ravel()]
    return as_table(columns)


def correlation_table(draws, interval, topic_names):
    """Table of the correlation between the proportions of topics over documents, with a row for each pair."""
    if len(draws[0]) < 2:
        raise ValueError(f"X has {len(draws[0])} documents with words, but a correlation needs at least two.")
    first, second = np.triu_indices(draws[0].shape[1], k=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.stack([np.nan_to_num(np.atleast_2d(np.corrcoef(one, rowvar=False)))[first, second] for one in draws])
    mean, low, high = spread(each, interval_tails(interval))
    names = np.asarray(topic_names, dtype=object)
    return as_table(
        {
            "topic_a": first,
            "topic_b": second,
            "name_a": names[first],
            "name_b": names[second],
            "correlation": mean,
            "low": low,
            "high": high,
        }
    )


def _in_utc(time):
    return time if getattr(time, "tzinfo", None) is None else time.astimezone(UTC).replace(tzinfo=None)


def as_dates(times):
    """Convert an array of date objects to datetime64, in UTC if they have a time zone; return others unchanged."""
    if times.dtype.kind != "O" or not times.size or not all(isinstance(time, date) for time in times.ravel()):
        return times
    zoneless = [np.datetime64("NaT") if time != time else _in_utc(time) for time in times.ravel()]
    return np.array(zoneless, dtype="datetime64[us]").reshape(times.shape)


def starts_of_periods(times):
    """Convert an array of pandas periods to the dates at which they start; return other arrays unchanged."""
    periods = times.dtype.kind == "O" and all(type(time).__name__ == "Period" for time in times)
    return as_dates(np.array([time.start_time for time in times], dtype=object)) if periods else times


def checked_times(times, n_docs, n_bins):
    """Distinct times (or starts of bins) in order, and the index of each document in them."""
    levels, given = declared_levels(times), times
    is_ordered = getattr(getattr(times, "dtype", None), "ordered", True)
    times = as_dates(np.asarray(times))
    if n_bins is not None:
        n_bins = checked_count("n_bins", n_bins)
    if times.shape != (n_docs,):
        raise ValueError(f"times has shape {times.shape}; give one time for each of the {n_docs} documents of X.")
    if times.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in times])
    else:
        missing = np.isnat(times) if times.dtype.kind == "M" else times != times
    if missing.any():
        raise ValueError(f"times holds {missing.sum()} missing values; leave these documents out of X and times.")
    if levels is None or not is_ordered:
        parsed = parsed_texts(times)
        levels, times = (levels, times) if parsed is times else (None, parsed)
    times = times if n_bins is None else starts_of_periods(times)
    is_number = times.dtype.kind in "iufM"
    infinite = np.isinf(times).sum() if times.dtype.kind == "f" else 0
    if infinite:
        raise ValueError(f"times holds {infinite} infinite values; leave these documents out of X and times.")
    if n_bins is not None:
        if not is_number:
            raise ValueError(
                f"n_bins={n_bins} needs times that are numbers or dates, not {times.dtype} such as {times[0]!r}; "
                "pandas.to_datetime makes dates of text."
            )
        as_float = times.astype("datetime64[us]").astype(np.int64) if times.dtype.kind == "M" else times
        as_float = as_float.astype(np.float64)
        edges = np.linspace(as_float.min(), as_float.max(), n_bins + 1)
        bins = np.clip(np.searchsorted(edges, as_float, side="right") - 1, 0, n_bins - 1)
        used, index = np.unique(bins, return_inverse=True)
        starts = edges[used]
        if times.dtype.kind == "M":
            starts = starts.astype(np.int64).astype("datetime64[us]").astype(times.dtype)
        return starts, index
    if levels is not None:
        place = {level: i for i, level in enumerate(levels)}
        used, index = np.unique([place[time] for time in given], return_inverse=True)
        return as_dates(np.array([*levels, None], dtype=object)[used]), index
    try:
        different, index = np.unique(times, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"times must be comparable with each other: {error}.") from None
    if different.size > MOST_TIMES and is_number:
        raise ValueError(
            f"times holds {different.size} different values; pass n_bins=20 for a table of 20 periods, or round them, "
            "for example to years."
        )
    return different, index


def random_weights(X, index, n_draws, random_state):
    """Weights of documents in each draw, (n_draws, n_docs), proportional to Dirichlet(1, ..., 1).

    They depend on the content of a document and its group ``index``, not on its place.
    """
    keys = mix64(keys_of_copies(row_keys(X), index) ^ mix64(salt64(random_state)))
    return -np.log1p(-counter_uniforms(keys, np.arange(n_draws)[:, None]))


def means_by_time(draws, index, filled, n_times, weights=None):
    """Mean proportions of the documents of each time in each draw, (n_draws, n_held, n_topics).

    Parameters
    ----------
    draws : list of ndarray of shape (n_docs, n_topics)
    index : ndarray of shape (n_docs,)
        Time of each document, below ``n_times``.
    filled : ndarray of bool, shape (n_docs,)
        Which documents have words; the others do not count.
    n_times : int
    weights : ndarray of shape (n_draws, n_docs), default=None
        Weights of the documents in each draw. None: all are equal.

    Returns
    -------
    means : ndarray of shape (n_draws, n_held, n_topics)
    held : ndarray of shape (n_held,)
        Times that have documents with words.
    n_docs : ndarray of shape (n_held,)
        Numbers of these documents.
    """
    n_docs = np.bincount(index[filled], minlength=n_times)
    held = np.flatnonzero(n_docs)
    if not held.size:
        raise ValueError("X holds no tokens, so topics have no shares; pass documents with words.")
    weights = np.ones((len(draws), filled.size)) if weights is None else weights

    def means(theta, weight):
        sums = [np.bincount(index[filled], weight * column, n_times)[held] for column in theta.T]
        return np.stack(sums, axis=1) / np.bincount(index[filled], weight, n_times)[held, None]

    by_time = [means(one[filled], weight[filled]) for one, weight in zip(draws, weights, strict=True)]
    return np.stack(by_time), held, n_docs[held]


def time_table(draws, times, index, filled, interval, topic_names, weights=None):
    """Table of the mean proportions of documents, with a row for each time and topic.

    ``weights`` are those of the documents in each draw, (n_draws, n_docs). None: all are equal.
    """
    by_time, held, n_docs = means_by_time(draws, index, filled, times.size, weights)
    mean, low, high = (part.ravel() for part in spread(by_time, interval_tails(interval)))
    n_topics = by_time.shape[2]
    return as_table(
        {
            "time": np.repeat(times[held], n_topics),
            "topic": np.tile(np.arange(n_topics), held.size),
            "name": np.tile(np.asarray(topic_names, dtype=object), held.size),
            "share": mean,
            "low": low,
            "high": high,
            "n_documents": np.repeat(n_docs, n_topics),
        }
    )
