"""
What does a Bayesian neural network gain over a single best network?
====================================================================

The network has 8 x 8 pixels of a digit as its input, a hidden layer of 20 sigmoid units, a softmax over ten classes,
and standard normal weights. It is a user-defined density for `sk_sgmcmc.sample`, sampled by particles and by chains.

In the user guide: :doc:`/user_guide/flat_space`.
"""

# %%
# The density
# -----------
# A jitted function returns the log density of the weights and writes its gradient, derived by hand: a forward and a
# backward pass. ``rows`` is a minibatch, the last column of which is the label; sums over it are multiplied by
# ``scale``, N/n.

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numba
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import PSGHMC, SGHMC, Blob
from sk_sgmcmc.targets import Density

INPUTS, HIDDEN, CLASSES = 64, 20, 10
CUTS = np.cumsum([0, INPUTS * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES])
FIRST, BIAS, SECOND, LAST = (slice(int(a), int(b)) for a, b in pairwise(CUTS))
C1, C2, C3, DIM = (int(cut) for cut in CUTS[1:])
PRIOR_PRECISION = 1.0


@numba.njit
def network(theta, rows, scale, gradient):
    W, b = theta[:C1].reshape(INPUTS, HIDDEN), theta[C1:C2]
    V, c = theta[C2:C3].reshape(HIDDEN, CLASSES), theta[C3:]
    X = np.ascontiguousarray(rows[:, :INPUTS])
    hidden = 1.0 / (1.0 + np.exp(-(X @ W + b)))
    outputs = hidden @ V + c
    log_density = 0.0
    error = np.empty_like(outputs)
    for i in range(len(rows)):
        label = int(rows[i, INPUTS])
        largest = outputs[i].max()
        p = np.exp(outputs[i] - largest)
        total = p.sum()
        log_density += outputs[i, label] - largest - np.log(total)
        error[i] = -p / total
        error[i, label] += 1.0
    back = (error @ V.T) * hidden * (1.0 - hidden)
    gradient[:C1] = scale * (X.T @ back).ravel()
    gradient[C1:C2] = scale * back.sum(axis=0)
    gradient[C2:C3] = scale * (hidden.T @ error).ravel()
    gradient[C3:] = scale * error.sum(axis=0)
    gradient -= PRIOR_PRECISION * theta
    return scale * log_density - 0.5 * PRIOR_PRECISION * (theta**2).sum()


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, random_state=0)
target = Density(network, DIM, np.column_stack([X_train, y_train]), control_variates=False)


def predictive(weights):
    """Class probabilities of the test images, averaged over networks (n, dim)."""
    total = 0.0
    for theta in weights:
        hidden = 1.0 / (1.0 + np.exp(-(X_test @ theta[FIRST].reshape(INPUTS, HIDDEN) + theta[BIAS])))
        outputs = hidden @ theta[SECOND].reshape(HIDDEN, CLASSES) + theta[LAST]
        p = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        total = total + p / p.sum(axis=1, keepdims=True)
    return total / len(weights)


# %%
# Ten networks
# ------------
# Ten particles or ten chains, each at its last state, as Liu, Zhuo and Zhu (2019) compare them. All read minibatches of
# 100 from the same dispersed start, and the step sizes follow the methods' own scales.

N, EPOCHS = 10, (100, 300, 1000)
start = 0.3 * np.random.default_rng(0).normal(size=(N, DIM))
MOMENTUM = {"friction": 3.0, "mass": 1.0}
SAMPLERS = {
    "Blob": Blob(N, step_size=5e-4),
    "PSGHMC-det": PSGHMC("det", N, step_size=0.02, **MOMENTUM),
    "PSGHMC-fgh": PSGHMC("fgh", N, step_size=0.02, **MOMENTUM),
    "SGHMC": SGHMC(step_size=0.02, friction=MOMENTUM["friction"]),
}

# The weights of a network have many equivalent modes, between which no chain of this length moves. This page compares
# predictions, not weights, so it switches off the warnings that the weights have not converged.
warnings.filterwarnings("ignore", category=ConvergenceWarning)


def networks(sampler, n_iter):
    """Ten networks after n_iter steps."""
    if isinstance(sampler, SGHMC):
        draws = [
            sample(target, sampler, n_iter=n_iter, burn_in=n_iter - 1, batch_size=100, init=s, random_state=i)
            for i, s in enumerate(start)
        ]
        return np.concatenate([draw.samples_["theta"][0] for draw in draws])
    draw = sample(target, sampler, n_iter=n_iter, batch_size=100, init=start, random_state=0)
    return draw.samples_["theta"][0]


curves = {}
print(f"{'steps':12s}" + "".join(f"{n:>18d}" for n in EPOCHS) + "   (test error, log loss)")
for name, sampler in SAMPLERS.items():
    scores = []
    for n_iter in EPOCHS:
        p = predictive(networks(sampler, n_iter))
        scores.append((np.mean(p.argmax(axis=1) != y_test), log_loss(y_test, p)))
    curves[name] = np.array(scores)
    print(f"{name:12s}" + "".join(f"{error:9.3f} {loss:8.3f}" for error, loss in scores))

# %%
# Draws of one chain over time
# ----------------------------
# A chain keeps producing draws, and their average over time predicts better than its last draw. For comparison, a
# single network at its mode, and a model without a hidden layer.

one = sample(
    target,
    SGHMC(step_size=0.02, friction=3.0),
    n_iter=6000,
    burn_in=1000,
    thin=50,
    batch_size=100,
    init=start[0],
    random_state=0,
)
averaged = predictive(one.samples_["theta"][0])
single = predictive(one.samples_["theta"][0][-1:])
mlp = MLPClassifier(HIDDEN, activation="logistic", alpha=1.0, max_iter=3000, random_state=0).fit(X_train, y_train)
linear = LogisticRegression(max_iter=2000).fit(X_train, y_train)
for label, p in {
    "100 draws of one chain": averaged,
    "its last draw alone": single,
    "one network at its mode": mlp.predict_proba(X_test),
    "no hidden layer": linear.predict_proba(X_test),
}.items():
    print(f"{label:24s} test error {np.mean(p.argmax(axis=1) != y_test):.3f}, log loss {log_loss(y_test, p):.3f}")

# %%
# Predictions by steps
# --------------------

figure, axes = plt.subplots(1, 2, figsize=(7, 3.4))
for name, scores in curves.items():
    for axis, values in zip(axes, scores.T, strict=True):
        axis.plot(EPOCHS, values, "o-", label=name)
for axis, title in zip(axes, ("test error", "log loss"), strict=True):
    axis.set(xlabel="steps", ylabel=title, xscale="log", ylim=0)
    axis.set_xticks(EPOCHS, [f"{n:,}" for n in EPOCHS])
    axis.minorticks_off()
axes[0].legend()
plt.show()

# %%
# **Averaged over the posterior, networks have a much smaller log loss than the one at its mode. Ten particles of**
# `PSGHMC` **need the fewest steps,** `Blob`, **which has no momentum, the most. On so easy a problem, a model without a
# hidden layer does about as well.**
