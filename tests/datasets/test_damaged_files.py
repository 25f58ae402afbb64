"""Files of data sets that are damaged: an error names the file, and nothing is allocated for what a header claims."""

import gzip
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.datasets import CountBlocks, _fetch, _load, fetch_corpus, fetch_table, load_docstrings
from sk_sgmcmc.utils import _files

COUNTS = sparse.csr_matrix([[1, 0], [0, 2], [3, 1]])


@pytest.fixture
def home(tmp_path):
    """A folder with the data set "ap" of three documents."""
    folder = tmp_path / "ap"
    folder.mkdir()
    sparse.save_npz(folder / "counts.npz", COUNTS)
    (folder / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    (folder / "meta.csv").write_text("year,who\n1,x\n2,y\n3,z\n", encoding="utf-8")
    assert fetch_corpus("ap", data_home=tmp_path).counts.sum() == 7
    return tmp_path


def header(shape, dtype="<f8"):
    """The header of an array in a file."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def rewrite(path, **members):
    """Replace members of an archive by bytes; None removes one."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    found |= {f"{name}.npy": content for name, content in members.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in found.items():
            if content is not None:
                archive.writestr(name, content)


DAMAGED_COUNTS = {
    "index beyond the end": ({"indices": npy(np.array([0, 1, 10**8, 1], dtype=np.int32))}, "indices holds 100000000"),
    "index -1": ({"indices": npy(np.array([0, 1, -1, 1], dtype=np.int32))}, "indices holds -1|negative"),
    "pointer beyond the end": ({"indptr": npy(np.array([0, 1, 2, 10**8], dtype=np.int32))}, "indptr|index pointer"),
    "pointer that falls": ({"indptr": npy(np.array([0, 3, 2, 4], dtype=np.int32))}, "indptr|pointer"),
    "fewer pointers": ({"indptr": npy(np.array([0, 4], dtype=np.int32))}, "indptr|pointer"),
    "claims terabytes": ({"data": header((2**40,))}, r"data.npy claims the shape \(1099511627776,\)"),
    "claims more than 64 bits": ({"data": header((2**62, 2**62))}, "data.npy claims the shape"),
    "cut short": ({"data": npy(COUNTS.data)[:-8]}, "data.npy claims the shape"),
    "no header": ({"data": b"what is this"}, "magic string"),
    "objects": ({"data": npy(np.array([1, "a", 2, 3], dtype=object))}, "holds Python objects"),
    "text": ({"data": npy(np.array(["a", "b", "c", "d"]))}, "not numbers"),
    "complex": ({"data": npy(COUNTS.data * 1j)}, "complex128, not numbers"),
    "a part is missing": ({"indptr": None}, "indptr is not a file"),
    "a shape of terabytes": ({"shape": npy(np.array([2**42, 2]))}, "pointer size 4 should be|indptr has 4"),
    "a negative shape": ({"shape": npy(np.array([-3, 2]))}, "negative"),
}


@pytest.mark.parametrize("key", DAMAGED_COUNTS)
def test_damaged_counts_are_refused_by_the_name_of_the_file(key, home):
    members, match = DAMAGED_COUNTS[key]
    rewrite(home / "ap" / "counts.npz", **members)
    with pytest.raises(ValueError, match=f"ap/counts.npz' cannot be read(?s:.)*({match})"):
        fetch_corpus("ap", data_home=home)
    with pytest.raises(ValueError, match=f"block 0 .*cannot be read.*counts.npz(?s:.)*({match})"):
        CountBlocks([home / "ap" / "counts.npz"]).shape


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive at all"])
def test_what_is_no_archive_is_refused(content, home):
    (home / "ap" / "counts.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"counts\.npz' cannot be read"):
        fetch_corpus("ap", data_home=home)


def test_a_damaged_byte_is_found_and_a_small_file_does_not_unpack_to_a_large_one(home):
    path = home / "ap" / "counts.npz"
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        begin = archive.getinfo("data.npy").header_offset
    whole[begin + 60] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"counts\.npz' cannot be read"):
        fetch_corpus("ap", data_home=home)

    n = 2**26  # 256 MiB of zeros in 250 kB
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("data.npy", "w") as file:
        file.write(header((n,), "<i4"))
        for _ in range(64):
            file.write(bytes(4 * n // 64))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"counts.npz' cannot be read .*data.npy claims 0.25 GiB in"):
        fetch_corpus("ap", data_home=home)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_arrays_that_take_more_memory_than_there_is_are_refused(home, monkeypatch):
    monkeypatch.setattr(_files, "available_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"counts.npz' cannot be read .*its arrays take .* GiB, more than there is"):
        fetch_corpus("ap", data_home=home)


@pytest.mark.parametrize(
    "content, match",
    [
        (b"", "first line must name the columns"),
        (b"\n", "first line must name the columns"),
        (b"year,year\n1,2\n", "each by a name of its own"),
        (b"year,who\n1,x\n2\n3,z\n", r"row 2 has 1 entries, but the header 2"),
        (b"year,who\n1,x\n2,y,w\n3,z\n", r"row 2 has 3 entries, but the header 2"),
        (b"year,who\n1,\xff\n2,y\n3,z\n", "UnicodeDecodeError"),
        (b'year,who\n1,"' + b"x" * 200_000 + b'"\n2,y\n3,z\n', "field larger than field limit"),
    ],
)
def test_damaged_metadata_are_refused_by_the_name_of_the_file(content, match, home):
    (home / "ap" / "meta.csv").write_bytes(content)
    with pytest.raises(ValueError, match=f"ap/meta.csv' cannot be read .*{match}"):
        fetch_corpus("ap", data_home=home)


def test_metadata_may_end_in_empty_lines_and_hold_large_numbers(home):
    (home / "ap" / "meta.csv").write_text("year,who\n1,x\n2,y\n99999999999999999999,z\n\n\n", encoding="utf-8")
    columns = fetch_corpus("ap", data_home=home).metadata
    assert list(columns["year"]) == ["1", "2", "99999999999999999999"]


def test_words_that_are_no_text_are_refused(home):
    (home / "ap" / "vocab.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match=r"vocab\.txt' cannot be read"):
        fetch_corpus("ap", data_home=home)


@pytest.mark.parametrize("name", [["ap"], None, 3, {"ap": 1}, b"ap"])
@pytest.mark.parametrize("fetch", [fetch_corpus, fetch_table])
def test_a_name_is_a_text(fetch, name):
    with pytest.raises(TypeError, match="name must be the name of one data set, such as"):
        fetch(name)


@pytest.mark.parametrize("given", [3, b"folder", ["folder"]])
def test_a_folder_is_a_path(given):
    for fetch in (fetch_corpus, fetch_table):
        with pytest.raises(TypeError, match="data_home must be the path of a folder"):
            fetch("ap" if fetch is fetch_corpus else "heart", data_home=given)
    with pytest.raises(TypeError, match="data_home must be the path of a folder"):
        load_docstrings(["joblib"], data_home=given)


TABLES = {
    "lengths": ({"X": np.ones((3, 2)), "y": np.ones(4)}, r"rows of shape \(3, 2\) and .*\(4,\)"),
    "no labels": ({"X": np.ones((3, 2))}, "no array 'y', only 'X'"),
    "text": ({"X": np.array([["a"]]), "y": np.ones(1)}, "must be numbers"),
    "dimensions": ({"X": np.ones(3), "y": np.ones(3)}, "rows of shape"),
    "names": ({"X": np.ones((3, 2)), "y": np.ones(3), "feature_names": np.array(["a"])}, "1 names for 2 columns"),
}


@pytest.mark.parametrize("key", TABLES)
def test_damaged_tables_are_refused_by_the_name_of_the_file(key, tmp_path):
    arrays, match = TABLES[key]
    (tmp_path / "tabular").mkdir()
    np.savez(tmp_path / "tabular" / "heart.npz", **arrays)
    with pytest.raises(ValueError, match=f"heart.npz'.*{match}"):
        fetch_table("heart", data_home=tmp_path)


def test_a_table_of_codes_out_of_range_and_parts_of_other_widths_are_refused(tmp_path):
    (tmp_path / "tabular").mkdir()
    codes = {"wilderness": np.array([0, 4]), "soil": np.array([0, 1]), "cover_type": np.ones(2)}
    names = np.array([f"x{j}" for j in range(10)])
    np.savez(tmp_path / "tabular" / "covertype.npz", numeric=np.ones((2, 10)), feature_names=names, **codes)
    with pytest.raises(ValueError, match=r"covertype.npz': wilderness must be codes of 0 to 3; got 0 to 4"):
        fetch_table("covertype", data_home=tmp_path)
    (tmp_path / "binary").mkdir()
    parts = {"train": np.ones((3, 2)), "valid": np.ones((3, 3)), "test": np.ones(2)}
    np.savez(tmp_path / "binary" / "nltcs.npz", **parts)
    with pytest.raises(ValueError, match=r"nltcs\.npz' holds arrays of shapes"):
        fetch_corpus("nltcs", data_home=tmp_path)


@pytest.mark.parametrize(
    "content, match",
    [
        (b"no gzip", "BadGzipFile"),
        (gzip.compress(b"1 200:1\n"), "ValueError"),
        (gzip.compress(bytes(5000)), "unpacks to more"),
    ],
    ids=["not packed", "bad columns", "too large"],
)
def test_damaged_packed_texts_are_refused(content, match, tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch, "_LARGEST_TEXT", 4096)
    (tmp_path / "tabular").mkdir()
    for name in ("a9a.svm.gz", "a9a.t.svm.gz"):
        (tmp_path / "tabular" / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"a9a.svm.gz' cannot be read.*{match}|{match}.*cannot be read"):
        fetch_table("a9a", data_home=tmp_path)


@pytest.mark.parametrize(
    "part, value",
    [("indices", [0, -1]), ("indices", [0, 10**9]), ("indptr", [0, 3, 2]), ("package", ["joblib", "other"])],
)
def test_a_damaged_cache_of_docstrings_is_made_again(part, value, tmp_path):
    whole = {
        "package": ["joblib"] * 2, "module": ["joblib"] * 2, "name": ["a", "b"], "kind": ["module"] * 2,
        "text": ["", ""], "words": ["u", "v"], "data": [1, 1], "indices": [0, 1], "indptr": [0, 1, 2],
    }  # fmt: skip
    path = tmp_path / "cache.json.gz"
    path.write_bytes(gzip.compress(json.dumps(whole).encode()))
    assert _load._read(path) is not None
    path.write_bytes(gzip.compress(json.dumps({**whole, part: value}).encode()))
    assert _load._read(path) is None


def test_packages_are_a_list_of_names():
    for given in ("numpy", [3]):
        with pytest.raises(TypeError, match="packages must be a list of names"):
            load_docstrings(given)
