"""What class weights do to the posterior's spread, and that they say so."""

import warnings

import numpy as np
import pytest

from sk_sgmcmc import BayesianLogisticRegression


def rare(n_rare=3, n=2000):
    """Rows of which the first few are of the second class."""
    return np.random.default_rng(0).normal(size=(n, 2)), np.array(["no", "yes"])[(np.arange(n) < n_rare).astype(int)]


def test_a_class_that_counts_as_far_more_rows_than_it_has_warns_once_and_is_told_to_narrow_intervals():
    X, y = rare()
    plain = BayesianLogisticRegression(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="class_weight") as caught:
        model = BayesianLogisticRegression(class_weight="balanced", random_state=0, n_chains=2).fit(X, y)
    told = [str(each.message) for each in caught if "class_weight" in str(each.message)]
    assert len(told) == 1
    counted = ("the 3 rows of class 'yes' 333 times", "as if there were 1000", "18.3 times too narrow")
    for words in ("class_weight='balanced'", *counted, "class_weight=None", "FixedThresholdClassifier"):
        assert words in told[0]
    ratio = plain.samples_["coef"].std(axis=(0, 1)) / model.samples_["coef"].std(axis=(0, 1))
    assert np.all(ratio > 5.0)  # that it says what is so


def test_a_weight_in_a_dict_warns_and_weights_of_up_to_two_do_not():
    X, y = rare(600)
    with pytest.warns(UserWarning, match="600 rows of class 'yes' 5 times"):
        BayesianLogisticRegression(class_weight={"no": 1.0, "yes": 5.0}, n_iter=20).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianLogisticRegression(class_weight="balanced", n_iter=20).fit(X, y)
        BayesianLogisticRegression(class_weight={"no": 0.5, "yes": 2.0}, n_iter=20).fit(X, y)


def test_a_stream_warns_by_the_rows_of_its_block():
    X, y = rare(600)
    model = BayesianLogisticRegression(class_weight={"no": 1.0, "yes": 5.0}, n_iter=20)
    with pytest.warns(UserWarning, match="600 rows"):
        model.partial_fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.partial_fit(X[600:], y[600:])  # none of that class


def test_classes_whose_rows_have_no_weight_are_named():
    X, y = rare(600)
    weight = (y == "no").astype(float)
    for weights in ({"class_weight": {"no": 1.0, "yes": 0.0}}, {}):
        model = BayesianLogisticRegression(n_iter=20, **weights)
        with pytest.raises(ValueError, match=r"All rows of the classes \['yes'\] have weight 0.*only one class"):
            model.fit(X, y, sample_weight=None if weights else weight)
    y = np.arange(len(X)) % 3
    with pytest.warns(UserWarning, match=r"All rows of the classes \[2\] have weight 0: nothing but the prior"):
        BayesianLogisticRegression(class_weight={2: 0.0}, n_iter=20).fit(X, y)
