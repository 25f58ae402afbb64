"""Compiling ahead of time."""

import importlib
import inspect

import pytest

import sk_sgmcmc
from sk_sgmcmc import warm_up
from sk_sgmcmc.kernels._jit import Kernel
from sk_sgmcmc.kernels.models.lda import whole_tokens
from sk_sgmcmc.topic._counts.sweeps import compile_sweeps


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


def test_what_only_large_data_need_is_compiled_as_well(monkeypatch):
    called = []
    monkeypatch.setattr(warm_up, "FIRST_FITS", {"BayesianLDA": lambda: called.append("fit")})
    monkeypatch.setattr(warm_up, "FOR_LARGE_DATA", {"BayesianLDA": lambda: called.append("sweeps")})
    assert [name for name, _ in warm_up.warm_up(["BayesianLDA"])] == ["BayesianLDA"]
    assert called == ["fit", "sweeps"]


def test_sweeps_of_any_size_are_compiled():
    module = vars(importlib.import_module(whole_tokens.__name__))
    of_module = [each for each in module.values() if isinstance(each, Kernel)]
    here = [kernel for kernel in of_module if kernel.__module__ == whole_tokens.__name__]
    assert set(map(id, whole_tokens.KERNELS)) == set(map(id, here)) and len(here) == 7
    compile_sweeps()
