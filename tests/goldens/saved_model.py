"""Write the saved model: ``python -m tests.goldens.saved_model`` from the root.

`lda_0_1.joblib`, a model fitted by version 0.1, is written until that is released and never after: every later version
must read it. Write it with the oldest NumPy allowed, since 1.26 cannot read what 2 has pickled.
"""

import json
from pathlib import Path

import joblib

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from tests.goldens.cases import counts

FOLDER = Path(__file__).parent


def write(name="lda_0_1"):
    data = make_lda(60, 12, 2, document_length=30, random_state=0)
    model = BayesianLDA(2, n_iter=30, thin=3, n_chains=2, random_state=0).fit(data.counts)
    joblib.dump(model, FOLDER / f"{name}.joblib")
    answers = {
        "transform": model.transform(counts()).tolist(),
        "score": model.score(counts()),
        "perplexity": model.perplexity(counts()),
        "components": model.components_.tolist(),
        "samples_shape": list(model.samples_["components"].shape),
        "top_words": {name: list(column) for name, column in model.top_words(3, interval=0.9).items()},
    }
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(answers, indent=1, default=lambda x: x.item()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
