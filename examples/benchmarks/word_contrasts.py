"""Do intervals of words that differ between groups cover the truth, and do such words predict? `StructuralTopicModel`.

    python examples/benchmarks/word_contrasts.py                    # planted corpora under three truths, 10 each
    python examples/benchmarks/word_contrasts.py --corpora 40
    python examples/benchmarks/word_contrasts.py --part real        # blogs by rating, addresses by party: perplexity
    python examples/benchmarks/word_contrasts.py --smoke            # seconds: one short corpus of each truth

Planted corpora have 600 documents of 80 words, two groups, six topics and 300 words. ``truth`` is how the words of the
groups differ:

``hierarchical``  as in the model: concentrations for words, of which some are small
``log-linear``    as in stm: the logarithm of each probability plus, for 5% of the words, a normal deviation for each
                  group (SAGE)
``none``          not at all

Each line is a truth: coverage of the 90% intervals of ``log_ratio`` of words with a probability above 0.005, and its
standard error between corpora; the same of strong contrasts, above 1 in absolute value; the slope of estimated on true
contrasts; the share of intervals that exclude 0 with the wrong sign; processor seconds of a default fit.

``--part real`` prints the perplexity of held-out posts (10%) given the group, by document completion, of `BayesianLDA`
and of `StructuralTopicModel`, and the words that differ most; and, if topica is installed, of topica's structural topic
model with content. "means" is the same for posterior means of the topics and equal documents' priors, which is all that
topica offers.
"""

import argparse
import importlib.util
import time
import warnings

import numpy as np
from _peers import fetched
from scipy import sparse

from sk_sgmcmc import BayesianLDA, StructuralTopicModel
from sk_sgmcmc.datasets import fetch_corpus, load_sotu
from sk_sgmcmc.metrics import align_topics, document_completion, split_tokens

N_WORDS, N_TOPICS, FREQUENT, STRONG = 300, 6, 0.005, 1.0


def groups_of_words(truth, rng):
    """Topics of two groups, (2, n_topics, n_words)."""
    base = rng.dirichlet(np.full(N_WORDS, 0.2), N_TOPICS)
    if truth == "hierarchical":
        kappa = rng.choice([3.0, 30.0, 2000.0], p=[0.1, 0.2, 0.7], size=base.shape)
        phi = base * rng.gamma(kappa, size=(2, *base.shape)) / kappa
    else:
        share = 0.05 if truth == "log-linear" else 0.0
        deviation = rng.normal(0.0, 1.0, size=(2, *base.shape)) * (rng.random(base.shape) < share)
        phi = base * np.exp(deviation)
    return phi / phi.sum(axis=2, keepdims=True)


def planted(truth, seed, n_docs, length):
    """Counts, groups and topics."""
    rng = np.random.default_rng(seed)
    phi, group = groups_of_words(truth, rng), rng.integers(2, size=n_docs)
    theta = rng.dirichlet(np.full(N_TOPICS, 0.15), n_docs)
    X = [rng.multinomial(length, t @ phi[g]) for t, g in zip(theta, group, strict=True)]
    return sparse.csr_array(np.array(X)), group, phi


def one(truth, seed, n_docs, length, **params):
    """Of the frequent words of a planted corpus: whether they are covered, true contrasts, estimates, wrong signs."""
    X, group, phi = planted(truth, seed, n_docs, length)
    model = StructuralTopicModel(N_TOPICS, formula="~ 1", content="group", random_state=seed, **params)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, metadata={"group": np.where(group, "b", "a")})
    seconds = time.process_time() - began
    order, found = align_topics(phi.mean(axis=0), model.components_), []
    for true, k in enumerate(order):
        table = model.word_contrast("a", "b", topics=[k], n=N_WORDS)
        words = np.asarray(table["word"], dtype=int)
        contrast = np.log(phi[0, true] / phi[1, true])[words]
        low, high, mean = (np.asarray(table[name]) for name in ("low", "high", "log_ratio"))
        often = phi[:, true].mean(axis=0)[words] > FREQUENT
        wrong = (low > 0) & (contrast < 0) | (high < 0) & (contrast > 0)
        found.append(np.array([(low <= contrast) & (contrast <= high), contrast, mean, wrong])[:, often])
    return np.concatenate(found, axis=1), seconds


def coverage(truth, n_corpora, n_docs, length, **params):
    """Print the line of a truth."""
    found, seconds = zip(*(one(truth, seed, n_docs, length, **params) for seed in range(n_corpora)), strict=True)
    each = np.array([part[0].mean() for part in found])
    inside, contrast, mean, wrong = np.concatenate(found, axis=1)
    strong, error = np.abs(contrast) > STRONG, each.std(ddof=1) / np.sqrt(n_corpora) if n_corpora > 1 else np.nan
    slope = contrast @ mean / max(contrast @ contrast, 1e-300)
    of_strong = f"{inside[strong].mean():.3f}" if strong.any() else "  -  "
    print(
        f"{truth:<14}{inside.mean():>10.3f} ± {error:.3f}{of_strong:>10}{slope:>8.2f}{wrong.mean():>8.3f}"
        f"{np.mean(seconds):>8.1f}",
        flush=True,
    )


