"""What a release runs outside the package: the scripts in ``.ci`` that try distributions and publish documentation."""

import importlib.util
import json
import zipfile

import pytest

from tests.test_house import ROOT


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def publish(tmp_path):
    def call(version):
        html = tmp_path / f"html-{version}"
        html.mkdir(exist_ok=True)
        (html / "index.html").write_text(version, encoding="utf-8")
        script("publish_docs").publish(html, tmp_path / "site", version, "https://example.org/docs/")
        return tmp_path / "site"

    return call


def test_the_front_page_leads_to_dev_until_there_is_a_release(publish):
    site = publish("dev")
    assert 'url=dev/"' in (site / "index.html").read_text(encoding="utf-8")
    assert not (site / "stable").exists()
    assert 'url=stable/"' in (publish("0.1") / "index.html").read_text(encoding="utf-8")


def test_stable_is_the_newest_release_whatever_was_published_last(publish):
    for version in ("0.9", "0.10", "dev", "0.9"):
        site = publish(version)
    assert (site / "stable" / "index.html").read_text(encoding="utf-8") == "0.10"
    assert (site / "0.9" / "index.html").read_text(encoding="utf-8") == "0.9"


def test_the_switcher_lists_all_versions(publish):
    for version in ("dev", "0.1", "0.2"):
        site = publish(version)
    assert json.loads((site / "switcher.json").read_text(encoding="utf-8")) == [
        {"version": "0.2", "url": "https://example.org/docs/stable/", "name": "0.2 (stable)", "preferred": True},
        {"version": "0.1", "url": "https://example.org/docs/0.1/"},
        {"version": "dev", "url": "https://example.org/docs/dev/"},
    ]


@pytest.mark.parametrize("version", ["", "0.1.0", "../0.1"])
def test_other_versions_are_refused(version):
    with pytest.raises(ValueError, match="VERSION must be"):
        script("publish_docs").publish(ROOT, ROOT, version, "https://example.org")


def test_floors_are_the_lower_bounds_of_dependencies_without_extras(tmp_path):
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        lines = [
            "Requires-Dist: numpy>=1.26",
            "Requires-Dist: scikit-learn>=1.6",
            "Requires-Dist: tqdm>=4; extra == 'all'",
        ]
        archive.writestr("some-1.dist-info/METADATA", "\n".join(lines))
    assert script("floors").floors(wheel) == ["numpy==1.26", "scikit-learn==1.6"]
