"""The short profile: a few hundred cases, the same in every run. `run` goes on for an hour."""

import collections
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from sk_sgmcmc import BayesianGaussian
from tests.fuzz import inputs, oracle, run, strategies

ROOT = Path(__file__).resolve().parents[2]
# No database and no clock: the cases are the same everywhere. Indices that are wrong may end the process where they
# are not refused, so that those are left to `run`, whose workers may die, and to tests of their own.
PROFILE = settings(
    max_examples=250, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@PROFILE
@given(case=strategies.cases(common=True, malformed=False))
def test_every_call_works_or_is_refused_and_changes_nothing_else(case):
    oracle.judge(case)
