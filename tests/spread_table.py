"""Posterior spread of LDA's topics against exact Gibbs, over assignments, step size, batch and inner sweeps.

``python -m tests.spread_table`` prints the table in three or four minutes; with the name of a FILE it also writes it
as reStructuredText. Entry: standard deviation over draws divided by that of collapsed Gibbs, geometric mean over s_vw
= sum_k phi_kv phi_kw of the 36 most frequent pairs of words (no labels enter); in brackets the mean difference in
units of Gibbs's standard deviation, root mean square.
"""

import sys

import numpy as np

from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from tests.tiny_lda import INFINITE, make_chain

N_DOCS, N_WORDS, N_TOPICS = 64, 40, 3


def corpus():
    data = make_lda(n_samples=N_DOCS, n_features=N_WORDS, n_components=N_TOPICS, random_state=1)
    return np.asarray(data.counts.todense() if hasattr(data.counts, "todense") else data.counts).astype(int)


def values(counts, step_size, n_iter, seed=0, **kwargs):
    chain = make_chain(
        seed, step_size, n_iter, counts=counts, alpha=np.full(N_TOPICS, 0.3), beta=0.1, burn_in=n_iter // 5, **kwargs
    )
    phi = np.asarray(chain.run(n_iter).draws()["components"], dtype=float)
    words = np.argsort(-counts.sum(axis=0))[:8]
    v, w = np.triu_indices(8)
    return (phi[:, :, words[v]] * phi[:, :, words[w]]).sum(axis=1)


def settings():
    """(assignments, n_sweeps, step size, share of documents in a minibatch); a second run of Gibbs shows the noise."""
    yield "gibbs", (0, 1), INFINITE, 1.0
    for h in (INFINITE, 1.0, 0.2):
        for share in (1.0, 0.25):
            yield "stored", (0, 1), h, share
    for sweeps in ((5, 1), (5, 5), (1, 1)):
        for h in (0.2, 1.0, INFINITE):
            for share in (1.0, 0.25):
                yield "fresh", sweeps, h, share


def rows(scale=1.0):
    """The table's rows: assignments, sweeps, step size, share, ratio of spreads, difference of means."""
    counts = corpus()
    exact = values(counts, 1.0, int(60_000 * scale), make=CollapsedChain)
    for assignments, sweeps, h, share in settings():
        n_iter = int(scale * (16_000 if h < 1.0 else 6000))
        make = CollapsedChain if assignments == "gibbs" else MinibatchChain
        got = values(
            counts, h, n_iter, 1, stored=assignments != "fresh", n_sweeps=sweeps, n_batch=int(N_DOCS * share), thin=2,
            make=make,
        )  # fmt: skip
        ratio = np.exp(np.mean(np.log(got.std(axis=0) / exact.std(axis=0))))
        difference = np.sqrt(np.mean(((got.mean(axis=0) - exact.mean(axis=0)) / exact.std(axis=0)) ** 2))
        yield assignments, sweeps, "inf" if h == INFINITE else f"{h:g}", share, ratio, difference


def main(path=None):
    """Print the table, and write it to ``path``."""
    print(f"{'assignments':12s} {'sweeps':>7s} {'h':>5s} {'n/N':>5s} {'sd ratio':>9s} {'(mean)':>8s}")
    lines = []
    for assignments, sweeps, h, share, ratio, difference in rows():
        name = "–" if assignments != "fresh" else f"{sweeps[0]}+{sweeps[1]}"
        print(f"{assignments:12s} {name:>7s} {h:>5s} {share:5.2f} {ratio:9.3f} ({difference:6.3f})", flush=True)
        lines.append(f"   {assignments};{name};{h};{share:g};{ratio:.2f};{difference:.2f}")
    if path:
        heads = "   :header: Assignments,Sweeps,Step size,n/N,Spread / exact,Shift of mean"
        text = "\n".join([".. csv-table::", heads, "   :delim: ;", "", *lines, ""])
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:2])
