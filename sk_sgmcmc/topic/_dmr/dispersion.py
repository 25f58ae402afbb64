"""What documents' priors are, given draws of the coefficients: with one dispersion for all topics, or one for each."""

import numpy as np

from ...covariates.prior import NormalPrior
from .._counts.record import scored_draws
from .._counts.scaled_dirichlet import ScaledDirichlet
from .._results.topics import summed
from .dispersed_prior import DispersedMetadataPrior, distributions, halves
from .document_prior import MetadataPrior, refuse_other_coef_sampler
from .prevalence import doc_priors, linear_predictors, prevalence


class SharedDispersion:
    """Dirichlet priors of documents.

    The parameters of a draw are the arrays ``names`` of ``samples_``, joined along their last axis.
    """

    names = ("coef",)

    def document_prior(self, alpha, stored, encoder, coef_sampler, scales, dispersion_scale, is_smooth):
        """The `DocumentPrior` of a new chain."""
        smooth = encoder.smooth_precisions(scales) if is_smooth else ()
        more = {"n_metadata": encoder.n_metadata, "scales": scales, "smooth": smooth}
        return MetadataPrior(alpha, stored, coef_sampler=coef_sampler, **more)

    def refuse_sampler(self, name, collapses, coef_sampler):
        """Raise for a sampler of topics or coefficients that does not fit the prior."""

    def refuse_other_coef_sampler(self, chain, coef_sampler):
        """Raise if the coefficients of a chain cannot continue under ``coef_sampler``; None is the default."""
        refuse_other_coef_sampler(chain, coef_sampler)

    def refuse_blocks(self, given):
        """Raise if the documents ``given``, a `MatrixInput` or `BlockInput`, are in blocks and cannot be fitted."""

    def shape_coef(self, parameters):
        """Coefficients whose linear predictors are the logarithms of shapes, of the parameters of draws."""
        return parameters

    def arrays(self, encoded, parameters):
        """What is averaged over draws and documents: Dirichlet parameters of encoded rows, (n_rows, n_topics)."""
        return doc_priors(encoded, parameters)

    def of_means(self, means, new=None):
        """The prior that `document_completion` takes, from such averages; ``new`` is as for `doc_priors`."""
        return means if new is None else summed(means, new, -1)

    def dirichlet_parameters(self, encoded, parameters, new):
        """Dirichlet parameters of encoded rows, (n_rows, n_topics)."""
        return doc_priors(encoded, parameters, new)

    def prevalence(self, encoded, parameters, new=None):
        """Expected proportions of encoded rows, (n_rows, n_topics)."""
        return prevalence(encoded, parameters, new)

    # The following only combine the above.

    def priors(self, encoded, parameters, new=None):
        """The priors of encoded rows in a draw."""
        return self.of_means(self.arrays(encoded, parameters), new)

    def mean_arrays(self, encoded, draws):
        """`arrays` averaged over some evenly spaced draws of one chain."""
        first, *others = scored_draws(len(draws))
        mean = self.arrays(encoded, draws[first])
        for s in others:  # One at a time to limit memory: there may be a row for each document.
            mean += self.arrays(encoded, draws[s])
        mean /= 1 + len(others)
        return mean

    def joined(self, samples, place=()):
        """The parameters of the draws at ``place``, (..., n_topics, width)."""
        parts = [samples[name][place] for name in self.names]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


class TopicDispersion(SharedDispersion):
    """Scaled Dirichlet priors of documents, with coefficients of the means and of the scales of gamma variables."""

    names = ("coef", "dispersion_coef")

    def document_prior(self, alpha, stored, encoder, coef_sampler, scales, dispersion_scale, is_smooth):
        priors = []
        for each in (scales, (dispersion_scale, dispersion_scale)):
            smooth = encoder.smooth_precisions(each) if is_smooth else ()
            priors.append(NormalPrior(encoder.n_metadata, each, smooth))
        return DispersedMetadataPrior(alpha, tuple(priors))

    def refuse_sampler(self, name, collapses, coef_sampler):
        if not collapses:
            raise ValueError(
                f'`dispersion="topic"` requires collapsed Gibbs sampling; got {name}. Leave sampler=None, batch_size '
                'and assignments at "auto" and total_samples=None, or use dispersion="shared".'
            )
        if coef_sampler is not None:
            raise ValueError(
                f'`coef_sampler` must be None with dispersion="topic"; got {coef_sampler!r}. The coefficients are then '
                "drawn by Hamiltonian Monte Carlo."
            )

    def refuse_other_coef_sampler(self, chain, coef_sampler):
        """Accept the only one that `refuse_sampler` accepts."""

    def refuse_blocks(self, given):
        given.refuse_with('dispersion="topic"', ', or use dispersion="shared"')

    def shape_coef(self, parameters):
        means, scales = halves(parameters)
        return means - scales

    def _distributions(self, encoded, parameters):
        log_mean, log_scale = (linear_predictors(encoded, part) for part in halves(parameters))
        return distributions(log_mean - log_scale, log_scale)

    def arrays(self, encoded, parameters):
        """Shapes and means of the gamma variables of encoded rows, (n_rows, 2 n_topics)."""
        found = self._distributions(encoded, parameters)
        return np.hstack([found.shape, found.activity])

    def of_means(self, means, new=None):
        found = ScaledDirichlet.of_means(*halves(means))
        return found if new is None else found.summed(new)

    def dirichlet_parameters(self, encoded, parameters, new):
        raise ValueError(
            'doc_topic_priors requires dispersion="shared": with a dispersion for each topic, the priors of documents '
            "are not Dirichlet distributions. Use predict_prevalence for their means."
        )

    def prevalence(self, encoded, parameters, new=None):
        mean = self._distributions(encoded, parameters).mean()
        return mean if new is None else summed(mean, new, -1)


DISPERSIONS = {"shared": SharedDispersion(), "topic": TopicDispersion()}
