"""Dask arrays are answered lazily, block by block, or refused; chains run on a Dask cluster."""

import contextlib
import inspect
import pickle
import threading
import warnings

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from sk_sgmcmc import DMRTopicModel, SphericalAdmixtureModel
from sk_sgmcmc.datasets import make_lda
from tests.common.compare import assert_same_draws
from tests.common.instances import DEFAULTS, ESTIMATORS
from tests.conftest import importorskip

dask = importorskip("dask")
cloudpickle = importorskip("cloudpickle")
da = importorskip("dask.array")
distributed = importorskip("distributed")

# Cases without metadata are about what all estimators share.
pytestmark = pytest.mark.filterwarnings("ignore:No metadata were given", "ignore:invalid value encountered in cast")

BY_ROWS = "transform score_samples predict predict_proba predict_log_proba decision_function".split()
# What models that take corpora in blocks do with Dask arrays.
IN_BLOCKS = {"fit", "fit_transform", "partial_fit", "resume", "score", "perplexity"}
# One of each class, and each kind of rows.
CASES = [case for case in ESTIMATORS if case in DEFAULTS or case.id in {"dmr-plain", "dp-categorical", "dp-bernoulli"}]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
each_class = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)


class Blocks:
    """A Dask array whose blocks count how often they are loaded.

    Parameters
    ----------
    X : ndarray or sparse array
    lengths : tuple of int
        Rows of the blocks.
    known : bool, default=True
        Whether the array knows how many rows its blocks have.
    """

    def __init__(self, X, lengths, known=True):
        self.loaded = []
        self.parts = [X[stop - n : stop] for n, stop in zip(lengths, np.cumsum(lengths), strict=True)]
        meta = X[:0] if sparse.issparse(X) else np.empty((0, 0), X.dtype)
        blocks = [
            da.from_delayed(
                dask.delayed(self.load, pure=False)(i), (n if known else np.nan, X.shape[1]), X.dtype, meta=meta
            )
            for i, n in enumerate(lengths)
        ]
        self.array = da.concatenate(blocks, allow_unknown_chunksizes=not known)

    def load(self, i):
        """One block."""
        self.loaded.append(i)
        return self.parts[i]


def in_blocks(X, rows=40):
    """A Dask array of CSR or dense blocks of up to so many rows."""
    return Blocks(X, [len(part) for part in np.array_split(np.arange(X.shape[0]), range(rows, X.shape[0], rows))])


def answers_of(case):
    """A fitted model, and the names of its methods that answer row by row."""
    model = case.fitted()
    return model, [name for name in BY_ROWS if hasattr(model, name)]


# ------------------------------------------------------------------------------------------------------- lazy answers


@each
def test_answers_are_lazy_and_equal_those_in_memory(case):
    model, methods = answers_of(case)
    X = case.X()
    assert methods
    for name in methods:
        expected = getattr(model, name)(X)
        for lengths in ((40, 1, 36, 13), (90,)):
            blocks = Blocks(X, lengths)
            lazy = getattr(model, name)(blocks.array)
            assert isinstance(lazy, da.Array) and not blocks.loaded
            assert (lazy.shape, lazy.dtype, lazy.chunks[0]) == (expected.shape, expected.dtype, lengths)
            assert type(lazy._meta) is np.ndarray and lazy._meta.dtype == expected.dtype
            assert lazy._meta.ndim == expected.ndim
            np.testing.assert_array_equal(lazy.compute(), expected)
            assert sorted(blocks.loaded) == list(range(len(lengths)))


@each
def test_numbers_of_rows_may_be_unknown_and_blocks_empty(case):
    model, methods = answers_of(case)
    X = case.X()
    for name in methods:
        lazy = getattr(model, name)(Blocks(X, (40, 0, 50), known=False).array)
        assert np.isnan(lazy.shape[0])
        np.testing.assert_array_equal(lazy.compute(), getattr(model, name)(X))


@each
def test_dense_blocks_and_single_precision(case):
    model, methods = answers_of(case)
    X = case.X().astype(np.float32)
    X = X.toarray() if sparse.issparse(X) else X
    for name in methods:
        expected, lazy = getattr(model, name)(X), getattr(model, name)(da.from_array(X, chunks=(31, 2)))
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(), expected)


