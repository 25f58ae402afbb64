"""How close is a default fit of text classification to the exact posterior, and what does it cost?

    python examples/reproduce/text_reference.py                        # 20 Newsgroups, 1,000 rows, scales 1, 3, 10
    python examples/reproduce/text_reference.py --scales 3 --rows 2000 --trajectories 1000
    python examples/reproduce/text_reference.py --binary

For each scale s of the prior: held-out log loss of the posterior average by exact sampling, of our default fit, and of
scikit-learn's LogisticRegression(C=s**2), with effective draws and CPU seconds. At the end, each at its best scale.

The exact sampler is Hamiltonian Monte Carlo with an accept-reject step. It moves the linear predictors of the rows, not
the coefficients. These predictors have the normal prior N(0, s^2 X X^T + 100^2) with X centred. Given them, held-out
predictors are normal. Coordinates are the eigenvectors of this matrix, and contrasts of the classes. What all classes
share changes no probability, and is left out. Chains start at the mode, and at a draw of the prior with the intercepts
at the mode. Their log losses must agree. "halves" are those of the two halves of a chain. "ess" are effective draws of
the log loss of single draws.

Without a data folder everything runs on simulated documents. CPU seconds include the threads of the linear algebra.
"""

import argparse
import time

import numpy as np
from scipy import sparse, special
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.linear_model._newton import truncated_newton
from sk_sgmcmc.metrics import effective_sample_size

INTERCEPT_SCALE = 100.0


def simulated(n, n_classes, n_words, rng):
    """Counts of words of documents, and their classes."""
    y = rng.integers(0, n_classes, n)
    words = rng.dirichlet(np.full(n_words, 0.02), n_classes)
    common = rng.dirichlet(np.full(n_words, 0.1))
    counts = [rng.multinomial(rng.integers(20, 80), 0.4 * words[k] + 0.6 * common) for k in y]
    return sparse.csr_matrix(np.array(counts, dtype=float)), y


def load(smoke):
    """Tf-idf of documents, and their classes."""
    if not smoke:
        from sk_sgmcmc.datasets import fetch_corpus

        try:
            corpus = fetch_corpus("20newsgroups")
        except OSError as error:
            print(f"20newsgroups: {str(error).split('. ')[0]}")
        else:
            y = np.unique(np.asarray(corpus.metadata["category"]), return_inverse=True)[1]
            counts = corpus.counts
            often = np.argsort(-np.asarray((counts > 0).sum(axis=0)).ravel())[:10_000]
            return sparse.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, np.sort(often)])), y
    counts, y = simulated(160 if smoke else 4000, 4, 400, np.random.default_rng(0))
    return sparse.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(counts)), y


