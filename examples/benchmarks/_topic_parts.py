"""Parts of the comparison of topic models.

A part is a class with ``name``, ``corpora`` and ``topics`` (defaults of the command line), ``alone`` (whether each case
runs in a process of its own), and

``cases(options, done)``  dictionaries with at least the keys of `KEY`, in the order in which they run; what is done
                          already is in ``done`` by `key_of`
``measure(case)``         a dictionary of what was measured
``tables(records)``       `Table` objects for what was measured
"""

import itertools
import time
from functools import cache
from pathlib import Path

import numpy as np
from _peers import WORD_PRIOR, Judge, Stopwatch, Watch, peak_memory, split
from _topic_corpora import DESIGNS, SMALL_DESIGN, corpus_of
from _topic_inference import EFFECTS, MASS, TRANSFORMS, Given
from _topic_programs import (
    FIRST_ANSWERS,
    OUR_STREAMS,
    OURS,
    PROGRAMS,
    STREAM_PEER,
    STREAMS,
    SWEEPS,
    named,
    texts,
    word_names,
)
from _topic_tables import Table, number, timed
from intervals import plant

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.metrics import align_topics, coherence, split_tokens

KEY = "part", "program", "corpus", "n_topics", "seed", "threads"
MARKS = 1, 2, 4  # Times of our default fit.


def case_of(part, program, corpus, n_topics, seed=0, threads=1, **more):
    """A case, with what else it needs to know."""
    return dict(zip(KEY, (part, program, corpus, n_topics, seed, threads), strict=True)) | more


def key_of(case):
    """The key of a case or record."""
    return tuple(case[name] for name in KEY)


def grid(options):
    """Seeds, corpora and numbers of topics, all of the first seed before the next."""
    return itertools.product(range(options.seeds), options.corpora, options.topics)


def grouped(records, *names):
    """Records by the values of some keys, in the order in which they appear."""
    groups = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return groups


def mean(values):
    """Mean of numbers, without those that are missing; None if there are none."""
    values = [value for value in values if value is not None]
    return float(np.mean(values)) if values else None


def at(record, seconds):
    """The point of a curve that is nearest to a time, if no other mark is nearer."""
    nearest = min(record.get("points", []), key=lambda point: abs(np.log(point[0] / seconds)), default=None)
    return nearest if nearest and abs(np.log(nearest[0] / seconds)) < np.log(2.0) / 2.0 else None