@each
def test_one_row_of_a_lazy_answer_loads_one_block(case):
    model, methods = answers_of(case)
    blocks = in_blocks(case.X())
    lazy = getattr(model, methods[0])(blocks.array)
    np.testing.assert_array_equal(lazy[50].compute(), getattr(model, methods[0])(case.X())[50])
    assert blocks.loaded == [1]


def test_arguments_reach_the_blocks():
    X = make_lda(30, n_features=20, n_components=2, random_state=0).counts
    model = SphericalAdmixtureModel(n_components=2, n_iter=10, random_state=0).fit(X)
    few = model.score_samples(in_blocks(X, 11).array, n_temperatures=20).compute()
    np.testing.assert_array_equal(few, model.score_samples(X, n_temperatures=20))
    with pytest.raises(TypeError, match=r"n_temperatures\.compute\(\)"):
        model.score_samples(in_blocks(X).array, n_temperatures=da.ones(1))


def test_labels_keep_their_type():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    X, y = case.data_of()
    model = case.new().fit(X, np.array(["no", "perhaps"])[y])
    lazy = model.predict(da.from_array(X, chunks=(40, -1)))
    assert lazy.dtype == "<U7"
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))


@each_class
def test_a_lazy_answer_is_that_of_the_model_at_the_call(case):
    model, methods = answers_of(case)
    expected, lazy = [], []
    for name in methods:
        expected.append(getattr(model, name)(case.X()))
        lazy.append(getattr(model, name)(in_blocks(case.X()).array))
    model.set_params(random_state=5)
    (model.partial_fit if hasattr(model, "partial_fit") else model.fit)(*[part[:45] for part in case.data_of()])
    for before, later in zip(expected, lazy, strict=True):
        np.testing.assert_array_equal(later.compute(), before)


@each_class
def test_the_model_is_one_key_of_the_graph_without_what_answers_do_not_need(case):
    model, methods = answers_of(case)
    model.ballast_ = np.random.default_rng(0).bytes(10**6)
    for name in model._unused_by_predictions:
        setattr(model, name, np.random.default_rng(1).bytes(10**6))
    for name in methods:
        lazy = getattr(model, name)(in_blocks(case.X(), rows=9).array)
        (graph,) = dask.optimize(lazy)
        sizes = [len(cloudpickle.dumps(task)) for task in dict(graph.__dask_graph__()).values()]
        assert sum(size > 10**6 for size in sizes) == 1
        assert sum(sizes) < 1.5 * 10**6


def test_topics_travel_without_their_draws():
    case = next(case for case in DEFAULTS if case.id == "lda")
    model = case.fitted()
    (task,) = [
        task.compute() if hasattr(task, "compute") else task
        for key, task in dict(model.transform(in_blocks(case.X()).array).__dask_graph__()).items()
        if str(key).startswith(type(model).__name__)
    ]
    assert len(pickle.dumps(task)) < len(pickle.dumps(model)) / 3


# ------------------------------------------------------------------------------------------------------------ metadata


def described():
    """Counts, and a table of metadata, 60 documents each."""
    pandas = importorskip("pandas")
    X = make_lda(60, n_features=20, n_components=2, random_state=0).counts
    table = pandas.DataFrame({"year": 1950.0 + np.arange(60), "party": np.array(["a", "b", "c"])[np.arange(60) % 3]})
    return X, table


@pytest.fixture(scope="module", autouse=True)
def no_scheduler_is_left_behind():
    """A client whose cluster was killed leaves its scheduler as Dask's default."""
    yield
    dask.config.config.pop("scheduler", None)


@pytest.fixture(scope="module")
def by_year():
    X, table = described()
    return DMRTopicModel(2, n_iter=10, random_state=0).fit(X, metadata=table)


TABLES = {
    "pandas": lambda table: table,
    "polars": lambda table: importorskip("polars").DataFrame(table.to_dict("list")),
    "dict": lambda table: table.to_dict("list"),
    "dict of arrays": lambda table: {name: table[name].to_numpy() for name in table},
    "array": lambda table: table.to_numpy(),
    "Dask array": lambda table: da.from_array(table.to_numpy(), chunks=(25, 1)),
    "Dask array, other blocks": lambda table: da.from_array(table.to_numpy(), chunks=(7, 2)),
}


