"""Constructors and docstrings that are made from the declarations of parameters."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import typing
from dataclasses import field
from fractions import Fraction

import pytest
from sklearn.base import BaseEstimator, clone

import sk_sgmcmc
from sk_sgmcmc.base import BaseSGMCMC
from sk_sgmcmc.utils._parameters import keyword_parameters, positional_parameters
from tests.conftest import importorskip


@keyword_parameters
class Base(BaseEstimator):
    """For developers.

    Parameters
    ----------
    n_iter : int, default=3
        Steps.

    Attributes
    ----------
    mean_, std_ : float
        Moments.

    Other Parameters
    ----------------
    thin : int, default=1
        Every so many.
    seed : int
        None is one that differs each time.
    """

    n_iter: int = 3
    thin: Fraction = 1
    seed: int | None = None

    mean_: float = field(init=False)

    not_a_parameter = 5


@keyword_parameters
class Model(Base):
    """Do it.

    Parameters
    ----------
    k : int, default=2
        Topics.

    Attributes
    ----------
    mean_ : int
        Only this.

    Other Parameters
    ----------------
    thin : int, default=7
        Another default.
    alpha : float
        Prior.

    Notes
    -----
    More.
    """

    k: int = field(default=2, kw_only=False)
    alpha: float = 1.0
    thin: Fraction = 7


COMPLETED = """Do it.

Parameters
----------
k : int, default=2
    Topics.
n_iter : int, default=3
    Steps.

Attributes
----------
mean_ : int
    Only this.
std_ : float
    Moments.

Other Parameters
----------------
alpha : float
    Prior.
thin : int, default=7
    Another default.
seed : int
    None is one that differs each time.

Notes
-----
More.
"""


def test_own_parameters_come_first_and_those_declared_again_keep_their_place():
    parameters = inspect.signature(Model).parameters
    assert list(parameters) == ["k", "alpha", "n_iter", "thin", "seed"]
    assert [each.default for each in parameters.values()] == [2, 1.0, 3, 7, None]
    assert [name for name, each in parameters.items() if each.kind is not each.KEYWORD_ONLY] == ["k"]


def test_arguments_are_stored_and_nothing_else():
    assert vars(Model(5, seed=4)) == {"k": 5, "alpha": 1.0, "n_iter": 3, "thin": 7, "seed": 4}
    model = clone(Model(5)).set_params(thin=2)
    assert repr(pickle.loads(pickle.dumps(model))) == "Model(k=5, thin=2)"
    with pytest.raises(TypeError, match=r"Model.__init__\(\) got an unexpected keyword argument 'topics'"):
        Model(topics=3)
    with pytest.raises(TypeError, match=r"Model.__init__\(\) takes from 1 to 2 positional arguments"):
        Model(3, 4)


def test_the_class_is_as_with_a_constructor_written_by_hand():
    assert not hasattr(Model, "alpha") and not hasattr(Model, "mean_")
    assert Model.not_a_parameter == 5
    assert Base.__annotations__ == {"mean_": "float"} and "__annotations__" not in vars(Model)


def test_types_can_be_read_where_a_base_lies_in_another_module():
    hints = typing.get_type_hints(Model.__init__)
    assert hints["thin"] is Fraction and hints["return"] is type(None)
    assert inspect.signature(Model).parameters["seed"].annotation == "int | None"


def test_a_docstring_takes_the_entries_that_it_lacks():
    assert Model.__doc__ == COMPLETED


def test_a_subclass_may_have_a_constructor_of_its_own():
    @keyword_parameters
    class Own(Model):
        """Describe it."""

        def __init__(self, alpha, seed=1):
            super().__init__(3, alpha=alpha, seed=seed)

    class Plain(Model):
        def __init__(self, more=0, **params):
            super().__init__(**params)
            self.more = more

    assert Own(2.0).get_params() == {"alpha": 2.0, "seed": 1} and Own(2.0).k == 3
    assert "alpha : float" in Own.__doc__ and "n_iter" not in Own.__doc__
    assert Plain(1, k=9).k == 9


def test_positional_parameters_follow_those_of_the_bases():
    @positional_parameters
    class Step:
        size: float
        scale: float = 1.0

    @positional_parameters
    class Decay(Step):
        power: float = field(default=0.5)
        name: str = field(default="", kw_only=True)

    assert str(inspect.signature(Decay)) == (
        "(size: 'float', scale: 'float' = 1.0, power: 'float' = 0.5, *, name: 'str' = '') -> None"
    )
    assert vars(Decay(3, 2, 1)) == {"size": 3, "scale": 2, "power": 1, "name": ""}
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
        Decay()
    with pytest.raises(ValueError, match="non-default"):

        @positional_parameters
        class Late(Step):
            required: int


def test_estimators_fitted_to_different_data_differ_to_dask():
    tokenize = importorskip("dask.base").tokenize
    assert not dataclasses.is_dataclass(BaseSGMCMC)
    models = [sk_sgmcmc.BayesianGaussian(random_state=0) for _ in range(2)]
    assert tokenize(models[0]) == tokenize(models[1])
    models[1].mean_ = 1.0
    assert tokenize(models[0]) != tokenize(models[1])