class Perplexity:
    """Held-out perplexity over processor time."""

    name, alone = "perplexity", True
    corpora, topics = ["ap", "20newsgroups", "reuters21578", "acl_abstracts"], [20, 100, 1000]

    def cases(self, options, done):
        """Ours first, because its time sets that of the others."""
        programs = named(PROGRAMS, options.programs)
        for seed, corpus, n_topics in grid(options):
            ours = case_of(self.name, OURS, corpus, n_topics, seed, marks=[])
            yield ours
            if key_of(ours) not in done or "end" not in done[key_of(ours)]:
                continue
            spent = done[key_of(ours)]["end"]["seconds"]
            marks = [m * spent for m in MARKS if m * spent <= options.most_seconds] or [options.most_seconds]
            for name, program in programs.items():
                if name != OURS and n_topics <= program.most_topics:
                    most = None if program.midway else options.most_seconds
                    more = {"marks": marks, "most_seconds": options.most_seconds, "kill_after": most}
                    yield case_of(self.name, name, corpus, n_topics, seed, **more)

    def measure(self, case):
        """Run a program."""
        X, held_out = split(corpus_of(case["corpus"]), case["seed"])
        program = named(PROGRAMS)[case["program"]]
        program.warm_up(X, case["n_topics"])
        marks = case["marks"] if program.midway else []
        watch = Watch(Judge(held_out), marks, window=program.window, most=case.get("most_seconds", np.inf))
        likelihood = program.run(X, case["n_topics"], case["seed"], watch)
        sizes = {"documents": X.shape[0], "words": X.shape[1], "tokens": int(X.sum())}
        return watch.record() | sizes | {"log_likelihood": likelihood}

    def tables(self, records):
        """A table for each corpus and number of topics, and one of first answers."""
        first = []
        for (corpus, n_topics), group in grouped(records, "corpus", "n_topics").items():
            by_program = grouped(group, "program")
            ours = {record["seed"]: record for record in by_program.pop((OURS,), []) if record.get("end")}
            if not ours:
                continue
            peers = {name: [r for r in each if r["seed"] in ours] for (name,), each in by_program.items()}
            yield self._times(corpus, n_topics, ours, peers)
            first += self._first(corpus, n_topics, ours, peers.get(FIRST_ANSWERS, []))
        head = ["corpus", "K", "our first answer", "scikit-learn by then", "largest ratio of ours to its, from then on"]
        if first:
            yield Table("First answers: perplexity (seconds)", head, first)

    def _times(self, corpus, n_topics, ours, peers):
        spent = mean(each["end"]["seconds"] for each in ours.values())
        by_window, by_mean = (mean(each["end"][kind] for each in ours.values()) for kind in ("window", "perplexity"))
        rows = [["ours", timed(by_window, spent), "--", "--", timed(by_mean, spent)]]
        losses, windows = [], {each.name: each.window for each in PROGRAMS}
        for name, group in peers.items():
            cells, level = [], by_window if windows[name] > 1 else by_mean
            for mark in MARKS:
                points = [at(each, mark * ours[each["seed"]]["end"]["seconds"]) for each in group]
                found = [point for point in points if point is not None]
                cells.append(timed(mean(p[1] for p in found), mean(p[0] for p in found)) if found else "--")
                losses += self._loss(f"{name} after {mark} times our seconds", found, lambda p: p[1], level)
            ends = [each["end"] for each in group if each.get("end")]
            stopped = next((f"not within {each['stopped']:.0f} s" for each in group if "stopped" in each), "--")
            end = timed(*(mean(each[kind] for each in ends) for kind in ("perplexity", "seconds")))
            cells.append(end if ends else stopped)
            losses += self._loss(f"{name} by its default fit", ends, lambda e: e["perplexity"], by_mean)
            rows.append([name, *cells])
        one = next(iter(ours.values()))
        title = (
            f"{corpus}, K = {n_topics}: perplexity (seconds). {one['documents']:,} documents, {one['words']:,} words, "
            f"{one['tokens']:,} tokens, {len(ours)} seed{'s' * (len(ours) > 1)}"
        )
        head = ["program", *(f"{mark} x our seconds" for mark in MARKS), "its default fit"]
        lost = f"We lose to: {'; '.join(losses) or 'none of these'}." if peers else "No other program has been run."
        left_out = [f"{each.name} is left out: it {each.reason}." for each in PROGRAMS if n_topics > each.most_topics]
        return Table(title, head, rows, [lost, *left_out])

    @staticmethod
    def _loss(name, found, perplexity, ours):
        level = mean(perplexity(each) for each in found)
        return [f"{name} ({number(level)} < {number(ours)})"] if level is not None and level < ours else []

    @staticmethod
    def _first(corpus, n_topics, ours, group):
        for record in group:
            mine, theirs = ([point[:2] for point in each["points"]] for each in (ours[record["seed"]], record))

            def value(curve, seconds):
                return min((p for s, p in curve if s <= seconds), default=np.inf)

            began = mine[0][0]
            looks = [s for s, _ in mine + theirs if began <= s <= mine[-1][0] and np.isfinite(value(theirs, s))]
            ratio = max((value(mine, s) / value(theirs, s) for s in looks), default=None)
            then = value(theirs, began)
            yield [
                corpus, str(n_topics), timed(mine[0][1], began), number(then) if np.isfinite(then) else "none yet",
                number(ratio, 3),
            ]  # fmt: skip


