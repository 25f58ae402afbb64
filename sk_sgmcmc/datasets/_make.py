"""Data drawn from models, together with the true parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Bunch

from ..utils._seeds import seed_sequence
from ..utils._typing import Seed


def _dirichlet(seed, alpha, size):
    """Draw from Dirichlet distributions by log-gamma variables, so that small parameters do not give rows of zeros."""
    alpha = np.broadcast_to(alpha, size)
    # A random stream for each kind of number, so that the first rows do not depend on the number of rows.
    gamma_rng, uniform_rng = (np.random.default_rng(part) for part in seed.spawn(2))
    # log G(a) = log G(a + 1) + log(U) / a
    logs = np.log(gamma_rng.standard_gamma(alpha + 1.0)) + np.log1p(-uniform_rng.random(size)) / alpha
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _parameter(value, length, name):
    value = np.asarray(value, dtype=np.float64)
    if value.ndim > 1 or value.size not in (1, length) or not np.all((value > 0) & np.isfinite(value)):
        raise ValueError(
            f"{name} must be a positive number or an array of shape ({length},) of such numbers, "
            f"got {value.tolist() if value.size <= 5 else f'an array of shape {value.shape}'}."
        )
    return value


def _refuse_none(**sizes):
    """Raise if a size is below 1."""
    for name, value in sizes.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")


def make_lda(
    n_samples: int = 200,
    n_features: int = 300,
    n_components: int = 5,
    document_length: float | ArrayLike = 80,
    doc_topic_prior: float | ArrayLike = 0.2,
    topic_word_prior: float | ArrayLike = 0.1,
    random_state: Seed = None,
) -> Bunch:
    r"""Draw documents from latent Dirichlet allocation, with the true topics.

    .. math:: \phi_k \sim \mathrm{Dir}(\beta), \quad \theta_d \sim \mathrm{Dir}(\alpha), \quad
              n_d \sim \mathrm{Multinomial}(L_d,\; \theta_d^\top \phi), \quad L_d \sim \mathrm{Poisson}(L).

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Numbers of documents, words and topics.
    document_length : float or array-like of shape (n_samples,), default=80
        Mean number L of tokens of a document, or an array of the exact number of tokens of each document.
    doc_topic_prior : float or array-like of shape (n_components,), default=0.2
        Dirichlet parameter alpha of the topic proportions of documents.
    topic_word_prior : float or array-like of shape (n_features,), default=0.1
        Dirichlet parameter beta of the word probabilities of topics.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Seed. An int or a SeedSequence gives the same data in each call.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` (also as ``counts``) : csr_matrix of int64, shape (n_samples, n_features).
        ``components`` : ndarray (n_components, n_features), the true topics; rows sum to 1.
        ``doc_topics`` : ndarray (n_samples, n_components), the true proportions; rows sum to 1.
        ``doc_topic_prior``, ``topic_word_prior`` : as passed. ``feature_names`` : ndarray of str. ``DESCR`` : str.

    References
    ----------
    D. Blei, A. Ng and M. Jordan (2003), Latent Dirichlet allocation, JMLR 3, section 3.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import make_lda
    >>> make_lda(n_samples=10, n_features=30, random_state=0).data.shape
    (10, 30)
    """
    _refuse_none(n_samples=n_samples, n_features=n_features, n_components=n_components)
    alpha = _parameter(doc_topic_prior, n_components, "doc_topic_prior")
    beta = _parameter(topic_word_prior, n_features, "topic_word_prior")
    # A random stream for each part, so that additional documents change neither the topics nor the first proportions.
    topic_seed, theta_seed, length_seed, word_seed = seed_sequence(random_state).spawn(4)
    length_rng, word_rng = np.random.default_rng(length_seed), np.random.default_rng(word_seed)
    components = _dirichlet(topic_seed, beta, (n_components, n_features))
    doc_topics = _dirichlet(theta_seed, alpha, (n_samples, n_components))
    return Bunch(
        **_documents(components, doc_topics, document_length, length_rng, word_rng),
        doc_topic_prior=doc_topic_prior,
        topic_word_prior=topic_word_prior,
        DESCR=f"{n_samples} documents drawn from latent Dirichlet allocation with {n_components} topics.",
    )


def _documents(components, doc_topics, document_length, length_rng, word_rng):
    """Draw counts given topics and proportions; returns a dict of counts, topics, proportions and names of words."""
    n_samples, n_features = len(doc_topics), components.shape[1]
    lengths = np.asarray(document_length)
    if np.any(lengths < 0):
        raise ValueError(f"document_length must not be negative, got {document_length!r}.")
    if lengths.ndim == 0:
        lengths = length_rng.poisson(lengths, n_samples)
    elif lengths.shape != (n_samples,):
        raise ValueError(f"document_length has shape {lengths.shape}; give a number or ({n_samples},) of them.")
    rows = []
    for theta, length in zip(doc_topics, lengths, strict=True):
        p = theta @ components
        rows.append(sparse.csr_matrix(word_rng.multinomial(length, p / p.sum())))
    counts = sparse.vstack(rows, format="csr")
    width = len(str(n_features - 1))
    return {
        "data": counts,
        "counts": counts,
        "components": components,
        "doc_topics": doc_topics,
        "feature_names": np.array([f"word{j:0{width}d}" for j in range(n_features)]),
    }


def make_dmr(
    n_samples: int = 300,
    n_features: int = 100,
    n_components: int = 3,
    n_metadata: int = 2,
    document_length: float | ArrayLike = 60,
    doc_topic_prior: float = 0.3,
    metadata_prior_scale: float = 1.0,
    intercept_prior_scale: float = 0.3,
    topic_word_prior: float | ArrayLike = 0.1,
    random_state: Seed = None,
) -> Bunch:
    r"""Draw documents whose topics depend on metadata, from a Dirichlet-multinomial regression.

    .. math:: \lambda_{k0} \sim N(\log a, s_0^2), \quad \lambda_{kt} \sim N(0, s^2), \quad
              \theta_d \sim \mathrm{Dir}\bigl(\exp(x_d^\top \lambda_1), \ldots, \exp(x_d^\top \lambda_K)\bigr),

    Topics and words are drawn as in `make_lda`.

    Parameters
    ----------
    n_samples, n_features, n_components, n_metadata : int
        Numbers of documents, words, topics and columns of metadata. Columns of metadata alternate between standardised
        normal variables and 0 or 1 with equal probability.
    document_length : float or array-like of shape (n_samples,), default=60
        As in `make_lda`.
    doc_topic_prior, intercept_prior_scale : float
        The median a of the Dirichlet parameters where all metadata are 0, and the standard deviation :math:`s_0` of the
        intercepts.
    metadata_prior_scale : float, default=1
        Standard deviation s of the coefficients of metadata.
    topic_word_prior : float or array-like of shape (n_features,), default=0.1
        As in `make_lda`.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Seed. An int or a SeedSequence gives the same data in each call.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data``, ``counts``, ``components``, ``doc_topics``, ``feature_names`` and ``DESCR`` as from `make_lda`.
        ``metadata`` : ndarray (n_samples, n_metadata). ``coef`` : ndarray (n_components, n_metadata + 1), the true
        coefficients, intercept first.

    References
    ----------
    D. Mimno and A. McCallum (2008), Topic models conditioned on arbitrary features with Dirichlet-multinomial
    regression, UAI, section 3.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import make_dmr
    >>> data = make_dmr(n_samples=10, random_state=0)
    >>> data.data.shape, data.metadata.shape, data.coef.shape
    ((10, 100), (10, 2), (3, 3))
    """
    _refuse_none(n_samples=n_samples, n_features=n_features, n_components=n_components, n_metadata=n_metadata)
    if not doc_topic_prior > 0:
        raise ValueError(f"doc_topic_prior must be a positive number, got {doc_topic_prior!r}.")
    beta = _parameter(topic_word_prior, n_features, "topic_word_prior")
    topic_seed, theta_seed, length_seed, word_seed, other_seed = seed_sequence(random_state).spawn(5)
    rng = np.random.default_rng(other_seed)
    coef = metadata_prior_scale * rng.standard_normal((n_components, n_metadata + 1))
    coef[:, 0] = np.log(doc_topic_prior) + intercept_prior_scale * rng.standard_normal(n_components)
    metadata = rng.standard_normal((n_samples, n_metadata))
    if n_samples > 1:
        metadata[:, ::2] -= metadata[:, ::2].mean(axis=0)
        metadata[:, ::2] /= metadata[:, ::2].std(axis=0)
    metadata[:, 1::2] = metadata[:, 1::2] > 0
    alpha = np.exp(coef[:, 0] + metadata @ coef[:, 1:].T)
    components = _dirichlet(topic_seed, beta, (n_components, n_features))
    doc_topics = _dirichlet(theta_seed, alpha, (n_samples, n_components))
    length_rng, word_rng = np.random.default_rng(length_seed), np.random.default_rng(word_seed)
    return Bunch(
        **_documents(components, doc_topics, document_length, length_rng, word_rng),
        metadata=metadata,
        coef=coef,
        DESCR=f"{n_samples} documents drawn from a Dirichlet-multinomial regression with {n_components} topics.",
    )


def make_gamma_process(
    n_samples: int = 200,
    n_features: int = 300,
    concentration: float = 5.0,
    rate: float = 5.0,
    weights: ArrayLike | None = None,
    scale_prior: tuple[float, float] = (400.0, 5.0),
    topic_word_prior: float | ArrayLike = 0.1,
    random_state: Seed = None,
) -> Bunch:
    r"""Draw documents from Poisson factor analysis with the weights of a gamma process.

    .. math:: r_k = E_k e^{-T_k}, \quad \theta_{nk} \sim \mathrm{Gamma}\Bigl(r_k, \frac{p_n}{1 - p_n}\Bigr), \quad
              x_{nv} \sim \mathrm{Poisson}\Bigl(\sum_k \theta_{nk} \phi_{kv}\Bigr),

    where :math:`E_k \sim \mathrm{Exp}(c)`, :math:`\phi_k \sim \mathrm{Dir}(\beta)` and :math:`p_n \sim
    \mathrm{Beta}(a_0, b_0)`. In each round r = 1, 2, ..., the number of topics is Poisson(1) distributed, and these
    topics have :math:`T_k \sim \mathrm{Gamma}(r, \alpha)`. Rounds end when the remaining ones contain less than
    :math:`10^{-9}` of the expected mass.

    Parameters
    ----------
    n_samples, n_features : int
        Numbers of documents and words.
    concentration : float, default=5
        Concentration alpha of the process.
    rate : float, default=5
        Rate c of the process.
    weights : array-like of shape (n_components,) or None, default=None
        Weights of the topics. None: drawn from the process.
    scale_prior : tuple of two float, default=(400.0, 5.0)
        Parameters a0 and b0. The mean length of a document is a0 / (b0 - 1) times the sum of the weights.
    topic_word_prior : float or array-like of shape (n_features,), default=0.1
        Dirichlet parameter beta of the word probabilities of topics.
    random_state : None, int, RandomState, Generator or SeedSequence, default=None
        Seed. An int or a SeedSequence gives the same data in each call.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` (also as ``counts``) : csr_matrix of int64, shape (n_samples, n_features).
        ``weights`` : ndarray (n_components,), the true weights, the largest first.
        ``components`` : ndarray (n_components, n_features), the true topics; rows sum to 1.
        ``activities`` : ndarray (n_samples, n_components), the true :math:`\theta`. ``DESCR`` : str.

    References
    ----------
    A. Roychowdhury and B. Kulis (2015), Gamma processes, stick-breaking, and variational inference, AISTATS.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import make_gamma_process
    >>> data = make_gamma_process(n_samples=10, n_features=30, random_state=0)
    >>> data.counts.shape, bool(data.weights[0] >= data.weights[-1])
    ((10, 30), True)
    """
    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    beta = _parameter(topic_word_prior, n_features, "topic_word_prior")
    a0, b0 = (float(_parameter(value, 1, "scale_prior")) for value in scale_prior)
    process_seed, topic_seed, scale_seed, word_seed = seed_sequence(random_state).spawn(4)
    if weights is None:
        weights = _gamma_process(np.random.default_rng(process_seed), concentration, rate)
    weights = -np.sort(-_parameter(weights, np.size(weights), "weights").ravel())
    components = _dirichlet(topic_seed, beta, (weights.size, n_features))
    scale_rng, word_rng = np.random.default_rng(scale_seed), np.random.default_rng(word_seed)
    odds = scale_rng.standard_gamma(a0, n_samples) / scale_rng.standard_gamma(b0, n_samples)
    activities = scale_rng.standard_gamma(weights, (n_samples, weights.size)) * odds[:, None]
    rows = [sparse.csr_matrix(word_rng.poisson(activity @ components)) for activity in activities]
    counts = sparse.vstack(rows, format="csr")
    return Bunch(
        data=counts,
        counts=counts,
        weights=weights,
        components=components,
        activities=activities,
        DESCR=f"{n_samples} documents drawn from Poisson factor analysis with {weights.size} topics.",
    )


def _gamma_process(rng, concentration, rate):
    """Draw the weights of the atoms of a gamma process, round by round; at least one atom."""
    for name, value in (("concentration", concentration), ("rate", rate)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name}={value} must be a positive number.")
    n_rounds = int(np.ceil(np.log(1e-9) / np.log(concentration / (1.0 + concentration))))
    while True:
        of_round = np.repeat(np.arange(1, n_rounds + 1), rng.poisson(1.0, n_rounds))
        atoms = rng.exponential(1.0 / rate, of_round.size) * np.exp(-rng.standard_gamma(of_round) / concentration)
        atoms = atoms[atoms > 1e-12 * atoms.sum()]
        if atoms.size:
            return atoms
