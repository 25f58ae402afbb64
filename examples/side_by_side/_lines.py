"""Count the lines of code of scripts of equal task: python examples/side_by_side/_lines.py."""

import ast
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAIRS = {
    "covariates": "covariates_stm.R",
    "words_by_group": "words_by_group_stm.R",
    "keywords": "keywords_keyatm.R",
    "over_time": "over_time_bertopic.py",
    "survey": "survey_polca.R",
    "number_of_topics": "number_of_topics_stm.R",
}


def lines_of_code(path):
    """Lines that are neither empty, nor comments, nor docstrings; and how many of them only load packages."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tree = ast.parse(text)
        text = text.replace(ast.get_source_segment(text, tree.body[0]), "", 1)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return len(lines), sum(line.startswith(("import ", "from ", "library(")) for line in lines)


def table():
    """For each task, the lines of our script and of the other one, each as `lines_of_code` counts them."""
    return {task: (lines_of_code(HERE / f"{task}.py"), lines_of_code(HERE / other)) for task, other in PAIRS.items()}


def main():
    """Print the table."""
    print("task               lines, ours   theirs   without imports, ours   theirs   share")
    total = [0, 0]
    for task, (ours, theirs) in table().items():
        bare = ours[0] - ours[1], theirs[0] - theirs[1]
        total = [total[0] + bare[0], total[1] + bare[1]]
        print(f"{task:18s} {ours[0]:11d}   {theirs[0]:6d}   {bare[0]:21d}   {bare[1]:6d}   {bare[0] / bare[1]:5.0%}")
    print(f"{'all':18s} {'':11s}   {'':6s}   {total[0]:21d}   {total[1]:6d}   {total[0] / total[1]:5.0%}")


if __name__ == "__main__":
    main()
