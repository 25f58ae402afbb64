"""What displays share: colours, the length of names, and matplotlib, imported on use."""

_INK, _BAR, _WHISKER = "#333333", "#8fb8d8", "#1f4e79"
_GREY, _FAINT, _GRID = "#666666", "#bbbbbb", "#e6e6e6"
_LONGEST = 18


def _pyplot(whom):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{whom} needs matplotlib, which is not installed; pip install sk-sgmcmc[inspection]."
        ) from error
    return plt


def _shortened(word):
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"
