"""What do control variates, preconditioning and cyclical steps gain on covertype?

    python examples/reproduce/control_variates.py

Logistic regression of class 2 against the rest. Coordinates are the coefficients of standardised columns, all on one
scale, or whitened by the Hessian at the mode; minibatch gradients estimate the whole likelihood, its remainder beyond
first order at the mode (the usual control variate, if nothing is whitened), or beyond second order.

Printed for each: the variance of a gradient of 500 rows at draws of the posterior, always in whitened coordinates, mean
and largest over coordinates (there, a step h adds about h V / 2 to a variance of 1). Then chains with the step size
chosen by "auto", all with the same time limit: effective draws (smallest over coordinates) in total and per second of
processor time, and the spread in whitened coordinates, which is 1 for the exact posterior.
"""

import argparse
import time

import numpy as np

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.kernels.models.linear.design import CONTROL, FIRST_ORDER
from sk_sgmcmc.linear_model import _base
from sk_sgmcmc.linear_model._design import Design
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import SGHMC, SGLD
from sk_sgmcmc.samplers.schedules import CyclicalStep


class OneScale(Design):
    """Coordinates that are the coefficients of standardised columns, over their smallest posterior deviation."""

    def __init__(self, *args):
        super().__init__(*args)
        self.whitened = self.whitener
        unit = 1.0 / np.sqrt(np.linalg.eigvalsh(np.linalg.inv(self.whitener @ self.whitener.T)).max())
        precision = np.diag(args[4].precision)
        pull = np.linalg.solve(self.whitener.T, self._linear)
        self.whitener = unit * np.eye(self.mode.size)
        self._linear = unit * pull
        back = self._back()
        self._quadratic = unit**2 * self._blocks(back.T, self._blocks(back.T, precision).T)

    def params(self, is_sparse, with_value):
        """With first-order control variates: the Hessian is not the identity here."""
        params = super().params(is_sparse, with_value)
        params[CONTROL] = FIRST_ORDER * self.control
        return params


def load(smoke):
    if smoke:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2000, 4)) @ np.triu(np.ones((4, 4)))
        return X, (rng.random(2000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    from sk_sgmcmc.datasets import fetch_table

    data = fetch_table("covertype")
    return data.data[:, data.data.std(axis=0) > 0], (data.target == 2).astype(int)


DESIGNS = {}  # of the single data set, so that each mode is found once


def fit(X, y, whitened, control, sampler, n_batch, n_iter, seed=0):
    """A fitted model in the requested coordinates."""

    def design(*args):
        if (whitened, control) not in DESIGNS:
            DESIGNS[whitened, control] = (Design if whitened else OneScale)(*args)
        return DESIGNS[whitened, control]

    design.refuse_metric = Design.refuse_metric
    model = BayesianLogisticRegression(
        sampler=sampler, control_variates=control, batch_size=n_batch, n_iter=n_iter, thin=max(1, n_iter // 4000),
        burn_in=0.2, random_state=seed,
    )  # fmt: skip
    whole = _base.Design
    _base.Design = design
    try:
        return model.fit(X, y)
    finally:
        _base.Design = whole


class Whitened:
    """Gradients in whitened coordinates of a model that may use others."""

    def __init__(self, model):
        chain = model._chains[0]
        self.dense, design = chain.data[0], model._design
        self.gradient = DenseGradient(self.dense, chain.theta.shape)
        whitened = getattr(design, "whitened", design.whitener)
        self.change = np.linalg.solve(design.whitener, whitened)

    def __call__(self, phi, rows=slice(None)):
        value, slope = self.gradient(self.change @ phi, rows)
        return value, self.change.T @ slope


def gradient_variances(model, n_batch, n_points, n_probes):
    """Mean and largest variance of an entry of a minibatch gradient at standard normal points."""
    gradient, rng = Whitened(model), np.random.default_rng(0)
    mean, largest = [], []
    for _ in range(n_points):
        phi = rng.standard_normal(model._design.mode.size)
        some = [gradient(phi, rng.integers(0, gradient.dense.n_rows, n_batch))[1] for _ in range(n_probes)]
        variance = np.var(some, axis=0, ddof=1)
        mean.append(variance.mean())
        largest.append(variance.max())
    return np.mean(mean), np.mean(largest)


def chain_figures(X, y, whitened, control, sampler, n_batch, seconds):
    """Effective draws, processor seconds, steps and spreads of a chain that runs for about ``seconds``."""
    short = 500
    warm = fit(X, y, whitened, control, sampler, n_batch, short)
    chain = warm._chains[0]
    began = time.process_time()
    while time.process_time() - began < 0.3:  # the time of a step
        chain.plan.n_draws, chain.step = 10**9, 0
        chain.kept, chain.kept_steps, chain.n_kept = {"theta": np.empty((short, *chain.theta.shape))}, [], 0
        chain.run(short)
        made = getattr(chain, "made", 0) + short
        chain.made = made
    a_step = (time.process_time() - began) / chain.made
    n_iter = int(np.clip(seconds / a_step, 1000, 10**6))
    model = fit(X, y, whitened, control, sampler, n_batch, n_iter)
    theta = np.stack([c.draws()["theta"][:, :, 0] for c in model._chains])
    design = model._design
    if not whitened:
        theta = theta @ np.linalg.solve(design.whitened, design.whitener).T
    spread = theta.std(axis=(0, 1))
    h = model.sampler_.step_size_
    return effective_sample_size(theta).min(), n_iter * a_step, n_iter, spread, float(np.max(h(np.arange(1000))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few seconds: small synthetic rows")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each chain")
    parser.add_argument("--batch", type=int, default=500)
    args = parser.parse_args()
    X, y = load(args.smoke)
    seconds, n_points, n_probes = (0.2, 1, 20) if args.smoke else (args.seconds, 3, 100)
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, minibatches of {args.batch}")
    print(f"{'coordinates':12s}{'control':9s}{'variance: mean':>15s}{'largest':>10s}")
    for whitened in (False, True):
        for control in (False, True):
            model = fit(X, y, whitened, control, SGLD(1e-6), args.batch, 10)
            mean, largest = gradient_variances(model, args.batch, n_points, n_probes)
            order = ("second" if whitened else "first") if control else "none"
            print(f"{'whitened' if whitened else 'one scale':12s}{order:9s}{mean:15.3g}{largest:10.3g}", flush=True)
    largest_step = fit(X, y, True, True, SGLD(), args.batch, 10).sampler_.step_size_(0)
    samplers = {
        "SGLD": SGLD(),
        "SGLD, cyclical": SGLD(CyclicalStep(2.0 * float(largest_step), 1000)),
        "SGHMC": SGHMC(),
    }
    print(f"{'coordinates':12s}{'control':9s}{'sampler':16s}{'step':>9s}{'steps':>9s}{'ESS':>8s}{'seconds':>9s}"
          f"{'ESS/s':>8s}  spread")  # fmt: skip
    runs = [(w, c, "SGLD") for w in (False, True) for c in (False, True)]
    runs += [(True, True, "SGLD, cyclical"), (False, False, "SGHMC"), (True, False, "SGHMC"), (True, True, "SGHMC")]
    for whitened, control, name in runs:
        ess, spent, n_iter, spread, h = chain_figures(X, y, whitened, control, samplers[name], args.batch, seconds)
        order = ("second" if whitened else "first") if control else "none"
        print(f"{'whitened' if whitened else 'one scale':12s}{order:9s}{name:16s}{h:9.3g}{n_iter:9d}{ess:8.0f}"
              f"{spent:9.1f}{ess / spent:8.1f}  {spread.min():.3f} to {spread.max():.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
