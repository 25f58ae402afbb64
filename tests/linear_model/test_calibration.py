"""Models of dense rows on data drawn from themselves: the ranks of the true values among draws are uniform."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc import BayesianGaussian, BayesianLogisticRegression
from tests.calibration import N_DRAWS, p_values

N_REPLICATES = 200
# Full batches; draws far enough apart to be nearly independent.
RUN = {"n_iter": 100 + 40 * N_DRAWS, "burn_in": 100, "thin": 40}


def rank(draws, truth):
    return (draws < truth).sum(axis=0)


def logistic_ranks(seed, prior_scale=1.0):
    """Ranks of two coefficients and the intercept; the model is told ``prior_scale``, the truth has 1."""
    out = []
    for s in range(N_REPLICATES):
        rng = np.random.default_rng([seed, s])
        X = rng.standard_normal((40, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
        truth = rng.standard_normal(3)
        centred = X - X.mean(axis=0)  # where the prior takes the intercept
        y = (rng.random(40) < 1.0 / (1.0 + np.exp(-centred @ truth[:2] - truth[2]))).astype(int)
        y[:2] = [0, 1] if len(np.unique(y)) == 1 else y[:2]  # a classifier needs both; about once in a thousand
        model = BayesianLogisticRegression(
            prior_scale, intercept_prior_scale=prior_scale, random_state=s, batch_size=40, **RUN
        ).fit(X, y)
        coef, intercept = model.samples_["coef"][0, :, 0], model.samples_["intercept"][0, :, 0]
        draws = np.column_stack([coef, intercept + coef @ X.mean(axis=0)])
        out.append(rank(draws, truth))
    return np.array(out)


def gaussian_ranks(seed, degrees_of_freedom=5.0):
    """Ranks of the mean, the precision's diagonal and its determinant; the truth has 5 degrees of freedom."""
    out = []
    for s in range(N_REPLICATES):
        rng = np.random.default_rng([seed, s])
        precision = stats.wishart(5.0, np.eye(2) / 5.0).rvs(random_state=rng)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        mean = root @ rng.standard_normal(2)
        X = mean + rng.standard_normal((12, 2)) @ root.T
        model = BayesianGaussian(
            [0.0, 0.0], 1.0, degrees_of_freedom, np.eye(2), random_state=s, batch_size=12, **RUN
        ).fit(X)
        draws = model.samples_["precision"][0]
        drawn = [*model.samples_["mean"][0].T, draws[:, 0, 0], draws[:, 1, 1], np.linalg.det(draws)]
        true = [*mean, precision[0, 0], precision[1, 1], np.linalg.det(precision)]
        out.append(rank(np.column_stack(drawn), np.array(true)))
    return np.array(out)


@pytest.mark.parametrize("ranks, wrong", [(logistic_ranks, 0.3), (gaussian_ranks, 40.0)], ids=["logistic", "gaussian"])
def test_ranks_of_the_truth_are_uniform_and_under_a_wrong_prior_are_not(ranks, wrong, global_random_seed):
    assert p_values(ranks(global_random_seed)).min() > 1e-5
    assert p_values(ranks(global_random_seed, wrong)).min() < 1e-5
