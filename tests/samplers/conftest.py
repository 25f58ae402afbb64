"""Law tests judge their draws themselves."""

import pytest

from sk_sgmcmc.chains.convergence import Diagnosis


@pytest.fixture(autouse=True)
def _no_diagnostics(monkeypatch):
    """`sample` without its check of convergence, which sorts every coordinate and takes longer than the chains here."""
    monkeypatch.setattr("sk_sgmcmc.targets._sample._diagnosis", lambda *args: Diagnosis({}))
    monkeypatch.setattr("sk_sgmcmc.targets._sample.checks_of_draws", lambda *args: [])