@pytest.mark.parametrize("way", TABLES)
def test_metadata_are_divided_like_the_documents(by_year, way):
    X, table = described()
    lazy = by_year.transform(in_blocks(X, 25).array, metadata=TABLES[way](table))
    np.testing.assert_array_equal(lazy.compute(), by_year.transform(X, metadata=table))


def test_metadata_of_blocks_of_unknown_length(by_year):
    X, table = described()
    blocks = Blocks(X, (25, 0, 35), known=False)
    rows = Blocks(table.to_numpy(), (25, 0, 35), known=False)
    lazy = by_year.transform(blocks.array, metadata=rows.array)
    assert not blocks.loaded and not rows.loaded
    np.testing.assert_array_equal(lazy.compute(), by_year.transform(X, metadata=table))
    with pytest.raises(ValueError, match=r"call X.compute_chunk_sizes\(\) first"):
        by_year.transform(blocks.array, metadata=table)
    with pytest.raises(ValueError, match="metadata has 2 blocks and X has 3"):
        by_year.transform(blocks.array, metadata=Blocks(table.to_numpy(), (25, 35), known=False).array)
    wrong = by_year.transform(blocks.array, metadata=Blocks(table.to_numpy(), (20, 0, 40), known=False).array)
    with pytest.raises(ValueError, match=r"Block [02] of X: metadata has \d+ rows and X has \d+"):
        wrong.compute()


def test_sparse_and_one_dimensional_metadata():
    X, table = described()
    years = table["year"].to_numpy()
    for given, lazy in [
        (sparse.csr_array(years[:, None]), sparse.csr_array(years[:, None])),
        (years, da.from_array(years, chunks=20)),
        (years, years),
    ]:
        model = DMRTopicModel(2, n_iter=10, random_state=0).fit(X, metadata=given)
        answer = model.transform(in_blocks(X, 25).array, metadata=lazy)
        np.testing.assert_array_equal(answer.compute(), model.transform(X, metadata=given))


class DataFrame:
    """Stands for Dask's where there is none: `dask.dataframe` needs pyarrow, a large package."""

    __module__ = "dask.dataframe"

    def __init__(self, table, lengths):
        self.table, self.lengths, self.ndim = table, lengths, table.ndim
        if table.ndim == 2:
            self.columns = table.columns

    def to_delayed(self):
        """The partitions."""
        ends = np.cumsum(self.lengths)
        return [dask.delayed(self.table.iloc[stop - n : stop]) for n, stop in zip(self.lengths, ends, strict=True)]

    def to_frame(self):
        """A column as a frame."""
        return DataFrame(self.table.to_frame(), self.lengths)

    def to_dask_array(self):
        """The values."""
        return Blocks(self.table.to_numpy(), self.lengths, known=False).array


def frame_of(table, lengths):
    """A Dask frame of a table, in partitions of so many rows."""
    try:
        import dask.dataframe as dd
    except ImportError:
        return DataFrame(table, lengths)
    divisions = [*np.cumsum([0, *lengths[:-1]]).tolist(), len(table) - 1]
    return dd.from_pandas(table, npartitions=1).repartition(divisions=divisions, force=True)


@pytest.mark.parametrize("known", [True, False])
def test_metadata_in_a_dask_frame(by_year, known):
    X, table = described()
    X_blocks = Blocks(X, (20, 25, 15), known=known).array
    frame = frame_of(table, (20, 25, 15))
    lazy = by_year.transform(X_blocks, metadata=frame)
    np.testing.assert_array_equal(lazy.compute(), by_year.transform(X, metadata=table))
    of_years = DMRTopicModel(2, n_iter=10, random_state=0).fit(X, metadata=table[["year"]])
    lazy = of_years.transform(X_blocks, metadata=frame_of(table["year"], (20, 25, 15)))
    np.testing.assert_array_equal(lazy.compute(), of_years.transform(X, metadata=table[["year"]]))
    with pytest.raises(TypeError, match=r"metadata is a Dask DataFrame.*Pass metadata\.compute\(\)"):
        by_year.transform(X, metadata=frame)


def test_metadata_of_another_length_are_refused_at_the_call(by_year):
    X, table = described()
    for other in (
        table[:50],
        table.to_numpy()[:50],
        table[:50].to_dict("list"),
        da.from_array(table.to_numpy()[:50], chunks=-1),
    ):
        with pytest.raises(ValueError, match="metadata has 50 rows and X has 60"):
            by_year.transform(in_blocks(X).array, metadata=other)


