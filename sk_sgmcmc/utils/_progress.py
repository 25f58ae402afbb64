"""Progress of a fit on the screen."""

import time

COMPILING = "compiling"  # shown until the first steps are made


class _Silent:
    n, text = 0, ""

    def update(self, n):
        self.n += n

    def set_postfix_str(self, text):
        self.text = text

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


class _Lines(_Silent):
    """Progress without tqdm: a line at each tenth, with what is left."""

    def __init__(self, total, initial):
        self.total, self.n, self.tenth = total, initial, 10 * initial // max(1, total)
        self.first, self.began = initial, time.monotonic()

    def set_postfix_str(self, text):
        if text == COMPILING:
            print(text, flush=True)
        else:
            self.text = text

    def update(self, n):
        self.n += n
        if 10 * self.n // max(1, self.total) > self.tenth:
            self.tenth = 10 * self.n // max(1, self.total)
            seconds = (self.total - self.n) * (time.monotonic() - self.began) / (self.n - self.first)
            left = [f"{seconds:.0f} s left"] if self.n < self.total else []
            print(f"step {self.n} of {self.total}", *left, *([self.text] if self.text else []), sep=", ", flush=True)


def progress_bar(verbose, total, initial):
    """A bar of ``total`` steps, ``initial`` of them made: tqdm if installed, nothing unless ``verbose``."""
    if not verbose:
        bar = _Silent()
        bar.n = initial
        return bar
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines(total, initial)
    return tqdm(total=total, initial=initial, unit="step")
