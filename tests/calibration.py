"""Simulation-based calibration of LDA on tiny corpora: ranks of the true topics among draws given their data.

``python -m tests.calibration`` prints the calibration error of fresh assignments over n/N, in two or three minutes.

If corpora are drawn from the model and the draws from the posterior, the rank of a true value among N_DRAWS of them is
uniform on 0..N_DRAWS. Statistics are s_vw = sum_k phi_kv phi_kw, which do not depend on labels.
"""

import numpy as np
from scipy import stats

from tests.tiny_lda import make_chain, statistics

N_DRAWS = 7
N_DOCS, LENGTH, N_WORDS = 8, 5, 3
# Larger than in `tests.tiny_lda`, so that short chains forget where they began.
ALPHA, BETA = np.array([0.7, 1.0]), 0.7


def ranks(seed, n_replicates, step_size, *, burn_in=30, thin=5, **kwargs):
    """Ranks of the statistics' true values, (n_replicates, n_statistics)."""
    out = []
    n_iter = burn_in + N_DRAWS * thin
    for s in range(n_replicates):
        rng = np.random.default_rng([seed, s])
        phi = rng.dirichlet(np.full(N_WORDS, BETA), len(ALPHA))
        theta = rng.dirichlet(ALPHA, N_DOCS)
        counts = np.array([rng.multinomial(LENGTH, p / p.sum()) for p in theta @ phi])
        chain = make_chain(
            [seed, s], step_size, n_iter, counts=counts, burn_in=burn_in, thin=thin, alpha=ALPHA, beta=BETA, **kwargs
        )
        drawn = statistics(chain.run(n_iter).draws()["components"])
        half = drawn.shape[1] // 2
        out.append((drawn[:, :half] < statistics(phi[None])[:, :half]).sum(axis=0))
    return np.array(out)


def p_values(ranks):
    """Chi-squared p-value of each statistic's histogram of ranks against the uniform."""
    return np.array([stats.chisquare(np.bincount(column, minlength=N_DRAWS + 1)).pvalue for column in ranks.T])


def error(ranks):
    """Calibration error: largest difference between the distribution of ranks and the uniform, mean of statistics."""
    shares = np.stack([np.bincount(column, minlength=N_DRAWS + 1) for column in ranks.T]) / len(ranks)
    below = np.cumsum(shares, axis=1) - np.arange(1, N_DRAWS + 2) / (N_DRAWS + 1)
    return np.abs(below).max(axis=1).mean()


def coverage(ranks):
    """Share of true values inside the central interval of the draws, whose nominal share is 1 - 2 / (N_DRAWS + 1)."""
    return np.mean((ranks > 0) & (ranks < N_DRAWS))


def main(n_replicates=300):
    """Print the table."""
    floor = error(np.random.default_rng(0).integers(0, N_DRAWS + 1, (n_replicates, 4)))
    print(f"calibration over {n_replicates} corpora of {N_DOCS} documents; nominal coverage "
          f"{1 - 2 / (N_DRAWS + 1):.2f}, error of exact draws about {floor:.3f}")  # fmt: skip
    print(f"{'assignments':12s} {'h':>5s} {'n/N':>6s} {'error':>7s} {'coverage':>9s} {'smallest p':>11s}")
    settings = [("stored", 750.0, n) for n in (8, 2)] + [("fresh", h, n) for h in (0.5, 2.0) for n in (1, 2, 4, 8)]
    for assignments, h, n in settings:
        slow = {"burn_in": 40, "thin": 14} if h < 1.0 else {"burn_in": 20, "thin": 6}
        kwargs = (
            {"stored": False, "n_sweeps": (3, 1), **slow}
            if assignments == "fresh"
            else {"thin": 7 if n == N_DOCS else 24}
        )
        r = ranks(1, n_replicates, h, n_batch=n, **kwargs)
        step = "inf" if h > 100 else f"{h:g}"
        print(f"{assignments:12s} {step:>5s} {n / N_DOCS:6.3f} {error(r):7.3f} {coverage(r):9.3f} "
              f"{p_values(r).min():11.2g}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
