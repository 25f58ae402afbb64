"""Do the intervals of a covariate's effect on prevalence cover the truth as often as they promise?

    python examples/reproduce/covariate_effects.py --results effects.jsonl     # 100 planted corpora

Each corpus is drawn from a Dirichlet-multinomial regression whose coefficients are drawn from their prior; a document
has a number and an answer, yes or no. `DMRTopicModel` is fitted by the formula "~ number + answer", and
``effects(of="prior")`` computes what each covariate does to the expected prevalence of topics, averaged over the
documents: between the quartiles of the number, and between yes and no. The truth is the same average under the true
coefficients. The script prints how often 90% intervals cover it, with the standard error over corpora. Each corpus is
appended to ``--results`` as soon as it is done, and never fitted again.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import make_dmr
from sk_sgmcmc.metrics import align_topics

MASS = 0.9
PRIOR = {"metadata_prior_scale": 1.0, "intercept_prior_scale": 0.3, "doc_topic_prior": 0.3, "topic_word_prior": 0.1}


def true_effect(data, column, values):
    """Prevalence with a column of metadata at the second value less that at the first, averaged over documents."""
    means = []
    for value in values:
        metadata = data.metadata.copy()
        metadata[:, column] = value
        alpha = np.exp(data.coef[:, 0] + metadata @ data.coef[:, 1:].T)
        means.append((alpha / alpha.sum(axis=1, keepdims=True)).mean(axis=0))
    return means[1] - means[0]


def record(seed, n_documents, n_iter):
    """For each covariate, whether the interval of each topic's effect covers the truth, and the means and truths."""
    data = make_dmr(n_documents, 60, 3, 2, 40, random_state=seed, **PRIOR)
    metadata = {"number": data.metadata[:, 0], "answer": data.metadata[:, 1]}
    model = DMRTopicModel(3, formula="~ number + answer", n_iter=n_iter, thin=1, random_state=seed, **PRIOR)
    model.fit(data.counts, metadata=metadata)
    order = align_topics(data.components, model.components_)
    found = {"seed": seed, "documents": n_documents, "n_iter": n_iter}
    for column, name in enumerate(metadata):
        table = model.effects(name, of="prior", interval=MASS)
        first, second = (float(np.asarray(table[each])[0]) for each in ("reference", "value"))
        truth = true_effect(data, column, (first, second))
        low, high, mean = (np.asarray(table[each])[order] for each in ("low", "high", "difference"))
        found[name] = {
            "inside": ((low <= truth) & (truth <= high)).tolist(), "mean": mean.tolist(), "truth": truth.tolist()
        }  # fmt: skip
    return found


def main():
    """Fit the corpora that have no result yet, and print the coverage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two small corpora")
    parser.add_argument("--corpora", type=int, default=100)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--n-iter", type=int, default=1500)
    parser.add_argument("--results", type=Path, help="file of JSON lines, read and appended to")
    options = parser.parse_args()
    if options.smoke:
        options.corpora, options.documents, options.n_iter = 2, 60, 40
    records = {}
    if options.results is not None and options.results.exists():
        lines = map(json.loads, options.results.read_text(encoding="utf-8").splitlines())
        wanted = options.documents, options.n_iter
        records = {each["seed"]: each for each in lines if (each["documents"], each["n_iter"]) == wanted}
    for seed in range(options.corpora):
        if seed not in records:
            records[seed] = record(seed, options.documents, options.n_iter)
            if options.results is not None:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(records[seed]) + "\n")
    chosen = [records[seed] for seed in range(options.corpora)]
    print(f"{len(chosen)} corpora of {options.documents} documents, {100 * MASS:.0f}% intervals of effects")
    for name in ("number", "answer"):
        inside = np.array([each[name]["inside"] for each in chosen])
        of_corpus = inside.mean(axis=1)
        error = of_corpus.std(ddof=1) / np.sqrt(of_corpus.size)
        mean, truth = (np.concatenate([each[name][part] for each in chosen]) for part in ("mean", "truth"))
        print(
            f"  {name:7s} coverage {100 * inside.mean():.1f} ± {100 * error:.1f}%, correlation of posterior means "
            f"with the truth {np.corrcoef(mean, truth)[0, 1]:.3f}"
        )


if __name__ == "__main__":
    main()
