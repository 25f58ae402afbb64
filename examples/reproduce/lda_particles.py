"""Topics by particles: does the flow with momentum beat the one without? (Liu, Zhuo and Zhu 2019, figure 4)

    python examples/reproduce/lda_particles.py

Latent Dirichlet allocation with 30 topics and a normal prior on flat space, minibatches of 100 documents, 20 particles
of Blob and of both PSGHMC, and 20 chains of SGHMC, each at its last state; abstracts of ACL 2020 stand in for the
paper's 765 of ICML. For each of ten 80/20 splits of the documents, the perplexity of a tenth of the tokens of the
held-out ones, averaged over the current particles, at the iterations of the paper's figure 4a; then, on the first
split, 1 to 100 particles after the last of these iterations (figure 4b).

``--noise published`` gives SGHMC the noise of the published program, :math:`C \\sqrt{2 h} Z` for
:math:`\\sqrt{2 C h} Z`: at its friction of 0.1 a temperature of 0.1.

Differences from the paper: 5 + 5 Gibbs sweeps instead of 25 + 25, for all methods (``--sweeps``); bandwidths by the
median, where the published search stays anyway. Each held-out token is hidden with probability 0.1, where the paper
hides every tenth. Proportions of held-out documents come from 50 fixed-point updates, where the paper averages Gibbs
sweeps at fixed topics. The whole study takes about an hour and a half on one core.

Needs the data described by `sk_sgmcmc.datasets.fetch_corpus`, except with ``--smoke``.
"""

import argparse
import time

import numpy as np

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import fetch_corpus, make_lda
from sk_sgmcmc.metrics import document_completion, split_tokens
from sk_sgmcmc.samplers import PSGHMC, SGHMC, Blob

STEP, FRICTION, INVERSE_MASS, ALPHA = 1e-3, 0.1, 300.0, 0.1
MOMENTS = (20, 100, 220, 420, 580)
PAPERS = {  # read off the figure, whose unit the authors' program leaves open
    "blob": (1125, 1085, 1061, 1049, 1044.7),
    "sghmc": (1113, 1046, 1041, 1037, 1036.1),
    "psghmc-det": (1112, 1042, 1035.5, 1031.9, 1031.3),
    "psghmc-fgh": (1112, 1044, 1038, 1033.8, 1033.3),
}


class Curve(Callback):
    """Perplexity of the current states at chosen steps."""

    def __init__(self, steps, observed, hidden):
        super().__init__(1)
        self.steps, self.halves, self.perplexity = list(steps), (observed, hidden), {}

    def next_step(self, step):
        """The next step to score."""
        return min([s for s in self.steps if s > step], default=max(self.steps) + 10**9)

    def __call__(self, estimator, step):
        """Score all particles, or all chains, averaged in probability."""
        if step not in self.steps:
            return
        states = [chain.current()["components"] for chain in estimator._chains]
        draws = np.concatenate([state.reshape(-1, *state.shape[-2:]) for state in states])
        self.perplexity[step] = document_completion(*self.halves, list(draws), doc_topic_prior=ALPHA).perplexity


def methods(n, size, options):
    """Samplers of n particles or chains, with the paper's numbers."""
    shared = {"n_particles": n, "step_size": STEP * options.speed}
    momentum = {**shared, "friction": FRICTION, "mass": 1.0 / INVERSE_MASS}
    # In units of its friction, noise sqrt(2 C h) at temperature T; the published one has C sqrt(2 h), so T = C.
    cold = FRICTION if options.noise == "published" else 1.0
    mass = np.full(size, 1.0 / INVERSE_MASS)
    return {
        "blob": (Blob(**shared), 1),
        "sghmc": (SGHMC(shared["step_size"], friction=FRICTION, scheme="euler", mass=mass, temperature=cold), n),
        "psghmc-det": (PSGHMC("det", **momentum), 1),
        "psghmc-fgh": (PSGHMC("fgh", **momentum), 1),
    }


