"""Programs that the comparison of topic models runs, by one contract.

A program is a class with

``name``, ``package``   its name in tables, and the distribution on PyPI
``window``              number of its snapshots over which scores average; 1 if it has no noise or averages itself
``midway``              whether its topics can be had before its own end
``most_topics``         the largest number of topics that it is asked for, and ``reason`` why
``threads``             whether it takes ``n_jobs``
``sweep_steps``         pairs of steps between which a sweep is timed; empty if it has no sweeps
``run(X, n_topics, seed, watch, n_jobs=1)``
    Fit topics to counts X, with default arguments but for the number of threads. Call ``watch.start()`` once the
    documents are handed over. Then either call ``watch.look(step, topics)`` after ``watch.next_step(step)`` steps and
    end when it returns True, or fit again with ``watch.longer(steps)`` steps until that is None. ``topics`` is a
    function without arguments that returns the present topics, (n_topics, n_words), rows of which sum to 1. Call
    ``watch.finish(topics)`` after a default fit, if the program has one. Return the log likelihood of a token as the
    program itself reports it, or None.

A new program is a new class and its name in `PROGRAMS`.
"""

import functools
import importlib.metadata
import string
import time
import warnings

import numpy as np
from _peers import Stopwatch
from _sweep_bound import bound_ns
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning

import sk_sgmcmc
from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import Callback


