"""Tokens made of counts: how many are let in."""

import sys

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.topic._counts import corpus as shards
from sk_sgmcmc.topic._counts import documents as _tokens
from sk_sgmcmc.topic._counts.documents import MatrixCorpus
from sk_sgmcmc.utils._memory import available_memory
from tests.common.compare import run_python
from tests.corpora import shard_of

GIB = 2.0**30


def corpus(count, shape=(2000, 200)):
    return MatrixCorpus.from_counts(np.full(shape, float(count)))


@pytest.mark.parametrize(("count", "n_chains", "needed"), [(500, 1, 2e8 * 6), (500, 4, 2e8 * 12), (499.5, 1, 2e8 * 30)])
def test_tokens_that_do_not_fit_in_memory_are_refused_with_their_bytes(monkeypatch, count, n_chains, needed):
    many = corpus(count)
    monkeypatch.setattr(_tokens, "available_memory", lambda: needed - 1)
    message = f"X holds 2e\\+08 tokens, its largest entry being .*at least {needed / GIB:.3g} GiB.*partial_fit"
    with pytest.raises(ValueError, match=message):
        _tokens.refuse_too_many_tokens(many, n_chains)
    monkeypatch.setattr(_tokens, "available_memory", lambda: needed)
    _tokens.refuse_too_many_tokens(many, n_chains)


def test_the_estimate_is_what_one_fit_takes_at_least():
    tokens = shard_of(corpus(500, (20, 20)))
    assert tokens.words.nbytes == 4 * tokens.words.size and tokens.weights.size == 0
    model = BayesianLDA(n_components=2, n_iter=2, n_chains=3, random_state=0).fit(np.full((20, 20), 50.0))
    each = [chain.data.documents.words.itemsize + len(model._chains) * chain.z.itemsize for chain in model._chains]
    assert each == [shards.WORD_BYTES + 3 * shards.TOPIC_BYTES] * 3


@pytest.mark.parametrize("largest", [1e7, 2.0**53])
def test_counts_repeated_so_often_are_refused_whatever_the_memory(monkeypatch, largest):
    monkeypatch.setattr(_tokens, "available_memory", lambda: np.inf)
    X = np.ones((3, 3))
    X[1] = largest
    with pytest.raises(ValueError, match=r"only 9 entries that are not zero, and hours. Scale its counts down"):
        BayesianLDA(2).fit(sparse.csr_array(X))


def test_counts_that_are_many_in_many_entries_pass(monkeypatch):
    monkeypatch.setattr(_tokens, "available_memory", lambda: np.inf)
    _tokens.refuse_too_many_tokens(corpus(999), 1)  # 400 million
    _tokens.refuse_too_many_tokens(corpus(10**6, (4, 5)), 1)  # 20 million: minutes


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process")
def test_a_limit_of_the_process_counts_as_memory():
    assert available_memory() > 2**20
    code = (
        "import resource; from sk_sgmcmc.utils._memory import available_memory, _taken\n"
        "limit = _taken(0) + 2**28\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "print(available_memory())"
    )
    assert 2**27 < float(run_python(code)) <= 2**28
