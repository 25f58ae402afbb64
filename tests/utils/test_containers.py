import numpy as np
import pytest

import sk_sgmcmc
from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.utils._containers import refuse_containers


class _Single:
    """What AnnData looks like to NumPy: a sequence whose entries are of its own type."""

    shape = (30, 4)

    def __init__(self):
        self.X, self.layers = np.ones(self.shape), {"counts": np.ones(self.shape)}

    def __len__(self):
        return 30

    def __getitem__(self, key):
        return type(self)()


class AnnData(_Single):
    pass


AnnData.__module__ = "anndata._core.anndata"


class View(AnnData):
    """A class of another module that inherits."""


ESTIMATORS = {
    name: getattr(sk_sgmcmc, name)
    for name in sk_sgmcmc.__all__
    if isinstance(getattr(sk_sgmcmc, name), type) and hasattr(getattr(sk_sgmcmc, name), "fit")
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_anndata_is_refused_by_every_estimator(name):
    model = ESTIMATORS[name](random_state=0)
    assert ESTIMATORS
    for form in (AnnData(), View()):
        for method in ("fit", "partial_fit"):
            if hasattr(model, method):
                args = (np.arange(30) % 2,) if "Regress" in name or "Classifier" in name else ()
                with pytest.raises(TypeError, match=r'`X` must be a matrix.*adata\.layers\["counts"\]'):
                    getattr(model, method)(form, *args)
    if name == "DMRTopicModel":
        with pytest.raises(TypeError, match="`metadata` must be a matrix"):
            model.fit(np.ones((30, 4)), metadata=AnnData())
        with pytest.raises(TypeError, match="`X` must be a matrix"):
            model.set_params(metadata_columns=1).fit(AnnData())
    if name == "DPCategoricalMixture":
        with pytest.raises(TypeError, match="`X` must be a matrix"):
            model.set_params(likelihood="categorical").fit(AnnData())


def test_containers_that_unpack_without_end_are_refused():
    with pytest.raises(TypeError, match="whose entries are of the same type"):
        refuse_containers(_Single())
    with pytest.raises(TypeError, match="blocks"):
        CountBlocks(AnnData())
    for fine in ([[1.0]], np.ones((2, 2)), ["a"], "text", {"a": [1]}, None, 3.0, range(3), memoryview(b"ab")):
        refuse_containers(fine)
