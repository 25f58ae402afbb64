"""Collections of Dask's, which must not be loaded into memory unasked."""


def is_dask(X):
    """Whether an object is a collection of Dask's; does not import it."""
    return type(X).__module__.partition(".")[0] == "dask"


def is_dask_array(X):
    """Whether an object is an array of Dask's."""
    return is_dask(X) and type(X).__name__ == "Array"


def refuse_dask(X, name="X"):
    """Raise a `TypeError` for a collection of Dask's, which NumPy or pandas would silently load into memory.

    Parameters
    ----------
    X : object
        Anything else passes.
    name : str, default="X"
        The name used in the error.
    """
    if not is_dask(X):
        return
    remedy = f"Pass {name}.compute() if the result fits in memory"
    if name == "X" and hasattr(X, "to_dask_array"):
        remedy += "; transform, predict and score_samples also take X.to_dask_array(), block by block"
    elif name == "X" and hasattr(X, "blocks"):
        remedy += ", or one block after another to partial_fit, the first being X.blocks[0].compute()"
    raise TypeError(f"{name} is a Dask {type(X).__name__}, and would have to be loaded into memory here. {remedy}.")
