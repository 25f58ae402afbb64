"""Folders of data sets: ``data_home``, ``SK_SGMCMC_DATA``, or ``sk_sgmcmc`` in scikit-learn's data home."""

import os
from pathlib import Path

from sklearn.datasets import get_data_home

_VARIABLE = "SK_SGMCMC_DATA"


def data_folders(data_home=None):
    """Folders in which to look for data sets, in this order.

    Parameters
    ----------
    data_home : path-like, default=None
        The only folder to look in. None: the folder in ``SK_SGMCMC_DATA``, then ``sk_sgmcmc`` in scikit-learn's data
        home.

    Returns
    -------
    list of Path
    """
    _refuse_no_path(data_home)
    if data_home is not None:
        return [Path(data_home).expanduser()]
    folders = []
    if os.environ.get(_VARIABLE):
        folders.append(Path(os.environ[_VARIABLE]).expanduser())
    folders.append(_own_folder())
    return folders


def _refuse_no_path(data_home):
    if not isinstance(data_home, str | os.PathLike | None):
        raise TypeError(f"data_home must be the path of a folder, or None; got {data_home!r}.")


def _own_folder():
    # Do not call get_data_home(), which creates the folder: looking for data should not.
    home = os.environ.get("SCIKIT_LEARN_DATA") or Path("~", "scikit_learn_data")
    return Path(home).expanduser() / "sk_sgmcmc"


def cache_folder(data_home=None):
    """Folder for caches, created if necessary; None if it cannot be created or written.

    Parameters
    ----------
    data_home : path-like, default=None
        The folder. None: ``sk_sgmcmc`` in scikit-learn's data home.

    Returns
    -------
    Path or None
    """
    _refuse_no_path(data_home)
    try:
        folder = Path(get_data_home()) / "sk_sgmcmc" if data_home is None else Path(data_home).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