class Predictors:
    """The posterior of the linear predictors of rows, in coordinates z with a standard normal prior.

    Parameters
    ----------
    X, y : csr_matrix of shape (n, d), ndarray of shape (n,)
    held_out : csr_matrix of shape (m, d)
    scale : float
        Of the prior of the coefficients.
    """

    def __init__(self, X, y, held_out, scale):
        centre = np.asarray(X.mean(axis=0)).ravel()

        def gram(A, B):
            a, b = A @ centre, B @ centre
            inner = (A @ B.T).toarray() - a[:, None] - b + centre @ centre
            return scale**2 * inner + INTERCEPT_SCALE**2

        values, vectors = np.linalg.eigh(gram(X, X))
        used = values > 1e-10 * values[-1]
        self.values, vectors = values[used], vectors[:, used]
        self.root = vectors * np.sqrt(self.values)
        self.is_intercept = self.values > 0.5 * y.size * INTERCEPT_SCALE**2
        self.held_out = gram(held_out, X) @ (vectors / np.sqrt(self.values))
        square = np.asarray(held_out.multiply(held_out).sum(axis=1)).ravel()
        own = scale**2 * (square - 2.0 * (held_out @ centre) + centre @ centre) + INTERCEPT_SCALE**2
        self.rest = np.sqrt(np.maximum(own - (self.held_out**2).sum(axis=1), 0.0))
        K = y.max() + 1
        self.y, self.target = y, np.eye(K)[y]
        axes = np.linalg.qr(np.column_stack([np.ones(K), np.eye(K)[:, 1:]]))[0]
        # With two classes, the prior of our model is on their difference.
        self.contrasts = axes[:, 1:] if K > 2 else np.array([[0.0], [1.0]])
        self.shape = self.values.size, self.contrasts.shape[1]

    def at(self, z):
        """Log density, gradient, and probabilities of the classes."""
        eta = (self.root @ z) @ self.contrasts.T
        log_p = eta - special.logsumexp(eta, axis=1, keepdims=True)
        p = np.exp(log_p)
        value = log_p[np.arange(self.y.size), self.y].sum() - 0.5 * (z**2).sum()
        return value, self.root.T @ ((self.target - p) @ self.contrasts) - z, p

    def units(self, p):
        """Scale of each coordinate, from the mean curvature of the rows."""
        return np.sqrt(1.0 / (1.0 + self.values * (p * (1.0 - p)).mean()))[:, None]

    def mode(self):
        """The mode of z."""

        def negative(u):
            value, slope, p = self.at(u.reshape(self.shape))

            def product(v):
                e = (self.root @ v.reshape(self.shape)) @ self.contrasts.T
                curved = p * e - p * (p * e).sum(axis=1, keepdims=True)
                return v + (self.root.T @ (curved @ self.contrasts)).ravel()

            return -value, -slope.ravel(), product

        return truncated_newton(negative, np.zeros(self.shape).ravel(), 1e-10).reshape(self.shape)

    def probabilities(self, z, rng=None):
        """Probabilities of held-out rows; with ``rng``, including what z leaves unknown."""
        f = self.held_out @ z
        if rng is not None:
            f = f + self.rest[:, None] * rng.standard_normal(f.shape)
        return special.softmax(f @ self.contrasts.T, axis=1)


