"""A report is one file of HTML that holds what the tables hold, and in which no text of a document is code."""

import copy
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import sk_sgmcmc
from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    DMRTopicModel,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    StructuralTopicModel,
    TopicClassifier,
    TopicRegressor,
)
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.inspection import topic_report
from tests.conftest import importorskip

ATTACK = "</script><img src=x onerror=alert(1)><script>alert(2)</script> \u2028 &amp; \"quoted\" 'too' \x00"
FOLDER = Path(sk_sgmcmc.__file__).parent / "inspection" / "_report"
N = 80


@pytest.fixture(scope="module")
def data():
    return make_lda(N, 40, 3, random_state=0)


@pytest.fixture(scope="module")
def lda(data):
    return BayesianLDA(3, n_iter=60, n_chains=2, random_state=0).fit(data.counts, feature_names=data.feature_names)


@pytest.fixture(scope="module")
def metadata():
    return {"party": np.array(["Whig", "Free Soil"] * (N // 2)), "year": np.arange(float(N))}


class Page(HTMLParser):
    """Elements and texts of a page; raises where the end of an element is missing or in the wrong place."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.ids, self.links = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"these elements have no end: {self.open}"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        assert len(attrs) == len({*attrs})
        self.tags.append(tag)
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for name in ("src", "href", "srcset", "action", "data"):
            if name in attrs:
                self.links.append((tag, attrs[name]))
        assert not [name for name in attrs if name.startswith("on")], f"{tag} runs code"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", "".join(self.texts))


def written(folder, *args, **params):
    path = folder / "report.html"
    assert topic_report(*args[:2], path, *args[2:], **params) == path.absolute()
    assert os.listdir(folder) == ["report.html"], "temporary files are gone"
    return path.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------ contents


def test_numbers_are_those_of_the_tables(lda, data, tmp_path):
    groups, times = ["left", "right"] * (N // 2), np.repeat([1900, 1910, 1920, 1930], N // 4)
    text = Page(written(tmp_path, lda, data.counts, groups=groups, times=times, n_words=5)).text
    words, info = lda.top_words(5), lda.topic_info(data.counts)
    for i in range(len(words["word"])):
        assert f"{words['word'][i]}{100 * words['probability'][i]:.1f}"[:-2] in text
    for mean, low, high in zip(info["share"], info["low"], info["high"], strict=True):
        assert f"{100 * mean:.1f}% [{100 * low:.1f}, {100 * high:.1f}]" in text
    over = lda.topics_over_time(data.counts, groups, of="population")
    assert f"{100 * over['share'][0]:.1f}% [{100 * over['low'][0]:.1f}, {100 * over['high'][0]:.1f}]" in text
    docs = lda.representative_docs(data.counts, n=1)
    for document, share in zip(docs["document"], docs["proportion"], strict=True):
        assert f"Document {document} · {100 * share:.1f}%" in text
    by_year = lda.topics_over_time(data.counts, times, of="population")
    highest = np.asarray(by_year["share"]).reshape(4, 3)
    for topic in range(3):
        assert f"highest: {100 * highest[:, topic].max():.1f}%, {1900 + 10 * highest[:, topic].argmax()}" in text
    assert "found by 2 of 2 chains" in text and "checks of the fit passed" in text and "Distance of chain" in text


def test_the_difference_of_two_groups_is_that_of_their_shares(lda, data, tmp_path):
    groups = np.array(["a", "b"] * (N // 2))
    text = Page(written(tmp_path, lda, data.counts, groups=groups)).text
    share = np.asarray(lda.topics_over_time(data.counts, groups, of="population")["share"]).reshape(2, 3)
    for topic in range(3):
        difference = 100 * (share[1] - share[0])[topic]
        sign = "+" if difference > 0 else "−"
        assert f"b{sign}{abs(difference):.{1 if abs(difference) >= 0.995 else 2}f} [" in text
    three = Page(written(tmp_path, lda, data.counts, groups=np.arange(N) % 3)).text
    assert "compared with all others" in three


@pytest.mark.parametrize("name", ["dmr", "dispersion", "gamma process", "content", "keywords", "regressor",
                                  "classifier", "sphere", "merged", "stream"])  # fmt: skip
def test_all_topic_models_have_reports(name, data, metadata, tmp_path):
    X, rng, short = data.counts, np.random.default_rng(0), {"n_iter": 30, "random_state": 0}
    names = {"feature_names": data.feature_names}
    model, wanted = {
        "dmr": lambda: (DMRTopicModel(3, **short).fit(X, metadata=metadata), "Effect of party, compared with Free"),
        "dispersion": lambda: (
            DMRTopicModel(3, dispersion="topic", **short).fit(X, metadata=metadata), "Effect of year"
        ),
        "gamma process": lambda: (GammaProcessTopicModel(8, **short).fit(X), "most probable number of topics"),
        "content": lambda: (
            StructuralTopicModel(3, formula="~ 1", content="party", **short).fit(X, metadata=metadata, **names),
            "Words in Whig",
        ),
        "keywords": lambda: (
            StructuralTopicModel(3, formula="~ party", keywords={"Sea": [data.feature_names[0]]}, **short).fit(
                X, metadata=metadata, **names
            ),
            "Tokens from its keywords",
        ),
        "regressor": lambda: (TopicRegressor(3, **short).fit(X, rng.normal(size=N)), "Coefficient of the outcome"),
        "classifier": lambda: (TopicClassifier(3, **short).fit(X, metadata["party"]), "Coefficient of the outcome"),
        "sphere": lambda: (SphericalAdmixtureModel(3, **short).fit(X.astype(float)), "rarer than on average"),
        "merged": lambda: (BayesianLDA(3, **short).fit(X).merge_topics([0, 1]), "2 topics of 80 documents"),
        "stream": lambda: (BayesianLDA(3, sampler="scir", **short).partial_fit(X), "No checks are known"),
    }[name]()  # fmt: skip
    if name in ("dmr", "dispersion", "content", "keywords"):
        importorskip("formulaic")
    before = {*model.__dict__}
    text = Page(written(tmp_path, model, X, groups=metadata["party"], times=np.arange(N) // 10)).text
    assert wanted in text and "Share over time" in text and "Documents with most of the topic" in text
    assert {*model.__dict__} - {"_diagnostics"} == before - {"_diagnostics"}


def test_sections_without_data_say_why(lda, data, tmp_path):
    text = Page(written(tmp_path, lda, data.counts)).text
    for sentence in ("no times of the documents were passed", "none were passed (groups=)", "pass texts= for"):
        assert sentence in text
    text = Page(written(tmp_path, lda, data.counts, groups=["one"] * N, times=[1900] * N)).text
    assert "All documents belong to one group, one" in text and "all documents have the same time, 1900" in text


def test_names_of_topics_and_words(lda, data, tmp_path):
    names = [f"w{j}" for j in range(40)]
    text = Page(written(tmp_path, lda, data.counts, labels={0: "Ships & trade"}, feature_names=names)).text
    assert "Topic 0: Ships & trade" in text and re.search(r"Topic 1: w\d+, w\d+", text)
    assert lda._topic_names is None and lda.top_words(1)["word"][0] in data.feature_names
    plain = BayesianLDA(3, n_iter=6, random_state=0).fit(data.counts)
    assert re.search(r"Topic 1: word \d+, word \d+", Page(written(tmp_path, plain, data.counts)).text)


def test_dates_and_labels_as_times(lda, data, tmp_path):
    pandas = importorskip("pandas")
    dates = pandas.date_range("2020-01-01", periods=N, freq="D")
    assert "in 2020-01-01" in written(tmp_path, lda, data.counts, times=dates)
    assert "from 2020-01 to 2020-03" in Page(written(tmp_path, lda, data.counts, times=dates.to_period("M"))).text
    text = Page(written(tmp_path, lda, data.counts, times=["early", "late"] * (N // 2))).text
    assert "Shares at early, late are in the description" in text
    series = pandas.Series(["b", "a"] * (N // 2), index=np.arange(N)[::-1])
    frame = pandas.DataFrame(data.counts.toarray(), index=np.arange(N))
    frame.columns = data.feature_names
    fitted = BayesianLDA(3, n_iter=30, random_state=0).fit(frame)
    one = written(tmp_path, fitted, frame, groups=series)
    assert one == written(tmp_path, fitted, frame, groups=series[::-1].to_numpy()), "rows are matched by labels"


def test_the_same_arguments_give_the_same_bytes(lda, data, tmp_path):
    params = {"groups": ["a", "b"] * (N // 2), "times": np.arange(N) // 10, "texts": ["text"] * N}
    first = written(tmp_path, lda, data.counts, **params)
    assert first == written(tmp_path, lda, data.counts, **params)
    threads = copy.copy(lda).set_params(n_jobs=2)
    assert first == written(tmp_path, threads, data.counts, **params)


# -------------------------------------------------------------------------------------------------------------- safety


@pytest.fixture(scope="module")
def attacked(data, tmp_path_factory):
    words = [f"{ATTACK}{j}" for j in range(40)]
    party = np.array([ATTACK, "b"] * (N // 2))
    model = DMRTopicModel(3, n_iter=30, random_state=0)
    model.fit(data.counts, metadata={f"{ATTACK}": party}, feature_names=words)
    texts = [f"{d} {ATTACK} \ud800 https://example.org" for d in range(N)]
    labels = {0: ATTACK}
    folder = tmp_path_factory.mktemp("attacked")
    return written(folder, model, data.counts, texts, labels=labels, groups=party, times=party, title=ATTACK)


def test_texts_are_escaped(attacked):
    page = Page(attacked)
    assert "img" not in page.tags and page.tags.count("script") == 1
    assert "<img src=x onerror=alert(1)><script>alert(2)</script>" in page.text, "they are shown as they are"
    assert "\x00" not in attacked and "&amp;amp;" in attacked
    script = attacked[attacked.index("<script>") : attacked.index("</script>")]
    assert script.removeprefix("<script>") == (FOLDER / "page.js").read_text(encoding="utf-8"), "no data in scripts"


def test_nothing_is_loaded(attacked):
    page = Page(attacked)
    assert all(link.startswith("#") for tag, link in page.links if tag != "link")
    assert [link for tag, link in page.links if tag == "link"] == ["data:,"]
    style = attacked[attacked.index("<style>") : attacked.index("</style>")]
    assert "url(" not in style and "@import" not in style
    for name in ("page.js", "page.css"):
        assert not re.search(r"https?:|//\w", (FOLDER / name).read_text(encoding="utf-8"))
    assert "default-src 'none'" in attacked and "script-src 'sha256-" in attacked


def test_links_lead_to_places_and_names_are_given(attacked):
    page = Page(attacked)
    assert len(page.ids) == len({*page.ids})
    assert {link[1:] for tag, link in page.links if tag != "link"} <= {*page.ids}
    assert '<html lang="en">' in attacked and 'charset="utf-8"' in attacked and 'dir="auto"' in attacked
    assert page.tags.count("h1") == 1 and page.tags.count("main") == 1


def test_other_scripts_are_kept(lda, data, tmp_path):
    texts = ["中文的文本 " * 200, "نص عربي " * 200] * (N // 2)
    text = written(tmp_path, lda, data.counts, texts, n_characters=300)
    assert "中文的文本" in text and "نص عربي" in text
    assert max(map(len, re.findall(r"中文的文本[^<]*", text))) <= 301


def _luminance(colour):
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_colours_have_the_contrast_of_level_aa():
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in re.findall(r":root \{(.*?)\}", style, re.S)
    ]
    assert len(schemes) == 3
    for colours in schemes[:2]:
        pairs = [(ink, paper) for ink in ("ink", "grey", "link", "warn") for paper in ("paper", "soft")]
        for ink, paper in [*pairs, ("ink", "warn-paper"), ("link", "warn-paper"), ("ink", "bar")]:
            light, dark = sorted((_luminance(colours[ink]), _luminance(colours[paper])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)
        light, dark = sorted((_luminance(colours["mark"]), _luminance(colours["paper"])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0


def test_fifty_topics_with_texts_take_less_than_two_megabytes(tmp_path):
    data = make_lda(300, 400, 50, random_state=0)
    model = BayesianLDA(50, n_iter=20, n_chains=2, random_state=0).fit(data.counts)
    texts = ["汉字 & <b> " * 400] * 300
    written(tmp_path, model, data.counts, texts, times=np.arange(300) // 2, groups=np.arange(300) % 8)
    assert (tmp_path / "report.html").stat().st_size < 2e6


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(("params", "message"), [
    ({"texts": ["a"] * 3}, "There are 3 texts, but X has 80 documents"),
    ({"texts": "text"}, "texts must be a list or an array"),
    ({"groups": ["a"] * 3}, "groups has shape"),
    ({"groups": [None] * N}, "groups holds 80 missing values"),
    ({"groups": np.arange(N)}, "groups holds 80 different values"),
    ({"times": [1] * 3}, "times has shape"),
    ({"labels": ["a"]}, "`labels` must be names of the topics"),
    ({"labels": {7: "a"}}, "topics are 0 to 2"),
    ({"feature_names": ["a"]}, "feature_names has shape"),
    ({"interval": 2.0}, "interval=2.0 must lie between 0 and 1"),
    ({"interval": None}, "a display shows intervals"),
    ({"n_words": 0}, "n_words=0"), ({"n_documents": 1.5}, "n_documents=1.5"), ({"n_characters": -1}, "n_characters=-1"),
    ({"of": "prior"}, "`of` must be"), ({"title": 3}, "`title` must be a text"),
    ({"metadata": [[1]] * N}, "`topic_report` got an unexpected keyword argument 'metadata'"),
    ({"n_bins": 0, "times": np.arange(N)}, "n_bins"),
])  # fmt: skip
def test_bad_arguments_are_refused_before_anything_is_written(params, message, lda, data, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        topic_report(lda, data.counts, path, **params)
    assert path.read_text(encoding="utf-8") == "old" and os.listdir(tmp_path) == ["report.html"]


def test_bad_paths_are_refused_before_anything_is_computed(lda, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="Create it first"):
        topic_report(lda, None, tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match="got the folder"):
        topic_report(lda, None, tmp_path)
    for path in (None, 3, b"report.html", ""):
        with pytest.raises(TypeError, match="`path` must be the path of a file"):
            topic_report(lda, None, path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="Pass another path"):
        topic_report(lda, None, tmp_path / "report.html")


def test_other_estimators_and_unfitted_ones_are_refused(data, tmp_path):
    path = tmp_path / "report.html"
    with pytest.raises(TypeError, match="topic_report shows topics"):
        topic_report(BayesianGaussian(), data.counts, path)
    with pytest.raises(ValueError, match="not fitted"):
        topic_report(BayesianLDA(), data.counts, path)
    assert not path.exists()


def test_a_failed_write_leaves_the_old_file(lda, data, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")

    def failing(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="disk full"):
        topic_report(lda, data.counts, path)
    assert path.read_text(encoding="utf-8") == "old" and os.listdir(tmp_path) == ["report.html"]