class Program:
    """What a program is unless it says otherwise."""

    window, midway, most_topics, reason, threads, sweep_steps = 1, True, np.inf, "", False, ()
    makes_topics = False  # Whether it learns the topics that programs share when they infer proportions.
    scores = False  # Whether it scores documents.

    @classmethod
    def version(cls):
        """Version of the package; None if it is not installed."""
        try:
            return importlib.metadata.version(cls.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def warm_up(self, X, n_topics, n_jobs=1):
        """Compile, or load what was compiled."""

    def tokens_of_step(self, X):
        """Tokens that a step draws."""
        return X.sum()

    def sweep_ns(self, X, n_topics, seed, n_jobs=1):
        """Nanoseconds a token of a sweep, one number for each pair of ``sweep_steps``."""
        now = time.process_time if n_jobs == 1 else time.perf_counter
        watch = Stopwatch(sum(self.sweep_steps, ()), now)
        self.run(X, n_topics, seed, watch, n_jobs)
        at, tokens = {step: seconds for seconds, _, step in watch.points}, self.tokens_of_step(X)
        return [1e9 * (at[b] - at[a]) / (b - a) / tokens for a, b in self.sweep_steps]


def texts(X, names=None):
    """Documents as lists of words."""
    X = X.tocsr()
    names = word_names(X.shape[1]) if names is None else names
    rows = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [np.repeat(names[X.indices[a:b]], X.data[a:b].astype(int)).tolist() for a, b in rows]


def word_names(n_words):
    """A word of letters for each column, which every program's way of splitting texts leaves whole."""
    digits = np.arange(n_words)[:, None] // 26 ** np.arange(4, -1, -1) % 26
    return np.array(["w" + "".join(row) for row in np.array(list(string.ascii_lowercase))[digits]])


def column_of(word):
    """The column that a word names."""
    return functools.reduce(lambda column, letter: 26 * column + ord(letter) - ord("a"), word[1:], 0)


def in_columns(words, topics, n_words):
    """Topics (n_topics, len(words)) in the order of the columns, with a trace of the words that are missing."""
    topics = np.asarray(topics)
    phi = np.full((len(topics), n_words), 1e-12)
    phi[:, [column_of(word) for word in words]] = topics
    return phi / phi.sum(axis=1, keepdims=True)


def normalized(counts):
    """Rows that sum to 1, without zeros."""
    counts = np.maximum(counts, 1e-12)
    return counts / counts.sum(axis=1, keepdims=True)


class Looks(Callback):
    """Lets a watch look at the first chain of our fit.

    A fit also calls it at other steps than those it asks for, at times that depend on the machine; these are left out.
    """

    def __init__(self, watch):
        super().__init__(1)
        self.watch, self.due = watch, watch.next_step(0)

    def next_step(self, step):
        """The step after which the watch wants to look."""
        return self.due

    def __call__(self, estimator, step):
        """Let it look."""
        if step < self.due:
            return False
        over = self.watch.look(step, lambda: estimator._chains[0].present_topics().T)
        self.due = self.watch.next_step(step)
        return over


class Ours(Program):
    """`BayesianLDA`; its default fit ends by itself."""

    name, package, window, threads = "ours", "sk-sgmcmc", 5, True

    def __init__(self, **params):
        self.params = params

    @classmethod
    def version(cls):
        """Version of the library that runs, installed or not."""
        return sk_sgmcmc.__version__

    def warm_up(self, X, n_topics, n_jobs=1):
        """Fit a few documents."""
        BayesianLDA(n_topics, n_iter=40, random_state=0, n_jobs=n_jobs).fit(X[:50])

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Fit once."""
        model = BayesianLDA(n_topics, random_state=seed, n_jobs=n_jobs, callbacks=Looks(watch), **self.params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            watch.start()
            model.fit(X)
        watch.finish(lambda: model.components_)


class OurSweeps(Ours):
    """`BayesianLDA` with 80 steps and one kept draw: half of them burn-in, half of them kept."""

    sweep_steps = ((20, 40), (60, 80))

    def __init__(self):
        super().__init__(n_iter=80, thin=40)


class OurMinibatches(Ours):
    """`BayesianLDA` by minibatches of 256 documents, whose cost does not depend on the number of words."""

    name, sweep_steps = "ours, minibatches", ((60, 80),)

    def __init__(self):
        super().__init__(n_iter=80, thin=40, assignments="fresh", batch_size=256)

    def tokens_of_step(self, X):
        """Tokens of a minibatch, times the sweeps over it."""
        return X.sum() * min(256 / X.shape[0], 1.0) * sum(BayesianLDA().n_sweeps)


class Bound(Program):
    """The least that a sweep of a collapsed sampler has to do, with the topics of documents of a fit of ours."""

    name, package, version, sweep_steps = "least of a sweep", "sk-sgmcmc", Ours.version, ((0, 1),)

    def sweep_ns(self, X, n_topics, seed, n_jobs=1):
        """A document's topics are those that have at least half a token of it."""
        rows = np.random.default_rng(seed).permutation(X.shape[0])[:2000]
        model = BayesianLDA(n_topics, n_iter=80, thin=40, random_state=seed).fit(X)
        tokens = np.asarray(X[rows].sum(axis=1)).reshape(-1, 1)
        topics = (model.transform(X[rows]) * tokens >= 0.5).sum(axis=1)
        return [bound_ns(X, float(topics.mean()), n_topics, seed)]


class OurStream(Program):
    """`BayesianLDA.partial_fit` with its default sampler, in ten blocks."""

    name, package, version = "ours, partial_fit", "sk-sgmcmc", Ours.version

    sampler = None

    def warm_up(self, X, n_topics, n_jobs=1):
        """Pass a few documents."""
        model = BayesianLDA(n_topics, sampler=self.sampler, random_state=0, n_jobs=n_jobs)
        for start in (0, 30, 60):
            model.partial_fit(X[start : start + 30])

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """One pass."""
        model = BayesianLDA(n_topics, sampler=self.sampler, random_state=seed, n_jobs=n_jobs)
        in_blocks(X, model.partial_fit, lambda: model.components_, watch)


class OurScirStream(OurStream):
    """The same by minibatches, which keep no assignments."""

    name, sampler = "ours, partial_fit by scir", "scir"


class Tomotopy(Program):
    """LDAModel of tomotopy, which learns the documents' prior."""

    name, package, window, threads, sweep_steps = "tomotopy", "tomotopy", 5, True, ((20, 40),)

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Train until the watch has enough."""
        import tomotopy

        model = tomotopy.LDAModel(k=n_topics, seed=seed + 1)
        for document in texts(X):
            model.add_doc(document)

        def topics():
            dists = [model.get_topic_word_dist(k) for k in range(n_topics)]
            return in_columns(model.used_vocabs, dists, X.shape[1])

        watch.start()
        step, over = 0, False
        while not over:
            model.train((goal := watch.next_step(step)) - step, workers=n_jobs)
            step, over = goal, watch.look(goal, topics)
        watch.pause()
        return model.ll_per_word


class Topica(Program):
    """LDA of topica, by its default sampler. It cannot go on, and is fitted again for each time.

    Each of these fits averages five snapshots, which is its default, of the last third of the sweeps.
    """

    name, package, threads, sampler, sweep_steps = "topica", "topica", True, "sparse", ((20, 40),)

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Fits of growing length, then the default one."""
        import topica

        corpus = topica.Corpus.from_documents(texts(X))
        tokens, steps = X.sum(), 0

        def fit(**length):
            model = topica.LDA(n_topics, seed=seed + 1, sampler=self.sampler, num_threads=n_jobs)
            watch.restart()
            model.fit(corpus, progress=False, **length)
            return model, lambda: in_columns(model.vocabulary, model.topic_word, X.shape[1])

        while steps := watch.longer(steps):
            gap = steps // 15 or 1
            model, topics = fit(iters=max(steps - 5 * gap, 1), sample_interval=gap)
            watch.look(steps, topics)
        if watch.has_time_for(1125):
            watch.finish(fit()[1])
        return model.log_likelihood() / tokens


class TopicaLight(Topica):
    """Metropolis-Hastings with alias tables."""

    name, sampler = "topica, lightlda", "lightlda"


class TopicaWarp(Topica):
    """WarpLDA."""

    name, sampler, threads = "topica, warp", "warp", False


class TopicaCvb0(Topica):
    """Collapsed variational Bayes, which topica offers as a sampler."""

    name, sampler, threads = "topica, cvb0", "cvb0", False


class TopicaCTM(Program):
    """Correlated topic model of topica: its structural topic model without covariates, which that does not accept."""

    name, package, midway = "topica, CTM", "topica", False
    most_topics, reason = 100, "keeps a K x K matrix for each document"

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Fit once."""
        import topica

        corpus, model = topica.Corpus.from_documents(texts(X)), topica.CTM(n_topics, seed=seed + 1)
        watch.start()
        model.fit(corpus, num_threads=n_jobs, progress=lambda *args: None)
        watch.finish(lambda: in_columns(model.vocabulary, model.topic_word, X.shape[1]))


class Pyrmallet(Program):
    """RustMallet by the author of MALLET, which needs no Java. It cannot go on, and is fitted again for each time.

    Each of these fits averages five snapshots, which is its default, of the last third of the sweeps.
    """

    name, package, sweep_steps = "pyrmallet", "pyrmallet", ((20, 40),)

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Fits of growing length, then the default one."""
        from pyrmallet import _rust_mallet

        lines = [" ".join(document) for document in texts(X)]
        corpus, steps = _rust_mallet.Corpus.from_strings(lines), 0

        def fit(**length):
            watch.restart()
            model = _rust_mallet.train(corpus, num_topics=n_topics, seed=seed + 1, **length)
            return model, lambda: in_columns(model.vocabulary, model.topic_word_matrix(), X.shape[1])

        while steps := watch.longer(steps):
            gap = steps // 15 or 1
            model, topics = fit(iterations=max(steps - 5 * gap, 1), sample_interval=gap)
            watch.look(steps, topics)
        if watch.has_time_for(1125):
            watch.finish(fit()[1])
        return model.log_likelihood(corpus) / X.sum()


class ScikitLearn(Program):
    """LatentDirichletAllocation by `fit`: ten iterations over all documents."""

    name, package, midway, threads = "scikit-learn, fit", "scikit-learn", False, True

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Fit once."""
        model, X = LatentDirichletAllocation(n_topics, random_state=seed, n_jobs=n_jobs), X.astype(float)
        watch.start()
        model.fit(X)
        watch.finish(lambda: normalized(model.components_))


class ScikitLearnOnline(Program):
    """LatentDirichletAllocation by `partial_fit`, with minibatches of 128 documents, its default of `fit`."""

    name, package = "scikit-learn, online", "scikit-learn"

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Passes in one random order until the watch has enough."""
        X = X[np.random.default_rng(seed).permutation(X.shape[0])].astype(float)
        model = LatentDirichletAllocation(n_topics, total_samples=X.shape[0], random_state=seed)
        blocks = [X[start : start + model.batch_size] for start in range(0, X.shape[0], model.batch_size)]
        watch.start()
        step, over = 0, False
        while not over:
            for i in range(step, goal := watch.next_step(step)):
                model.partial_fit(blocks[i % len(blocks)])
            step, over = goal, watch.look(goal, lambda: normalized(model.components_))
        watch.pause()


class ScikitLearnStream(Program):
    """LatentDirichletAllocation by `partial_fit`, in ten blocks."""

    name, package = "scikit-learn, partial_fit", "scikit-learn"

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """One pass."""
        model = LatentDirichletAllocation(n_topics, total_samples=X.shape[0], random_state=seed)
        in_blocks(X.astype(float), model.partial_fit, lambda: normalized(model.components_), watch)


class Gensim(Program):
    """LdaModel of gensim; a step is a pass, of which it makes one by default."""

    name, package = "gensim", "gensim"

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Passes until the watch has enough."""
        model, corpus = gensim_model(X, n_topics, seed), as_gensim(X)
        watch.start()
        step, over = 0, False
        while not over:
            model.update(corpus)
            step += 1
            over = watch.look(step, model.get_topics)
        watch.pause()


class GensimStream(Program):
    """LdaModel of gensim by `update`, in ten blocks."""

    name, package = "gensim, update", "gensim"

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """One pass."""
        model = gensim_model(X, n_topics, seed)
        in_blocks(X, lambda rows: model.update(as_gensim(rows)), model.get_topics, watch)


class AnchorTopics(Program):
    """Topics from the co-occurrence of words with anchor words, by the author of MALLET."""

    name, package, midway = "anchortopics", "anchortopics", False

    def run(self, X, n_topics, seed, watch, n_jobs=1):
        """Fit once."""
        from anchortopics import OTFR

        model, X = OTFR(n_topics, random_state=seed), X.astype(float)
        watch.start()
        model.fit(X)
        watch.finish(lambda: normalized(model.components_))


def in_blocks(X, update, topics, watch, n_blocks=10):
    """Pass blocks of X to a function, one after another."""
    watch.start()
    for step, rows in enumerate(np.array_split(np.arange(X.shape[0]), n_blocks), start=1):
        update(X[rows])
        watch.look(step, topics)
    watch.finish(topics)


def as_gensim(X):
    """Documents as gensim takes them."""
    from gensim.matutils import Sparse2Corpus

    return [document for document in Sparse2Corpus(X.tocsc(), documents_columns=False) if document]


def gensim_model(X, n_topics, seed):
    """An untrained model with default arguments."""
    from gensim.models import LdaModel

    return LdaModel(num_topics=n_topics, id2word=dict(enumerate(word_names(X.shape[1]))), random_state=seed)


PROGRAMS = [
    Ours(), Tomotopy(), Topica(), TopicaLight(), TopicaWarp(), TopicaCvb0(), TopicaCTM(), Pyrmallet(), ScikitLearn(),
    ScikitLearnOnline(), Gensim(), AnchorTopics(),
]  # fmt: skip
SWEEPS = [
    Bound(), OurSweeps(), OurMinibatches(), Tomotopy(), Topica(), TopicaLight(), TopicaWarp(), TopicaCvb0(),
    Pyrmallet(),
]  # fmt: skip
STREAMS = [OurStream(), OurScirStream(), ScikitLearnStream(), GensimStream(), Ours()]
OURS, FIRST_ANSWERS = Ours.name, ScikitLearnOnline.name
OUR_STREAMS, STREAM_PEER = (OurStream.name, OurScirStream.name), ScikitLearnStream.name


def named(programs, names=None):
    """The installed ones of the programs, or of these those with given names, by name."""
    found = {program.name: program for program in programs if program.version()}
    return {name: program for name, program in found.items() if names is None or name in names}
