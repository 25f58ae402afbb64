"""Documents with metadata, beside X or among its columns, checked and made ready for chains."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral

import numpy as np
from scipy import sparse

from ...utils import Corpus
from ...utils._sklearn import validate_data
from ...utils._sparse import well_formed
from ...utils._warnings import warn_user
from .metadata import DescribedCorpus, MetadataEncoder, MetadataTokens


def _refuse_table(y):
    """Raise where ``y`` is metadata that were passed without their name, which would be ignored; labels pass."""
    is_table = isinstance(y, Mapping) or hasattr(y, "collect") or hasattr(y, "columns")
    if isinstance(y, (list, tuple)) and len(y):
        is_table = isinstance(y[0], (list, tuple, Mapping)) or np.ndim(y[0]) > 0
    is_table = is_table or len(getattr(y, "shape", ())) > 1
    if is_table:
        raise ValueError(
            f"y is a table, of type {type(y).__name__}, which would be ignored. If it is metadata, pass metadata=M, as "
            "in fit(X, metadata=M). Only labels of one dimension may stand as y."
        )


class MetadataInput:
    """Checks of X and metadata for topic models that have ``metadata_columns`` and ``handle_unknown``."""

    def _check_X(self, X, *, reset, metadata=None, is_read=True, y=None):
        """A checked corpus with encoded metadata; ``is_read``: documents are not fitted, and may go without."""
        _refuse_table(y)
        in_X = self.metadata_columns is not None and metadata is None if reset else self._metadata_in_X is not None
        if not in_X:
            corpus = super()._check_X(X, reset=reset)
            places = None
        else:
            corpus, metadata, places = self._parted(X, metadata, reset)
        n_docs = corpus.n_docs
        if reset and metadata is None:
            warn_user(
                f"No metadata were given, so this {type(self).__name__} is plain latent Dirichlet allocation with a "
                "learnt prior. Pass metadata=, one row a document, or set metadata_columns; or use BayesianLDA."
            )
        if reset:
            self._metadata_in_X = places
            self._encoder = MetadataEncoder().fit(metadata)
            self.metadata_names_ = list(self._encoder.names)
        described = None
        if metadata is not None and not self._encoder.levels:
            raise ValueError(f"This {type(self).__name__} was fitted without metadata; fit it with metadata first.")
        if reset or metadata is not None or not is_read:
            described = self._encoder.encode(metadata, n_docs, self.handle_unknown)
        values = {field.name: getattr(corpus, field.name) for field in fields(Corpus)}
        return DescribedCorpus(**values, described=described)

    def _parted(self, X, metadata, reset):
        """Corpus, metadata and the places of the latter's columns in X."""
        if self.new_features == "extend":
            raise ValueError(
                'new_features="extend" needs metadata apart from X: pass metadata= and leave metadata_columns=None.'
            )
        if not (hasattr(X, "shape") and hasattr(X, "dtype")) and not hasattr(X, "columns"):
            X = np.array(X, dtype=object)
        if sparse.issparse(X):
            X = sparse.csr_array(well_formed(X))
        if len(X.shape) != 2:
            raise ValueError(f"Expected 2D array, got an X of shape {X.shape}; one row a document.")
        if not reset and metadata is not None and X.shape[1] == self.n_features_in_ - self._metadata_in_X.size:
            counts, places = X, self._metadata_in_X
        else:
            validate_data(self, X, skip_check_array=True, reset=reset)
            places = self._places(X) if reset else self._metadata_in_X
            words = np.setdiff1d(np.arange(X.shape[1]), places)
            frame = hasattr(X, "iloc")
            counts = X.iloc[:, words] if frame else X[:, words]
            if metadata is None:
                metadata = X.iloc[:, places] if frame else X[:, places]
        return Corpus.from_counts(counts, whom=type(self).__name__), metadata, places

    def _places(self, X):
        """Where in X the columns of metadata stand."""
        wanted = self.metadata_columns(X) if callable(self.metadata_columns) else self.metadata_columns
        n = X.shape[1]
        if isinstance(wanted, Integral):
            places = np.arange(max(n - wanted, 0), n)
        else:
            names = list(getattr(X, "columns", []))
            places = []
            for each in [wanted] if isinstance(wanted, str) else list(wanted):
                if each in names:
                    places.append(names.index(each))
                elif isinstance(each, Integral) and -n <= each < n:
                    places.append(int(each) % n)
                else:
                    raise ValueError(
                        f"metadata_columns={self.metadata_columns!r}: X has no column {each!r}. "
                        f"{'Its columns are not named; give places, or a DataFrame.' if not names else ''}"
                    )
            places = np.array(places, dtype=np.int64)
        if not 0 < places.size < n or np.unique(places).size < places.size:
            raise ValueError(
                f"metadata_columns={self.metadata_columns!r} names {places.size} of the {n} columns of X; needed is at "
                "least one for metadata, none twice, and at least one for counts."
            )
        return places

    def _bound_data(self, X, y=None, **given):
        _refuse_table(y)
        return super()._bound_data(X, y, **given)

    def _tokens(self, corpus, *args):
        return MetadataTokens(self._encoder, corpus, *args)

    def _start_corpus(self):
        start = super()._start_corpus()
        if start is None:
            return None
        values = {field.name: getattr(start, field.name) for field in fields(Corpus)}
        return DescribedCorpus(**values, described=self._start_described)

    def _keeps_for_start(self, corpus, first):
        kept = None if first or getattr(self, "_start_counts", None) is None else self._start_described
        anew = super()._keeps_for_start(corpus, first)
        self._start_described = None
        if self._start_counts is not None:
            parts = [corpus.described] if kept is None else [kept, corpus.described]
            stack = sparse.vstack if any(map(sparse.issparse, parts)) else np.vstack
            self._start_described = stack(parts)
            if sparse.issparse(self._start_described):
                self._start_described = sparse.csr_array(self._start_described)
        return anew
