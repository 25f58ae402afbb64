"""Open a report of `topic_report` in headless Chromium, use it by keys, and check what is shown.

Run ``python tests/browser/report_in_chromium.py [--chromium PATH] [--screenshots FOLDER] [REPORT ...]``. Without
reports, it fits two small models and writes one for each. pytest does not collect this file, since it needs a browser.
"""

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ATTACK = "</script><img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script> \u2028 'quoted'"
KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, " ": 32}


class Browser:
    """Headless Chromium, to which commands of its DevTools protocol are written through a pipe."""

    def __init__(self, program, folder):
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        arguments = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--hide-scrollbars", f"--user-data-dir={folder}/profile", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        line = ["sh", "-c", f'exec "$@" 3<&{read} 4>&{write}', "sh", *arguments]
        self._process = subprocess.Popen(line, pass_fds=(read, write), stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self._number, self._buffer, self.session, self.events = 0, b"", None, []
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")[
            "targetId"
        ]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 2**20)
            if not part:
                raise RuntimeError("Chromium ended.")
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        answer = json.loads(text)
        if "method" in answer:
            self.events.append(answer)
        return answer

    def open(self, address, width, height, *, dark=False, scripts=True, print_=False):
        self.events = []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print" if print_ else "", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()
        time.sleep(0.2)

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, *keys):
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = KEYS.get(key, ord(key.upper()[0]))
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                          windowsVirtualKeyCode=code)  # fmt: skip

    def picture(self, path, *, whole=False):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Browser.close")
        self._process.wait(20)


SHOWN = "[...document.querySelectorAll('.topic')].filter((each) => each.offsetParent).map((each) => each.id)"
LISTED = "[...document.querySelectorAll('.list li')].filter((each) => each.offsetParent).length"


def check(browser, address, n_topics):
    """Everything that a reader does with a report; raises AssertionError where the page does something else."""
    browser.open(address, 1366, 900, scripts=False)
    assert len(browser.ask(SHOWN)) == n_topics, "without scripts, all topics are readable"
    browser.open(address, 1366, 900, print_=True)
    assert len(browser.ask(SHOWN)) == n_topics, "all topics are printed"
    for width, height in ((1366, 900), (390, 844)):
        browser.open(address, width, height)
        wide = browser.ask("document.documentElement.scrollWidth")
        assert wide <= width, f"the page is {wide} pixels wide on a screen of {width}"
        _use(browser, n_topics)
        asked = {event["params"]["request"]["url"] for event in browser.events
                 if event["method"] == "Network.requestWillBeSent"} - {"data:,"}  # fmt: skip
        assert asked == {address}, f"the page loads {asked - {address}}"
        wrong = [event for event in browser.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
        assert not wrong, wrong
        assert browser.ask("window.attacked === undefined && document.querySelectorAll('img').length === 0")


def _use(browser, n_topics):
    first = browser.ask("document.querySelector('.list li').dataset.topic")
    assert browser.ask(SHOWN) == [f"topic-{first}"], "one topic is shown, the most prevalent"
    browser.press("j")
    assert browser.ask(SHOWN) != [f"topic-{first}"] and len(browser.ask(SHOWN)) == 1
    assert browser.ask("document.activeElement.tagName") == "H3", "the opened topic has the focus"
    browser.press("k")
    assert browser.ask(SHOWN) == [f"topic-{first}"]
    browser.press("Escape", "ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    second = browser.ask("document.querySelectorAll('.list li')[1].dataset.topic")
    assert browser.ask(SHOWN) == [f"topic-{second}"], "arrow keys move in the list, and Enter opens"
    assert browser.ask("location.hash") == f"#topic-{second}"
    word = browser.ask("document.querySelector('.list li:nth-child(3)').dataset.words.split('\\n')[0]")
    browser.press("/", *word)
    assert browser.ask("document.activeElement.value") == word
    assert 1 <= browser.ask(LISTED) <= n_topics
    browser.ask("document.activeElement.value = ''; document.activeElement.dispatchEvent(new Event('input'))")
    assert browser.ask(LISTED) == n_topics
    order = "const s = document.querySelector('select'); s.value = 'topic'; s.dispatchEvent(new Event('change'));"
    browser.ask("{" + order + "}")
    listed = browser.ask("[...document.querySelectorAll('.list li')].map((each) => Number(each.dataset.topic))")
    assert listed == sorted(listed)
    browser.ask("document.querySelector('.map a').focus()")
    mark = browser.ask("document.activeElement.dataset.topic")
    browser.press("Enter")
    assert browser.ask(SHOWN) == [f"topic-{mark}"], "circles of the map open their topics"


def reports(folder):
    """Write two reports: topics with texts in several scripts, and with metadata over time."""
    from sk_sgmcmc import BayesianLDA, DMRTopicModel
    from sk_sgmcmc.datasets import load_sotu, make_lda
    from sk_sgmcmc.inspection import topic_report

    warnings.simplefilter("ignore")
    data = make_lda(200, 60, 6, random_state=0)
    words = [f"{word}{ATTACK}" if j == 0 else ("話題", "كلمة", "слово")[j % 3] + word
             for j, word in enumerate(data.feature_names)]  # fmt: skip
    texts = [f"{ATTACK} {(('中文的文本。', 'نص عربي. ', 'Text. ')[d % 3]) * 90}" for d in range(200)]
    lda = BayesianLDA(6, n_iter=60, n_chains=2, random_state=0).fit(data.counts, feature_names=words)
    topic_report(lda, data.counts, folder / "lda.html", texts, title=ATTACK, groups=[ATTACK, "b"] * 100)
    sotu = load_sotu()
    some = np.flatnonzero(np.asarray(sotu.metadata["year"]) >= 1900)[::2]
    metadata = {name: np.asarray(sotu.metadata[name])[some] for name in ("year", "party")}
    dmr = DMRTopicModel(12, n_iter=80, random_state=0)
    dmr.fit(sotu.counts[some], metadata=metadata, feature_names=sotu.feature_names)
    topic_report(dmr, sotu.counts[some], folder / "sotu.html", times=metadata["year"], groups=metadata["party"])
    return [folder / "lda.html", folder / "sotu.html"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--screenshots", type=Path, help="folder for pictures at 1366 and 390 pixels")
    given = parser.parse_args()
    if given.chromium is None:
        sys.exit("There is no Chromium on the path; pass --chromium PATH.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(given.chromium, folder)
        try:
            for path in given.reports or reports(Path(folder)):
                address = path.resolve().as_uri()
                browser.open(address, 1366, 900)
                n_topics = browser.ask("document.querySelectorAll('.topic').length")
                check(browser, address, n_topics)
                print(f"{path.name}: {n_topics} topics, {path.stat().st_size:,} bytes: passed")
                for width, height, dark in ((1366, 900, False), (390, 844, False), (1366, 900, True)):
                    if given.screenshots is not None:
                        given.screenshots.mkdir(parents=True, exist_ok=True)
                        name = f"{path.stem}_{width}{'_dark' * dark}"
                        browser.open(address, width, height, dark=dark)
                        browser.picture(given.screenshots / f"{name}_whole.png", whole=True)
                        browser.press("j")
                        browser.picture(given.screenshots / f"{name}.png")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
