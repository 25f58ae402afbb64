"""Recognising data without keeping them."""

import zlib

import numpy as np
from scipy import sparse


def fingerprint(*parts):
    """A number by which to recognise arrays, dense or sparse; others are very unlikely to share it."""
    value = 0
    for part in parts:
        places = (part.indices, part.indptr) if sparse.issparse(part) else ()
        arrays = (part.data, *(np.asarray(each, dtype=np.int64) for each in places)) if places else (part,)
        for array in arrays:
            value = zlib.crc32(np.ascontiguousarray(array), zlib.crc32(repr(array.shape).encode(), value))
    return value
