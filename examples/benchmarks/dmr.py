"""DMR against tomotopy's DMRModel, and against our own LDA: time, cost per token, many columns of metadata.

    python examples/benchmarks/dmr.py
    python examples/benchmarks/dmr.py --part peer --corpus sotu_paragraphs
    python examples/benchmarks/dmr.py --part peer --corpus sotu    # needs no files: every third paragraph

Against tomotopy, one thread each, side by side in one run: the topics and document priors of both are scored by one
judge (document completion, the same tokens), with half of each held-out document shown and with nothing shown. The
metadata are one level per document (tomotopy's kind): the 20-year span of an address, the venue of an abstract. Curves
are of single states; the marks are tomotopy's final perplexities. Times are processor times, so that other programs on
the machine do not count; kernels are compiled beforehand.
"""

import argparse
import time
from collections import Counter

import numpy as np
from _peers import WORD_PRIOR, Curve, Recorder, fetched, moments
from scipy import sparse

from sk_sgmcmc import BayesianLDA, DMRTopicModel, datasets
from sk_sgmcmc.metrics import document_completion, split_tokens

N_TOPICS = {"sotu": 20, "sotu_paragraphs": 40, "acl_abstracts": 40, "synthetic": 4}


def load(corpus):
    """Counts and one level per document; and all rows of metadata."""
    if corpus == "synthetic":
        data = datasets.make_dmr(600, 100, 4, 2, 40, random_state=0)
        return data.counts.tocsr(), np.where(data.metadata[:, 1] > 0, "yes", "no"), None
    data = datasets.load_sotu() if corpus == "sotu" else fetched(datasets.fetch_corpus, corpus)
    table = data.metadata
    if corpus in ("sotu", "sotu_paragraphs"):
        levels = np.char.add("from ", (np.asarray(table["year"]) // 20 * 20).astype(str))
    else:
        venues = np.asarray(table["venue"]).astype(str)
        common = {venue for venue, n in Counter(venues).items() if n >= 50}
        levels = np.array([venue if venue in common else "other" for venue in venues])
    return data.counts.tocsr(), levels, table


def parts(n, n_held_out):
    """Indices of training and held-out documents."""
    order = np.random.default_rng(0).permutation(n)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


class DocJudge:
    """Perplexities of (topics, documents' priors), half of each document shown; with nothing shown in ``unseen``."""

    def __init__(self, held_out):
        self.halves = split_tokens(held_out)
        self.none = sparse.csr_array(held_out.shape), held_out
        self.unseen = []

    def __call__(self, states):
        topics, priors = zip(*states, strict=True)
        seen, unseen = (
            document_completion(*split, list(topics), doc_topic_prior=lambda s: priors[s]).perplexity
            for split in (self.halves, self.none)
        )
        self.unseen.append(unseen)
        return seen


class PriorRecorder(Recorder):
    """Record the current topics and the priors of held-out documents at a list of steps."""

    def __init__(self, curve, steps, metadata):
        super().__init__(curve, steps)
        self.metadata = metadata

    def start(self, estimator):
        """Start the clock."""
        self.encoder = estimator._encoder
        super().start(estimator)

    def record(self, chain, step):
        """Add a point to the curve."""
        encoded = self.encoder.encode(self.metadata, None, "ignore")
        priors = chain.doc_prior.coefficients.doc_priors(self.encoder.rows(encoded))
        self.curve.record((chain.present_topics().T, priors), f"step {step} of {chain.plan.n_iter}")


def run_tomotopy(train, levels, held_out_levels, n_topics, curve, n_sweeps, seed):
    """tomotopy's DMRModel, one worker; returns states of the second half, for averaging, and tokens per second."""
    import tomotopy

    model = tomotopy.DMRModel(k=n_topics, alpha=0.1, eta=WORD_PRIOR, sigma=1.0, seed=seed + 1)
    words = np.array([str(w) for w in range(train.shape[1])])
    for d in range(train.shape[0]):
        row = slice(train.indptr[d], train.indptr[d + 1])
        tokens = np.repeat(words[train.indices[row]], train.data[row].astype(int)).tolist()
        model.add_doc(tokens, metadata=levels[d])
    model.train(0)
    columns = np.array([int(word) for word in model.used_vocabs])
    known = {level: i for i, level in enumerate(model.metadata_dict)}
    place = np.array([known[level] for level in held_out_levels])

    def state():
        phi = np.full((n_topics, train.shape[1]), 1e-12)
        phi[:, columns] = [model.get_topic_word_dist(k) for k in range(n_topics)]
        prior = np.stack([model.get_topic_prior(level) for level in known])[place].astype(np.float64)
        return phi / phi.sum(axis=1, keepdims=True), np.maximum(prior, 1e-10)

    taken, done = [], 0
    snapshots = np.linspace(n_sweeps // 2, n_sweeps, 11).round().astype(int)[1:].tolist()
    for sweep in sorted({*moments(n_sweeps), *snapshots}):
        curve.start()
        model.train(sweep - done, workers=1)
        curve.pause()
        done = sweep
        now = state()
        if sweep in snapshots:
            taken.append(now)
        curve.record(now, f"sweep {sweep}")
    return taken, train.sum() * n_sweeps / curve.spent


def time_to(curve, values, level):
    """First time at which values recorded along a curve are at or below a level; inf if never."""
    reached = np.flatnonzero(np.array(values[: len(curve.seconds)]) <= level)
    return curve.seconds[reached[0]] if reached.size else np.inf


def against_tomotopy(corpus, n_sweeps, seed, smoke):
    """Curves of both, and the ratios of times."""
    counts, levels, _ = load(corpus)
    n_topics = N_TOPICS[corpus]
    train, test = parts(counts.shape[0], 100 if smoke else 2000)
    print(f"{corpus}: {train.size} documents, {counts[train].sum()} tokens, {n_topics} topics, "
          f"{np.unique(levels).size} levels", flush=True)  # fmt: skip
    judge = DocJudge(counts[test])
    ours = Curve("ours", judge, now=time.process_time)
    recorder = PriorRecorder(ours, moments(10_000, per_decade=15), levels[test])
    model = DMRTopicModel(n_topics, random_state=seed, n_iter=20 if smoke else None, callbacks=recorder)
    ours.start()
    model.fit(counts[train], metadata=levels[train])
    ours.pause()
    our_unseen = judge.unseen
    chosen = np.linspace(0, model.samples_["components"].shape[1] - 1, 10).round().astype(int)
    priors = model.doc_topic_priors(levels[test])
    judge.unseen = []
    averaged = judge([(model.samples_["components"][0][s], priors[s]) for s in chosen])
    print(f"  ours, 10 draws averaged: half shown {averaged:.1f}, nothing shown {judge.unseen[0]:.1f} after "
          f"{ours.spent:.1f} s", flush=True)  # fmt: skip
    if smoke:
        return None
    judge.unseen = []
    peer = Curve("tomotopy", judge, now=time.process_time)
    snapshots, speed = run_tomotopy(counts[train], levels[train], levels[test], n_topics, peer, n_sweeps, seed)
    marks = peer.perplexity[-1], judge.unseen[-1]
    averaged = judge(snapshots)
    print(f"  tomotopy, 10 states averaged: half shown {averaged:.1f}, nothing shown {judge.unseen[-1]:.1f} after "
          f"{peer.spent:.1f} s; {speed / 1e6:.1f} M tokens/s")  # fmt: skip
    ratios = []
    for shown, mark, values in zip(("half", "nothing"), marks, (ours.perplexity, our_unseen), strict=True):
        ratios.append(time_to(ours, values, mark) / peer.spent)
        print(f"  {shown} shown: tomotopy {mark:.1f} at {peer.spent:.1f} s, ours there after a share of "
              f"{ratios[-1]:.3f}, at the end {values[-1]:.1f}", flush=True)  # fmt: skip
    return ratios


def cost_of_a_token(corpus, n_repeats, n_iter):
    """Time of equal fits of DMR and LDA, alternating; the median of the ratios."""
    counts, levels, table = load(corpus)
    n_topics = N_TOPICS[corpus]
    given = {"one level": levels}
    if corpus == "sotu_paragraphs":
        given["era, president, party, type and year"] = {
            "era": levels, **{name: np.asarray(table[name]) for name in ("president", "party", "type", "year")}
        }  # fmt: skip
    given["a number of its own for each document"] = np.random.default_rng(0).normal(size=counts.shape[0])
    for name, metadata in given.items():
        ratios, seconds = [], []
        for _ in range(n_repeats):
            spent = []
            for model, params in ((BayesianLDA, {}), (DMRTopicModel, {"metadata": metadata})):
                estimator = model(n_topics, n_iter=n_iter, random_state=0)
                began = time.process_time()
                estimator.fit(counts, **params)
                spent.append(time.process_time() - began)
            ratios.append(spent[1] / spent[0])
            seconds.append(spent[1])
        each = 1e9 * np.median(seconds) / counts.sum() / n_iter
        print(f"  {corpus}, {name}: {each:.0f} ns a token and sweep, {np.median(ratios):.2f} times LDA's", flush=True)


def many_columns(n_columns, n_iter):
    """The most frequent authors of abstracts as columns of 0 and 1: hardly two documents have the same metadata."""
    data = fetched(datasets.fetch_acl_abstracts)
    counts, authors = data.counts.tocsr(), [names.split(";") for names in np.asarray(data.metadata["authors"])]
    frequent = [name for name, _ in Counter(name for names in authors for name in names).most_common(n_columns)]
    place = {name: j for j, name in enumerate(frequent)}
    pairs = [(i, place[name]) for i, names in enumerate(authors) for name in set(names) if name in place]
    i, j = np.array(pairs).T
    columns = sparse.csr_array((np.ones(i.size), (i, j)), shape=(counts.shape[0], n_columns))
    train, test = parts(counts.shape[0], 2000)
    print(f"acl_abstracts by {n_columns} authors: {np.unique(i).size} of {counts.shape[0]} documents have one or more")
    spent = []
    for model, given in ((BayesianLDA, None), (DMRTopicModel, columns)):
        estimator = model(N_TOPICS["acl_abstracts"], n_iter=n_iter, random_state=0)
        began = time.process_time()
        estimator.fit(counts[train], **({} if given is None else {"metadata": given[train]}))
        spent.append(time.process_time() - began)
        named = test[np.isin(test, i)]
        score = estimator.perplexity(counts[named], **({} if given is None else {"metadata": given[named]}))
        print(f"  {model.__name__}: {spent[-1]:.1f} s, perplexity of held-out abstracts of these authors, half shown: "
              f"{score:.1f}", flush=True)  # fmt: skip
    print(f"  {n_columns} columns: {spent[1] / spent[0]:.2f} times LDA's time")


def main():
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["all", "peer", "cost", "columns"], default="all")
    parser.add_argument("--corpus", choices=["sotu", "sotu_paragraphs", "acl_abstracts"], nargs="*")
    parser.add_argument("--sweeps", type=int, default=100, help="sweeps of tomotopy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a few seconds, without the peer")
    options = parser.parse_args()
    corpora = options.corpus or ["sotu_paragraphs", "acl_abstracts"]
    if not options.smoke:
        for corpus in corpora:
            load(corpus)  # a corpus that is missing ends the script before anything is fitted
    DMRTopicModel(4, n_iter=8, random_state=0).fit(*[load("synthetic")[0]], metadata=load("synthetic")[1])
    if options.smoke:
        against_tomotopy("synthetic", 0, options.seed, smoke=True)
        cost_of_a_token("synthetic", 1, 10)
        print("smoke: the ratios need tomotopy and the corpora")
        return
    if options.part in ("all", "cost"):
        for corpus in corpora:
            cost_of_a_token(corpus, 1, 200)
    if options.part in ("all", "columns"):
        many_columns(500, 100)
    if options.part in ("all", "peer"):
        ratios = {corpus: against_tomotopy(corpus, options.sweeps, options.seed, smoke=False) for corpus in corpora}
        for corpus, (half, nothing) in ratios.items():
            print(f"{corpus}: ratio of times to tomotopy's perplexity, half shown {half:.3f}, nothing shown "
                  f"{nothing:.3f} (target 0.5)")  # fmt: skip


if __name__ == "__main__":
    main()