def test_columns_of_metadata_in_X():
    case = next(case for case in DEFAULTS if case.id == "dmr")
    model, X = case.fitted(), case.X()
    counts, columns = X[:, :-2], X[:, -2:].toarray()
    expected = model.transform(X)
    np.testing.assert_array_equal(model.transform(in_blocks(counts).array, metadata=columns).compute(), expected)
    with pytest.raises(ValueError, match="X has 40 features, but DMRTopicModel is expecting 42"):
        model.transform(in_blocks(counts).array)


def test_metadata_in_dask_need_X_in_dask(by_year):
    X, table = described()
    with pytest.raises(TypeError, match=r"metadata is a Dask Array.*Pass metadata\.compute\(\)"):
        by_year.transform(X, metadata=in_blocks(table.to_numpy()).array)
    with pytest.raises(TypeError, match=r"Pass metadata\.compute\(\)"):
        by_year.fit(X, metadata=in_blocks(table.to_numpy()).array)


# ----------------------------------------------------------------------------------------------------------- refusals


def public_methods(model):
    """Names of the public methods that are given rows, X, and need no metadata with them."""
    for name, method in inspect.getmembers(model, callable):
        parameters = () if name.startswith("_") else inspect.signature(method).parameters
        if "X" in parameters and "covariate" not in parameters:
            yield name


@each
def test_whatever_is_not_answered_by_rows_refuses_before_anything_is_loaded(case):
    fitted, (X, *y) = case.fitted(), case.data_of()
    refused = set()
    for name in public_methods(fitted):
        if name in BY_ROWS or (name in IN_BLOCKS and getattr(fitted, "_takes_blocks", False)):
            continue
        model = case.fitted()
        before = pickle.dumps(model.get_params())
        blocks = in_blocks(X)
        asked = inspect.signature(getattr(model, name)).parameters
        labels = y if "y" in asked else [np.arange(90)] if "times" in asked else []
        if name == "regress":
            labels = [np.arange(90.0)]
        with pytest.raises(TypeError, match=r"X is a Dask Array.*Pass X\.compute\(\)"):
            getattr(model, name)(blocks.array, *labels)
        assert not blocks.loaded
        assert pickle.dumps(model.get_params()) == before
        refused.add(name)
    wanted = {"fit", "resume", "score"} | ({"partial_fit"} if hasattr(fitted, "partial_fit") else set())
    assert wanted <= refused or fitted._takes_blocks


@each_class
def test_other_collections_are_refused(case):
    X = case.X()
    dense = X.toarray() if sparse.issparse(X) else X
    model = case.fitted()
    frame = frame_of(importorskip("pandas").DataFrame(dense), (60, 30))
    for name in ("fit", "score", *[name for name in BY_ROWS if hasattr(model, name)]):
        y = case.data_of()[1:] if name in ("fit", "score") else ()
        with pytest.raises(TypeError, match=r"X is a Dask DataFrame.*X\.to_dask_array\(\)"):
            getattr(model, name)(frame, *y)
        with pytest.raises(TypeError, match=r"X is a Dask Delayed.*X\.compute\(\)"):
            getattr(model, name)(dask.delayed(dense), *y)


def test_labels_and_weights_are_refused():
    logistic, dp = (next(case for case in DEFAULTS if case.id == id) for id in ("logistic", "dp"))
    X, y = logistic.data_of()
    for method in (logistic.new().fit, logistic.new().partial_fit, logistic.fitted().score):
        with pytest.raises(TypeError, match=r"y is a Dask Array.*y\.compute\(\)"):
            method(X, da.from_array(y))
        with pytest.raises(TypeError, match=r"sample_weight is a Dask Array.*sample_weight\.compute\(\)"):
            method(X, y, sample_weight=da.ones(len(y)))
    for method in (dp.new().fit, dp.fitted().score):
        with pytest.raises(TypeError, match=r"sample_weight\.compute\(\)"):
            method(dp.X(), sample_weight=da.ones(90))


