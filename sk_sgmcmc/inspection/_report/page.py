"""The page of a report: its sections as HTML, with the style sheet and the script that are kept next to this file."""

import base64
import hashlib
import re
from pathlib import Path

import numpy as np

from . import charts
from .contents import related
from .markup import (
    Markup,
    any_script,
    bar,
    dot,
    joined,
    number,
    percent,
    percent_interval,
    points,
    tag,
)

_FOLDER = Path(__file__).parent
_SHOWN = 260  # characters of a text that are shown before it is unfolded
_MOST_ROWS = 20  # rows of tables that list the largest differences
_OVER = {
    "population": "the population from which the documents are a sample, so intervals include the variation between "
    "documents",
    "documents": "these documents, so intervals contain only the uncertainty about their topics",
}


def page(contents, title, n_characters):
    """The whole page, as text.

    Parameters
    ----------
    contents : Contents
    title : str or None
        Title of the page. None: the numbers of topics and documents.
    n_characters : int
        Number of characters of a text, after which it is cut.
    """
    title = title or f"{contents.topics.size} topics of {contents.n_documents:,} documents"
    style, script = (
        (_FOLDER / name).read_text(encoding="utf-8").replace("\r\n", "\n") for name in ("page.css", "page.js")
    )
    sha = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Nothing is loaded, and no script runs but the one whose digest this is.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{sha}'; img-src data:; base-uri 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    parts = [("summary", "Summary", _summary(contents)), ("map", "Map of topics", _map(contents)),
             ("topics", "Topics", _topics(contents, n_characters)), ("time", "Over time", _time(contents)),
             ("groups", "By group", _groups(contents)), ("converged", "Has it converged?", _converged(contents)),
             ("reading", "How to read this report", _reading(contents))]  # fmt: skip
    links = [tag("a", name, href=f"#{key}") for key, name, _ in parts]
    sections = [
        tag("section", tag("h2", name, id=f"{key}-title"), body, id=key, aria_labelledby=f"{key}-title")
        for key, name, body in parts
    ]
    body = tag(
        "body",
        tag("a", "Skip to the topics", href="#topics", class_="skip"),
        tag("header", tag("h1", any_script(title)), tag("nav", *links, aria_label="Sections")),
        tag("main", joined(sections, "\n")),
        tag("footer", "Made by topic_report of sk_sgmcmc. This file loads nothing and works offline."),
        tag("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


# -- parts -------------------------------------------------------------------------------------------------------------


def _name(contents, i):
    """The number of a topic and its label."""
    return f"Topic {contents.topics[i]}: {contents.labels[i]}"


def _link(contents, i):
    return tag("a", any_script(_name(contents, i)), href=f"#topic-{contents.topics[i]}")


def _order(contents):
    """Places of the topics, the most prevalent first."""
    return np.argsort(-contents.share.mean, kind="stable").tolist()


def _table(head, rows, caption=None, class_=None):
    """A table whose first column names the rows; it scrolls sideways where it is too wide for the screen."""
    cells = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    return tag(
        "div",
        tag(
            "table",
            caption and tag("caption", caption),
            tag("thead", tag("tr", *(tag("th", name, scope="col") if name else tag("td") for name in head))),
            tag("tbody", joined(cells, "\n")),
            class_=class_,
        ),
        class_="wide",
    )


def _share_rows(names, values, counts=None):
    """Rows of names with bars, shares and intervals."""
    largest = values.high.max()
    return [
        [
            any_script(names[j]),
            bar(*ends, largest),
            joined([percent(ends[0]), " ", tag("small", percent_interval(*ends[1:]))]),
            *([] if counts is None else [f"{counts[j]:,}"]),
        ]
        for j, ends in enumerate(zip(*values.ends, strict=True))
    ]


def _difference_rows(names, values, largest):
    """Rows of names with dots, differences in percentage points and intervals."""
    rows = []
    for name, mean, low, high in zip(names, *values.ends, strict=True):
        known = mean == mean
        text = [points(mean), " ", tag("small", f"[{points(low)}, {points(high)}]")] if known else "not determined"
        rows.append([name, dot(mean, low, high, largest) if known else "", joined([text])])
    return rows


def _largest(values):
    finite = [np.abs(part[np.isfinite(part)]) for part in values.ends]
    return max((part.max() for part in finite if part.size), default=1.0)


def _left_out(reason):
    return tag("p", reason, class_="left-out")


# -- sections ----------------------------------------------------------------------------------------------------------


def _summary(contents):
    fired = [check for check, _ in contents.checks if check.fired]
    if not contents.checks:
        verdict, kind = "No checks of this fit are known. See “Has it converged?”.", "warning"
    elif fired:
        verdict = f"{len(fired)} of {len(contents.checks)} checks of the fit failed: read “Has it converged?” first."
        kind = "warning"
    else:
        verdict, kind = f"All {len(contents.checks)} checks of the fit passed.", "passed"
        if contents.n_chains == 1:
            verdict += " There is one chain, so it is not known whether another would find the same topics."
    sentences = [
        f"{contents.model} with {contents.topics.size} topics, {contents.n_words:,} words and "
        f"{contents.n_documents:,} documents"
        + (
            f", of which {contents.n_documents - contents.n_filled:,} have no words"
            * (contents.n_filled < contents.n_documents)
        )
        + ".",
        f"Results are posterior means with {contents.interval:.0%} credible intervals, from {contents.n_draws} draws "
        + ("of one chain." if contents.n_chains == 1 else f"of each of {contents.n_chains} chains.")
        + f" Shares of topics in documents use {contents.n_share_draws} of them.",
    ]
    if contents.n_unused:
        sentences.append(f"{contents.n_unused} topics of the model that are not in use are left out.")
    if contents.n_topics:
        best = max(contents.n_topics, key=lambda pair: pair[1])
        sentences.append(
            f"The most probable number of topics with at least 1% of the weight is {best[0]}, with a probability of "
            f"{best[1]:.2f}."
        )
    return [tag("p", " ".join(sentences)), tag("p", tag("a", verdict, href="#converged"), class_=f"verdict {kind}")]


def _map(contents):
    titles = [f"{_name(contents, i)}, share {percent(s)}" for i, s in enumerate(contents.share.mean)]
    kind = {"hellinger": "the Hellinger distance of their probabilities of words", "angle": "the angle between them"}
    return [
        tag(
            "p",
            f"Topics with similar words are near each other (by {kind[contents.distance]}). The area of a circle is "
            "the topic’s share of the documents. Select a circle to read about its topic.",
        ),
        charts.topic_map(
            contents.topics.tolist(), contents.short_labels, contents.positions, contents.share.mean, titles
        ),
    ]


def _topics(contents, n_characters):
    order = _order(contents)
    near, together = related(contents)
    largest = contents.share.high.max()
    items, articles = [], []
    for i in order:
        k, (mean, low, high) = contents.topics[i], (part[i] for part in contents.share.ends)
        has_line = contents.times is not None and contents.times.is_ordered
        items.append(
            tag(
                "li",
                tag(
                    "a",
                    tag("span", k, class_="number"),
                    any_script(contents.labels[i], class_="label"),
                    tag("span", percent(mean), class_="share"),
                    bar(mean, low, high, largest),
                    (has_line and charts.sparkline(contents.times.values, contents.times.share[i])) or None,
                    href=f"#topic-{k}",
                ),
                data_topic=k,
                data_share=f"{mean:.6g}",
                data_stability=f"{contents.stability[i]:.6g}",
                data_words="\n".join(contents.searched[i]),
            )
        )
        articles.append(_topic(contents, i, near[i], together[i], n_characters))
    browser = tag(
        "div",
        tag("div", tag("div", class_="tools"), tag("ol", joined(items, "\n"), class_="list"), class_="side"),
        tag("div", joined(articles, "\n"), class_="details"),
        class_="browser",
    )
    return [browser]


def _topic(contents, i, near, together, n_characters):
    k = contents.topics[i]
    mean, low, high = (part[i] for part in contents.share.ends)
    facts = [f"Share of the documents: {percent(mean)} {percent_interval(low, high)}"]
    facts += [f"{name}: {number(values[i])}" for name, values in contents.quality.items()]
    facts.append(f"stability: {number(contents.stability[i])}")
    if contents.n_chains > 1:
        agree = contents.chains_agree[:, i]
        facts.append(f"found by {agree.sum()} of {agree.size} chains")
    words = zip(contents.words[i], *(part[i] for part in contents.word_interval.ends), strict=True)
    is_share, widest = contents.word_unit == "probability", contents.word_interval.high[i].max()
    rows = [
        [any_script(word), bar(*ends, widest),
         joined([percent(ends[0]) if is_share else number(ends[0]), " ",
                 tag("small", percent_interval(*ends[1:]) if is_share else f"[{number(ends[1])}, {number(ends[2])}]")])]
        for word, *ends in words
    ]  # fmt: skip
    lists = [(title, contents.other_words[title][i]) for title in contents.other_words]
    lists += [(f"Words in {group}", words[i]) for group, words in contents.words_by_group.items()]
    courses = _courses(contents, i)
    parts = [
        tag("h3", any_script(_name(contents, i)), tabindex="-1"),
        tag("p", joined(facts, " · "), class_="facts"),
        tag(
            "div",
            tag("div", _table(["Word", "", contents.word_unit.capitalize()],
                              rows, "Words", "bars"), *_word_lists(lists), class_="words"),
            (courses and tag("div", *courses, class_="courses")) or None,
            class_="columns" if courses else None,
        ),
        *_related(contents, i, near, together),
        *_documents(contents, i, n_characters),
    ]  # fmt: skip
    return tag("article", *parts, class_="topic", id=f"topic-{k}", data_topic=k)


def _word_lists(lists):
    return [
        tag("p", tag("strong", any_script(title), ": "), joined([any_script(word) for word in words], ", "))
        for title, words in lists
    ]


def _courses(contents, i):
    """What is known of a topic's share by time, group, covariates and outcome."""
    parts, times, groups = [], contents.times, contents.groups
    if times is not None and times.is_ordered:
        parts.append(
            tag("figure", tag("figcaption", "Share over time"), charts.time_chart(times.values, times.share[i]))
        )
    elif times is not None:
        rows = _share_rows(charts.time_names(times.values), times.share[i], times.n_documents)
        parts.append(_table(["Time", "", "Share", "Documents"], rows, "Share over time", "bars"))
    if groups is not None:
        rows = _share_rows(groups.values, groups.share[i], groups.n_documents)
        parts.append(_table(["Group", "", "Share", "Documents"], rows, "Share by group", "bars"))
        if groups.compared:
            parts.append(
                _differences("Difference between groups", groups.compared, groups.against, groups.difference[i])
            )
    for effect in contents.effects:
        what = joined(["Effect of ", any_script(effect.covariate)])
        parts.append(_differences(what, effect.compared, effect.against, effect.difference[i]))
    if contents.outcome is not None:
        mean, low, high = (part[i] for part in contents.outcome.ends)
        known = mean == mean
        text = f"{number(mean)} [{number(low)}, {number(high)}]" if known else "not determined by the data"
        parts.append(
            tag("p", tag("strong", "Coefficient of the outcome: "), text, ", compared with an average document.")
        )
    if contents.topics[i] in contents.keyword_rate:
        mean, low, high = contents.keyword_rate[contents.topics[i]]
        parts.append(
            tag("p", tag("strong", "Tokens from its keywords: "), f"{percent(mean)} {percent_interval(low, high)}.")
        )
    return parts


def _differences(what, names, against, values):
    """A table of differences of one topic."""
    rows = _difference_rows([any_script(name) for name in names], values, _largest(values))
    caption = joined([what, ", compared with ", any_script(against)])
    return _table(["", "", "Percentage points"], rows, caption, "bars")


def _related(contents, i, near, together):
    out = []
    if near:
        links = [joined([_link(contents, j), f" ({contents.distances[i, j]:.2f})"]) for j in near]
        out.append(
            tag("p", tag("strong", "Most similar topics (distance): "), joined(links, ", "), ".", class_="related")
        )
    if together:
        links = [joined([_link(contents, j), f" ({contents.correlation.mean[i, j]:.2f})"]) for j in together]
        out.append(
            tag("p", tag("strong", "In the same documents (correlation): "), joined(links, ", "), ".", class_="related")
        )
    return out


def _documents(contents, i, n_characters):
    items = []
    for d, text, mean, low, high in zip(
        contents.documents[i], contents.texts[i], *(part[i] for part in contents.proportion.ends), strict=True
    ):
        about = tag("p", f"Document {d} · {percent(mean)} ", tag("small", percent_interval(low, high)), class_="facts")
        items.append(tag("li", about, bar(mean, low, high, 1.0), _quoted(text, n_characters)))
    title = "Documents with most of the topic"
    note = None if contents.has_texts else tag("p", "Shown by their most frequent words; pass texts= for their texts.")
    return [tag("h4", title), note, tag("ol", joined(items, "\n"), class_="documents")]


def _quoted(text, n_characters):
    """The beginning of a text, which unfolds to the rest; or words with their counts."""
    if isinstance(text, list):
        words = [
            joined([any_script(word), tag("small", f" {count:g}") if count == int(count) else None])
            for word, count in text
        ]
        return tag("p", joined(words, ", "), class_="text") if words else tag("p", "(no words)", class_="text")
    if not text:
        return tag("p", "(no text)", class_="text")
    text = text if len(text) <= n_characters else text[:n_characters] + "…"
    if len(text) <= _SHOWN * 1.2:
        return tag("blockquote", text, dir="auto", class_="text")
    cut = text.rfind(" ", _SHOWN // 2, _SHOWN)
    cut = _SHOWN if cut < 0 else cut
    return tag(
        "details", tag("summary", text[:cut], dir="auto"), tag("div", text[cut:].strip(), dir="auto"), class_="text"
    )


def _time(contents):
    times = contents.times
    if times is None:
        return _left_out("Left out, since no times of the documents were passed (times=).")
    names = charts.time_names(times.values)
    about = tag(
        "p",
        f"Share of each topic from {names[0]} to {names[-1]}, over {_OVER[contents.of]}. Each line has a scale of its "
        "own; its highest value is given. Select a topic for its intervals."
        + " Periods are named by their start."
        * contents.has_periods,
    )
    if times.values.size < 2:
        return _left_out(f"Left out, since all documents have the same time, {names[0]}.")
    if not times.is_ordered:
        return [tag("p", f"Shares at {', '.join(names[:20])} are in the description of each topic.")]
    items = [
        tag(
            "li",
            tag(
                "a", any_script(_name(contents, i)), charts.sparkline(times.values, times.share[i]),
                href=f"#topic-{contents.topics[i]}",
            ),
            tag("small", f"highest: {percent(times.share.mean[i].max())}, {names[int(times.share.mean[i].argmax())]}"),
        )
        for i in _order(contents)
    ]  # fmt: skip
    return [about, tag("ul", joined(items, "\n"), class_="lines")]


def _groups(contents):
    parts, groups = [], contents.groups
    if groups is None:
        parts.append(_left_out("Groups are left out, since none were passed (groups=)."))
    elif not groups.compared:
        parts.append(_left_out(f"All documents belong to one group, {groups.values[0]}, so none are compared."))
    else:
        about = f"Shares are means over {_OVER[contents.of]}."
        parts += _largest_differences(contents, groups.compared, groups.against, groups.difference, about)
    for effect in contents.effects:
        about = (
            "Differences of a regression of the documents’ proportions on the covariates of the model, with the other "
            "covariates as observed."
        )
        parts.append(tag("h3", "Effect of ", any_script(effect.covariate)))
        parts += [tag("p", note, class_="message") for note in effect.notes]
        parts += _largest_differences(contents, effect.compared, effect.against, effect.difference, about)
    return parts


def _largest_differences(contents, names, against, difference, about):
    """The largest differences of all topics whose intervals exclude 0."""
    clear = (difference.low > 0.0) | (difference.high < 0.0)
    places = np.argwhere(clear)
    if not places.size:
        return [tag("p", f"{about} No interval of a difference excludes 0.")]
    size = np.abs(difference.mean[clear])
    chosen = places[np.argsort(-size, kind="stable")[:_MOST_ROWS]]
    largest = _largest(difference[tuple(chosen.T)])
    rows = []
    for i, j in chosen.tolist():
        (row,) = _difference_rows([_link(contents, i)], difference[i, [j]], largest)
        rows.append([row[0], any_script(names[j]), *row[1:]])
    many = f"The largest {len(rows)} of {len(places)} differences" if len(places) > len(rows) else "All differences"
    caption = joined([many, " whose intervals exclude 0, compared with ", any_script(against)])
    return [tag("p", about), _table(["Topic", "", "", "Percentage points"], rows, caption, "bars broad")]


def _converged(contents):
    return [*_checks(contents), *_diagnostics(contents), *_agreement(contents)]


def _plain(text):
    """Text of the documentation, with code as elements."""
    parts = re.split(r"``(.+?)``|`~?(?:[\w.]+\.)?(.+?)`", text)
    return joined(tag("code", part) if place % 3 else part for place, part in enumerate(parts) if part is not None)


def _checks(contents):
    if not contents.checks:
        return [_left_out("No checks are known: the fit was interrupted, or is a stream, or was saved without them.")]
    rows = []
    for check, definition in contents.checks:
        result = tag("strong", "failed", class_="failed") if check.fired else "passed"
        about = check.name.replace("_", " ") if definition is None else _plain(definition.quantity)
        rows.append([check.name.replace("_", " "), result, number(check.value), number(check.limit), about])
    messages = [tag("p", check.message, class_="message") for check, _ in contents.checks if check.fired]
    return [*messages, _table(["Check", "Result", "Value", "Limit", "Quantity"], rows, "Checks of the draws", "checks")]


def _diagnostics(contents):
    table = contents.diagnostics
    if table is None or "r_hat" not in table or not len(table["r_hat"]):
        return [_left_out("R-hat and effective sample sizes are left out: this fit has none.")]
    names, *columns = (np.asarray(table[name]) for name in ("quantity", "mean", "r_hat", "ess", "mcse"))
    r_hat, ess = columns[1][np.isfinite(columns[1])], columns[2][np.isfinite(columns[2])]
    worst = (
        f"The largest R-hat is {number(r_hat.max())} (1 is ideal), and the smallest effective sample size "
        f"{number(ess.min())}."
        if r_hat.size and ess.size
        else "The chains are too short for R-hat and effective sample sizes."
    )
    order = np.argsort(-np.nan_to_num(columns[1]), kind="stable")[:_MOST_ROWS]
    rows = [[names[j].replace("_", " "), *(number(column[j]) for column in columns)] for j in sorted(order.tolist())]
    head = ["Quantity", "Mean", "R-hat", "Effective sample size", "Monte Carlo error"]
    about = (
        f"{worst} There are no limits on either for topic models: predictions improve ever more slowly, and chains "
        "that found different topics have different means, which makes R-hat large in good fits too. Read the checks "
        "and the agreement of the chains instead."
    )
    many = f", the {len(rows)} with the largest R-hat" if len(rows) < len(names) else ""
    return [tag("p", about), _table(head, rows, f"Monitored quantities{many}")]


def _agreement(contents):
    heading = tag("h3", "Do the chains agree?")
    if contents.n_chains == 1:
        return [
            heading,
            _left_out("This fit has one chain, so it is not known whether another would find these topics."),
        ]
    unlike = np.flatnonzero(~contents.chains_agree.all(axis=0))
    others = [c for c in range(contents.n_chains) if c != contents.reference_chain]
    text = (
        f"The {contents.n_chains} chains found different versions of {unlike.size} of {contents.topics.size} topics."
        if unlike.size
        else f"All {contents.n_chains} chains found these topics."
    )
    order = np.argsort(-contents.chain_distances.max(axis=0), kind="stable")
    rows = [
        [
            _link(contents, i),
            "yes" if contents.chains_agree[:, i].all() else tag("strong", "no", class_="failed"),
            *(number(contents.chain_distances[c, i]) for c in others),
            number(contents.stability[i]),
        ]
        for i in order.tolist()
    ]
    head = ["Topic", "Agree", *(f"Distance of chain {c}" for c in others), "Stability"]
    return [
        heading,
        tag("p", f"{text} Results come from chain {contents.reference_chain}; chains agree at distances up to 0.25."),
        _table(head, rows, "Topics, those that differ most first"),
    ]


def _reading(contents):
    interval = f"{contents.interval:.0%}"
    terms = [
        ("Interval", f"A {interval} credible interval: given the model and the documents, the value lies in it with a "
                     f"probability of {interval}. It describes one version of a topic, that of the chains that agree."),
        ("Share", "Mean proportion of the topic in the documents that have words."),
        ("Share by time and group", f"Mean over {_OVER[contents.of]}."),
        ("Stability", "Agreement of the words of a topic over all draws of all chains: 1 if all are equal."),
    ]  # fmt: skip
    if contents.quality:
        terms += [
            ("FREX", "Words that are both frequent in the topic and rare in others."),
            ("Coherence", "How often the ten most probable words occur in the same documents (NPMI, from −1 to 1)."),
            ("Exclusivity", "How much the ten most probable words belong to this topic alone, from 0 to 1."),
        ]
    else:
        terms.append(
            ("Coherence and exclusivity", "Left out: these topics are directions, not probabilities of words.")
        )
    keys = (
        "j and k, or arrow keys in the list: next and previous topic. Enter: open. /: search. Escape: back to the list."
    )
    return [
        tag("dl", *([tag("dt", term), tag("dd", text)] for term, text in terms)),
        tag("p", "Keys: ", keys, class_="keys"),
    ]
