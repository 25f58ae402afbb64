"""How many lines does a model take here, and how many in PyMC?

    python examples/reproduce/lines_beside_pymc.py          # counts lines, and runs ours

Models are written once for `sample` and once for PyMC, each as its users would; imports and data are not counted, nor
are blank lines. Ours are run, PyMC's are text: PyMC need not be installed. ``--show`` prints both.
"""

import argparse
import time
import warnings

import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.targets import Positive, Simplex

OURS = {
    "eight schools": """
def schools(mu, tau, eta):
    log_prior = -0.5 * (mu / 5) ** 2 - np.log(1 + (tau / 5) ** 2) - 0.5 * (eta**2).sum()
    return log_prior - 0.5 * (((effect - mu - tau * eta) / error) ** 2).sum()
result = sample(schools, parameters={"mu": (), "tau": Positive(), "eta": (8,)}, n_chains=4)
""",
    "hierarchical logistic": """
def hierarchical(mu, tau, z, slope, outcome, group, x):
    eta = mu + tau * z[group] + slope * x
    log_prior = -0.5 * (mu**2 + tau**2 + slope**2 + (z**2).sum())
    return log_prior + (outcome * eta - np.log1p(np.exp(eta))).sum()
parameters = {"mu": (), "tau": Positive(), "z": (6,), "slope": ()}
result = sample(hierarchical, parameters=parameters, data={"outcome": outcome, "group": group, "x": x}, n_chains=4)
""",
    "Poisson regression": """
def poisson(b, X, count):
    eta = X @ b
    return -0.5 * (b**2).sum() / 100 + (count * eta - np.exp(eta)).sum()
result = sample(poisson, parameters={"b": (4,)}, data={"X": X, "count": count}, n_chains=4)
""",
    "mixture": """
def mixture(low, gap, sd, p, y):
    log_prior = -0.5 * (low**2 + gap**2) / 25 - 0.5 * (np.log(sd) ** 2).sum() - np.log(sd).sum()
    error = (y[:, None] - np.array([low, low + gap])) / sd
    return log_prior + np.log((p / sd * np.exp(-0.5 * error**2)).sum(axis=1)).sum()
parameters = {"low": (), "gap": Positive(), "sd": Positive(2), "p": Simplex(2)}
result = sample(mixture, parameters=parameters, data={"y": numbers}, n_chains=4)
""",
    "funnel": """
def funnel(v, z):
    return -0.5 * (v**2 / 9 + (z**2).sum() + (np.exp(v) * z**2).sum())
result = sample(funnel, parameters={"v": (), "z": (9,)}, n_chains=4)
""",
    "correlated Gaussian": """
def gaussian(x, gradient):
    gradient.x[:] = -precision @ x
    return -0.5 * x @ (precision @ x)
result = sample(gaussian, parameters={"x": (100,)}, n_chains=4)
""",
}

PYMC = {
    "eight schools": """
with pm.Model():
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    eta = pm.Normal("eta", shape=8)
    pm.Normal("y", mu + tau * eta, error, observed=effect)
    result = pm.sample(chains=4)
""",
    "hierarchical logistic": """
with pm.Model():
    mu = pm.Normal("mu")
    tau = pm.HalfNormal("tau")
    z = pm.Normal("z", shape=6)
    slope = pm.Normal("slope")
    pm.Bernoulli("y", logit_p=mu + tau * z[group] + slope * x, observed=outcome)
    result = pm.sample(chains=4)
""",
    "Poisson regression": """
with pm.Model():
    b = pm.Normal("b", 0, 10, shape=4)
    pm.Poisson("y", pm.math.exp(X @ b), observed=count)
    result = pm.sample(chains=4)
""",
    "mixture": """
with pm.Model():
    low = pm.Normal("low", 0, 5)
    gap = pm.HalfNormal("gap", 5)
    sd = pm.LogNormal("sd", shape=2)
    p = pm.Dirichlet("p", np.ones(2))
    pm.NormalMixture("y", p, pm.math.stack([low, low + gap]), sd, observed=numbers)
    result = pm.sample(chains=4)
""",
    "funnel": """
with pm.Model():
    v = pm.Normal("v", 0, 3)
    z = pm.Normal("z", shape=9)
    pm.Normal("y", pm.math.exp(0.5 * v) * z, observed=np.zeros(9))
    result = pm.sample(chains=4)
""",
    "correlated Gaussian": """
with pm.Model():
    pm.MvNormal("x", np.zeros(100), tau=precision)
    result = pm.sample(chains=4)
""",
}


def data():
    """What the models read."""
    rng = np.random.default_rng(0)
    group, x, X = rng.integers(0, 6, 300), rng.standard_normal(300), rng.standard_normal((300, 4))
    places = np.arange(100)
    return {
        "effect": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
        "error": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
        "group": group,
        "x": x,
        "outcome": rng.random(300) < 1.0 / (1.0 + np.exp(-rng.standard_normal(6)[group] - 0.7 * x)),
        "X": X,
        "count": rng.poisson(np.exp(X @ [0.5, 0.3, -0.2, 0.1])),
        "numbers": np.concatenate([rng.normal(-1.5, 0.8, 100), rng.normal(1.5, 1.0, 200)]),
        "precision": np.linalg.inv(0.9 ** np.abs(np.subtract.outer(places, places))),
    }


def n_lines(text):
    """Lines that are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def main():
    """Count, run ours, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="run one model only")
    parser.add_argument("--show", action="store_true", help="print the models as well")
    args = parser.parse_args()
    names = {"np": np, "sample": sample, "Positive": Positive, "Simplex": Simplex, **data()}
    print(f"{'model':24}{'lines here':>12}{'PyMC':>8}{'seconds':>10}{'R-hat':>8}")
    for name, text in OURS.items():
        ran = ""
        if not args.smoke or name == "funnel":
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # R-hat is printed
                exec(text, names)
            seconds, table = time.perf_counter() - began, names["result"].summary()
            ran = f"{seconds:10.1f}{np.max(table['r_hat']):8.3f}"
        print(f"{name:24}{n_lines(text):12}{n_lines(PYMC[name]):8}{ran}", flush=True)
        if args.show:
            print(text, PYMC[name], sep="")


if __name__ == "__main__":
    main()
