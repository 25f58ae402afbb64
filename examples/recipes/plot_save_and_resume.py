"""
How do you save a fit and continue it later?
============================================

After this page you can save a long fit while it runs, continue it
after the process was stopped, and save and continue a finished model.

In the user guide: :doc:`/user_guide/reproducibility`.
"""

# %%
# Save while it runs
# ------------------
# `Checkpoint <sk_sgmcmc.callbacks.Checkpoint>` saves the model every
# minute, or as often as ``seconds`` says. The function interrupts the
# fit halfway, as Ctrl-C does.

import contextlib
import os
import tempfile

import joblib
import matplotlib.pyplot as plt
import numpy as np

from sk_sgmcmc import BayesianLDA, callbacks
from sk_sgmcmc.datasets import load_sotu
from sk_sgmcmc.inspection import TraceDisplay

data = load_sotu()
train, test = data.counts[::4], data.counts[1::16]


def interrupt(estimator, step):
    """Stand for Ctrl-C or a power cut."""
    if step == 500:
        raise KeyboardInterrupt


folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "fit.joblib")
save = callbacks.Checkpoint(path, seconds=0.1)
score = callbacks.HeldOutScore(test, every=20)
lda = BayesianLDA(10, n_iter=1000, random_state=0)
lda.set_params(callbacks=[score, save, interrupt])
with contextlib.suppress(KeyboardInterrupt):
    lda.fit(train, feature_names=data.feature_names)

# %%
# Continue
# --------
# Load the file, for example in a new process, and call ``resume``
# with the same data. It repeats the steps after the last save. The
# file contains no callbacks, so set them again.

resumed = callbacks.load_checkpoint(path)
print(f"saved after {resumed.n_iter_} of 1000 steps")
resumed = resumed.set_params(callbacks=score).resume(train)

# %%
# Compare with a whole fit
# ------------------------

whole = BayesianLDA(10, n_iter=1000, random_state=0, callbacks=score)
whole.fit(train, feature_names=data.feature_names)
draws = (m.samples_["components"] for m in (whole, resumed))
print("same draws:", np.array_equal(*draws))

# %%
# Save the finished model
# -----------------------
# Use joblib, as for any estimator of scikit-learn. Load only files
# that you trust: loading runs the code that a file names.

joblib.dump(resumed, path)
loaded = joblib.load(path)
print(f"{os.path.getsize(path) / 1e6:.1f} MB")
columns = ["name", "share", "low", "high"]
print(loaded.topic_info(train)[columns].head(4).round(3).to_string())

# %%
# Go on with a loaded model
# -------------------------
# Pass the same documents to ``partial_fit``, and the chains continue
# from their last state. Documents are not counted twice. The new draws
# replace the old ones. You can also pass documents that are new.

loaded.partial_fit(train)
print(f"{loaded.n_iter_} steps, {loaded.n_samples_seen_} documents")
folder.cleanup()

# %%
ax = TraceDisplay.from_estimator(whole, x="step", name="whole fit").ax_
ax.get_lines()[0].set(linewidth=6, alpha=0.4)
TraceDisplay.from_estimator(resumed, x="step", ax=ax, name="resumed")
plt.show()

# %%
# **A fit that was stopped and resumed has the draws of a fit that ran
# through, and you can continue either.**
