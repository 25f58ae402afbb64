"""The result of `sample`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from ..chains.convergence import MIN_KEPT
from ..metrics import effective_sample_size, split_r_hat
from ..samplers._base import Sampler
from ..utils._numbers import real_array
from ..utils._tables import as_table
from ..utils._typing import FloatArray, Table

_MOST = 1000  # entries of an array that `summary` lists


class SampleResult(Bunch):
    """Draws of `sample` and what made them; `sample` documents its attributes."""

    samples_: dict[str, FloatArray]
    sampler_: Sampler
    n_iter_: int
    diagnostics_: Table
    checks_: Table
    log_density_: FloatArray

    def summary(self, quantiles: Sequence[float] | FloatArray = (0.05, 0.5, 0.95)) -> Table:
        """Posterior mean, standard deviation and quantiles of each entry, and the convergence of its chains.

        Parameters
        ----------
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities.

        Returns
        -------
        table : pandas.DataFrame, or Bunch of columns if pandas is not installed
            Columns ``quantity``, ``mean``, ``sd``, one for each quantile such as ``q5``, split ``r_hat`` and ``ess``; a
            row for each of up to 1000 entries of each array.
        """
        quantiles = np.atleast_1d(real_array("quantiles", quantiles))
        if not np.all((quantiles >= 0) & (quantiles <= 1)):
            raise ValueError(f"quantiles={quantiles} must be probabilities, from 0 to 1.")
        names, parts = [], []
        for name, values in self.samples_.items():
            values = np.asarray(values, dtype=float)
            index = list(np.ndindex(values.shape[2:]))[:_MOST]
            names += [f"{name}[{', '.join(map(str, at))}]" if at else name for at in index]
            parts.append(values.reshape(*values.shape[:2], -1)[..., : len(index)])
        draws = np.concatenate(parts, axis=-1)
        pooled = draws.reshape(-1, draws.shape[-1])
        columns = {"quantity": np.array(names, dtype=object), "mean": pooled.mean(axis=0)}
        columns["sd"] = pooled.std(axis=0, ddof=1) if len(pooled) > 1 else np.full(len(names), np.nan)
        for q, values in zip(quantiles, np.quantile(pooled, quantiles, axis=0), strict=True):
            columns[f"q{100 * q:g}"] = values
        enough = self.sampler_._draws_in_time and draws.shape[1] >= MIN_KEPT
        columns["r_hat"] = split_r_hat(draws) if enough else np.full(len(names), np.nan)
        columns["ess"] = effective_sample_size(draws) if enough else np.full(len(names), np.nan)
        return as_table(columns)

    def __repr__(self):
        shapes = ", ".join(f"{name} {value.shape[2:]}" for name, value in self.samples_.items())
        n_chains, n_kept = next(iter(self.samples_.values())).shape[:2]
        chains = f"{n_chains} chain{'s' if n_chains > 1 else ''} of {n_kept} draws"
        n = int(np.sum(getattr(self.sampler_, "n_divergences_", 0)))
        diverged = f"; {n} divergence{'s' if n > 1 else ''}" if n else ""
        gradient = f"; gradient: {self.gradient_}" if "gradient_" in self else ""
        return f"<{type(self).__name__}: {chains} of {shapes}, by {type(self.sampler_).__name__}{diverged}{gradient}>"
