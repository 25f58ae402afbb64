"""Are topics what their keywords name? `StructuralTopicModel`, seed words of `BayesianLDA`, and topica's keyATM.

    python examples/benchmarks/keyword_topics.py                   # planted pairs of similar topics, 20 corpora
    python examples/benchmarks/keyword_topics.py --part labels     # 20 Newsgroups: does a topic's share tell its label?
    python examples/benchmarks/keyword_topics.py --part wrong      # keywords of one topic given to another
    python examples/benchmarks/keyword_topics.py --smoke           # seconds: one short corpus

Planted corpora have 400 documents of 60 words, 300 words, and six topics in three pairs: 70% of a topic is what its
pair has in common. Each topic is given the three words whose share in it exceeds that in the other of the pair most.
Each line is a program at its default arguments, with means over corpora and their standard errors: the share of topics
that are nearest to the truth that their keywords name, by Hellinger distance; this distance; processor seconds. A topic
that consists of its keywords alone is near to no truth, so the second number counts more.

``--part labels`` fits 20 topics to 20 Newsgroups, seven of them with keywords, and prints the area under the curve
(AUC) of each topic's share for the newsgroups that it should be about, in documents of ten words or more.

``--part wrong`` exchanges the keywords of the first two pairs in part: a topic gets one keyword from each of three
topics. It prints how often the fit warns, beside the same for right keywords.

topica is measured if it is installed (``pip install topica``).
"""

import argparse
import time
import warnings

import numpy as np
from _peers import fetched
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from sk_sgmcmc import BayesianLDA, StructuralTopicModel
from sk_sgmcmc.datasets import fetch_20newsgroups_counts

N_WORDS, N_PAIRS, N_KEYWORDS = 300, 3, 3
NEWSGROUPS = {
    "Religion": (["god", "jesus", "bible", "christian", "church"], ("religion", "atheism")),
    "Space": (["space", "nasa", "orbit", "launch", "moon"], ("sci.space",)),
    "Medicine": (["doctor", "disease", "patients", "medical", "health"], ("sci.med",)),
    "Sports": (["game", "team", "hockey", "season", "players"], ("rec.sport",)),
    "Guns": (["gun", "guns", "firearms", "weapons"], ("politics.guns",)),
    "Encryption": (["encryption", "key", "clipper", "chip", "nsa"], ("sci.crypt",)),
    "Vehicles": (["car", "engine", "bike", "cars", "motorcycle"], ("rec.autos", "rec.motorcycles")),
}