def curve(sampler, n_chains, train, halves, steps, seed, options):
    """Perplexities at the steps, and seconds per iteration."""
    scores = Curve(steps, *halves)
    began = time.perf_counter()
    BayesianLDA(
        options.components, sampler=sampler, n_chains=n_chains, topic_prior="normal", topic_word_prior=0.1,
        whiten=False, doc_topic_prior=ALPHA, assignments="fresh", n_sweeps=options.sweeps, init="random",
        batch_size=min(100, train.shape[0]), n_iter=max(steps), thin=max(steps), burn_in=0.0, random_state=seed,
        callbacks=scores,
    ).fit(train)  # fmt: skip
    return [scores.perplexity[s] for s in steps], (time.perf_counter() - began) / max(steps)


def main():
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first split, where several processes share them")
    parser.add_argument("--components", type=int, default=30)
    parser.add_argument("--sweeps", type=int, nargs=2, default=(5, 5))
    parser.add_argument("--particles", type=int, default=20)
    parser.add_argument("--speed", type=float, default=1.0, help="factor of the paper's step size")
    parser.add_argument("--noise", choices=["right", "published"], default="right")
    parser.add_argument("--no-particle-table", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="small settings on synthetic documents")
    options = parser.parse_args()
    moments, counts = MOMENTS, (1, 5, 10, 20, 50, 100)
    if options.smoke:
        options.splits, options.components, options.particles, options.sweeps = 2, 4, 3, (1, 1)
        moments, counts = (5, 20), (1, 3)
        documents = make_lda(n_samples=120, n_features=150, n_components=4, random_state=0).counts
    else:
        documents = fetch_corpus("acl2020_abstracts").data
    print(f"{documents.shape[0]} documents, {documents.shape[1]} words, {int(documents.sum())} tokens")
    results = {name: [] for name in PAPERS}
    for split in range(options.first, options.first + options.splits):
        order = np.random.default_rng(split).permutation(documents.shape[0])
        n_held_out = documents.shape[0] // 5
        train, halves = documents[order[n_held_out:]], split_tokens(documents[order[:n_held_out]], 0.9)
        share = np.asarray(train.sum(axis=0)).ravel() + 0.1
        unigram = document_completion(*halves, (share / share.sum())[None], doc_topic_prior=np.ones(1)).perplexity
        size = options.components * documents.shape[1]
        for name, (sampler, n_chains) in methods(options.particles, size, options).items():
            values, seconds = curve(sampler, n_chains, train, halves, moments, split, options)
            results[name].append(values)
            row = " ".join(f"{v:8.1f}" for v in values)
            print(f"split {split} {name:11s} {row}   {seconds:.2f} s an iteration; unigram {unigram:.1f}", flush=True)
    print(f"\nPerplexity, {options.particles} particles, mean and standard error over {options.splits} splits")
    print(f"{'iteration':11s} " + " ".join(f"{s:>15d}" for s in moments))
    for name, values in results.items():
        values = np.array(values)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(len(moments))
        print(
            f"{name:11s} " + " ".join(f"{m:7.1f} ± {e:5.1f}" for m, e in zip(values.mean(axis=0), error, strict=True))
        )
        print(f"{'  paper':11s} " + " ".join(f"{v:15.1f}" for v in PAPERS[name]))
    base = np.array(results["sghmc"])[:, -1]
    for name in results:
        away = np.array(results[name])[:, -1] - base
        error = away.std(ddof=1) / np.sqrt(len(away)) if len(away) > 1 else 0.0
        print(f"{name:11s} minus sghmc at the end, paired: {away.mean():+.1f} ± {error:.1f}")
    if options.no_particle_table:
        return
    print("\nParticles, after the last iteration, first split")
    order = np.random.default_rng(0).permutation(documents.shape[0])
    train, halves = documents[order[n_held_out:]], split_tokens(documents[order[:n_held_out]], 0.9)
    print(f"{'':11s} " + " ".join(f"{n:>8d}" for n in counts))
    for name in ("blob", "sghmc", "psghmc-det", "psghmc-fgh"):
        row = []
        for n in counts:
            sampler, n_chains = methods(n, size, options)[name]
            row.append(curve(sampler, n_chains, train, halves, moments[-1:], 0, options)[0][0])
        print(f"{name:11s} " + " ".join(f"{v:8.1f}" for v in row), flush=True)


if __name__ == "__main__":
    main()
