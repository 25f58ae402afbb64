"""What workers of `tests.common.clusters` have from the start: imports, and the kernels that walk over shards."""

import os
import warnings

from tests import conftest  # noqa: F401  (names the folder of compiled kernels)
from tests.common import compile_once

if os.environ["NUMBA_CACHE_DIR"]:  # else kernels lie next to their sources
    compile_once.install(os.environ["NUMBA_CACHE_DIR"])

import numpy as np
from scipy import sparse

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel
from sk_sgmcmc.datasets import CountBlocks

counts = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (12, 8)))
blocks = CountBlocks([counts[:6], counts[6:]], shard_tokens=20)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    BayesianLDA(2, n_iter=4, random_state=0).fit(blocks)
    GammaProcessTopicModel(2, n_iter=4, random_state=0).fit(blocks)
    DMRTopicModel(2, n_iter=4, random_state=0).fit(blocks, metadata=np.arange(12.0)[:, None])
