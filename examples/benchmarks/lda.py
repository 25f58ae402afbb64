"""LDA beside tomotopy and scikit-learn to convergence: perplexity over processor time, one thread each.

    python examples/benchmarks/lda.py --corpora ap,docstrings --topics 20,100
    python examples/benchmarks/lda.py --all --results lda.jsonl

All three learn the same documents, and document completion scores their topics on the same hidden tokens. Our curve and
tomotopy's are smoothed alike: a point averages the last ten snapshots, taken at the same sweeps, each the conditional
mean of the topics given the assignments. tomotopy makes 1000 sweeps. Ours is `BayesianLDA` with ``n_iter=1000`` and
defaults otherwise. It stops once it has passed the end of a default fit and either reached every level or used up
tomotopy's time. (Burn-in is half of ``n_iter``, so up to there it keeps no draws, which a default fit does.)
scikit-learn's online method makes at least one pass.

The levels are tomotopy's perplexities after 20, 50, ..., 1000 sweeps, but never less than 1.005 times its last one,
since such differences are noise in a converged program. A ratio is the time to a level of our curve over that of
tomotopy's, inf if ours did not get there. "end" is our perplexity at the end of a default fit over tomotopy's at the
same time, "/ last" over tomotopy's last. Time is processor time; it includes what each program does to prepare, and
excludes scoring and the compilation of our kernels. Each seed also draws other held-out documents and another fifth.

Every curve is appended to ``--results`` as soon as it is complete and never run again; to time another version of the
library against the same peers, remove the lines of "ours". ``--all`` finishes every corpus with one seed before the
next seed, starts no case after ``--hours``, and continues when called again.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
from _peers import Curve, Recorder, SmoothedJudge, counts_of, moments, run_sklearn, run_tomotopy, split
from threadpoolctl import threadpool_limits

from sk_sgmcmc import BayesianLDA

CORPORA = "docstrings,ap,poliblog5k,acl_abstracts,reuters21578,sotu_paragraphs,20newsgroups,wikipedia"
SHARES = {"whole": 1, "fifth": 5}
PROGRAMS = "tomotopy", "ours", "scikit-learn"  # in the order in which they run
CASE = "corpus", "part", "n_topics", "seed"
MARKS = (20, 50, 100, 200, 500, 1000)  # sweeps of tomotopy whose perplexity is a level
TOLERANCE = 1.005
PER_DECADE = 60  # snapshots; ten of them span the last third of the sweeps
SMALL = 2_000_000  # tokens below which there are several seeds
SKLEARN_SECONDS = 10.0
TARGETS = 0.5, 0.25  # of the largest and of the median ratio


class EndingRecorder(Recorder):
    """Ends the fit when ``is_enough(step)``; the clock is running when it begins."""

    def __init__(self, curve, steps, is_enough):
        super().__init__(curve, steps)
        self.is_enough = is_enough

    def start(self, estimator):
        """Leave the clock alone: what comes before the first step counts, too."""

    def record(self, chain, step):
        """Add a point to the curve."""
        self.curve.record(chain.present_topics().T, step)

    def __call__(self, estimator, step):
        """Stop the clock, score, and decide."""
        super().__call__(estimator, step)
        return self.is_enough(step)


def run_stand_in(train, n_topics, curve, sweeps, seed):
    """In the short setting, which needs no peer: ours from a random start takes tomotopy's place."""
    recorder = EndingRecorder(curve, sweeps, is_enough=lambda step: False)
    curve.start()
    BayesianLDA(n_topics, init="random", n_iter=sweeps[-1], random_state=seed + 1, callbacks=recorder).fit(train)