class Coverage:
    """Coverage and bias of effects and shares on planted corpora."""

    name, alone, corpora, topics = "coverage", False, list(DESIGNS), [None]
    KINDS = "effects", "shares"

    def cases(self, options, done):
        """All designs and programs with one seed before the next."""
        programs = named(EFFECTS, options.programs)
        for seed, corpus, _ in itertools.product(range(options.replicates), options.corpora, [None]):
            for name in programs:
                yield case_of(self.name, name, corpus, self._design(corpus).n_topics, seed)

    @staticmethod
    def _design(corpus):
        return DESIGNS.get(corpus, SMALL_DESIGN)

    def measure(self, case):
        """Errors, and whether intervals cover."""
        corpus, program = plant(self._design(case["corpus"]), case["seed"]), named(EFFECTS)[case["program"]]
        self._warm_up(case["program"])
        began = time.process_time()
        answer = program.fitted(corpus.counts, corpus.column, case["n_topics"], case["seed"])
        result = {"seconds": time.process_time() - began}
        order = align_topics(corpus.topics, answer.topics)
        for kind in self.KINDS:
            truth, (middle, low, high) = getattr(corpus, kind), getattr(answer, kind)[:, order]
            result[kind] = [((low <= truth) & (truth <= high)).tolist(), (middle - truth).tolist()]
        return result

    @staticmethod
    @cache
    def _warm_up(name):
        corpus = plant(SMALL_DESIGN, 0)
        named(EFFECTS)[name].fitted(corpus.counts, corpus.column, SMALL_DESIGN.n_topics, 0)

    def tables(self, records):
        """A table for effects and one for shares."""
        for kind in self.KINDS:
            rows = []
            in_order = sorted(records, key=lambda record: record["corpus"])
            for (corpus, name), group in grouped(in_order, "corpus", "program").items():
                inside, errors = (np.array([each[kind][i] for each in group], dtype=float) for i in (0, 1))
                by_corpus, size = inside.mean(axis=1), np.sqrt(len(group))
                spread = by_corpus.std(ddof=1) / size if len(group) > 1 else np.nan
                # Errors of effects and shares sum to zero over topics: the bias is that of their size.
                rows.append([
                    corpus, name, str(len(group)), f"{number(by_corpus.mean(), 3)} ± {number(spread, 3)}",
                    number(self._bias(group, kind), 4), number(np.sqrt(np.mean(errors**2)), 4),
                    number(mean(each["seconds"] for each in group), 2),
                ])  # fmt: skip
            head = ["design", "program", "corpora", "coverage", "bias", "rmse", "s"]
            notes = ["Bias is negative if estimates are too close to zero (effects), or to equal shares (shares)."]
            title = f"Coverage of {MASS:.0%} intervals of {kind}, ± standard error between corpora"
            yield Table(title, head, rows, notes)

    def _bias(self, group, kind):
        found = []
        for record in group:
            truth = getattr(plant(self._design(record["corpus"]), record["seed"]), kind)
            direction = truth - (1.0 / truth.size if kind == "shares" else 0.0)
            found.append(np.mean(np.sign(direction) * np.array(record[kind][1])))
        return np.mean(found)


class Speed:
    """Nanoseconds a token of a sweep."""

    name, alone, corpora, topics = "speed", True, ["planted-8000", "planted-100000"], [20, 100, 500, 1000]

    def cases(self, options, done):
        """One thread first."""
        for threads, corpus, n_topics in itertools.product(options.threads, options.corpora, options.topics):
            for name, program in named(SWEEPS, options.programs).items():
                if threads == 1 or program.threads:
                    kill = {"kill_after": options.most_seconds * 4}
                    yield case_of(self.name, name, corpus, n_topics, 0, threads, **kill)

    def measure(self, case):
        """Time some sweeps."""
        X, program = corpus_of(case["corpus"]), named(SWEEPS)[case["program"]]
        X = X[np.flatnonzero(X.sum(axis=1))]
        program.warm_up(X, case["n_topics"], case["threads"])
        return {"ns": program.sweep_ns(X, case["n_topics"], case["seed"], case["threads"])}

    def tables(self, records):
        """A table for each number of threads."""
        for (threads, corpus), group in grouped(records, "threads", "corpus").items():
            topics = sorted({record["n_topics"] for record in group})
            rows = []
            for (name,), each in grouped(group, "program").items():
                cells = {r["n_topics"]: " / ".join(number(ns) for ns in r.get("ns", [None])) for r in each}
                rows.append([name, *(cells.get(n_topics, "--") for n_topics in topics)])
            title = f"{corpus}, {threads} thread{'s' * (threads > 1)}: nanoseconds a token of a sweep"
            notes = ["Ours: during burn-in / when draws are kept. Sweeps 20 to 40 of others."]
            yield Table(title, ["program", *(f"K = {n_topics}" for n_topics in topics)], rows, notes)


