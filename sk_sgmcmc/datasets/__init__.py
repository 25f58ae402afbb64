"""Data sets.

``make_*`` functions draw data from a model and also return its true parameters. ``load_*`` functions need no files.
``fetch_*`` functions read public data sets from a folder on your machine (see `fetch_corpus`). Only
`fetch_20newsgroups_counts` downloads data.

========================  ===============================================================================
`make_lda`                documents drawn from latent Dirichlet allocation
`make_dmr`                documents whose topics follow metadata, drawn from a Dirichlet-multinomial regression
`make_gamma_process`      documents whose topics have the weights of a gamma process
`CountBlocks`             your own counts in blocks, more than fit in memory
`load_docstrings`         docstrings of NumPy, SciPy, scikit-learn, numba, joblib
`load_sotu`               every third paragraph of the State of the Union addresses, with text, year and party
`fetch_corpus`            any of the sets below, by name
20newsgroups              posts to 20 Usenet groups (`fetch_20newsgroups_counts` downloads them)
wikipedia                 long articles of English Wikipedia, 2015
acl_abstracts             abstracts of computational linguistics with year and venue
acl2020_abstracts         the main conference of ACL 2020
sotu_paragraphs           State of the Union addresses with year, president and party
poliblog5k                political blogs of 2008 with rating and day
reuters21578              news wire of 1987 with topics and places
ap                        Associated Press
20news_different          three Usenet groups, tf-idf on the sphere
msweb, nltcs              visits to areas of a web site; answers to a disability survey (0 and 1)
`fetch_table`             australian, heart, a9a, covertype
========================  ===============================================================================
"""

from ..utils.blocks import CountBlocks
from ._fetch import (
    fetch_20news_different,
    fetch_20newsgroups_counts,
    fetch_acl2020_abstracts,
    fetch_acl_abstracts,
    fetch_ap,
    fetch_corpus,
    fetch_msweb,
    fetch_nltcs,
    fetch_poliblog5k,
    fetch_reuters21578,
    fetch_sotu_paragraphs,
    fetch_table,
    fetch_wikipedia,
)
from ._load import load_docstrings, load_sotu
from ._make import make_dmr, make_gamma_process, make_lda
from ._text import make_count_vectorizer, normalize_text

__all__ = [
    "CountBlocks",
    "fetch_20news_different",
    "fetch_20newsgroups_counts",
    "fetch_acl2020_abstracts",
    "fetch_acl_abstracts",
    "fetch_ap",
    "fetch_corpus",
    "fetch_msweb",
    "fetch_nltcs",
    "fetch_poliblog5k",
    "fetch_reuters21578",
    "fetch_sotu_paragraphs",
    "fetch_table",
    "fetch_wikipedia",
    "load_docstrings",
    "load_sotu",
    "make_count_vectorizer",
    "make_dmr",
    "make_gamma_process",
    "make_lda",
    "normalize_text",
]