def run_ours(train, n_topics, curve, sweeps, seed, peer):
    """BayesianLDA with its defaults but ``n_iter``; returns the number of sweeps that it would make by default."""
    by_default = BayesianLDA(n_topics, random_state=seed, callbacks=lambda estimator, step: True).fit(train)
    default_end = by_default._planned_iter

    def is_enough(step):
        is_through = min(curve.perplexity) <= TOLERANCE * peer.perplexity[-1] or curve.spent > peer.spent
        return step >= default_end and is_through

    looks = sorted({*sweeps, default_end})
    recorder = EndingRecorder(curve, looks, is_enough)
    curve.start()
    BayesianLDA(n_topics, n_iter=looks[-1], random_state=seed, callbacks=recorder).fit(train)
    return default_end


def run_case(case, sweeps, done, results):
    """Run the programs that have no curve of this case yet, and append their curves to the results."""
    corpus, part, n_topics, seed = case
    train, held_out = split(counts_of(corpus), seed, SHARES[part])
    BayesianLDA(n_topics, n_iter=40, random_state=0).fit(train[:50])  # loads or compiles all that a fit uses

    def new_curve(program, window=10):
        return Curve(program, SmoothedJudge(held_out, window), quiet=True, now=time.process_time)

    def save(curve, **more):
        seconds, perplexity = (np.round(values, 4).tolist() for values in (curve.seconds, curve.perplexity))
        record = dict(zip(CASE, case, strict=True)) | {"program": curve.name, **more}
        record |= {"steps": curve.note, "seconds": seconds, "perplexity": perplexity}
        done[*case, curve.name] = record
        if results:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    if (*case, "tomotopy") not in done:
        run_peer = run_stand_in if corpus == "synthetic" else run_tomotopy
        run_peer(train, n_topics, curve := new_curve("tomotopy"), sweeps, seed)
        save(curve)
    if (*case, "ours") not in done:
        peer = curve_of(done[*case, "tomotopy"])
        default_end = run_ours(train, n_topics, curve := new_curve("ours"), sweeps, seed, peer)
        save(curve, default_end=default_end)
    if (*case, "scikit-learn") not in done:
        curve = new_curve("scikit-learn", window=1)  # variational means have no noise to average
        run_sklearn(train, n_topics, curve, min(SKLEARN_SECONDS, done[*case, "ours"]["seconds"][-1]), seed)
        save(curve)


def curve_of(record):
    """A curve from its line of the results."""
    curve = Curve(record["program"], judge=None)
    curve.note, curve.seconds, curve.perplexity = record["steps"], record["seconds"], record["perplexity"]
    curve.spent = curve.seconds[-1]
    return curve


def our_end(case, done):
    """Position in our curve at which a default fit ends."""
    record = done[*case, "ours"]
    return record["steps"].index(record["default_end"])


def print_curves(case, done):
    """The three curves at our first answer, at tomotopy's marks, and where our default fit ends."""
    peer, ours, variational = (curve_of(done[*case, program]) for program in PROGRAMS)
    looks = {s: f"tomotopy, sweep {sweep}" for s, sweep in zip(peer.seconds, peer.note, strict=True) if sweep in MARKS}
    looks |= {ours.seconds[0]: "our first answer", ours.seconds[our_end(case, done)]: "a default fit ends"}
    print("  seconds      ours  tomotopy   sklearn")
    for s in sorted(looks):
        print(f"{s:9.2f}{ours.at(s):10.1f}{peer.at(s):10.1f}{variational.at(s):10.1f}   {looks[s]}", flush=True)


def compare(case, done):
    """Ratios of times at the marks and of perplexities at our end, and whether ours is ever above scikit-learn."""
    peer, ours, variational = (curve_of(done[*case, program]) for program in PROGRAMS)
    last, end = peer.perplexity[-1], our_end(case, done)
    levels = [max(peer.perplexity[peer.note.index(sweep)], TOLERANCE * last) for sweep in MARKS]
    ratios = [ours.time_to(level) / peer.time_to(level) for level in levels]
    ends = [ours.perplexity[end] / peer.at(ours.seconds[end]), ours.perplexity[end] / last]
    looks = [s for s in ours.seconds + variational.seconds if s >= ours.seconds[0]]
    return [*ratios, *ends], any(ours.at(s) > variational.at(s) for s in looks)


