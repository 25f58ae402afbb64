"""Does SCIR beat SGRLD for topics of Wikipedia? (Baker et al. 2018, figure 3a)

Latent Dirichlet allocation with 100 topics by SCIR and by SGRLD, minibatches of 50 documents, 1000 steps, five seeds;
collapsed Gibbs on some of the documents as a reference. Two perplexities of documents that no sampler was fitted to:

``running``
    The paper's: nine tokens in ten are observed, and the probability of a hidden token is averaged over all topics
    drawn since the first step, burn-in included.
``own``
    The package's: a fair coin decides whether a token is observed, and the probability is averaged over ten draws of
    the second half.

The prior of words and then the step size are tuned for each sampler by the paper's perplexity of a third set of
documents, by chains of the full length. (Shorter ones choose larger steps: 200 steps choose 0.01 for SGRLD, which after
1000 steps is 15 units worse than 0.003 in the paper's perplexity and 70 in the package's, and would make the comparison
unfair.) One chain cannot separate candidates that are about equally good: those within three units of the best run
twice more with other seeds, and their means decide.

Differences from the paper: assignments are drawn by 5 + 5 Gibbs sweeps instead of 100 + 100, for both samplers;
proportions of held-out documents are those of the package's fixed point; and Wikipedia is a sample of 22,194 long
articles with the paper's vocabulary of 7,702 words. The whole study takes about 40 minutes on one core.

``--settings published`` skips the tuning and takes the paper's constants.

``--corpus joined`` is the study with a larger vocabulary: Wikipedia, 20 Newsgroups, and abstracts and news from four
further corpora, with columns joined by word.

Needs the data described by `sk_sgmcmc.datasets.fetch_corpus`, except with ``--smoke``.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import fetch_corpus, make_lda
from sk_sgmcmc.metrics import document_completion, split_tokens
from sk_sgmcmc.samplers import SCIR, SGRLD, Gibbs, PolynomialDecay

JOINED = ("wikipedia", "20newsgroups", "acl_abstracts", "sotu_paragraphs", "reuters21578", "ap")
TUNING_SEED = 1000  # not used by any chain that is scored
CLOSE = 3.0  # units of perplexity within which one tuning chain is not decisive


def scir(initial):
    """SCIR with the paper's decay."""
    return SCIR(PolynomialDecay(initial, 10, 0.33))


def sgrld(initial):
    """SGRLD with the paper's decay."""
    return SGRLD(PolynomialDecay(initial, 1000, 0.6))


# The paper's (sampler, first step size, doc_topic_prior, topic_word_prior), and the other first step sizes to try.
PAPERS = {
    "SCIR": (scir, 0.5, 0.005, 1.0),
    "SGRLD": (sgrld, 0.01, 0.01, 1e-4),
    "collapsed Gibbs": (lambda _: Gibbs(), None, 0.05, 0.1),
}
STEP_SIZES = {"SCIR": (0.03, 0.1, 0.01), "SGRLD": (0.003, 0.01, 0.001), "collapsed Gibbs": (None,)}
WORD_PRIORS = (0.01, 0.05, 0.1)


# --------------------------------------------------------------------------------------------------------------- data


def join(names):
    """Corpora stacked, with columns joined by word; documents in random order."""
    corpora = [fetch_corpus(name) for name in names]
    words = {word: i for i, word in enumerate(sorted(set().union(*(c.feature_names.tolist() for c in corpora))))}
    blocks = []
    for corpus in corpora:
        counts = sparse.coo_array(corpus.counts)
        columns = np.array([words[word] for word in corpus.feature_names])[counts.col]
        blocks.append(sparse.csr_array((counts.data, (counts.row, columns)), (counts.shape[0], len(words))))
    return sparse.vstack(blocks, format="csr")


def split_documents(options):
    """Counts of the documents to fit, to tune on, and to score."""
    if options.smoke:
        counts = make_lda(n_samples=300, n_features=200, n_components=5, random_state=0).counts
    elif options.corpus == "joined":
        counts = join(JOINED)
    else:
        counts = fetch_corpus(options.corpus).counts
    counts = sparse.csr_array(counts)[np.random.default_rng(0).permutation(counts.shape[0])]
    n_scored, n_tuned = options.scored, options.tuned
    score, tune, fit = counts[:n_scored], counts[n_scored : n_scored + n_tuned], counts[n_scored + n_tuned :]
    return fit[: options.documents], tune, score