def planted(seed, n_docs, length):
    """Counts, topics, and keywords of each topic."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.dirichlet(np.full(N_WORDS, 0.1), N_PAIRS), 2, axis=0)
    phi = 0.7 * common + 0.3 * rng.dirichlet(np.full(N_WORDS, 0.1), 2 * N_PAIRS)
    theta = rng.dirichlet(np.full(2 * N_PAIRS, 0.15), n_docs)
    X = sparse.csr_array(np.array([rng.multinomial(length, t @ phi) for t in theta]))
    other = phi.reshape(N_PAIRS, 2, -1)[:, ::-1].reshape(phi.shape)
    return X, phi, np.argsort(other - phi, axis=1)[:, :N_KEYWORDS]


def ours(X, names, keywords, n_topics, seed, **params):
    """Topics, and shares of documents in them."""
    model = StructuralTopicModel(n_topics, formula="~ 1", keywords=keywords, random_state=seed, **params)
    model.fit(X, feature_names=names)
    return model.components_, lambda: model.transform(X)


def seeded(X, names, keywords, n_topics, seed, weight=5.0, **params):
    """The same of seed words with a prior weight."""
    model = BayesianLDA(n_topics, seed_words=keywords, seed_weight=weight, random_state=seed, **params)
    model.fit(X, feature_names=names)
    return model.components_, lambda: model.transform(X)


def topica_keyatm(X, names, keywords, n_topics, seed, n_iter=1500):
    """The same of topica's keyATM, with keyATM's 1,500 sweeps."""
    import topica

    names, X = np.asarray(names), sparse.csr_array(X)
    words = [np.repeat(names[X[[i]].indices], X[[i]].data.astype(int)).tolist() for i in range(X.shape[0])]
    model = topica.KeyATM(keywords, num_topics=n_topics, seed=seed + 1)
    model.fit(topica.Corpus.from_documents(words), iters=n_iter)
    place = {word: j for j, word in enumerate(model.vocabulary)}
    topics, found = np.asarray(model.topic_word), np.array([place.get(name, -1) for name in names])
    full = np.where(found >= 0, topics[:, np.maximum(found, 0)], 0.0)
    return full / full.sum(axis=1, keepdims=True), lambda: np.asarray(model.doc_topic)


def programs():
    """Names and functions of all programs that are installed."""
    found = {"StructuralTopicModel(keywords=)": ours}
    for weight in (5, 50, 500):
        found[f"BayesianLDA(seed_weight={weight})"] = lambda *a, weight=weight, **p: seeded(*a, weight=weight, **p)
    try:
        import topica  # noqa: F401

        found["topica KeyATM"] = topica_keyatm
    except ImportError:
        pass
    return found


def hellinger(a, b):
    """Distances between the rows of two matrices."""
    return np.sqrt(np.clip(1.0 - np.sqrt(a) @ np.sqrt(b).T, 0.0, None))


def print_planted(n_corpora, n_docs, length, **params):
    names = np.array([f"w{j:03d}" for j in range(N_WORDS)])
    print(f"{'program':<34}{'nearest':>9}{'':>7}{'distance':>10}{'':>7}{'seconds':>9}")
    for name, fit in programs().items():
        rows = []
        for seed in range(n_corpora):
            X, phi, places = planted(seed, n_docs, length)
            keywords = {f"topic {k}": names[own].tolist() for k, own in enumerate(places)}
            began = time.process_time()
            topics, _ = fit(X, names, keywords, len(phi), seed, **(params if fit is not topica_keyatm else {}))
            distances = hellinger(topics, phi)
            own = np.diag(distances)
            seconds = time.process_time() - began
            rows.append(((distances.argmin(axis=1) == np.arange(len(phi))).mean(), own.mean(), seconds))
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(max(1, n_corpora - 1))
        print(f"{name:<34}{mean[0]:9.2f} ±{error[0]:5.2f}{mean[1]:10.3f} ±{error[1]:5.3f}{mean[2]:9.1f}", flush=True)


def print_labels(n_seeds, n_topics=20, **params):
    data = fetched(fetch_20newsgroups_counts)
    X = data.data
    enough = np.asarray(X.sum(axis=1)).ravel() >= 10
    category = np.asarray(data.metadata["category"])[enough]
    keywords = {name: words for name, (words, _) in NEWSGROUPS.items()}
    labels = [np.array([any(part in c for part in parts) for c in category]) for _, parts in NEWSGROUPS.values()]
    print(f"{'program':<34}" + "".join(f"{name[:9]:>10}" for name in NEWSGROUPS) + f"{'mean':>8}{'seconds':>9}")
    for name, fit in programs().items():
        scores, began = [], time.process_time()
        for seed in range(n_seeds):
            given = params if fit is not topica_keyatm else {}
            _, shares = fit(X[enough], data.feature_names, keywords, n_topics, seed, **given)
            theta = shares()
            scores.append([roc_auc_score(label, theta[:, k]) for k, label in enumerate(labels)])
        seconds, mean = (time.process_time() - began) / n_seeds, np.mean(scores, axis=0)
        print(
            f"{name:<34}" + "".join(f"{each:10.3f}" for each in mean) + f"{mean.mean():8.3f}{seconds:9.1f}", flush=True
        )


def print_wrong(n_corpora, n_docs, length, **params):
    names = np.array([f"w{j:03d}" for j in range(N_WORDS)])
    for kind in ("right", "mixed"):
        warned, lowest = 0, []
        for seed in range(n_corpora):
            X, _, places = planted(seed, n_docs, length)
            if kind == "mixed":  # One keyword of each of three pairs.
                places[:N_KEYWORDS] = places[[0, 2, 4]].T
            keywords = {f"topic {k}": names[own].tolist() for k, own in enumerate(places[:N_KEYWORDS])}
            model = StructuralTopicModel(2 * N_PAIRS, formula="~ 1", keywords=keywords, random_state=seed, **params)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                model.fit(X, feature_names=names)
            text = " ".join(str(w.message) for w in said if issubclass(w.category, ConvergenceWarning))
            warned += "keywords" in text
            lowest.append(model.keyword_rate_.min())
        print(
            f"{kind:<8} warned in {warned} of {n_corpora}; smallest rate {np.mean(lowest):.3f} on average", flush=True
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["planted", "labels", "wrong"], default="planted")
    parser.add_argument("--corpora", type=int, default=20, help="corpora, or seeds with --part labels")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        return print_planted(1, 60, 20, n_iter=20)
    if args.part == "labels":
        return print_labels(min(args.corpora, 3))
    (print_planted if args.part == "planted" else print_wrong)(args.corpora, 400, 60)
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
