"""Facts about each public data set: its content, source and terms."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Facts about one data set.

    Parameters
    ----------
    title, source, terms, recipe : str
        Content, source and licence of the data set, and how its texts were converted to counts.
    target : str, default=None
        Column of the metadata that contains the labels.
    split : str, default=None
        Column of the metadata that contains the split, with the values "train" and "test" in upper or lower case.
    parts : tuple of str, default=()
        Parts of the data set, which are in separate files ``counts_<part>.npz`` and so on.
    files : tuple of str
        Names of the required files.
    """

    title: str
    source: str
    terms: str
    recipe: str
    target: str | None = None
    split: str | None = None
    parts: tuple = ()
    files: tuple = ("counts.npz", "vocab.txt")

    @property
    def description(self):
        """Text for ``DESCR``."""
        return f"{self.title}\n\nSource: {self.source}\nTerms: {self.terms}\nCounts: {self.recipe}"


_RECIPE_A = (
    "make_count_vectorizer(min_df={}, max_df=0.5, ascii_only=True) (accents folded, lower case, clitics dropped, runs "
    "of three or more letters, no English stop words)"
)

CORPORA = {
    "20newsgroups": Facts(
        "20 Newsgroups, 'bydate' split: posts to 20 Usenet groups; 11,314 for training, then 7,532 for testing.",
        "http://qwone.com/~jason/20Newsgroups/, also sklearn.datasets.fetch_20newsgroups",
        "not stated",
        _RECIPE_A.format(20) + " on the training posts, headers, footers and quotes removed",
        target="category",
        split="split",
    ),
    "wikipedia": Facts(
        "Full articles of English Wikipedia from a 2015 dump, broad and long ones; rows in random order.",
        "https://dumps.wikimedia.org; vocabulary dictnostops.txt of https://github.com/blei-lab/onlineldavb",
        "CC BY-SA 3.0 and GFDL",
        "lower case, '-' to a space, all but a-z and spaces deleted, the words of the vocabulary counted; articles of "
        "fewer than 10 counted words dropped",
    ),
    "acl_abstracts": Facts(
        "Titles and abstracts of papers in the ACL Anthology, 1974-2020.",
        "https://github.com/acl-org/acl-anthology, data/xml, February 2021",
        "ACL material CC BY 4.0 from 2016 on, CC BY-NC-SA 3.0 before; other venues their own",
        _RECIPE_A.format(10) + "; abstracts of fewer than 10 counted words dropped",
    ),
    "acl2020_abstracts": Facts(
        "Titles and abstracts of the main conference of ACL 2020.",
        "https://github.com/acl-org/acl-anthology, data/xml/2020.acl.xml",
        "CC BY 4.0",
        _RECIPE_A.format(5),
    ),
    "sotu_paragraphs": Facts(
        "Paragraphs of the State of the Union addresses of presidents of the United States, 1790-2020.",
        "https://github.com/cran/sotu",
        "texts in the public domain",
        _RECIPE_A.format(10) + "; paragraphs of fewer than 10 counted words dropped",
    ),
    "poliblog5k": Facts(
        "5,000 posts of six political blogs of 2008 (CMU 2008 Political Blog Corpus), words stemmed.",
        "https://github.com/bstewart/stm, data/poliblog5k.RData",
        "package MIT; posts not stated",
        "as published",
        target="rating",
    ),
    "reuters21578": Facts(
        "Reuters-21578, news wire of 1987.",
        "https://archive.ics.uci.edu/dataset/137",
        "for research only, copyright Reuters",
        _RECIPE_A.format(20) + " on title and body of all but the test part of lewissplit",
        split="lewissplit",
    ),
    "ap": Facts(
        "Associated Press, a sample of TREC-1 (Blei's lda-c).",
        "https://github.com/cran/topicmodels, data/AssociatedPress.rda",
        "package GPL-2; texts not stated",
        "as published",
    ),
    "20news_different": Facts(
        "20News-different: posts to rec.sport.baseball, sci.space and alt.atheism, as the papers on spherical "
        "admixture models use them. ``tfidf`` has unit rows.",
        "https://github.com/changliu00/Riem-SVGD, SAM/data/20News-diff",
        "not stated",
        "as published; counts recovered exactly from tf-idf",
        target="category",
        parts=("train", "test"),
        files=("counts_train.npz", "counts_test.npz", "vocab.txt"),
    ),
    "msweb": Facts(
        "Anonymous Microsoft web data: the areas of a web site that a user visited, 0 or 1.",
        "https://archive.ics.uci.edu/dataset/4",
        "not stated",
        "one row per user, one column per area",
        parts=("train", "test"),
        files=("counts_train.npz", "counts_test.npz", "vocab.txt"),
    ),
    "nltcs": Facts(
        "National Long Term Care Survey: 16 yes-or-no questions on disability.",
        "https://github.com/arranger1044/DEBD",
        "not stated",
        "as published; dense 0 and 1",
        parts=("train", "valid", "test"),
        files=("nltcs.npz",),
    ),
}

TABLES = {
    "australian": Facts(
        "Australian credit approval (Statlog), 690 rows, 14 columns; 1 is '+'.",
        "https://archive.ics.uci.edu/dataset/143",
        "not stated",
        "no text",
        files=("australian.npz",),
    ),
    "heart": Facts(
        "Heart disease (Statlog), 270 rows, 13 columns; 1 is disease present.",
        "https://archive.ics.uci.edu/dataset/145",
        "not stated",
        "no text",
        files=("heart.npz",),
    ),
    "a9a": Facts(
        "a9a: Adult (census income) in 123 binary columns; 32,561 rows for training, then 16,281 for testing; -1, 1.",
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        "not stated",
        "no text",
        files=("a9a.svm.gz", "a9a.t.svm.gz"),
    ),
    "covertype": Facts(
        "Forest cover type: 54 columns (10 numbers, 4 wilderness areas, 40 soil types as 0 and 1), target 1 to 7; rows "
        "in random order. A sample of the 581,012 rows that sklearn.datasets.fetch_covtype gives.",
        "https://archive.ics.uci.edu/dataset/31",
        "copyright Colorado State University, free use with this notice",
        "no text",
        files=("covertype.npz",),
    ),
}