def sample(target, z, held_out_y, n_trajectories, rng):
    """Probability of each held-out label at each draw after a burn-in of a third, and the acceptance rate."""
    n_burn, rows = n_trajectories // 3, np.arange(held_out_y.size)
    value, slope, p = target.at(z)
    unit, h, kept, accepted = target.units(p), 0.05, [], []
    for t in range(n_trajectories):
        if t in (n_burn // 4, n_burn // 2):
            unit = target.units(p)
        momentum = rng.standard_normal(z.shape)
        step = h * rng.uniform(0.8, 1.2)
        energy = value - 0.5 * (momentum**2).sum()
        new, new_slope = z, slope
        for _ in range(int(np.clip(round(1.6 / h), 3, 60))):
            momentum = momentum + 0.5 * step * unit * new_slope
            new = new + step * unit * momentum
            new_value, new_slope, new_p = target.at(new)
            momentum = momentum + 0.5 * step * unit * new_slope
        change = new_value - 0.5 * (momentum**2).sum() - energy
        chance = np.exp(min(0.0, change)) if np.isfinite(change) else 0.0
        if rng.random() < chance:
            z, value, slope, p = new, new_value, new_slope, new_p
        accepted.append(chance)
        if t < n_burn:
            h *= np.exp((chance - 0.8) * max(0.5 * (t + 1) ** -0.6, 0.03))
        else:
            kept.append(target.probabilities(z, rng)[rows, held_out_y])
    return np.array(kept), np.mean(accepted[n_burn:])


def log_loss(p):
    """Mean over rows of minus the log of the average over draws."""
    return -np.log(p.mean(axis=0)).mean()


def effective(p):
    """Effective number of draws for the log loss of single draws."""
    return effective_sample_size(-np.log(np.maximum(p, 1e-300)).mean(axis=1)[None])


def our_draws(model, X, y):
    """Probability of each label at each draw that predictions average over."""
    coef, intercept = (model._all_samples[name][0] for name in ("coef", "intercept"))
    out = []
    for one, b in zip(coef, intercept, strict=True):
        eta = X @ one.T + b
        eta = np.column_stack([np.zeros(len(eta)), eta]) if eta.shape[1] == 1 else eta
        out.append(special.softmax(eta, axis=1)[np.arange(y.size), y])
    return np.array(out)


def compare(scale, train, test, n_trajectories):
    """Print all at one scale; returns the log losses (exact, ours, scikit-learn)."""
    (X, y), (held_out, labels) = train, test
    began = time.process_time()
    theirs = LogisticRegression(C=scale**2, max_iter=1000).fit(X, y)
    their_time = time.process_time() - began
    their_loss = -np.log(theirs.predict_proba(held_out)[np.arange(labels.size), labels]).mean()
    began = time.process_time()
    model = BayesianLogisticRegression(scale, random_state=0).fit(X, y)
    our_time = time.process_time() - began
    draws = our_draws(model, held_out, labels)
    exact, lines = [], []
    if n_trajectories:
        target, rng = Predictors(X, y, held_out, scale), np.random.default_rng(1)
        mode = target.mode()
        far = np.where(target.is_intercept[:, None], mode, rng.standard_normal(target.shape))
        for start, z in (("mode", mode), ("prior draw", far)):
            began = time.process_time()
            p, rate = sample(target, z, labels, n_trajectories, rng)
            halves = [log_loss(half) for half in np.array_split(p, 2)]
            exact.append(p)
            lines.append(
                f"  exact, from the {start:<10} log loss {log_loss(p):.4f} (halves {halves[0]:.4f}, {halves[1]:.4f}), "
                f"ess {effective(p):.0f}, accepted {rate:.2f}, {time.process_time() - began:.0f} s"
            )
    all_exact = log_loss(np.concatenate(exact)) if exact else np.nan
    print(f"scale {scale:g}: {X.shape[0]} x {X.shape[1]}, {y.max() + 1} classes, {labels.size} rows held out")
    print(*lines, sep="\n", end="\n" if lines else "")
    print(
        f"  default fit           log loss {log_loss(draws):.4f} ({100 * (log_loss(draws) / all_exact - 1):+.2f}% of "
        f"{all_exact:.4f}), ess {effective(draws):.0f} of {len(draws)} draws, {model.n_iter_} steps of "
        f"{float(model.sampler_.step_size_(0)):.3g}, {our_time:.2f} s ({our_time / their_time:.1f} times scikit-learn)"
    )
    print(f"  scikit-learn, C={scale**2:<6g} log loss {their_loss:.4f}, {their_time:.2f} s", flush=True)
    return all_exact, log_loss(draws), their_loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few seconds: simulated documents, short chains")
    parser.add_argument("--scales", type=float, nargs="*", default=[1.0, 3.0, 10.0])
    parser.add_argument("--rows", type=int, default=1000, help="rows to fit")
    parser.add_argument("--held-out", type=int, default=2000, help="rows held out")
    parser.add_argument("--trajectories", type=int, default=400, help="of each exact chain; 0 leaves them out")
    parser.add_argument("--binary", action="store_true", help="the first half of the classes against the others")
    args = parser.parse_args()
    X, y = load(args.smoke)
    if args.binary:
        y = (y > y.max() // 2).astype(int)
    n, m, n_trajectories = (100, 60, 20) if args.smoke else (args.rows, args.held_out, args.trajectories)
    order = np.random.default_rng(0).permutation(X.shape[0])
    train, test = order[:n], order[n : n + m]
    scales = args.scales[:1] if args.smoke else args.scales
    BayesianLogisticRegression(n_iter=20, random_state=0).fit(X[train[:50]], y[train[:50]])  # compiles, for the times
    found = np.array([compare(s, (X[train], y[train]), (X[test], y[test]), n_trajectories) for s in scales])
    for name, losses in zip(("exact", "default fit", "scikit-learn"), found.T, strict=True):
        if np.isfinite(losses).all():
            print(f"best scale, {name}: {scales[int(np.argmin(losses))]:g}, log loss {losses.min():.4f}")


if __name__ == "__main__":
    main()