class Memory:
    """Peak memory of a default fit beyond the counts and what was loaded before."""

    name, alone, corpora, topics = "memory", True, ["20newsgroups", "planted-100000"], [20, 100]

    def cases(self, options, done):
        """Each in a process of its own."""
        for seed, corpus, n_topics in grid(options):
            for name, program in named(PROGRAMS, options.programs).items():
                if n_topics <= program.most_topics:
                    yield case_of(self.name, name, corpus, n_topics, seed, kill_after=options.most_seconds)

    def measure(self, case):
        """Ours makes its default fit; programs without a length of their own make 20 steps."""
        X, program = corpus_of(case["corpus"]), named(PROGRAMS)[case["program"]]
        X = X[np.flatnonzero(X.sum(axis=1))]
        program.warm_up(X, 2)
        forget_peak()
        before = peak_memory()
        program.run(X, case["n_topics"], case["seed"], Stopwatch([20]))
        return {"MiB": peak_memory() - before, "array_MiB": case["n_topics"] * X.shape[1] * 8 / 2**20}

    def tables(self, records):
        """One table."""
        names = list(dict.fromkeys(record["program"] for record in records))
        rows = []
        for (corpus, n_topics), group in grouped(records, "corpus", "n_topics").items():
            cells = {record["program"]: number(record.get("MiB"), 0) for record in group}
            floor = mean(record.get("array_MiB") for record in group)
            rows.append([corpus, str(n_topics), *(cells.get(name, "--") for name in names), number(floor, 0)])
        yield Table("Peak memory of a fit (MiB)", ["corpus", "K", *names, "one array of topics"], rows)


def forget_peak():
    """Let Linux measure the peak of memory from here on; elsewhere it is that since the start."""
    file = Path("/proc/self/clear_refs")
    if file.exists():
        file.write_text("5")


class Transform:
    """Topic proportions of new documents."""

    name, alone, corpora, topics = "transform", False, ["20newsgroups", "acl_abstracts"], [20, 100]
    REPETITIONS, ROWS = 3, 50

    def cases(self, options, done):
        """One after another; the topics are learnt once."""
        for seed, corpus, n_topics in grid(options):
            for name in named(TRANSFORMS, options.programs):
                yield case_of(self.name, name, corpus, n_topics, seed)

    def measure(self, case):
        """Rate, time of one document, and perplexity of half of each document given the other half."""
        train, held_out = split(corpus_of(case["corpus"]), case["seed"])
        observed, hidden = split_tokens(held_out)
        rows = np.flatnonzero((observed.sum(axis=1) > 0) & (hidden.sum(axis=1) > 0))  # tomotopy refuses empty documents
        held_out, observed, hidden = held_out[rows], observed[rows], hidden[rows]
        given = given_topics(case["corpus"], case["n_topics"], case["seed"])
        program = named(TRANSFORMS)[case["program"]](train, given, case["n_topics"])
        documents = program.prepared(held_out)
        program.proportions(documents[:2])
        whole = float(np.median([seconds(program.proportions, documents) for _ in range(self.REPETITIONS)]))
        singles = [program.prepared(held_out[i : i + 1]) for i in range(min(self.ROWS, held_out.shape[0]))]
        one = float(np.median([seconds(program.proportions, single) for single in singles]))
        theta = program.proportions(program.prepared(observed))
        perplexity = perplexity_given(theta, program.topics, hidden)
        rates = {"rate": held_out.shape[0] / whole, "milliseconds": 1000 * one}
        if program.scores:
            program.score(held_out[:50])
            rates["score_rate"] = held_out.shape[0] / seconds(program.score, held_out)
        return rates | {"perplexity": perplexity, "own": program.own}

    def tables(self, records):
        """One table."""
        rows = [
            [
                r["corpus"], str(r["n_topics"]), r["program"] + " (own topics)" * r["own"], number(r["rate"], 0),
                number(r["milliseconds"], 2), number(r["perplexity"]), number(r.get("score_rate"), 0),
            ]
            for r in records
        ]  # fmt: skip
        head = ["corpus", "K", "program", "documents a second", "ms for one document", "perplexity", "scored a second"]
        notes = ["Perplexities of programs with topics of their own cannot be compared with the others."]
        yield Table("Topic proportions of held-out documents, given the same topics", head, rows, notes)


