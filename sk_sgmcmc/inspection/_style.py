"""What displays share: colours, the length of names, and matplotlib, imported on use."""

INK, BAR, WHISKER = "#333333", "#8fb8d8", "#1f4e79"
GREY, FAINT, GRID = "#666666", "#bbbbbb", "#e6e6e6"
LONGEST, LONGEST_NAME = 18, 28  # letters of a word, and of a topic's name


def pyplot(whom):
    """matplotlib's pyplot; raises an error that names the display that needs it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{whom} needs matplotlib, which is not installed; pip install sk-sgmcmc[inspection]."
        ) from error
    return plt


def shortened(word, longest=LONGEST):
    """A word of at most ``longest`` letters, an ellipsis among them, in which dollar signs are not mathematics."""
    word = word if len(word) <= longest else word[: longest - 1] + "…"
    return word.replace("$", r"\$")