def test_words_aligned_by_name_are_not_loaded():
    pandas = importorskip("pandas")
    case = next(case for case in DEFAULTS if case.id == "lda")
    frame = pandas.DataFrame(case.X().toarray()).add_prefix("word")
    model = case.new(new_features="extend").fit(frame)
    for method in (model.transform, model.score, model.partial_fit):
        with pytest.raises(TypeError, match="X is a Dask DataFrame"):
            method(frame_of(frame, (60, 30)))


@each_class
def test_bad_arrays_are_refused_at_the_call(case):
    model, (name, *_) = answers_of(case)
    answer, X = getattr(model, name), case.X()
    blocks = in_blocks(X)
    with pytest.raises(NotFittedError):
        getattr(case.new(), name)(blocks.array)
    with pytest.raises(ValueError, match=f"X has {X.shape[1] - 1} features, but .* is expecting {X.shape[1]} features"):
        answer(blocks.array[:, 1:])
    with pytest.raises(ValueError, match="Expected 2D array, got a Dask array of shape"):
        answer(da.ones(X.shape[1]))
    if sparse.issparse(X):
        halves = X.shape[1] // 2
        wide = da.concatenate([in_blocks(X[:, :halves]).array, in_blocks(X[:, halves:]).array], axis=1)
        with pytest.raises(ValueError, match=r"pass X\.rechunk\(\{1: -1\}\)"):
            answer(wide)
        np.testing.assert_array_equal(answer(wide.rechunk({1: -1})).compute(), answer(X))
    assert not blocks.loaded


def test_a_bad_block_is_named_when_it_is_computed():
    case = next(case for case in DEFAULTS if case.id == "lda")
    model, X = case.fitted(), case.X().toarray()
    X[60, 3] = -1.0
    with pytest.raises(ValueError, match="Block 1 of X: Negative values in data"):
        model.transform(da.from_array(X, chunks=(40, -1))).compute()
    damaged = case.X().copy()
    damaged.indices[-1] = 10**6
    lazy = model.transform(da.from_delayed(dask.delayed(damaged), X.shape, X.dtype, meta=damaged[:0]))
    with pytest.raises(ValueError, match="Block 0 of X: X is a damaged sparse matrix"):
        lazy.compute()


def test_a_container_of_memory_is_refused():
    case = next(case for case in DEFAULTS if case.id == "lda")
    model = case.fitted().set_output(transform="pandas")
    with pytest.raises(TypeError, match=r'set_output\(transform="default"\)'):
        model.transform(in_blocks(case.X()).array)


# ------------------------------------------------------------------------------------------------------------ clusters


def within(seconds, call):
    """The result of a call in a thread of its own; fails rather than hangs."""
    result = []

    def run():
        try:
            result.append((call(), None))
        except BaseException as error:
            result.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert result, f"not done within {seconds} seconds"
    value, error = result[0]
    if error is not None:
        raise error
    return value


@pytest.fixture(scope="module", params=["threads", "processes"])
def client(request):
    """A client of two workers: threads of this process, or processes."""
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        if request.param == "processes":
            cluster = request.getfixturevalue("two_dask_workers")
        else:
            in_threads = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
            cluster = stack.enter_context(distributed.LocalCluster(**in_threads))
        client = stack.enter_context(distributed.Client(cluster, timeout="60s"))
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.mark.xdist_group("dask")
@each_class
def test_chains_on_a_cluster_make_the_same_draws(case, client):
    here = case.fitted(n_chains=4)

    def there():
        with joblib.parallel_config("dask"):
            return case.fitted(n_chains=4, n_jobs=2)

    with distributed.get_task_stream(client) as tasks:
        fitted = within(300, there)
    assert len({task["worker"] for task in tasks.data}) == 2
    assert_same_draws(here, fitted)
    assert fitted.score(*case.data_of()) == here.score(*case.data_of())


@pytest.mark.xdist_group("dask")
@each_class
def test_blocks_on_a_cluster_get_the_same_answers(case, client):
    model, methods = answers_of(case)
    X = case.X()
    for name in methods:
        blocks = X if not sparse.issparse(X) else sparse.csr_array(X)
        lazy = getattr(model, name)(da.from_array(blocks, chunks=(40, -1), asarray=False))
        computed = client.compute(lazy).result(timeout=300)
        np.testing.assert_array_equal(computed, getattr(model, name)(X))