@cache
def given_topics(corpus, n_topics, seed):
    """Topics that all programs use: tomotopy's, or ours where it is not installed."""
    train = split(corpus_of(corpus), seed)[0]
    makers = [each for each in TRANSFORMS if each.makes_topics and each.version()]
    if makers:
        return makers[0](train, None, n_topics).given
    fitted = BayesianLDA(n_topics, n_iter=40, random_state=1).fit(train)
    return Given(fitted.components_ * train.sum() / n_topics + WORD_PRIOR, fitted.doc_topic_prior_)


def perplexity_given(proportions, topics, hidden):
    """Perplexity of hidden tokens under proportions (n_docs, n_topics)."""
    of_word = np.ascontiguousarray(topics.T)
    words = np.split(hidden.indices, hidden.indptr[1:-1])
    p = np.concatenate([of_word[w] @ theta for w, theta in zip(words, proportions, strict=True)])
    return float(np.exp(-(hidden.data @ np.log(np.maximum(p, 1e-300))) / hidden.data.sum()))


def seconds(call, *arguments):
    """Processor seconds of a call."""
    began = time.process_time()
    call(*arguments)
    return time.process_time() - began


class Streams:
    """One pass over a corpus in ten blocks."""

    name, alone, topics = "streams", False, [100]
    corpora = ["docstrings", "ap", "poliblog5k", "acl_abstracts", "reuters21578", "sotu_paragraphs", "20newsgroups"]

    def cases(self, options, done):
        """One after another."""
        for seed, corpus, n_topics in grid(options):
            for name in named(STREAMS, options.programs):
                yield case_of(self.name, name, corpus, n_topics, seed)

    def measure(self, case):
        """Seconds and perplexity after the pass, and in between."""
        X, held_out = split(corpus_of(case["corpus"]), case["seed"])
        program, watch = named(STREAMS)[case["program"]], Watch(Judge(held_out))
        program.warm_up(X, case["n_topics"])
        program.run(X, case["n_topics"], case["seed"], watch)
        return {name: value for name, value in watch.record().items() if name != "top_words"}

    def tables(self, records):
        """One table."""
        names = [program.name for program in STREAMS if any(r["program"] == program.name for r in records)]
        rows = []
        for (corpus, n_topics), group in grouped(records, "corpus", "n_topics").items():
            ends = {name: [r["end"] for r in each] for (name,), each in grouped(group, "program").items()}
            spent = {name: mean(end["seconds"] for end in each) for name, each in ends.items()}
            cells = {name: timed(mean(e["perplexity"] for e in each), spent[name]) for name, each in ends.items()}
            peer = spent.get(STREAM_PEER)
            ratio = " / ".join(number(spent[name] / peer) for name in OUR_STREAMS if name in spent and peer) or "--"
            rows.append([corpus, str(n_topics), *(cells.get(name, "--") for name in names), ratio])
        head = ["corpus", "K", *names, "seconds of ours / scikit-learn's"]
        yield Table("One pass in ten blocks, and our fit to the whole: perplexity (seconds)", head, rows)


