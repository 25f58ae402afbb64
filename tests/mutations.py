"""Would the tests notice? Break one line at a time in a copy, and run the tests that should fail.

``python tests/mutations.py`` goes through the list below and prints which mutations were caught and which survived.
``--only TEXT`` takes those whose file or new line contains the text. Tests of kernels run without the compiler; others
take seconds once the first has compiled. A survivor is a test that is too weak, or a line that does not matter: mend
the one or take away the other.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutation:
    """One line that is replaced by a wrong one, and the tests that must fail then, as arguments of pytest."""

    file: str
    old: str
    new: str
    tests: str
    compiled: bool = True


def _in(file, tests, *pairs):
    """Mutations of one file that the same tests must catch."""
    return [Mutation(file, old, new, tests) for old, new in pairs]


_LAWS = "tests/samplers/test_laws.py"
_BLOCKS = "tests/topic/test_blocks.py"
_DMR_BLOCKS = "tests/topic/test_dmr_blocks.py"
_ON_DASK = "tests/topic/test_blocks_dask.py"
_LDA = "tests/topic/test_lda.py"
_PARTS = "tests/topic/test_parts.py"
_DMR = "tests/topic/test_dmr.py"
_DIAGNOSTICS = "tests/metrics/test_diagnostics.py"
_TOPICS = "tests/metrics/test_topics.py"
_TABLES = "tests/topic/test_tables.py"
_COMPLETION = "tests/metrics/test_completion.py"
_DP = "tests/mixture/test_dp.py"
_LOGISTIC = "tests/linear_model/test_logistic.py"
_GAUSSIAN = "tests/density/test_gaussian.py"

METRICS = [
    *_in(
        "metrics/diagnostics.py", _DIAGNOSTICS,
        ("np.concatenate([x[:, :half], x[:, -half:]])", "np.concatenate([x[:, :half], x[:, half : 2 * half]])"),
        ("(ranks - 0.375) / (ranks.shape[0] + 0.25)", "(ranks - 0.5) / ranks.shape[0]"),
        ("tau = np.maximum(tau, 1.0 / np.log10(m * n))", "tau = np.maximum(tau, 1e-12)"),
        ("return np.fmin(*(", "return np.fmax(*("),
        ("return np.fmax(_r_hat(_rank_normalize(x)), _r_hat(_rank_normalize(folded)))",
         "return _r_hat(_rank_normalize(x))"),
        ("monotone = np.minimum.accumulate(pairs, axis=0)", "monotone = pairs"),
        ("np.sqrt(_ess(_split(x)))", "np.sqrt(_ess(_rank_normalize(_split(x))))"),
    ),
    *_in(
        "metrics/coherence.py", _TOPICS,
        ("np.maximum(n_v, 1.0)", "np.maximum(n_w, 1.0)"),
        ("np.where(joint == n_docs, 0.0, npmi)", "np.where(joint == n_docs, 1.0, npmi)"),
    ),
    *_in(
        "metrics/alignment.py", _TOPICS,
        ("if groups is not None and np.unique(groups).size > 1:", "if False:"),
        ("return 1.0 - total / len(flat)", "return 1.0 - 0.5 * total / len(flat)"),
        ("first_chain = int(np.prod(leading[1:]))", "first_chain = 1"),
    ),
    *_in(
        "metrics/simplex.py", "tests/metrics/test_simplex.py",
        ("np.abs(u - below - 1 / n)", "np.abs(u - below)"),
        ("np.where(log_x < log_y, np.exp(lower), -np.expm1(upper))", "-np.expm1(upper)"),
    ),
    *_in(
        "metrics/partitions.py", "tests/metrics/test_partitions.py",
        ("if not change[a, b] < -1e-12:", "if True:"),
        ("order = np.argsort(-np.bincount", "order = np.argsort(np.bincount"),
    ),
    *_in(
        "metrics/completion.py", _COMPLETION,
        ("math.sqrt(n_docs / (n_docs - 1) * math.fsum", "math.sqrt(math.fsum"),
        ("alpha = alpha[s]", "alpha = alpha[0]"),
    ),
    *_in(
        "metrics/completion.py", _COMPLETION,
        ("keys = mix64(row_keys(X) ^ salt64(random_state))", "keys = mix64(row_keys(X))"),
        ("weights[last[leftover > 0]] = leftover[leftover > 0]", "pass"),
    ),
    *_in(
        "metrics/stein.py", "tests/metrics/test_stein.py",
        ("- 4.0 * b * (b - 1.0) * q", "- 2.0 * b * (b - 1.0) * q"),
    ),
]  # fmt: skip

BLOCKS = [
    *_in(
        "topic/_counts/block_chain.py", _BLOCKS,
        ("if self.step < self.plan.n_burn and counts.is_fast:", "if counts.is_fast:"),
        ("np.random.SeedSequence([self.seed, i])", "np.random.SeedSequence([self.seed])"),
        ("np.uint64(seed + start)", "np.uint64(0)"),
    ),
    *_in(
        "topic/_counts/shard_steps.py", _BLOCKS,
        ("-shard.first_doc % n", "0"),
        ("np.min_scalar_type(-largest - 1)", "np.int8"),
    ),
    *_in("topic/_counts/start.py", "tests/topic/test_start.py", ("[:_MOST_DOCS]", "")),
    *_in("topic/_counts/dask_shards.py", _ON_DASK, ("change.add_to(now.sums)", "pass")),
    *_in("topic/_counts/block_data.py", _DMR_BLOCKS, ("self.words[part] = shard.words", "pass")),
    *_in("topic/_counts/block_chain.py", _DMR_BLOCKS, ("self.doc_prior.release_shards(self._assigned())", "pass")),
    *_in(
        "topic/_dmr/doc_prior.py", _DMR_BLOCKS,
        ("self.coefficients.doc_priors(shard.described.rows), shard.group",
         "self.coefficients.doc_priors(shard.described.rows), 0 * shard.group"),
    ),
    *_in("topic/_dmr/evidence.py", _DMR_BLOCKS, ("first, *others = parts", "first, *others = parts[:-1]")),
    *_in("utils/blocks.py", "tests/datasets/test_blocks.py", ("if n < len(sizes):", "if False:"),
         ("if each.n_words != sizes[0].n_words:", "if False:")),
]  # fmt: skip

SAMPLERS = [
    *_in(
        "samplers/schedules.py", f"{_LAWS} -k schedules",
        ("** (-self.exponent)", "** -0.55"),
        ("np.maximum(0.5 * (np.cos(np.pi * phase) + 1.0), self.floor)", "0.5 * (np.cos(np.pi * phase) + 1.0)"),
        ("(1.0 + np.asarray(step, dtype=float) / self.offset)", "(1.0 + np.asarray(step, dtype=float))"),
    ),
    *_in("samplers/_base.py", f"{_LAWS} -k step_sizes", ("not (smallest > 0 and", "not (smallest >= 0 and")),
    *_in(
        "samplers/_base.py", "tests/topic/test_streaming.py",
        ("for name in mine.keys() - _PACE)", "for name in ())"),
    ),
    *_in(
        "samplers/_base.py", f"{_LAWS} -k automatic_step",
        ("self._resolved(float(present._hyper(step, step + 1)[0, 0]) if found else None)", "self._resolved(1.0)"),
    ),
    *_in(
        "samplers/_mass.py", "tests/samplers/test_flat_laws.py tests/kernels/test_euclidean.py",
        ("scalars[at.FREEZE_AT] = n_burn if self.freeze else np.inf", "scalars[at.FREEZE_AT] = np.inf"),
        ("scalars[at.GROWTH] = self.growth if self.adaptive else np.inf", "scalars[at.GROWTH] = np.inf"),
    ),
    *_in(
        "samplers/_geodesic.py", "tests/samplers/test_geodesic_laws.py -k inverse_of_the_mass",
        ("np.full_like(friction, 1.0 / self.thermostat_mass)", "np.full_like(friction, self.thermostat_mass)"),
    ),
    *_in(
        "samplers/_geodesic.py", "tests/samplers/test_geodesic_laws.py",
        ("AUTO_DECAY / h if", "AUTO_DECAY * h if"),
        ("start = friction if self.thermostat is None else np.full_like(friction, self.thermostat)",
         "start = friction"),
        ("scalars[1] += self._hyper", "scalars[1] += 0.0 * self._hyper"),
    ),
    *_in(
        "samplers/_particles.py", "tests/samplers/test_particles.py tests/kernels/test_particles.py",
        ("_RULES[self.bandwidth]", "0"),
        ('getattr(self, "ridge", 0.0)', "0.0"),
    ),
    *_in(
        "samplers/_euclidean.py", "tests/samplers/test_flat_laws.py",
        ("self.target_accept if adapted else 0.0", "self.target_accept"),
        ("inverse = None if P is None else 1.0 / P", "inverse = P"),
    ),
]  # fmt: skip

BASE = [
    *_in(
        "chains/chain.py", "tests/test_chains.py",
        ("shot.rng = np.random.Generator(np.random.PCG64([self.step", "str([self.step"),
        ("memo |= {id(value): value for value in self.kept.values()}", "pass"),
    ),
    *_in(
        "chains/chain.py", "tests/test_chains.py",
        ("self.n_burn = int(burn_in * n_iter + 1e-9) if", "self.n_burn = int(burn_in * n_iter) if"),
        ("thin = max(1, -(-n_left // n_draws))", "thin = max(1, n_left // n_draws)"),
        ("used = kept_steps > n_burn", "used = kept_steps >= 0"),
        ("used[-1] = True", "pass"),
    ),
    *_in(
        "chains/run.py", "tests/test_sampling.py -k interrupt",
        ("return chains, stop.is_set()", "return chains, False"),
    ),
    *_in(
        "chains/interrupts.py", "tests/test_estimators.py -k touches_no_global",
        ("if signal.getsignal(signal.SIGINT) is request:", "if False:"),
    ),
    *_in(
        "callbacks.py", "tests/test_callbacks.py -k pickled",
        ("except Exception as error:  # of any kind", "except OSError as error:  # of any kind"),
        ("        _refuse_what_no_file_can_hold(estimator)\n", "        pass\n"),
    ),
    *_in(
        "utils/_files.py", "tests/datasets/test_damaged_files.py",
        ("if claimed != member.file_size - file.tell():", "if False:"),
        ("if size > _SMALL and size > _RATIO * packed:", "if False:"),
        ('return well_formed(X, "the matrix")', "return X"),
    ),
    *_in(
        "topic/_counts/blocks.py", "tests/topic/test_blocks.py -k repeated",
        ("refuse_too_many_tokens_in_blocks(corpus.blocks, n_chains, here=client is None)", "pass"),
    ),
    *_in(
        "base.py", "tests/test_callbacks.py -k carries",
        ("            interrupted.estimator_ = self\n", ""),
    ),
    *_in(
        "base.py", "tests/test_callbacks.py -k on_the_way",
        ("self.__dict__ = before  # a single assignment", "pass  # one assignment"),
        ("estimator.__dict__.update(estimator._copied_state())", "pass"),
    ),
    *_in(
        "base.py", "tests/test_callbacks.py -k lda-1",
        ('if name not in _OF_A_FIT} | {"callbacks": None}', "if name not in _OF_A_FIT}"),
    ),
    *_in(
        "base.py", "tests/goldens/test_goldens.py -k saved",
        ("self.__dict__.setdefault(name, parameter.default)", "pass"),
    ),
    *_in("base.py", "tests/test_estimators.py -k one_row_more", ("self.batch_size > n:", "self.batch_size > 2 * n:")),
    *_in(
        "callbacks.py",
        "tests/test_callbacks.py -k (due_at or waits_for or ((checkpoints or trace or patience) and (lda or dp)))",
        (">= self.patience", "> self.patience"),
        ("return (step // self.every + 1) * self.every", "return step + self.every"),
        ("time.monotonic() - self._saved_at >= self.seconds", "True"),
        ('self._seconds = estimator.trace_["seconds"][-1] if estimator.trace_["seconds"] else 0.0',
         "self._seconds = 0.0"),
        ("estimator.n_iter_ = step", "pass"),
    ),
]  # fmt: skip

TOPIC = [
    *_in(
        "topic/_counts/parts.py", _PARTS,
        ("np.log1p(-rng.random(known.size)) / known", "0.0"),
        ("drawn_shares(mass + beta * n_words[:, None], rng)", "np.full(mass.shape, 1.0 / n_parts)"),
        ("(i + turn) % n_parts", "i"),
        ("share[part], doc_counts", "share[i], doc_counts"),
        ("np.clip(np.sqrt", "np.clip(2.0 * np.sqrt"),
    ),
    *_in(
        "topic/_counts/collapsed_chain.py", _PARTS,
        ("is_whole and self.step < self.plan.n_burn and", "is_whole and"),
        ("self.collapsed.temperature == 1.0 and self", "self"),
    ),
    *_in(
        "kernels/models/lda/whole_tokens.py", "tests/kernels/test_whole_tokens.py -k part",
        ("((end - first) if in_part else n_words) * beta", "n_words * beta"),
        ("doc_counts[d, k] = np.uint16(n_doc[k])", "pass"),
        ("if words[middle] < word:", "if words[middle] <= word:"),
        ("(share[new] if in_part else 1.0)", "1.0"),
    ),
    *_in(
        "topic/_results/topics.py", f"{_LDA} -k top_words",
        ("else interval_tails(interval)", "else [1 - interval, interval]"),
        ("(draws[:, top[k]] >= bar)", "(draws[:, top[k]] > bar)"),
    ),
    *_in(
        "topic/_results/topics.py", _TABLES,
        ("rankdata(components, axis=1) / n_words", "components"),
        ("logs - logs.mean(axis=0)", "logs"),
        ("share = word_counts / max(word_counts.sum(), 1.0)", "share = word_counts"),
    ),
    *_in(
        "topic/_results/documents.py", _TABLES,
        ("_FIRST_SWEEPS if s == 0 else _SWEEPS", "0"),
        ("mix64(keys + np.uint64(s + 1))", "keys"),
        ("row_keys(corpus.to_csr())", "np.arange(corpus.n_docs, dtype=np.uint64)"),
    ),
    *_in(
        "utils/_seeds.py", f"{_TABLES} -k equal",
        ("return np.where(copy == 0, keys, mix64(keys ^ mix64(copy)))", "return keys"),
        ("order = np.lexsort((*beside[::-1], keys))", "order = np.argsort(keys, kind='stable')"),
    ),
    *_in(
        "topic/_counts/seeds.py", "tests/topic/test_seeds.py -k names or warns",
        ("own = is_seed[k] & ~is_seed  #", "own = is_seed[k] & is_seed  #"),
        ("for k, words in enumerate(given.values())", "for k, words in enumerate(reversed(given.values()))"),
    ),
    *_in(
        "topic/_dmr/intercepts.py", f"{_DMR} -k intercepts",
        ("if found is None or not error > limit:", "if found is None or error > limit:"),
        ("return mean[..., 0] + mean[..., 1:] @ centre", "return mean[..., 0]"),
    ),
    *_in(
        "topic/_results/topics.py", _TABLES,
        ("weights = masses / np.bincount(new, masses)[new]", "weights = np.ones(new.size)"),
        ("first[group] = group.min()", "first[group] = group.max()"),
    ),
    *_in(
        "topic/_counts/answers.py", f"{_LDA} -k score_is_the_one_definition",
        ("return evenly(n_draws, _SCORED_DRAWS)", "return np.arange(min(n_draws, _SCORED_DRAWS))"),
    ),
    *_in(
        "topic/_counts/record.py", "tests/topic/test_draws.py",
        ("np.array(self.values.T, dtype=np.float64, order=\"C\")",
         "np.ascontiguousarray(self.values.T, dtype=np.float64)"),
        ("order = order[self.orders[-1]]\n        self._last = z.copy()", "self._last = z.copy()"),
    ),
    *_in(
        "topic/_dmr/prevalence.py", f"{_DMR} -k (prevalence or tables or prior_of)",
        ("difference = a - b", "difference = b - a"),
    ),
    *_in(
        "topic/_dmr/metadata.py", f"{_DMR} -k (prevalence or tables or prior_of)",
        ("np.bincount(self.group) @ priors_of(self.given) / self.n_docs", "priors_of(self.given).mean(axis=0)"),
    ),
    *_in(
        "topic/_dmr/metadata.py", f"{_DMR} -k (metadata_as_given or unknown_levels)",
        ("coef[..., -1:] - (slopes @ self.shift)[..., None]", "coef[..., -1:]"),
        ("self.fills[j] = known.mean() if known.size else 0.0", "self.fills[j] = 0.0"),
        ("parts.append(np.where(missing, fill, values)", "parts.append(np.where(missing, 0.0, values)"),
    ),
    *_in(
        "topic/_counts/chain.py", f"{_LDA} -k never_seen",
        ("counts *= self.data.total_samples / docs.size / self.assignments.n_sweeps[1]",
         "counts *= 1.0 / self.assignments.n_sweeps[1]"),
    ),
    *_in(
        "topic/_gamma_process/model.py", "tests/topic/test_gamma_process.py -k planted",
        ("self._numbers_of_topics(0.01)", "self._numbers_of_topics(0.0)"),
        ("share = (draws / draws.sum(axis=1, keepdims=True)).mean(axis=0)", "share = draws.mean(axis=0)"),
    ),
    *_in("topic/_counts/doc_prior.py", "tests/topic/test_streaming.py -k prior", ("max(share, 0.05)", "0.0")),
    *[
        Mutation("utils/_bit_stable.py", "[: draws.shape[1]] - np.log(len(draws))", "[: draws.shape[1]]", tests)
        for tests in (
            "tests/topic/test_sam_answers.py -k (known_density or alone)",
            f"{_DP} -k (agree or slots or clusters_are_found)",
            "tests/mixture/test_vmf.py -k (score_is or empty_row)",
        )
    ],
]  # fmt: skip

MODELS = [
    Mutation("utils/_tables.py", "return part.iloc[places]", "return part", "tests/utils/test_alignment.py -k rows"),
    Mutation(
        "topic/_dmr/model.py", "corpus.checksum == self._documents", "True", f"{_DMR} -k metadata_of_other_documents",
    ),
    Mutation(
        "topic/_dmr/formula_language.py", "if node.attr not in MEMBERS.get(module, ()):", "if False:",
        "tests/topic/test_dmr_formula.py -k bad_formulas",
    ),
    Mutation(
        "mixture/_dirichlet_process/cells.py", "return np.argsort(np.lexsort((first, cells, block)))",
        "return np.arange(block.size)", f"{_DP} -k labels_of_levels",
    ),
    *_in(
        "mixture/_dirichlet_process/slice.py", "tests/mixture/test_dp_laws.py -k (fresh or outside)",
        (
            "last = int(self.z.max()) + 1",
            "last = 1 + int(np.flatnonzero(self._omega()[0] * self._total() >= 0.5).max(initial=0)); "
            "self.z[self.z >= last] = -1",
        ),
    ),
    *_in(
        "mixture/_dirichlet_process/results.py", f"{_DP} -k (agree or slots or clusters_are_found)",
        ("np.fill_diagonal(together, 1.0)", "pass"),
    ),
    *_in(
        "mixture/_dirichlet_process/results.py", "tests/mixture/test_dp_tables.py",
        ("share = _responsibilities(log_weight)[:, :-1]", "share = _responsibilities(log_weight)"),
        ("top = np.argsort(-xlogy(mean, lift)", "top = np.argsort(-mean"),
        ("others[np.argsort(-weights[others]", "others[np.argsort(weights[others]"),
    ),
    *_in(
        "mixture/_von_mises_fisher/model.py", "tests/mixture/test_vmf.py -k (score_is or empty_row)",
        ("return np.where(has_content(rows), self._log_density(rows), 0.0)", "return self._log_density(rows)"),
    ),
    *_in("linear_model/_input.py", "tests/linear_model/test_class_weight.py", ("weight *= each[codes]", "pass")),
    *_in(
        "linear_model/_poisson.py", "tests/linear_model/test_poisson.py -k exposure",
        ("exposure[lo : lo + len(means), None]", "exposure[: len(means), None]"),
        ("if exposure is None and self._had_exposure:\n            more", "if False:\n            more"),
    ),
    *_in(
        "linear_model/_prior.py", "tests/linear_model/test_units.py -k (unlike_units or change_no_prediction)",
        ("_LOWEST, _USUAL_HIGHEST, _FACTOR, _MAX_SCALES = 1e-6, 1e3, 4.0, 32",
         "_LOWEST, _USUAL_HIGHEST, _FACTOR, _MAX_SCALES = 1e-6, 1e-5, 4.0, 6"),
        ("given = precision * self.columns**2", "given = precision"),
    ),
    *_in(
        "linear_model/_prior.py", "tests/linear_model/test_linear.py -k (law_of_the_model or best_variance)",
        ("rng.gamma(0.5 * (self.freedom + 1.0))", "rng.gamma(0.5 * self.freedom)"),
        ("0.5 * (total - 1.0 - square / unit)", "0.5 * (total - square / unit)"),
    ),
    *_in(
        "linear_model/_predict.py", f"{_LOGISTIC} -k (predictions or table)",
        ("noise.append(special.entr(p).sum(axis=2).mean(axis=1))", "noise.append(total[-1])"),
        ('"sd": flat.std(axis=0)', '"sd": flat.var(axis=0)'),
        ("interval_ends(p, tails, axis=1)", "interval_ends(p, [0.25, 0.75], axis=1)"),
    ),
    *_in(
        "density/_gaussian.py", _GAUSSIAN,
        ("- 0.5 * d * np.log(2.0 * np.pi)", ""),
        ("/ np.sqrt(law.mean_precision)", ""),
    ),
    *_in("density/_normal_wishart.py", _GAUSSIAN, ("inverse_scale=nu * covariance", "inverse_scale=covariance")),
    *_in(
        "chains/convergence.py", "tests/test_dense_models.py tests/test_diagnostics.py",
        ("excess.max() > 0 or share.min() < 1", "share.min() < 0"),
        ("max(MOVE, ERRORS * error)", "MOVE"),
        ("int(np.argmin(share))", "int(np.argmax(share))"),
    ),
    *_in(
        "dense/model.py", "tests/test_dense_models.py -k collapsed",
        ("if spread >= COLLAPSED.limit:", "if spread >= 0:"),
    ),
]  # fmt: skip

# Without the compiler, which takes longer than these tests.
KERNELS = [
    Mutation(mutation.file, mutation.old, mutation.new, mutation.tests, compiled=False)
    for mutation in [
        *_in(
            "kernels/samplers/simplex.py", "tests/kernels/test_simplex.py -k (twin or lazy_mass)",
            ("cells[k] = max(spread * draw[k], TINY)", "cells[k] = max(draw[k], TINY)"),
            ("noise = np.sqrt(1.0 - decay * decay)", "noise = np.sqrt(1.0 - decay)"),
            ("pull = extra[k] / total + 1.0", "pull = extra[k] / total"),
        ),
        *_in(
            "kernels/math/random.py", "tests/kernels/test_simplex.py -k twin",
            ("return x if v <= np.exp(-x) else _OPEN", "return x"),
            ("draw[k] if w > mean[k] * rate else _OPEN", "draw[k]"),
            ("above -= term", "above = 0.0"),
        ),
        *_in(
            "kernels/samplers/euclidean.py", "tests/kernels/test_euclidean.py -k twin",
            ("noise * np.sqrt(scale)", "noise * scale"),
        ),
        *_in(
            "kernels/samplers/euclidean.py", "tests/kernels/test_euclidean.py -k flow",
            ("time * inverse_mass[r, k] * momentum[r, k]", "time * momentum[r, k]"),
        ),
        *_in(
            "kernels/samplers/euclidean.py", "tests/kernels/test_euclidean.py -k twin",
            ("kinetic(velocity, velocity) / trace - T", "kinetic(velocity, velocity) / theta.size - T"),
            ("temperature * (1.0 - c * c)", "temperature * (1.0 - c)"),
            ("max(C * T - B, 0.0)", "C * T"),
        ),
        *_in(
            "kernels/completion.py", f"{_COMPLETION} -k (twin or prior or rare)",
            ("weight[k] = length / n_topics + prior[k]", "weight[k] = 1.0"),
            ("sd = counts[j + 3] / td if td > zero else zero", "sd = sc"),
            ("factor = 1.0 / largest if largest > 0.0 else 0.0", "factor = largest"),
        ),
        *_in(
            "kernels/math/dirichlet.py", "tests/kernels/test_dirichlet.py",
            ("sums[n_topics] += digamma(length + whole) - digamma(whole)", "sums[n_topics] += digamma(length + whole)"),
            ("below += digamma_difference(whole, lengths[d])", "below += digamma_difference(alpha[0], lengths[d])"),
            ("count[k] = 0.0", "pass"),
            ("prior_shape - 1.0 + 1e-3", "prior_shape - 1.0"),
        ),
        *_in(
            "kernels/models/conjugate.py", f"{_GAUSSIAN} -k gradient",
            ("+ (d - i + 1.0)", "+ (d - i)"),
        ),
        *_in(
            "kernels/models/linear/design.py", f"{_LOGISTIC} -k signal_is_the_gradient",
            ("signal[i, 0] = params[HEAD + i] - a", "signal[i, 0] = params[HEAD + i] - 0.5 * a"),
            ("turn(pull, D, K)", "pass"),
        ),
    ]
]  # fmt: skip

PARTS = {
    "metrics": METRICS,
    "samplers": SAMPLERS,
    "base": BASE,
    "topic": TOPIC,
    "blocks": BLOCKS,
    "models": MODELS,
    "kernels": KERNELS,
}


NAMES = {False: "caught", True: "SURVIVED", None: "NO END"}  # by whether the tests passed


def _copied(folder):
    """A copy of the checkout's tests and package in a folder."""
    skip = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in ("sk_sgmcmc", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _run_tests(folder, mutation, limit, interpreted):
    """Whether the tests pass (None: they do not end), the name of the first that does not, and the time they took."""
    words = mutation.tests.split(" -k ")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *words[0].split()]
    if len(words) > 1:
        command += ["-k", words[1]]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NUMBA_CACHE_DIR"] = str(folder.parent / "cache")
    if interpreted or not mutation.compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None, f"no end after {limit:g} s; see --limit", limit
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    said = failed[0] if failed else (done.stdout + done.stderr).strip().splitlines()[-1]
    if done.returncode not in (0, 1):
        said = f"pytest ended with {done.returncode}: {said}"
    return done.returncode == 0, said[:110], time.perf_counter() - began