def topica_topics(X, groups, n_topics):
    """Topics of each group, (n_groups, n_topics, n_words), of topica's structural topic model at its defaults."""
    import topica

    names = np.array([f"w{j:06d}" for j in range(X.shape[1])])
    words = [
        np.repeat(names[row.indices], row.data.astype(int)).tolist() for row in (X[[d]] for d in range(len(groups)))
    ]
    model = topica.STM(n_topics, seed=1)
    model.fit(topica.Corpus.from_documents(words), content=groups.tolist())
    found = np.asarray(model.topic_word_by_group)[:, [list(model.groups).index(g) for g in np.unique(groups)]]
    topics = np.full((found.shape[1], n_topics, X.shape[1]), 1e-12)
    topics[:, :, [int(word[1:]) for word in model.vocabulary]] = found.transpose(1, 0, 2)
    return topics / topics.sum(axis=2, keepdims=True)


def perplexity_of_means(topics, X, group):
    """Document completion of X given one set of topics for each group."""
    observed, hidden = split_tokens(X, random_state=0)
    scores = [
        document_completion(observed[group == g], hidden[group == g], [own / own.sum(axis=1, keepdims=True)])
        for g, own in enumerate(topics)
    ]
    return np.exp(-sum(each.log_predictive.sum() for each in scores) / sum(each.n_hidden.sum() for each in scores))


def real(name, n_topics, n_iter):
    """Print perplexities on real text, and words that differ."""
    if name == "poliblog5k":
        corpus = fetched(fetch_corpus, name)
        groups = np.asarray(corpus.metadata["rating"], dtype=str)
    else:
        corpus = load_sotu()
        groups = np.asarray(corpus.metadata["party"], dtype=str)
        often = np.isin(groups, ["Democratic", "Republican"])
        corpus.counts, groups = corpus.counts[often], groups[often]
    X, order = corpus.counts.tocsr(), np.random.default_rng(0).permutation(groups.size)
    fit, held_out = np.sort(order[groups.size // 10 :]), np.sort(order[: groups.size // 10])
    print(f"{name}: {fit.size} documents, {int(X[fit].sum())} tokens, K = {n_topics}")
    params = {"n_components": n_topics, "n_iter": n_iter, "random_state": 0}
    for model in (BayesianLDA(**params), StructuralTopicModel(**params, formula="~ 1", content="group")):
        rows = [{"metadata": {"group": groups[rows]}} if hasattr(model, "content") else {} for rows in (fit, held_out)]
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[fit], feature_names=corpus.feature_names, **rows[0])
        seconds = time.process_time() - began
        perplexity, names = model.perplexity(X[held_out], **rows[1]), np.unique(groups)
        topics = model.content_components_ if hasattr(model, "content") else [model.components_] * names.size
        means = perplexity_of_means(topics, X[held_out], np.searchsorted(names, groups[held_out]))
        print(f"  {type(model).__name__:<24}{perplexity:>8.1f}{means:>10.1f} (means){seconds:>8.1f} s", flush=True)
    if importlib.util.find_spec("topica"):
        began = time.process_time()
        topics = topica_topics(X[fit], groups[fit], n_topics)
        seconds = time.process_time() - began
        means = perplexity_of_means(topics, X[held_out], np.searchsorted(names, groups[held_out]))
        print(f"  {'topica STM':<32}{means:>10.1f} (means){seconds:>8.1f} s", flush=True)
    a, b = model.groups_[:2]
    for k, title in enumerate(model.topic_names_):
        table = model.word_contrast(a, b, topics=[k], n=4)
        words, ratio = np.asarray(table["word"]), np.asarray(table["log_ratio"])
        print(f"    {title:<34} {a}: {' '.join(words[ratio > 0])}   {b}: {' '.join(words[ratio < 0])}")


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="planted", choices=("planted", "real"))
    parser.add_argument("--corpora", type=int, default=10, help="planted corpora of each truth")
    parser.add_argument("--smoke", action="store_true", help="seconds: one short corpus of each truth")
    options = parser.parse_args()
    if options.part == "real":
        for name in ("poliblog5k", "sotu"):
            real(name, 20, None)
        return
    print(f"{'truth':<14}{'coverage':>18}{'strong':>10}{'slope':>8}{'wrong':>8}{'s':>8}")
    for truth in ("hierarchical", "log-linear", "none"):
        if options.smoke:
            coverage(truth, 1, 100, 30, n_iter=40)
        else:
            coverage(truth, options.corpora, 600, 80)


if __name__ == "__main__":
    main()