class Own:
    """Coherence of top words and the programs' own log likelihoods, of the runs of `Perplexity`."""

    name, alone, corpora, topics = "own", False, Perplexity.corpora, Perplexity.topics

    def cases(self, options, done):
        """What has been run."""
        for record in list(done.values()):
            wanted = record["corpus"] in options.corpora and record["n_topics"] in options.topics
            if record["part"] == Perplexity.name and wanted and record.get("top_words"):
                case = case_of(self.name, *(record[name] for name in KEY[1:]))
                yield case | {"top_words": record["top_words"], "log_likelihood": record.get("log_likelihood")}

    def measure(self, case):
        """Coherences over the training documents."""
        X, top = split(corpus_of(case["corpus"]), case["seed"])[0], np.array(case["top_words"])
        found = {"NPMI": float(coherence(top, X).mean()), "log_likelihood": case["log_likelihood"]}
        return found | tomotopy_coherence(case["corpus"], case["seed"], top)

    def tables(self, records):
        """One table, in the order of the coherence c_v."""
        rows, losses = [], []
        for (corpus, n_topics), group in grouped(records, "corpus", "n_topics").items():
            lines = []
            for (name,), each in grouped(group, "program").items():
                values = [mean(r.get(kind) for r in each) for kind in ("c_v", "u_mass", "NPMI", "log_likelihood")]
                lines.append((values, name))
            for values, name in sorted(lines, key=lambda line: -(line[0][0] or line[0][2])):
                rows.append([corpus, str(n_topics), name, *(number(value, 3) for value in values)])
            losses += self._losses(corpus, n_topics, {name: values for values, name in lines})
        head = ["corpus", "K", "program", "c_v", "u_mass", "NPMI", "log likelihood of a token"]
        notes = [
            "After the seconds of our default fit, or a program's own default fit if it has no other. c_v and u_mass "
            "are tomotopy's, with whole documents as windows, because the corpora have no order of words. Log "
            "likelihoods are the programs' own, with their own priors, and cannot be compared."
        ]
        yield Table("Coherence of the ten top words of each topic, best c_v first", head, rows, notes + losses)

    @staticmethod
    def _losses(corpus, n_topics, values):
        ours, found = values.get(OURS), []
        for i, measure in enumerate(("c_v", "u_mass", "NPMI")):
            if ours and ours[i] is not None:
                better = [name for name, each in values.items() if each[i] is not None and each[i] > ours[i]]
                found.append(f"by {measure} to {'; '.join(better) or 'none of these'}")
        return [f"{corpus}, K = {n_topics}: we lose {', '.join(found)}."] if found else []


def tomotopy_coherence(corpus, seed, top):
    """Mean c_v and u_mass, if tomotopy is installed."""
    try:
        measures = coherence_measures(corpus, seed)
    except ImportError:
        return {}
    return measures(top)


@cache
def coherence_measures(corpus, seed):
    """A function that returns tomotopy's measures of top words, (n_topics, n)."""
    import tomotopy

    X = split(corpus_of(corpus), seed)[0]
    names, documents = word_names(X.shape[1]), tomotopy.utils.Corpus()
    for document in texts(X, names):
        documents.add_doc(document)
    kinds, window = ("c_v", "u_mass"), int(X.sum(axis=1).max()) + 1

    def measures(top):
        found = {}
        for kind in kinds:
            targets = np.unique(top)
            measure = tomotopy.coherence.Coherence(documents, kind, window_size=window, targets=names[targets].tolist())
            found[kind] = float(np.mean([measure.get_score(words=names[row].tolist()) for row in top]))
        return found

    return measures


PARTS = {part.name: part for part in (Perplexity(), Coverage(), Speed(), Memory(), Transform(), Streams(), Own())}