def main(argv=None):
    """Apply the mutations one at a time and print what became of each; 1 where any survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; none: all")
    parser.add_argument("--only", default="", help="mutations whose file or new line contains this")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for the tests of one mutation")
    parser.add_argument("--folder", help="of the copy and its kernels, for a next run; else temporary")
    parser.add_argument("--interpreted", action="store_true", help="run all tests without the compiler")
    given = parser.parse_args(argv)
    chosen = [m for part in given.parts or PARTS for m in PARTS[part] if given.only in m.file + " " + m.new]
    counts = dict.fromkeys(NAMES, 0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.folder or temporary) / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        _copied(folder)
        for mutation in chosen:
            path = folder / "sk_sgmcmc" / mutation.file
            text = path.read_text(encoding="utf-8")
            if text.count(mutation.old) < 1:
                raise SystemExit(f"{mutation.file} has no {mutation.old!r}: mend the list.")
            path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
            passed, said, seconds = _run_tests(folder, mutation, given.limit, given.interpreted)
            path.write_text(text, encoding="utf-8")
            counts[passed] += 1
            print(
                f"{NAMES[passed]:<10}{seconds:6.0f} s  {mutation.file}: {mutation.old[:70]} -> "
                f"{mutation.new[:60]}\n{'':20}{said}",
                flush=True,
            )
    print(f"{len(chosen)} mutations: " + ", ".join(f"{counts[passed]} {name}" for passed, name in NAMES.items()))
    return int(counts[False] < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
