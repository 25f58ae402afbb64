"""Compiling ahead of time."""

import inspect

import pytest

import sk_sgmcmc
from sk_sgmcmc import warm_up


def test_it_prints_the_seconds_of_the_estimators_named(capsys):
    warm_up.main(["BayesianGaussian"])
    _, line, total = capsys.readouterr().out.splitlines()
    seconds, unit, name = line.split()
    assert float(seconds) >= 0 and (unit, name) == ("s", "BayesianGaussian")
    assert total.split()[1:] == ["s", "in", "all"]


def test_every_estimator_can_be_named():
    public = {name for name in sk_sgmcmc.__all__ if callable(getattr(sk_sgmcmc, name))}
    assert public == set(warm_up.FIRST_FITS)


def test_a_name_that_is_none_is_refused_with_the_list(capsys):
    with pytest.raises(SystemExit):
        warm_up.main(["BayesianLDAA"])
    assert "BayesianLDAA is not one of BayesianLDA, " in capsys.readouterr().err


def test_the_command_prints_its_own_docstring_for_help(capsys):
    with pytest.raises(SystemExit):
        warm_up.main(["--help"])
    assert inspect.getdoc(warm_up).splitlines()[0] in capsys.readouterr().out
