"""Write the sample of addresses that comes with the package, from the whole set.

python -m tests.datasets.make_sotu    # with the set in the folder that SK_SGMCMC_DATA names
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np

import sk_sgmcmc
from sk_sgmcmc.datasets import fetch_sotu_paragraphs

STEP, MIN_DF = 3, 10
FILE = Path(sk_sgmcmc.__file__).parent / "datasets" / "sotu.npz"
TEXTS = FILE.with_name("sotu_texts.txt.gz")


def sample():
    """Counts, words and metadata of every third paragraph."""
    whole = fetch_sotu_paragraphs()
    counts = whole.counts.tocsr()[::STEP]
    frequent = np.asarray((counts > 0).sum(axis=0)).ravel() >= MIN_DF
    metadata = {name: np.asarray(whole.metadata[name])[::STEP] for name in whole.metadata}
    return counts[:, frequent], whole.feature_names[frequent], metadata


def sample_texts():
    """Texts of every third paragraph."""
    path = Path(os.environ["SK_SGMCMC_DATA"]) / "sotu_paragraphs" / "texts.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = {record["row"]: record["text"] for record in map(json.loads, file)}
    return [texts[row] for row in range(0, len(texts), STEP)]


def write_texts():
    """Write the texts, one a line."""
    texts = sample_texts()
    assert not any("\n" in text for text in texts)
    TEXTS.write_bytes(gzip.compress("\n".join(texts).encode(), mtime=0))  # equal texts, equal file


def main():
    """Write both files."""
    write_texts()
    counts, words, metadata = sample()
    counts = counts.tocoo()
    order = np.lexsort((counts.col, counts.row))
    places = counts.row[order].astype(np.int64) * words.size + counts.col[order]
    gaps = np.diff(places, prepend=0)
    assert gaps.max() < 2**16
    assert counts.data.max() < 2**8
    addresses, first = np.unique(metadata["address"], return_index=True)
    assert addresses.tolist() == list(range(addresses.size))
    np.savez_compressed(
        FILE,
        gaps=gaps.astype(np.uint16),
        counts=counts.data[order].astype(np.uint8),
        words=np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
        address=metadata["address"].astype(np.uint8),
        paragraph=metadata["paragraph"].astype(np.uint16),
        year=metadata["year"][first].astype(np.int64),
        **{name: metadata[name][first].astype(str) for name in ("president", "party", "type")},
    )


if __name__ == "__main__":
    main()
