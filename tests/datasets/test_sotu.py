"""The sample of addresses that comes with the package."""

import numpy as np
import pytest

from sk_sgmcmc.datasets import load_sotu, make_count_vectorizer
from tests.datasets.make_sotu import FILE, TEXTS, sample, sample_texts


def test_the_sample_holds_words_and_metadata_of_paragraphs():
    data = load_sotu()
    assert data.counts is data.data
    assert data.counts.shape == (len(data.metadata["year"]), data.feature_names.size)
    assert data.counts.has_sorted_indices
    assert data.counts.data.min() >= 1
    spoken = data.counts[np.asarray(data.metadata["president"]) == "Abraham Lincoln"].sum(axis=0)
    assert spoken[0, data.feature_names.tolist().index("slavery")] > 0
    years = np.asarray(data.metadata["year"])
    assert (years.min(), years.max()) == (1790, 2020)
    assert "public domain" in data.DESCR


def test_texts_have_the_counted_words():
    data = load_sotu(return_text=True)
    assert len(data.text) == data.counts.shape[0]
    vectorizer = make_count_vectorizer(max_df=1.0, vocabulary=data.feature_names, ascii_only=True)
    assert (vectorizer.fit_transform(data.text) != data.counts).nnz == 0


def test_texts_are_returned_on_request_only():
    assert "text" not in load_sotu()


def test_the_files_are_small():
    assert FILE.stat().st_size < 400_000
    assert TEXTS.stat().st_size < 1_400_000


@pytest.mark.real_data
def test_the_texts_are_those_of_every_third_paragraph(data_folder):
    assert load_sotu(return_text=True).text == sample_texts()


@pytest.mark.real_data
def test_the_sample_is_every_third_paragraph(data_folder):
    counts, words, metadata = sample()
    data = load_sotu()
    assert (data.counts != counts).nnz == 0
    np.testing.assert_array_equal(data.feature_names, words)
    for name, column in metadata.items():
        np.testing.assert_array_equal(np.asarray(data.metadata[name]), column, err_msg=name)
