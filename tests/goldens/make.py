"""Write the goldens: ``python tests/goldens/make.py`` from the top of the repository.

`lda_0_1.joblib`, a model fitted by version 0.1, is written until that is released and never after: every later version
must read it. Write it with the oldest NumPy allowed, since 1.26 cannot read what 2 has pickled.
`draws.npz` holds the draws of tiny fits, and is written anew when draws change on purpose (say so in the change log).
"""

import json
import platform
from pathlib import Path

import joblib
import numpy as np

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda

FOLDER = Path(__file__).parent
FITS = {
    "default": {},
    "scir": {"sampler": "scir"},
    "scir_minibatch": {"batch_size": 10, "sampler__step_size": 0.5},
    "scir_fresh": {"batch_size": 10, "assignments": "fresh", "n_sweeps": (1, 2)},
    "sgrld": {"batch_size": 10, "assignments": "fresh", "sampler": "sgrld"},
    "gibbs": {"sampler": "gibbs"},
}


def counts():
    """Integers from arithmetic alone, so that no generator's stream is part of the golden."""
    d, w = np.mgrid[:30, :12]
    return (7 * d + 5 * w + d * w) % 11 * ((w < 6) == (d % 2 == 0)) // 3


def tiny_fit(params):
    model = BayesianLDA(2, n_iter=8, thin=2, n_chains=2, random_state=0)
    return model.set_params(**params).fit(counts())


def draws():
    return {f"{fit}.{name}": value for fit, params in FITS.items() for name, value in tiny_fit(params).samples_.items()}


def here():
    return {"system": platform.system(), "machine": platform.machine()}


def write():
    path = FOLDER / "lda_0_1.joblib"
    if not path.exists():
        data = make_lda(60, 12, 2, document_length=30, random_state=0)
        model = BayesianLDA(2, n_iter=30, thin=3, n_chains=2, random_state=0).fit(data.counts)
        joblib.dump(model, path)
        answers = {
            "transform": model.transform(counts()).tolist(),
            "score": model.score(counts()),
            "perplexity": model.perplexity(counts()),
            "components": model.components_.tolist(),
            "samples_shape": list(model.samples_["components"].shape),
            "top_words": {name: list(column) for name, column in model.top_words(3, interval=0.9).items()},
        }
        (FOLDER / "lda_0_1.json").write_text(json.dumps(answers, indent=1, default=lambda x: x.item()) + "\n")
    np.savez_compressed(FOLDER / "draws.npz", here=json.dumps(here()), **draws())


if __name__ == "__main__":
    write()
