"""
What do particles do for topics?
================================

Latent Dirichlet allocation with 20 topics is fitted to a thousand docstrings of scientific Python. Topics move on the
simplex (`SCIR`), on flat space (`SGHMC`), or there as ten particles (`Blob`, `PSGHMC`). How does held-out perplexity
fall with the number of passes?

In the user guide: :doc:`/user_guide/flat_space`.
"""

# %%
# The documents
# -------------

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import load_docstrings
from sk_sgmcmc.samplers import PSGHMC, SCIR, SGHMC, Blob

counts = load_docstrings().data.tocsr()[:1000]
held_out = np.arange(counts.shape[0]) % 5 == 0
train, test = counts[~held_out], counts[held_out]
print(f"{train.shape[0]} documents to fit, {test.shape[0]} held out, {counts.shape[1]} words")

# %%
# Fitting
# -------
# Every particle keeps its own assignments, so ten of them cost as much as ten chains. All methods begin with collapsed
# sweeps, the first third of the 60 passes. `SCIR` and `SGHMC` keep draws of the second half; the draws of the others
# are their particles.
#
# Sixty passes are too few for chains to converge, and ten particles too few for intervals. ``fit`` warns of both. Here
# the same short budget is the point of the comparison, so the page switches the warnings off.

warnings.filterwarnings("ignore", category=ConvergenceWarning)

SAMPLERS = {
    "SCIR": SCIR(),
    "SGHMC": SGHMC(),
    "Blob, 10 particles": Blob(n_particles=10),
    "PSGHMC-det, 10 particles": PSGHMC("det", n_particles=10),
    "PSGHMC-fgh, 10 particles": PSGHMC("fgh", n_particles=10),
}

curves, averaged = {}, {}
for name, sampler in SAMPLERS.items():
    trace = HeldOutScore(test, every=5)
    began = time.perf_counter()
    model = BayesianLDA(20, sampler=sampler, n_iter=60, random_state=0, callbacks=trace).fit(train)
    spent = time.perf_counter() - began
    curves[name] = np.exp(-np.array(model.trace_["score"]))
    averaged[name] = model.perplexity(test)
    print(f"{name:26s} averaged over draws: perplexity {averaged[name]:7.1f}; {spent:.1f} s with the trace")
for name, value in averaged.items():
    print(f"{name:26s} {100 * (value / averaged['SCIR'] - 1):+.1f}% from SCIR")

# %%
# Perplexity by passes
# --------------------
# The trace scores the current state: one matrix of topics, or the average over particles.

figure, axis = plt.subplots()
for name, values in curves.items():
    dashes = "--" if "fgh" in name else "-"  # the two kinds of PSGHMC nearly coincide
    axis.plot(trace.every * np.arange(1, len(values) + 1), values, dashes, label=name)
axis.set(xlabel="passes", ylabel="held-out perplexity of the current state")
axis.legend()
plt.show()

# %%
# **Ten particles predict better than one chain, because each has found its own assignments and predictions are averaged
# over them. They cost several times as much, and which flow moves them hardly matters.**

# %%
# How many particles?
# -------------------
#
# ``examples/reproduce/lda_particles.py`` is the full study, with the settings of Liu, Zhuo and Zhu (2019, figure 4): 30
# topics, a normal prior on flat space, fresh assignments, every tenth token of the held-out documents hidden.
# Perplexity after 580 iterations, on the first split of the documents, by the number of particles or of SGHMC chains:
#
# ========== ===== ===== ===== ===== ===== =====
# particles      1     5    10    20    50   100
# ========== ===== ===== ===== ===== ===== =====
# Blob       873.3 819.6 806.2 803.0 799.2 799.9
# SGHMC      786.5 735.4 726.6 725.7 724.6 726.4
# PSGHMC-det 771.3 746.4 740.7 733.2 731.9 732.4
# PSGHMC-fgh 771.3 745.9 739.7 731.0 731.1 732.3
# ========== ===== ===== ===== ===== ===== =====
#
# One particle does worse than ten, and a hundred do no better than twenty. Over ten splits, with 20 particles, both
# kinds of `PSGHMC` are ahead of `SGHMC` by 67 after 20 iterations and by 20 after 100, and level with it at the end
# (-0.2 and +0.1, each ± 2); `Blob`, which has no momentum, ends 79 behind.
