"""Law tests judge their draws themselves."""

import pytest


@pytest.fixture(autouse=True)
def _no_diagnostics(monkeypatch):
    """`sample` without its check of convergence, which sorts every coordinate and takes longer than the chains here."""
    monkeypatch.setattr("sk_sgmcmc.targets._sample.warn_if_not_converged", lambda *args: None)