# -------------------------------------------------------------------------------------------------------------- study


def fit(candidate, counts, n_iter, seed, options):
    """Topics of one chain at evenly spaced steps, (n_draws, n_components, n_features)."""
    make, initial, alpha, beta = candidate
    sampler = make(initial)
    if isinstance(sampler, Gibbs):
        counts, n_iter = counts[: options.gibbs_documents], max(10, n_iter // 20)
    lda = BayesianLDA(
        options.components,
        sampler=sampler,
        doc_topic_prior=alpha,
        topic_word_prior=beta,
        assignments="fresh",
        n_sweeps=(5, 5),
        batch_size=50,
        n_iter=n_iter,
        burn_in=0.0,
        thin=max(1, n_iter // options.evaluations),
        random_state=seed,
    )
    return lda.fit(counts).samples_["components"][0]


def running_perplexity(counts, topics, alpha):
    """The paper's perplexity after each draw."""
    observed, hidden = split_tokens(counts, 0.9)
    return np.exp(-document_completion(observed, hidden, topics, doc_topic_prior=alpha, average="running").scores)


def own_perplexity(counts, topics, alpha):
    """The package's perplexity."""
    observed, hidden = split_tokens(counts)
    chosen = np.linspace(len(topics) // 2, len(topics) - 1, 10).round().astype(int)
    return document_completion(observed, hidden, topics[np.unique(chosen)], doc_topic_prior=alpha).perplexity


def describe(candidate):
    _, initial, alpha, beta = candidate
    step = "" if initial is None else f"first step size {initial:g}, "
    return f"{step}doc_topic_prior {alpha:g}, topic_word_prior {beta:g}"


def tune(name, counts, held_out, options):
    """The candidate with the lowest running perplexity on documents that are not scored later.

    Tried are the paper's candidate, each prior of words with the first step size, then the other step sizes with the
    best of these priors.
    """
    tried = {}

    def attempt(candidate, seed=TUNING_SEED):
        topics = fit(candidate, counts, options.tuning_iterations, seed, options)
        tried.setdefault(candidate, []).append(running_perplexity(held_out, topics, candidate[2])[-1])
        print(f"  {tried[candidate][-1]:8.1f}  {name}: {describe(candidate)}", flush=True)

    def found(candidate):
        return np.mean(tried[candidate])

    make, first, *others = PAPERS[name][0], *STEP_SIZES[name]
    attempt(PAPERS[name])
    for beta in WORD_PRIORS:
        if (make, first, 0.05, beta) not in tried:
            attempt((make, first, 0.05, beta))
    beta = min((candidate for candidate in tried if candidate[1] == first), key=found)[3]
    for initial in others:
        attempt((make, initial, 0.05, beta))
    lowest = min(map(found, tried))
    close = [candidate for candidate in tried if found(candidate) <= lowest + CLOSE]
    if len(close) > 1:
        for candidate in close:
            for seed in (TUNING_SEED + 1, TUNING_SEED + 2):
                attempt(candidate, seed)
            print(f"  {found(candidate):8.1f}  mean of {len(tried[candidate])}", flush=True)
    return min(close, key=found)


def mean_and_error(values):
    values = np.asarray(values)
    return values.mean(), values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan


def study(options):
    """Tune, fit every seed, print; returns {sampler: (curves, own perplexities)}."""
    counts, held_out, scored = split_documents(options)
    print(
        f"{counts.shape[0]} documents of {counts.shape[1]} words fitted ({counts.sum() / counts.shape[0]:.0f} tokens "
        f"each), {held_out.shape[0]} to tune on, {scored.shape[0]} scored; {options.components} topics, "
        f"{options.iterations} steps of 50 documents"
    )
    chosen = PAPERS
    if options.settings == "tuned":
        print(f"\nTuning, {options.tuning_iterations} steps: running perplexity")
        chosen = {name: tune(name, counts, held_out, options) for name in PAPERS}
    found = {name: ([], []) for name in chosen}
    print(f"\n{'':16s} seed   running       own   seconds")
    for seed in range(options.seeds):
        for name, candidate in chosen.items():
            began = time.perf_counter()
            topics = fit(candidate, counts, options.iterations, seed, options)
            seconds = time.perf_counter() - began
            curve = running_perplexity(scored, topics, candidate[2])
            own = own_perplexity(scored, topics, candidate[2])
            found[name][0].append(curve)
            found[name][1].append(own)
            print(f"{name:16s} {seed:4d} {curve[-1]:9.1f} {own:9.1f} {seconds:9.1f}", flush=True)
    results = {name: (np.array(curves), np.array(own)) for name, (curves, own) in found.items()}
    print(f"\nMean ± standard error over {options.seeds} seeds\n{'':16s} {'running':>18s} {'own':>18s}")
    for name, (curves, own) in results.items():
        cells = [f"{mean:9.1f} ± {error:6.2f}" for mean, error in map(mean_and_error, (curves[:, -1], own))]
        where = f" (collapsed, {options.gibbs_documents} documents)" if name == "collapsed Gibbs" else ""
        print(f"{name:16s} {cells[0]:>18s} {cells[1]:>18s}  {describe(chosen[name])}{where}")
    for k, label in enumerate(("running", "own")):
        final = {name: (result[0][:, -1], result[1])[k] for name, result in results.items()}
        (low, low_error), (high, high_error) = mean_and_error(final["SCIR"]), mean_and_error(final["SGRLD"])
        difference, error = high - low, np.hypot(low_error, high_error)
        print(
            f"{label}: SGRLD - SCIR = {difference:.1f} ± {error:.2f}; "
            f"SCIR below SGRLD by more than two standard errors: {bool(difference > 2 * error)}"
        )
    return results


def plot(results, options, path):
    """Running perplexity against documents read, one line per seed, as in the paper's figure 3a."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, colour in (("SCIR", "C0"), ("SGRLD", "C1")):
        curves = results[name][0]
        documents = 50 * (options.iterations // curves.shape[1]) * np.arange(1, curves.shape[1] + 1)
        axes.plot(documents, curves.T, color=colour, alpha=0.35, lw=1)
        axes.plot(documents, curves.mean(axis=0), color=colour, lw=2, label=name)
    gibbs = results["collapsed Gibbs"][0][:, -1].mean()
    axes.set(xlabel="documents read", ylabel="perplexity, running mean since the first step")
    low, high = axes.get_ylim()  # of the two samplers: the reference may lie outside
    axes.axhline(
        gibbs, color="0.5", ls="--", label=f"collapsed Gibbs on {options.gibbs_documents} documents: {gibbs:.0f}"
    )
    axes.set_ylim(low, high)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"figure: {path}")


def main(argv=None):
    """Run the study with the options given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="wikipedia", help='a name of fetch_corpus, or "joined"')
    parser.add_argument(
        "--settings", choices=["tuned", "published"], default="tuned", help="constants of both samplers"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=1000, help="minibatches; collapsed Gibbs makes a twentieth")
    parser.add_argument("--tuning-iterations", type=int, default=None, help="None: as many as --iterations")
    parser.add_argument("--documents", type=int, default=None, help="at most so many documents are fitted")
    parser.add_argument("--gibbs-documents", type=int, default=5000, help="of these, for collapsed Gibbs")
    parser.add_argument("--scored", type=int, default=400, help="documents that are scored")
    parser.add_argument("--tuned", type=int, default=200, help="documents to tune on")
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--evaluations", type=int, default=20, help="draws of each chain that are scored")
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder of the figure")
    parser.add_argument("--smoke", action="store_true", help="a few seconds, on documents drawn from the model")
    options = parser.parse_args(argv)
    if options.smoke:
        options.corpus, options.components, options.seeds = "smoke", 5, min(options.seeds, 2)
        options.iterations, options.tuning_iterations, options.evaluations = 30, 10, 10
        options.scored = options.tuned = options.gibbs_documents = 50
    options.tuning_iterations = options.tuning_iterations or options.iterations
    began = time.perf_counter()
    results = study(options)
    print(f"{time.perf_counter() - began:.0f} s in all")
    try:
        plot(results, options, options.output / f"scir_sgrld_{options.corpus}.png")
    except ImportError:
        print("no figure: matplotlib is not installed")
    return results


if __name__ == "__main__":
    main()
