"""Counts of words in any language."""

import pickle
import warnings

import pytest
from sklearn.base import clone

from sk_sgmcmc.datasets import make_count_vectorizer


def words(texts, **params):
    vectorizer = pickle.loads(pickle.dumps(clone(make_count_vectorizer(max_df=1.0, **params))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return vectorizer.fit(texts).get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wir können Größe, groß 2x", ["groß", "größe", "können", "wir"]),
        ("l\u2019été où l'e\u0301cole", ["école", "été"]),  # composed, whatever was typed
        ("тематическое моделирование", ["моделирование", "тематическое"]),
        ("हिन्दी में विषय", ["में", "विषय", "हिन्दी"]),  # marks do not end a word
        ("주제 모형은 문서의 글", ["모형은", "문서의", "주제"]),  # a sign is a syllable
        ("می\u200cخواهم کتاب", ["می\u200cخواهم", "کتاب"]),
        ("Do\u00adnau don't", ["donau"]),
    ],
)
def test_words_of_other_languages_stay_whole(text, expected):
    assert words([text]) == expected


def test_stop_words_of_any_language_are_left_out():
    texts = ["Häfen und Flüsse", "Über den Fluß"]
    for given in (["und", "Über"], {"und", "über"}, ("und", "u\u0308ber")):
        assert words(texts, stop_words=given) == ["den", "fluß", "flüsse", "häfen"]
    assert words(["the sea"]) == ["sea"] and words(["the sea"], stop_words=None) == ["sea", "the"]
    with pytest.raises(ValueError, match=r"got 'german'\. Pass the words"):
        make_count_vectorizer(stop_words="german")


def test_the_recipe_of_the_corpora_is_an_option():
    assert words(["Naïve cafés, Ωmega"], ascii_only=True) == ["cafes", "mega", "naive"]


def test_texts_without_spaces_are_referred_to_a_tokenizer():
    texts = ["我喜欢主题模型，因为它们很好。", "トピックモデル", "LDA model"]
    for given in (texts, iter(texts)):
        with pytest.warns(UserWarning, match=r"of the letters in these texts belong to no token.*Pass tokenizer="):
            make_count_vectorizer(max_df=1.0).fit(given)
    with pytest.warns(UserWarning, match="100%"), pytest.raises(ValueError, match="empty vocabulary"):
        make_count_vectorizer(max_df=1.0).fit(texts[:1])
    # Each remedy works, and without another warning.
    assert words(["主题 模型"], tokenizer=str.split) == ["主题", "模型"]
    assert words(texts[1:2], analyzer="char", ngram_range=(2, 2))[0] == "クモ"
    assert words(["主题 模型"], analyzer=str.split) == ["主题", "模型"]
    assert words(["ab cd"], token_pattern=r"\w+") == ["ab", "cd"]