def print_table(done):
    """Medians over seeds by corpus, part and number of topics; then the largest ratio and the median ratio."""
    rows, above = {}, []
    for case in [tuple(case) for *case, program in done if program == PROGRAMS[-1]]:
        if not all((*case, program) in done for program in PROGRAMS):
            continue  # the lines of "ours" were removed, to run it again
        ratios, is_above = compare(case, done)
        rows.setdefault(case[:3], []).append(ratios)
        above += ["{} {} K={} seed={}".format(*case)] if is_above else []
    if not rows:
        print("nothing has run yet")
        return
    medians = {row: np.median(values, axis=0) for row, values in rows.items()}
    heads = "".join(f"{sweep:7d}" for sweep in MARKS)
    print("\nratio of times to tomotopy's perplexity after so many sweeps; perplexities at our end")
    print(f"{'corpus':16s} {'part':6s} {'K':>4s} {'seeds':>5s}{heads} {'end':>7s} {'/ last':>7s}")
    for (corpus, part, n_topics), values in medians.items():
        cells = "".join(f"{ratio:7.2f}" for ratio in values[:-2]) + "".join(f" {ratio:7.3f}" for ratio in values[-2:])
        print(f"{corpus:16s} {part:6s} {n_topics:4d} {len(rows[corpus, part, n_topics]):5d}{cells}")
    print(f"above scikit-learn after our first answer: {', '.join(above) or 'never'}")
    ratios = np.concatenate([values[:-2] for values in medians.values()])
    largest, median = ratios.max(), np.median(ratios)
    print(f"largest ratio {largest:.2f} (target {TARGETS[0]}), median ratio {median:.2f} (target {TARGETS[1]})")


def plan(options):
    """Cases in the order in which they run, all by the first seed before the next: (corpus, part, n_topics, seed)."""
    corpora, topics = options.corpora.split(","), {options.part: [int(k) for k in options.topics.split(",")]}
    n_seeds = options.seeds
    if options.smoke:
        corpora, topics, n_seeds = ["synthetic"], {"whole": [5, 10]}, 1
    elif options.all:
        corpora, topics = CORPORA.split(","), {"fifth": [20, 100, 500], "whole": [20, 100]}
    for seed, part, corpus in itertools.product(range(n_seeds), topics, corpora):
        if seed == 0 or counts_of(corpus).sum() / SHARES[part] < SMALL:
            yield from ((corpus, part, n_topics, seed) for n_topics in topics[part])


def main():
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="all corpora and fifths, K = 20 and 100, on fifths also 500")
    parser.add_argument("--corpora", default="docstrings", help=f"some of {CORPORA}")
    parser.add_argument("--part", choices=SHARES, default="whole")
    parser.add_argument("--topics", default="20,100")
    parser.add_argument("--seeds", type=int, default=3, help=f"where there are more than {SMALL} tokens, always one")
    parser.add_argument("--results", type=Path, help="file of JSON lines, read and appended to")
    parser.add_argument("--hours", type=float, default=2.0, help="begin no case after this time")
    parser.add_argument("--smoke", action="store_true", help="seconds: a small corpus, without tomotopy")
    options = parser.parse_args()
    sweeps = sorted({*moments(MARKS[-1], per_decade=PER_DECADE), *MARKS})
    has_results = options.results is not None and options.results.exists()
    records = map(json.loads, options.results.read_text(encoding="utf-8").splitlines() if has_results else [])
    done = {tuple(record[key] for key in (*CASE, "program")): record for record in records}
    began = time.monotonic()
    for case in plan(options):
        if all((*case, program) in done for program in PROGRAMS):
            continue
        if time.monotonic() - began > 3600 * options.hours:
            print(f"stopped after {options.hours} hours; call again to go on")
            break
        print("{} {} K={} seed={}".format(*case), flush=True)
        run_case(case, sweeps, done, options.results)
        print_curves(case, done)
    print_table(done)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
