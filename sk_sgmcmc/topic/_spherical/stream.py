"""The spherical admixture model on streams: `partial_fit`."""

from ...base import all_or_nothing
from ...chains.plans import StreamPlan

_STREAM_BATCH = 500


class StreamingAdmixture:
    """`partial_fit` of `SphericalAdmixtureModel`."""

    @all_or_nothing
    def partial_fit(self, X, y=None):
        """Continue the chains with one pass over more documents.

        The gradient comes from the minibatch alone, scaled to ``total_samples``, or to the documents seen so far. The
        prior's mean direction stays that of the first call, as do priors and the other settings of the chains. Another
        step size or friction of the sampler takes effect from the next call on; another sampler, ``n_components`` or
        ``n_chains`` is refused.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, as for `fit`.
        y : ignored

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        if sampler._full_batch:
            raise ValueError(
                f"{type(sampler).__name__} reads all data at every step and cannot stream; "
                'use sampler="sggmc", "gsgnht" or "sto-vi" for partial_fit.'
            )
        first = not hasattr(self, "_chains")
        if not first:
            chain = self._chains[0]
            self._refuse_other_chains(sampler, chain.sampler, n_components=chain.n_topics)
        rows = self._check_X(X, reset=first)
        n_batch = _STREAM_BATCH if isinstance(self.batch_size, str) else int(self.batch_size)
        data = self._noted(rows, min(n_batch, rows.shape[0]))

        def plan():
            return StreamPlan(self.burn_in, self._bytes_per_draw())

        if first:
            self.n_samples_seen_ = 0
            chains = self._new_chains(sampler, self._prior(rows, sampler), plan, stored=False)
        else:
            chains = self._chains
            for chain in chains:
                chain.take_sampler(sampler)
        self.n_samples_seen_ += data.n_docs
        for chain in chains:
            if not isinstance(chain.plan, StreamPlan):
                chain.plan, chain.kept, chain.kept_steps, chain.n_kept = plan(), {}, [], 0
            chain.bind(data).stream(float(self.total_samples or self.n_samples_seen_))
        return self._run(chains, chains[0].step + -(-data.n_docs // data.n_batch))
