"""Would the tests notice? Break one function at a time in a copy, and run the tests that should then fail.

``python tests/mutations.py`` tries every mutation of the tables below and prints which were caught and which survived.
``python tests/mutations.py topic utils`` tries two of the tables, ``--only TEXT`` the mutations whose file, function or
new text contains the text. ``--check`` runs no tests: it only looks whether each mutation still applies.

A survivor is a test that is too weak, or a line that does not matter: strengthen the test, or remove the line. A stale
mutation is one whose function no longer contains its old text: write the same error in the function's new text.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sk_sgmcmc"


@dataclass(frozen=True)
class Mutation:
    """An error in one function, and the tests that must then fail.

    Parameters
    ----------
    file : str
        Path inside the package.
    function : str
        Qualified name of the function or method, such as "CollapsedChain._next_round"; "<module>" stands for the
        statements of the file that are neither functions nor classes.
    old, new : str
        Text of the function, and the wrong text that replaces it wherever the function contains it.
    tests : str
        Arguments of pytest; everything after " -k " is one expression.
    compiled : bool
        Whether the tests need compiled kernels. Tests of kernels alone are faster without the compiler.
    """

    file: str
    function: str
    old: str
    new: str
    tests: str
    compiled: bool = True

    def __str__(self):
        return f"{self.file}: {self.function}: {self.old.strip()[:60]!r} -> {self.new.strip()[:50]!r}"


def of(file, tests, *errors, compiled=True):
    """Mutations of one file that the same tests must catch: (function, old text, new text) each."""
    return [Mutation(file, *error, tests, compiled) for error in errors]


# -------------------------------------------------------------------------------------------- the tables, by folder

KERNELS = [
    *of(
        "kernels/completion.py",
        "tests/metrics/test_completion.py -k (twin or prior or rare)",
        ("proportions", "weight[k] = length / n_topics + prior[k]", "weight[k] = 1.0"),
        ("_one_update", "sd = counts[j + 3] / td if td > zero else zero", "sd = sc"),
        ("_scaled_row", "factor = 1.0 / largest if largest > 0.0 else 0.0", "factor = largest"),
        compiled=False,
    ),
    *of(
        "kernels/models/scaled_dirichlet.py",
        "tests/kernels/test_scaled_dirichlet.py",
        ("_envelope", "math.sqrt(2.0 / max(curvature, 1e-12))", "math.sqrt(0.1 / max(curvature, 1e-12))"),
        ("_proposal", "if x < middle + left:", "if x < middle + right:"),
        ("mean_given_counts", "-1.0 / math.expm1(-total_shape * step)", "1.0"),
        ("proportions", "theta[d, k] += mass[k] * (u / (r[k] + u))", "theta[d, k] += mass[k]"),
        ("draw_proportions", "running[k] *= share[k]", "running[k] *= 1.0"),
    ),
    *of(
        "kernels/models/group_words.py",
        "tests/topic/test_group_words_laws.py -k joint_law",
        ("_without_counts", "log_ratio += u[g] * (m_new - m)", "pass"),
        ("_draw_prior", "np.log(weight), np.ones(grid.size)", "np.log(weight), np.full(grid.size, 3.0)"),
        ("token_weights", "sums[k] * pulls[g, k] - logs[g, k]", "-logs[g, k]"),
        ("_draw_prior", "/ total[g, k] * math.exp(-shifts[k])", "/ total[g, k]"),
        ("_drawn_index", "- counts[g] * log_normal(kappa)", ""),
    ),
    *of(
        "kernels/models/keyword_words.py",
        "tests/topic/test_keyword_laws.py -k exact_law",
        ("_sweep", "words_left, topic_left = less[old]", "words_left, topic_left = inverse[old]"),
        ("_sweep", "(n_doc[t] - of_doc + prior[t]) * inverse[t]", "(n_doc[t] + prior[t]) * inverse[t]"),
        ("_sweep", "                    factor[t] = kept", "                    pass"),
        ("_sweep", "factor[old] = factor_old", "pass"),
        ("_sweep", "topic_less[t], topic_more[t] = topic_less[old], topic_more[old]", "pass"),
        ("_sweep", "topic_less[new], of_topic[new] = of_topic[new], topic_more[new]", "pass"),
        ("_sweep", "less[new], inverse[new] = inverse[new], more[new]", "pass"),
    ),
    *of(
        "kernels/models/outcome.py",
        "tests/topic/test_outcome_laws.py -k (exact_law and not twin)",
        ("_sweep", "rng.random() < 0.5,", "False,"),
        ("_sweep", "z[i] = before[i - lo]", "pass"),
        ("sweep_given_topics", "rng.random() < 0.5, rng", "False, rng"),
        ("_draw_activities", "math.log(rate[k] + u)", "math.log(rate[k])"),
        (
            "total_and_predictor",
            "return largest + math.log(total), weighted / total",
            "return largest + math.log(total), weighted",
        ),
    ),
    *of(
        "kernels/models/outcome.py",
        "tests/topic/test_outcome_laws.py -k joint_law",
        ("_gain_of_documents", "gain -= lengths[d] *", "gain -= 0.0 *"),
        ("move_with_activities", "math.log(slope) +", ""),
        ("draw_gamma_parameters", "gain += 0.5 * math.log(back / curvature)", "gain += 0.0"),
        ("draw_dirichlet_parameters", "total = new", "pass"),
    ),
    *of(
        "kernels/math/polya_gamma.py",
        "tests/kernels/test_polya_gamma.py",
        ("polya_gamma_draw", "if target > total:", "if target > 2.0 * total:"),
        ("_short_inverse_gaussian", "if rng.random() > mean / (mean + x):", "if False:"),
    ),
    *of(
        "kernels/math/dirichlet.py",
        "tests/kernels/test_dirichlet.py",
        (
            "add_statistics",
            "sums[n_topics] += digamma(length + whole) - digamma(whole)",
            "sums[n_topics] += digamma(length + whole)",
        ),
        (
            "fixed_point",
            "below += digamma_difference(whole, lengths[d])",
            "below += digamma_difference(alpha[0], lengths[d])",
        ),
        ("add_statistics", "count[k] = 0.0", "pass"),
        ("fixed_point", "prior_shape - 1.0 + 1e-3", "prior_shape - 1.0"),
        compiled=False,
    ),
    *of(
        "kernels/math/random.py",
        "tests/kernels/test_simplex.py -k twin",
        ("_accepted", "return x if v <= np.exp(-x) else _OPEN", "return x"),
        ("_mark_poisson", "draw[k] if w > mean[k] * rate else _OPEN", "draw[k]"),
        ("_poisson_by", "above -= term", "above = 0.0"),
        compiled=False,
    ),
    *of(
        "kernels/models/conjugate.py",
        "tests/density/test_gaussian.py -k gradient",
        ("normal_wishart", "+ (d - i + 1.0)", "+ (d - i)"),
        compiled=False,
    ),
    *of(
        "kernels/models/lda/whole_tokens.py",
        "tests/kernels/test_whole_tokens.py -k part",
        ("_sweep_by", "((end - first) if in_part else n_words) * beta", "n_words * beta"),
        ("_sweep_by", "doc_counts[d, k] = np.uint16(n_doc[k])", "pass"),
        ("first_from", "if words[middle] < word:", "if words[middle] <= word:"),
        ("_sweep_by", "(share[new] if in_part else 1.0)", "1.0"),
    ),
    *of(
        "kernels/models/linear/design.py",
        "tests/linear_model/test_logistic.py -k signal_is_the_gradient",
        ("assemble", "signal[i, 0] = params[HEAD + i] - a", "signal[i, 0] = params[HEAD + i] - 0.5 * a"),
        ("assemble_diagonal", "turn(pull, D, K)", "pass"),
        compiled=False,
    ),
    *of(
        "kernels/samplers/euclidean.py",
        "tests/kernels/test_euclidean.py -k twin",
        (
            "sgnht_euler_white",
            "kinetic(velocity, velocity) / trace - T",
            "kinetic(velocity, velocity) / theta.size - T",
        ),
        ("apply_friction", "temperature * (1.0 - c * c)", "temperature * (1.0 - c)"),
        ("sghmc_euler", "max(C * T - B, 0.0)", "C * T"),
        compiled=False,
    ),
    *of(
        "kernels/samplers/euclidean.py",
        "tests/kernels/test_euclidean.py -k twin",
        ("sgld_step", "noise * np.sqrt(scale)", "noise * scale"),
        ("langevin_without_force", "np.tanh(0.5 * x) / rate", "0.5 * time"),
        compiled=False,
    ),
    *of(
        "chains/minibatches.py",
        "tests/test_batch_order.py -k reverse",
        ("blocks", "starts[:, ::-1]", "starts"),
    ),
    *of(
        "dense/bias.py",
        "tests/test_batch_order.py -k brute_force",
        ("Noise.summed", "(1.0 + r) * _odd_powers", "_odd_powers"),
    ),
    *of(
        "dense/automatic_step.py",
        "tests/test_bias.py -k automatic",
        ("longest_step", "np.tile([noise, 0.0], 2)", "np.zeros(4)"),
    ),
    *of(
        "kernels/samplers/euclidean.py",
        "tests/kernels/test_euclidean.py -k flow",
        ("flat_flow", "time * inverse_mass[r, k] * momentum[r, k]", "time * momentum[r, k]"),
        compiled=False,
    ),
    *of(
        "kernels/samplers/simplex.py",
        "tests/kernels/test_simplex.py -k (twin or lazy_mass)",
        ("_cir_row", "cells[k] = max(spread * draw[k], TINY)", "cells[k] = max(draw[k], TINY)"),
        ("exponential_ou_step", "noise = np.sqrt(1.0 - decay * decay)", "noise = np.sqrt(1.0 - decay)"),
        ("sgrld_expanded_mean", "pull = extra[k] / total + 1.0", "pull = extra[k] / total"),
        compiled=False,
    ),
]

UTILS = [
    *of(
        "utils/_tables.py",
        "tests/utils/test_alignment.py -k rows",
        ("_in_order", "return part.iloc[places]", "return part"),
    ),
    *of(
        "utils/_files.py",
        "tests/datasets/test_damaged_files.py",
        ("_refuse_false_header", "if claimed != member.file_size - file.tell():", "if False:"),
        ("_refuse_false_sizes", "if size > _SMALL and size > _RATIO * packed:", "if False:"),
        ("load_sparse", 'return well_formed(X, "the matrix")', "return X"),
    ),
    *of(
        "utils/_bit_stable.py",
        "tests/topic/test_sam_answers.py -k (known_density or alone)",
        ("log_mean_exp", "[: draws.shape[1]] - np.log(len(draws))", "[: draws.shape[1]]"),
    ),
    *of(
        "utils/_bit_stable.py",
        "tests/mixture/test_dp.py -k (agree or slots or clusters_are_found)",
        ("log_mean_exp", "[: draws.shape[1]] - np.log(len(draws))", "[: draws.shape[1]]"),
    ),
    *of(
        "utils/_bit_stable.py",
        "tests/mixture/test_vmf.py -k (score_is or empty_row)",
        ("log_mean_exp", "[: draws.shape[1]] - np.log(len(draws))", "[: draws.shape[1]]"),
    ),
    *of(
        "utils/_seeds.py",
        "tests/topic/test_tables.py -k equal",
        ("keys_of_copies", "return np.where(copy == 0, keys, mix64(keys ^ mix64(copy)))", "return keys"),
        ("keys_of_copies", "order = np.lexsort((*beside[::-1], keys))", "order = np.argsort(keys, kind='stable')"),
    ),
    *of(
        "utils/blocks.py",
        "tests/datasets/test_blocks.py",
        ("CountBlocks.entries", "if n < len(sizes):", "if False:"),
        ("checked_sizes", "if each.n_words != sizes[0].n_words:", "if False:"),
    ),
]

SAMPLERS = [
    *of(
        "samplers/_base.py",
        "tests/samplers/test_laws.py -k step_sizes",
        ("Sampler._step_sizes", "not (smallest > 0 and", "not (smallest >= 0 and"),
    ),
    *of(
        "samplers/_base.py",
        "tests/topic/test_streaming.py",
        ("Sampler._is_compatible", "for name in mine.keys() - _PACE)", "for name in ())"),
    ),
    *of(
        "samplers/_base.py",
        "tests/samplers/test_laws.py -k automatic_step",
        (
            "Sampler._resumed_from",
            "self._resolved(float(present._hyper(step, step + 1)[0, 0]) if found else None)",
            "self._resolved(1.0)",
        ),
    ),
    *of(
        "samplers/_euclidean.py",
        "tests/samplers/test_flat_laws.py",
        ("HMC._numbers", "self.target_accept if adapted else 0.0", "self.target_accept"),
        ("SGLD._state", "inverse = None if P is None else 1.0 / P", "inverse = P"),
    ),
    *of(
        "samplers/_geodesic.py",
        "tests/samplers/test_geodesic_laws.py -k inverse_of_the_mass",
        (
            "GSGNHT._thermostat",
            "np.full_like(friction, 1.0 / self.thermostat_mass)",
            "np.full_like(friction, self.thermostat_mass)",
        ),
    ),
    *of(
        "samplers/_geodesic.py",
        "tests/samplers/test_geodesic_laws.py",
        ("_Geodesic._hyper", "AUTO_DECAY / h if", "AUTO_DECAY * h if"),
        (
            "GSGNHT._thermostat",
            "start = friction if self.thermostat is None else np.full_like(friction, self.thermostat)",
            "start = friction",
        ),
        ("_Geodesic._keep_distance", "scalars[1] += self._hyper", "scalars[1] += 0.0 * self._hyper"),
    ),
    *of(
        "samplers/_mass.py",
        "tests/samplers/test_flat_laws.py tests/kernels/test_euclidean.py",
        (
            "MonteCarloEM._write",
            "scalars[at.FREEZE_AT] = n_burn if self.freeze else np.inf",
            "scalars[at.FREEZE_AT] = np.inf",
        ),
        (
            "MonteCarloEM._write",
            "scalars[at.GROWTH] = self.growth if self.adaptive else np.inf",
            "scalars[at.GROWTH] = np.inf",
        ),
    ),
    *of(
        "samplers/_particles.py",
        "tests/samplers/test_particles.py tests/kernels/test_particles.py",
        ("_Particles._numbers", "_RULES[self.bandwidth]", "0"),
        ("_Particles._numbers", 'getattr(self, "ridge", 0.0)', "0.0"),
    ),
    *of(
        "samplers/schedules.py",
        "tests/samplers/test_laws.py -k schedules",
        ("PolynomialDecay.__call__", "** (-self.exponent)", "** -0.55"),
        (
            "CyclicalStep.__call__",
            "np.maximum(0.5 * (np.cos(np.pi * phase) + 1.0), self.floor)",
            "0.5 * (np.cos(np.pi * phase) + 1.0)",
        ),
        (
            "PolynomialDecay.__call__",
            "(1.0 + np.asarray(step, dtype=float) / self.offset)",
            "(1.0 + np.asarray(step, dtype=float))",
        ),
    ),
]

CHAINS = [
    *of(
        "chains/chain.py",
        "tests/test_chains.py",
        (
            "Chain.snapshot",
            'shot.rng = np.random.Generator(np.random.PCG64([self.step, present["state"], present["inc"]]))',
            "pass",
        ),
        ("Chain.copy", "memo |= {id(value): value for value in self.kept.values()}", "pass"),
    ),
    *of(
        "chains/convergence.py",
        "tests/test_dense_models.py tests/test_diagnostics.py",
        ("Diagnosis.unsettled", "excess.max() > 0 or share.min() < 1", "share.min() < 0"),
        ("Diagnosis.drift", "max(MOVE, ERRORS * error)", "MOVE"),
        ("Diagnosis.unsettled", "int(np.argmin(share))", "int(np.argmax(share))"),
    ),
    *of(
        "chains/interrupts.py",
        "tests/test_estimators.py -k touches_no_global",
        ("deferred_interrupt", "if signal.getsignal(signal.SIGINT) is request:", "if False:"),
        ("interrupts_between_calls", "if signal.getsignal(signal.SIGINT) is interrupt:", "if False:"),
    ),
    *of(
        "chains/interrupts.py",
        "tests/test_chains.py -k end_of_the_call",
        ("interrupts_between_calls", "if _within_ctypes(frame):", "if False:"),
        ("deferred_interrupt", "with interrupts_between_calls():", "if True:"),
    ),
    *of(
        "chains/chain.py",
        "tests/test_chains.py",
        (
            "DrawPlan.__init__",
            "self.n_burn = int(burn_in * n_iter + 1e-9) if",
            "self.n_burn = int(burn_in * n_iter) if",
        ),
        (
            "DrawPlan.__init__",
            "thin = max(1, -(-n_left // self.most_draws(bytes_per_draw, max_draws)))",
            "thin = max(1, n_left // self.most_draws(bytes_per_draw, max_draws))",
        ),
        ("StreamPlan.used", "used = is_own & (kept_steps > n_burn)", "used = is_own"),
        ("StreamPlan.used", "used[-1] = True", "pass"),
    ),
    *of(
        "chains/chain.py",
        "tests/topic/test_streaming.py -k has_enough",
        ("StreamPlan.used", "used if used.sum() >= ENOUGH_DRAWS else used | ~is_own", "used | ~is_own"),
    ),
    *of(
        "chains/run.py",
        "tests/test_sampling.py -k interrupt",
        ("run_chains", "return chains, stop.is_set()", "return chains, False"),
    ),
    *of(
        "chains/growth.py",
        "tests/topic/test_growth.py",
        ("in_window", "recent[-FEWEST_DRAWS:] = True", "pass"),
        ("in_window", "np.asarray(sizes) >= _SHARE * size", "np.asarray(sizes) >= 0"),
        ("in_window", "[-most:]", ""),
        ("n_sweeps_due", "or pending < _DUE * (size - pending)", ""),
        ("pending_after", "return unmade / rule.of(size) * size", "return 0.0"),
        ("planned_update", "if chain.plan.streams else 0", "if False else 0"),
        ("known_with", "return known if digest is None else known | {digest}", "return known"),
    ),
]

BASE = [
    *of(
        "base.py",
        "tests/test_callbacks.py -k carries",
        ("BaseSGMCMC._raise_if_cut_short", "            interrupted.estimator_ = self\n", ""),
    ),
    *of(
        "base.py",
        "tests/test_callbacks.py -k on_the_way",
        ("_all_or_nothing", "self.__dict__ = before  # a single assignment", "pass  # one assignment"),
        ("_copy", "estimator.__dict__.update(estimator._copied_state())", "pass"),
    ),
    *of(
        "base.py",
        "tests/test_callbacks.py -k lda-1",
        ("BaseSGMCMC.__getstate__", 'if name not in _OF_A_FIT} | {"callbacks": None}', "if name not in _OF_A_FIT}"),
    ),
    *of(
        "base.py",
        "tests/goldens/test_saved_model.py -k saved",
        ("BaseSGMCMC.__setstate__", "self.__dict__.setdefault(name, parameter.default)", "pass"),
    ),
    *of(
        "base.py",
        "tests/test_estimators.py -k one_row_more",
        ("BaseSGMCMC._refuse_large_batch", "self.batch_size > n:", "self.batch_size > 2 * n:"),
    ),
    *of(
        "callbacks.py",
        "tests/test_callbacks.py -k pickled",
        ("Checkpoint.__call__", "except Exception as error:  # of any kind", "except OSError as error:  # of any kind"),
        ("Checkpoint.start", "        _refuse_what_no_file_can_hold(estimator)\n", "        pass\n"),
    ),
    *of(
        "callbacks.py",
        "tests/test_callbacks.py -k (due_at or waits_for or ((checkpoints or trace or patience) and (lda or dp)))",
        ("HeldOutScore.__call__", ">= self.patience", "> self.patience"),
        ("Callback.next_step", "return (step // self.every + 1) * self.every", "return step + self.every"),
        ("Checkpoint.__call__", "time.monotonic() - self._saved_at >= self.seconds", "True"),
        (
            "HeldOutScore.start",
            'self._seconds = estimator.trace_["seconds"][-1] if estimator.trace_["seconds"] else 0.0',
            "self._seconds = 0.0",
        ),
        ("Checkpoint.__call__", "estimator.n_iter_ = step", "pass"),
    ),
]

METRICS = [
    *of(
        "metrics/completion.py",
        "tests/metrics/test_completion.py",
        ("split_tokens", "keys = mix64(row_keys(X) ^ salt64(random_state))", "keys = mix64(row_keys(X))"),
        ("_toss_coins", "weights[last[leftover > 0]] = leftover[leftover > 0]", "pass"),
    ),
    *of(
        "metrics/alignment.py",
        "tests/metrics/test_topics.py",
        ("align_topics", "if groups is not None and np.unique(groups).size > 1:", "if False:"),
        ("align_draws", "if groups is not None and np.unique(groups).size > 1:", "if False:"),
        ("topic_stability", "return 1.0 - total / len(flat)", "return 1.0 - 0.5 * total / len(flat)"),
        ("align_draws", "first_chain = int(np.prod(leading[1:]))", "first_chain = 1"),
    ),
    *of(
        "metrics/coherence.py",
        "tests/metrics/test_topics.py",
        ("coherence", "np.maximum(n_v, 1.0)", "np.maximum(n_w, 1.0)"),
        ("coherence", "np.where(joint == n_docs, 0.0, npmi)", "np.where(joint == n_docs, 1.0, npmi)"),
    ),
    *of(
        "metrics/completion.py",
        "tests/metrics/test_completion.py",
        ("_summary", "math.sqrt(n_docs / (n_docs - 1) * math.fsum", "math.sqrt(math.fsum"),
        ("prior_of_draw", "alpha = alpha[s]", "alpha = alpha[0]"),
    ),
    *of(
        "metrics/diagnostics.py",
        "tests/metrics/test_diagnostics.py",
        (
            "_split",
            "np.concatenate([x[:, :half], x[:, -half:]])",
            "np.concatenate([x[:, :half], x[:, half : 2 * half]])",
        ),
        ("_rank_normalize", "(ranks - 0.375) / (ranks.shape[0] + 0.25)", "(ranks - 0.5) / ranks.shape[0]"),
        ("_ess", "tau = np.maximum(tau, 1.0 / np.log10(m * n))", "tau = np.maximum(tau, 1e-12)"),
        ("effective_sample_size", "return np.fmin(*(", "return np.fmax(*("),
        (
            "split_r_hat",
            "return np.fmax(_r_hat(_rank_normalize(x)), _r_hat(_rank_normalize(folded)))",
            "return _r_hat(_rank_normalize(x))",
        ),
        ("_ess", "monotone = np.minimum.accumulate(pairs, axis=0)", "monotone = pairs"),
        ("mcse", "np.sqrt(_ess(_split(x)))", "np.sqrt(_ess(_rank_normalize(_split(x))))"),
    ),
    *of(
        "metrics/partitions.py",
        "tests/metrics/test_partitions.py",
        ("point_partition", "if not change[a, b] < -1e-12:", "if True:"),
        ("point_partition", "order = np.argsort(-np.bincount", "order = np.argsort(np.bincount"),
    ),
    *of(
        "metrics/simplex.py",
        "tests/metrics/test_simplex.py",
        ("ks_distance", "np.abs(u - below - 1 / n)", "np.abs(u - below)"),
        ("rosenblatt_transform", "np.where(log_x < log_y, np.exp(lower), -np.expm1(upper))", "-np.expm1(upper)"),
    ),
    *of(
        "metrics/stein.py",
        "tests/metrics/test_stein.py",
        ("kernel_stein_discrepancy", "- 4.0 * b * (b - 1.0) * q", "- 2.0 * b * (b - 1.0) * q"),
    ),
]

DENSE = [
    *of(
        "dense/model.py",
        "tests/test_dense_models.py -k told",
        ("BaseDenseSGMCMC._collapse_checks", "if spread >= COLLAPSED.limit:", "if spread >= 0:"),
    ),
]

COVARIATES = [
    *of(
        "covariates/metadata.py",
        "tests/topic/test_growth.py -k level",
        ("MetadataEncoder._encoded", "return encoded[:, [place[cell] for cell in cells]]", "return encoded"),
    ),
    *of(
        "covariates/formula_language.py",
        "tests/topic/test_dmr_formula.py -k bad_formulas",
        ("_Check.visit_Attribute", "if node.attr not in MEMBERS.get(module, ()):", "if False:"),
    ),
    *of(
        "covariates/metadata.py",
        "tests/topic/test_dmr.py -k (metadata_as_given or unknown_levels)",
        ("MetadataEncoder.as_given", "coef[..., -1:] - (slopes @ self.shift)[..., None]", "coef[..., -1:]"),
        ("MetadataEncoder.fit", "self.fills[j] = known.mean() if known.size else 0.0", "self.fills[j] = 0.0"),
        (
            "MetadataEncoder._encoded",
            "parts.append(np.where(missing, fill, values)",
            "parts.append(np.where(missing, 0.0, values)",
        ),
    ),
    *of(
        "covariates/effects.py",
        "tests/topic/test_effects.py -k (least_squares or single_category)",
        ("effect_table", "own[:, after]", "own[:, before]"),
    ),
]

DENSITY = [
    *of(
        "density/_gaussian.py",
        "tests/density/test_gaussian.py",
        ("BayesianGaussian._log_densities", "- 0.5 * d * np.log(2.0 * np.pi)", ""),
        ("BayesianGaussian.exact_samples", "/ np.sqrt(law.mean_precision)", ""),
    ),
    *of(
        "density/_normal_wishart.py",
        "tests/density/test_gaussian.py",
        ("checked_prior", "inverse_scale=nu * covariance", "inverse_scale=covariance"),
    ),
]

LINEAR_MODEL = [
    *of(
        "linear_model/_prior.py",
        "tests/linear_model/test_linear.py -k (law_of_the_model or best_variance)",
        ("HalfT.draw", "rng.gamma(0.5 * (self.freedom + 1.0))", "rng.gamma(0.5 * self.freedom)"),
        ("HalfT.best", "0.5 * (total - 1.0 - square / unit)", "0.5 * (total - square / unit)"),
    ),
    *of(
        "linear_model/_prior.py",
        "tests/linear_model/test_prior_scale.py",
        ("_Expansion.__init__", "self.information[np.arange(d), np.arange(d)] -= precision", "pass"),
        ("_Search._fixed_point", "if abs(log_scale - before) < _CLOSE:", "if True:"),
    ),
    *of(
        "linear_model/_leading.py",
        "tests/linear_model/test_wide.py",
        ("unit_coordinates", "least / own.along(units[:, [k]] * directions)", "least + 0.0 * k"),
        ("LeadingDirections.undo", "1.0 / self.gains - 1.0", "1.0 - self.gains"),
    ),
    *of(
        "dense/krylov.py",
        "tests/linear_model/test_wide.py -k (krylov or moments)",
        ("Krylov.inverse_root", "np.sqrt(np.maximum(self.values", "(np.maximum(self.values"),
    ),
    *of(
        "linear_model/_wide.py",
        "tests/linear_model/test_wide.py -k (mode or moments)",
        ("WidePosterior._slope", "return self.pull(r) - self.precision * (b - self.prior_mean)", "return self.pull(r)"),
    ),
    *of(
        "linear_model/_stream.py",
        "tests/linear_model/test_streams.py -k (parameters or memory or sorted or column)",
        ("Stream.added", "block = copied(block)", "pass"),
        ("Stream.added", "summarise(self.joined().rows)", "summarise(block)"),
        ("Summary.is_off", "slope * (self.weight / weight.sum())", "slope"),
    ),
    *of(
        "linear_model/_deferred.py",
        "tests/linear_model/test_streams.py -k (parameters or depend)",
        ("Deferred.parameters_of", "vars(estimator).update(self.parameters)", "pass"),
    ),
    *of(
        "linear_model/_base.py",
        "tests/linear_model/test_streams.py -k (depend or column or parameters)",
        ("BaseLinearModel._add_rows", "sampler = clone(sampler)", "pass"),
        ("BaseLinearModel._with_units_of_new_columns", "last.columns * columns", "last.columns"),
    ),
    *of(
        "linear_model/_counts.py",
        "tests/linear_model/test_poisson.py -k exposure",
        ("BaseCountRegressor._exposed", "exposure[lo : lo + len(means), None]", "exposure[: len(means), None]"),
        (
            "BaseCountRegressor._refuse_forgotten",
            "if exposure is None and self._had_exposure:\n            more",
            "if False:\n            more",
        ),
    ),
    *of(
        "linear_model/_dispersion.py",
        "tests/linear_model/test_negative_binomial.py -k (derivatives or marginal or signal)",
        (
            "OverdispersedCounts.slopes",
            "mixed + self.size * (p - total), mixed",
            "mixed + self.size * (p - total), both",
        ),
        ("DispersedDesign._find", "slope -= 0.5 * (weight", "slope += 0.5 * (weight"),
        ("DispersionPrior.derivatives", "return 0.5 - share,", "return 1.0 - share,"),
    ),
    *of(
        "linear_model/_negative_binomial.py",
        "tests/linear_model/test_negative_binomial.py -k predictions",
        ("BayesianNegativeBinomialRegressor._variances", "self._dispersions * means**2", "self._dispersions * means"),
    ),
    *of(
        "linear_model/_predict.py",
        "tests/linear_model/test_logistic.py -k (predictions or table)",
        (
            "DrawsPredictMixin.predict_uncertainty",
            "noise.append(special.entr(p).sum(axis=2).mean(axis=1))",
            "noise.append(total[-1])",
        ),
        ("coefficient_table", '"sd": flat.std(axis=0, ddof=1)', '"sd": flat.var(axis=0, ddof=1)'),
        (
            "_mean_and_ends",
            "row_interval_ends(rows, tails)",
            "row_interval_ends(rows, [0.25, 0.75])",
        ),
    ),
    *of(
        "linear_model/_prior.py",
        "tests/linear_model/test_units.py -k (unlike_units or change_no_prediction)",
        (
            "<module>",
            "_LOWEST, _USUAL_HIGHEST, _FACTOR, _MAX_SCALES = 1e-6, 1e3, 4.0, 32",
            "_LOWEST, _USUAL_HIGHEST, _FACTOR, _MAX_SCALES = 1e-6, 1e-5, 4.0, 6",
        ),
        ("_Search.design", "given = precision * self.columns**2", "given = precision"),
    ),
    *of(
        "linear_model/_input.py",
        "tests/linear_model/test_class_weight.py",
        ("row_weights", "weight *= each[codes]", "pass"),
    ),
    *of(
        "linear_model/_predict.py",
        "tests/inspection/test_arviz.py -k leave_one_out",
        ("DrawsPredictMixin._log_likelihood_draws", "np.concatenate(parts).T.reshape", "np.concatenate(parts).reshape"),
    ),
]

MIXTURE = [
    *of(
        "mixture/_dirichlet_process/results.py",
        "tests/inspection/test_clusters.py -k consensus",
        ("FittedDPMixture.consensus_partition", "(partition, draw, loss)", "(partition, draw)"),
    ),
    *of(
        "mixture/_dirichlet_process/results.py",
        "tests/mixture/test_dp.py -k (agree or slots or clusters_are_found)",
        ("FittedDPMixture.co_clustering", "np.fill_diagonal(together, 1.0)", "pass"),
    ),
    *of(
        "mixture/_dirichlet_process/results.py",
        "tests/mixture/test_dp_tables.py",
        (
            "FittedDPMixture.co_clustering",
            "share = _responsibilities(log_weight)[:, :-1]",
            "share = _responsibilities(log_weight)",
        ),
        (
            "FittedDPMixture.top_categories",
            "gain = np.where(is_probability, xlogy(mean, lift)",
            "gain = np.where(is_probability, mean",
        ),
        ("_in_order_of_clusters", "others[np.argsort(-weights[others]", "others[np.argsort(weights[others]"),
    ),
    *of(
        "mixture/_dirichlet_process/cells.py",
        "tests/mixture/test_dp.py -k labels_of_levels",
        ("places_of_levels", "return np.argsort(np.lexsort((first, cells, block)))", "return np.arange(block.size)"),
    ),
    *of(
        "mixture/_dirichlet_process/slice.py",
        "tests/mixture/test_dp_laws.py -k (fresh or outside)",
        (
            "StickChain._forget_unused",
            "last = int(self.z.max()) + 1",
            "last = 1 + int(np.flatnonzero(self._omega()[0] * self._total() >= 0.5).max(initial=0)); "
            "self.z[self.z >= last] = -1",
        ),
    ),
    *of(
        "mixture/_dirichlet_process/collapsed.py",
        "tests/mixture/test_dp_growth.py -k (number_of_clusters_of_all or small_blocks or forgotten)",
        ("CollapsedChain.append", "self.keep_only(in_window(self.kept_rows, data.n_rows, plan.n_draws))", "pass"),
        ("CollapsedChain.append", "np.full(n_new, kernels.FREE, dtype=np.int32)", "np.zeros(n_new, dtype=np.int32)"),
        ("ClusterChain.forget", "self.z, self.data = None, None", "pass"),
    ),
    *of(
        "mixture/_dirichlet_process/model.py",
        "tests/mixture/test_dp_growth.py -k (comes_again or streamed)",
        ("DPCategoricalMixture.partial_fit", "is_known = digest in self._known", "is_known = False"),
        ("DPCategoricalMixture.partial_fit", "        self._drop_rows()\n", ""),
    ),
    *of(
        "mixture/_dirichlet_process/input.py",
        "tests/mixture/test_dp_growth.py -k (comes_again or forgotten)",
        ("CheckedInput._bound_data", "if self._forgot:", "if False:"),
        ("CheckedInput._digest", "(weight,)", "()"),
    ),
    *of(
        "mixture/_dirichlet_process/cells.py",
        "tests/mixture/test_dp_growth.py -k survey",
        ("RowData.joined", "values=entries if is_plain else", "values=entries if True else"),
    ),
    *of(
        "mixture/_latent_class/chain.py",
        "tests/mixture/test_latent_class_laws.py -k (exact_posterior or whole_classes)",
        ("ClassChain._advance", "self.odds, self._mass,", "self.odds, 4.0 * self._mass,"),
    ),
    *of(
        "mixture/_latent_class/membership.py",
        "tests/mixture/test_latent_class_laws.py -k coefficients",
        ("Regression.update", "weights * ((z == k) - 0.5) + weighted * others", "weights * ((z == k) - 0.5)"),
        ("Regression.update", "self.coef += common - self.coef.mean(axis=0)", "self.coef[0] += common"),
    ),
    *of(
        "mixture/_mixed/columns.py",
        "tests/mixture/test_latent_class_laws.py -k predictive",
        ("OrdinalColumn.draw", "prior[n:-1] + stats[n:-1]", "prior[n:-1]"),
        ("ContinuousColumn.draw", "np.sqrt(variance / n)", "np.sqrt(variance)"),
        ("CountColumn.draw", "shape + stats[1]", "shape + stats[0]"),
    ),
    *of(
        "mixture/_latent_class/alignment.py",
        "tests/mixture/test_latent_class.py -k (planted or several)",
        ("align_chains", "places = first if c == best else", "places = first if True else"),
    ),
    *of(
        "mixture/_von_mises_fisher/model.py",
        "tests/mixture/test_vmf.py -k (score_is or empty_row)",
        (
            "VonMisesFisherMixture.score_samples",
            "return np.where(has_content(rows), self._log_density(rows), 0.0)",
            "return self._log_density(rows)",
        ),
    ),
]

TOPIC = [
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_shards.py -k (cut or merged_counts or exact_law)",
        ("LocalShards.proceed", "z[part] = done.z", "pass"),
        ("LocalShards.proceed", "done.change.add_to(now.sums)", "pass"),
        ("Change.add_to", "part[self.rows] +=", "part[self.rows] -="),
        ("cuts", "token_ptr[0] + (token_ptr[-1] - token_ptr[0])", "(token_ptr[-1] - token_ptr[0])"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_blocks.py -k (in_any_order or division or sample)",
        ("Change.sum_of", "values[np.searchsorted(rows, each.rows)] +=", "values[np.searchsorted(rows, each.rows)] ="),
        ("MemoryMappedShards.__init__", "token + ptr[1:]", "ptr[1:]"),
        ("MemoryMappedShards.sample", "self._every", "1 + self._every"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_dmr_blocks.py -k (answers or division or knows or know)",
        ("groups_of", "rank = np.argsort(np.argsort(first))", "rank = np.arange(first.size)"),
        ("_joined_described", "part.group + first", "part.group"),
        ("arranged", "given = described[first]", "given = described[first[::-1]]"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_parts.py -k coefficients",
        ("InMemoryShards._part", "Described(group - first,", "Described(group,"),
    ),
    *of(
        "topic/_counts/document_prior.py",
        "tests/topic/test_lda.py -k asymmetric",
        ("moved_prior", "alpha * sums[:-1] / sums[-1]", "alpha * sums[:-1].mean() / sums[-1]"),
        ("FittedPrior.draw", "self.alpha.copy()", "self.alpha[::-1].copy()"),
    ),
    *of(
        "topic/_counts/word_prior.py",
        "tests/topic/test_word_prior.py",
        ("FittedWordPrior.update", "if n_passes % PASSES_PER_FIT:", "if n_passes:"),
        ("FittedWordPrior.begin", "first_word_prior(n_tokens, self.n_words, self.n_topics)", "DEFAULT"),
    ),
    *of(
        "topic/_counts/word_prior.py",
        "tests/topic/test_seeds.py",
        (
            "WordPrior.exchangeable_groups",
            "if self.distinguishes_topics else of_documents",
            "if False else of_documents",
        ),
        ("WordPrior.seed_shares", "(value / most) ** 2", "(value / most) ** 0"),
    ),
    *of(
        "topic/_dmr/document_prior.py",
        "tests/topic/test_dmr_laws.py -k (remembers or held)",
        ("MetadataPrior.stream", "self.coefficients.held, self.held = self.held, None", "self.held = None"),
        ("MetadataPrior._stream_of", "np.random.default_rng([progress.seed, progress.step])", "progress.rng"),
    ),
    *of(
        "topic/_counts/scaled_dirichlet.py",
        "tests/topic/test_dispersion_laws.py -k exact_law",
        ("token_priors", '{"rate": rate, "auxiliary"', '{"rate": rate**0.5, "auxiliary"'),
    ),
    *of(
        "topic/_structural/word_prior.py",
        "tests/topic/test_group_words_laws.py -k joint_law",
        ("GroupedSweeps.set_weights", "prior.which, prior.log_mean", "0 * prior.which, prior.log_mean"),
        ("GroupedSweeps.sweep", "self.word_prior.pulls, self.entries", "self.masses, self.entries"),
    ),
    *of(
        "topic/_structural/word_prior.py",
        "tests/topic/test_structural.py",
        ("GroupedWordPrior.separate", "1.0 / GRID.size), False", "1.0 / GRID.size), True"),
        ("GroupedWordPrior.extended", "_logarithm(new)", "_logarithm(0.0 * new + 1.0)"),
    ),
    *of(
        "topic/_structural/keywords.py",
        "tests/topic/test_keywords.py",
        ("KeywordPlaces.in_columns", "columns[forms, topic] -= own", "pass"),
        ("KeywordPlaces.mixed", "*= 1.0 - rate", "*= 1.0"),
    ),
    *of(
        "topic/_structural/keyword_prior.py",
        "tests/topic/test_keyword_laws.py -k joint_law",
        ("KeywordWordPrior.observe", "rest + self.strength[1]", "rest + own"),
        ("KeywordSweeps.set_weights", "base.sum(axis=0)", "1.0 + base.sum(axis=0)"),
    ),
    *of(
        "topic/_outcome/outcomes.py",
        "tests/topic/test_outcome.py -k (planted or units or classes_follow)",
        ("GaussianOutcome._draw", "self.variance = (rest @ rest", "self.variance = (0.1 * rest @ rest"),
        ("BinaryOutcome._draw", "R.T @ (y - 0.5)", "R.T @ y"),
        ("GaussianOutcome.permute", "self.coef[order]", "self.coef"),
    ),
    *of(
        "topic/_outcome/document_prior.py",
        "tests/topic/test_outcome.py",
        ("OutcomePrior.append", "grown[~is_new] = self.log_activity", "grown[is_new] = 0.0"),
        ("OutcomePrior.release", "self.log_activity = None", "pass"),
    ),
    *of(
        "topic/_outcome/model.py",
        "tests/topic/test_outcome.py",
        ("TopicOutcomeModel._set_units", "- shift[..., None]", ""),
        ("TopicClassifier._probabilities", "np.column_stack([1.0 - p, p])", "np.column_stack([p, 1.0 - p])"),
        ("TopicRegressor.predict_interval", 'self.samples_["noise_scale"]', '0.1 * self.samples_["noise_scale"]'),
    ),
    *of(
        "topic/_outcome/tables.py",
        "tests/topic/test_outcome.py",
        ("unidentified", "NOT_IDENTIFIED.limit *", "100.0 *"),
        ("_contrasts", "coef @ _shares(model)", "coef.mean(axis=1)"),
    ),
    *of(
        "topic/_structural/record.py",
        "tests/topic/test_structural.py -k (groups_are_found or resume)",
        ("SharedDraws._shares", "[:, self.orders[c, s]]", "[:, ::-1]"),
        ("GroupDraws.draw", "[:, self.group :: self.n_groups]", "[:, :: self.n_groups]"),
    ),
    *of(
        "topic/_structural/spread.py",
        "tests/topic/test_structural.py -k (groups_are_found or tables)",
        ("SpreadState.drawn_with_sums", "y /= rates", "pass"),
    ),
    *of(
        "topic/_counts/forms.py",
        "tests/topic/test_structural.py -k (groups_are_found or predictions)",
        ("groups_of_documents", "% n_groups", "% 1"),
    ),
    *of(
        "topic/_counts/forms.py",
        "tests/topic/test_structural.py -k blocks",
        ("Forms.rows", "self.group[start:stop]", "self.group[: stop - start]"),
        ("Forms.checksum", "(of_words, zlib.crc32(self.group))", "of_words"),
        ("StepInWords.__call__", "counts[1] - counts[0]", "counts[1]"),
    ),
    *of(
        "topic/_structural/shards.py",
        "tests/topic/test_group_words_laws.py -k shards",
        ("GroupedShardCounts.finish", "np.maximum(mass, group_words.NOTHING)", "np.maximum(mass, 1.0) + 1.0"),
        ("GroupedShardCounts.finish", "/ np.exp(prior.log_mean).sum(axis=0)", ""),
        ("GroupedShardCounts._drawn_columns", "prior.spread(columns)", "prior.spread(0 * columns)"),
    ),
    *of(
        "topic/_structural/shards.py",
        "tests/topic/test_keyword_laws.py -k shards",
        ("KeywordShardCounts.drawn_topics", "rest = (1.0 - prior.rate[topic]) *", "rest ="),
        ("thinned", "rng.binomial(whole.astype(np.int64), share)", "np.round(whole * share)"),
    ),
    *of(
        "topic/_dmr/dispersed_prior.py",
        "tests/topic/test_dispersion_laws.py -k (joint_distribution_unchanged or draws_keep or mean_of_scales)",
        ("DispersedCoefficients.move", "accepts = np.log1p(-rng.random(gain.size)) < gain", "accepts = gain > -np.inf"),
        ("DispersedCoefficients.redraw_common_scale", "- scales.mean(axis=0)", "- 0.0"),
        ("DispersedMetadataPrior.draw", "dispersion = scales - scales.mean(axis=0)", "dispersion = scales"),
        ("DispersedMetadataPrior.set_to", "[means - scales, scales]", "[means, scales]"),
    ),
    *of(
        "topic/_dmr/document_prior.py",
        "tests/topic/test_dmr_laws.py -k (remembers or held)",
        ("MetadataPrior.release", "if self.stored and not self.is_released:", "if False:"),
    ),
    *of(
        "topic/_gamma_process/document_prior.py",
        "tests/topic/test_blocks.py -k gamma_process",
        ("GammaProcessPrior.update", "self._move(progress, None)", "pass"),
    ),
    *of(
        "topic/_results/topics.py",
        "tests/topic/test_tables.py",
        ("mixed", "np.divide(masses, total, out=1.0 / n_merged, where=total > 0)", "np.ones(new.size)"),
        ("new_topics", "first[group] = group.min()", "first[group] = group.max()"),
    ),
    *of(
        "topic/_results/documents.py",
        "tests/topic/test_tables.py",
        ("proportion_draws", "_FIRST_SWEEPS if s == 0 else _SWEEPS", "0"),
        ("proportion_draws", "mix64(keys + np.uint64(s + 1))", "keys"),
        ("proportion_draws", "row_keys(corpus.to_csr())", "np.arange(corpus.n_docs, dtype=np.uint64)"),
    ),
    *of(
        "topic/_results/topics.py",
        "tests/topic/test_lda.py -k top_words",
        ("word_table", "else interval_tails(interval)", "else [1 - interval, interval]"),
        ("word_table", "(draws[:, top[k]] >= bar)", "(draws[:, top[k]] > bar)"),
    ),
    *of(
        "topic/_results/topics.py",
        "tests/topic/test_tables.py",
        ("word_scores", "rankdata(components, axis=1) / n_words", "components"),
        ("word_scores", "logs - logs.mean(axis=0)", "logs"),
        ("word_scores", "share = word_counts / max(word_counts.sum(), 1.0)", "share = word_counts"),
    ),
    *of(
        "topic/_estimator/predictive.py",
        "tests/test_diagnostics.py -k enough_tokens",
        ("_some", "_SHARE * n_tokens, _LEAST, _MOST", "_SHARE * n_tokens, 1, _MOST"),
    ),
    *of(
        "topic/_dmr/model.py",
        "tests/topic/test_growth.py -k level",
        ("DMRTopicModel._begin_levels", "chain.keep_only([])", "pass"),
        ("DMRTopicModel._check_update", 'self.handle_unknown != "error" and', ""),
        ("DMRTopicModel._begin_levels", "self._kept.n_tokens + corpus.n_tokens) - corpus.n_tokens", "0.0) - 0.0"),
    ),
    *of(
        "topic/_dmr/coefficients.py",
        "tests/topic/test_growth.py -k level",
        ("widened", "value.shape[1] - 1]", "value.shape[1]]"),
    ),
    *of(
        "topic/_counts/growth.py",
        "tests/topic/test_growth.py",
        ("taken_in", "sweeps.add(known)", "pass"),
    ),
    *of(
        "topic/_counts/document_prior.py",
        "tests/topic/test_growth.py",
        ("DocumentPrior.block_sweeps", "(sweeps_of if is_whole else GeneralSweeps)", "sweeps_of"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_growth.py",
        ("KeptCorpus.append", "joined.of_docs(order)", "joined"),
        ("KeptCorpus.append", "is_new[order]", "is_new"),
    ),
    *of(
        "topic/_counts/chain.py",
        "tests/topic/test_growth.py",
        ("CollapsedChain.append", "for _ in range(BLOCK_SWEEPS):", "for _ in range(0):"),
        ("CollapsedChain.append", "self.keep_only(in_window(self.kept_docs, documents.n_docs, plan.n_draws))", "pass"),
        ("CollapsedChain.append", "self.record.take_in(words, self.z[of_new], weights)", "pass"),
        ("CollapsedChain.forget", "self.z = self.data = self.doc_record = None", "pass"),
        ("CollapsedChain.take_in", "self.keep_only(evenly_spaced(self.n_kept))", "pass"),
    ),
    *of(
        "topic/_estimator/model.py",
        "tests/topic/test_growth.py",
        ("CountTopicModel._update", "is_known, grows = digest in self._known", "is_known, grows = False"),
    ),
    *of(
        "topic/_counts/record.py",
        "tests/topic/test_lda.py -k score_is_the_one_definition",
        ("scored_draws", "return evenly(n_draws, _SCORED_DRAWS)", "return np.arange(min(n_draws, _SCORED_DRAWS))"),
    ),
    *of(
        "topic/_counts/chain.py",
        "tests/topic/test_blocks.py",
        ("CollapsedChain._next_round", "(self._progress().may_approximate or collapsed.temperature > 1.0)", "True"),
    ),
    *of(
        "topic/_counts/document_prior.py",
        "tests/topic/test_word_prior.py -k bounded or many_topics",
        ("FittedPrior.update", "if self.alpha.size > _MOST_SETTLED:", "if False:"),
        ("first_doc_prior", "_FIRST_SUM / n_topics", "15.0 / n_topics"),
    ),
    *of(
        "topic/_counts/document_prior.py",
        "tests/topic/test_word_prior.py -k shards",
        ("Progress.may_approximate", "self.burns_in and not self.is_late", "self.burns_in"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_blocks.py",
        ("Round.seed_of", "np.random.SeedSequence([self.seed, i])", "np.random.SeedSequence([self.seed])"),
    ),
    *of(
        "topic/_counts/word_prior.py",
        "tests/topic/test_blocks.py",
        ("WordPrior.topics_of_pass", "np.uint64(seed + start)", "np.uint64(0)"),
    ),
    *of(
        "topic/_counts/chain.py",
        "tests/topic/test_dmr_blocks.py",
        ("CollapsedChain._release", "self.doc_prior.release(self._assigned())", "pass"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_dmr_blocks.py",
        ("MemoryMappedShards._arrange", "self.words[part] = shard.words", "pass"),
    ),
    *of(
        "topic/_counts/documents.py",
        "tests/topic/test_blocks.py -k repeated",
        ("BlockCorpus.choose_shards", "self.refuse_too_many_tokens(n_chains, here=client is None)", "pass"),
    ),
    *of(
        "topic/_minibatch/chain.py",
        "tests/topic/test_lda.py -k never_seen",
        (
            "MinibatchChain._move",
            "counts *= self.data.total_samples / docs.size / self.minibatch.n_sweeps[1]",
            "counts *= 1.0 / self.minibatch.n_sweeps[1]",
        ),
    ),
    *of(
        "topic/_minibatch/chain.py",
        "tests/topic/test_streaming.py -k 'has_enough or words_are_added'",
        ("MinibatchChain._fitted_draws", "evenly(self.n_kept, most) if self.n_kept else ()", "()"),
        ("MinibatchChain.has_mean", " and not self.plan.uses_fit(self.kept_steps)", ""),
        ("MinibatchChain.extend_vocabulary", "self.record.extend(n_words, self.record.last)", "pass"),
    ),
    *of(
        "topic/_counts/chain.py",
        "tests/topic/test_parts.py",
        ("CollapsedChain._proceed", "collapsed.temperature == 1.0 and collapsed", "collapsed"),
    ),
    *of(
        "topic/_counts/dask_shards.py",
        "tests/topic/test_blocks_dask.py",
        ("DaskShards._proceed", "change.add_to(now.sums)", "pass"),
    ),
    *of(
        "topic/_counts/document_prior.py",
        "tests/topic/test_streaming.py -k prior",
        ("FittedPrior.update_from_batch", "max(share, 0.05)", "0.0"),
    ),
    *of(
        "topic/_counts/sweeps.py",
        "tests/topic/test_parts.py",
        ("drawn_shares", "np.log1p(-rng.random(known.size)) / known", "0.0"),
        (
            "sweep_by_vocabulary",
            "drawn_shares(mass + beta * n_words[:, None], rng)",
            "np.full(mass.shape, 1.0 / n_parts)",
        ),
        ("sweep_by_vocabulary", "(i + turn) % n_parts", "i"),
        ("sweep_by_vocabulary", "share[part], doc_counts", "share[i], doc_counts"),
        ("number_of_parts", "np.clip(np.sqrt", "np.clip(2.0 * np.sqrt"),
    ),
    *of(
        "topic/_counts/record.py",
        "tests/topic/test_draws.py",
        (
            "Counts.by_topic",
            'np.array(self.values.T, dtype=np.float64, order="C")',
            "np.ascontiguousarray(self.values.T, dtype=np.float64)",
        ),
        ("TopicRecord.add", "order = order[self.orders[-1]]\n        self._last = z.copy()", "self._last = z.copy()"),
    ),
    *of(
        "topic/_counts/word_prior.py",
        "tests/topic/test_seeds.py -k names or warns",
        ("check_seeds", "own = is_seed[k] & ~is_seed  #", "own = is_seed[k] & is_seed  #"),
        (
            "SeedWords.__init__",
            "for k, words in enumerate(given.values())",
            "for k, words in enumerate(reversed(given.values()))",
        ),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_blocks.py",
        ("sampled", "-shard.first_doc % n", "0"),
        ("Change.compacted", "np.min_scalar_type(-largest - 1)", "np.int8"),
    ),
    *of(
        "topic/_counts/split_merge.py",
        "tests/topic/test_split_merge.py",
        ("try_move", "return gain > 0.0", "return True"),
        (
            "try_move",
            "before, after = assigned.of(topics), assigned.of(topics, move)",
            "after = before = assigned.of(topics)",
        ),
        ("Assigned.make", "self.z[self.z == move.left] = move.kept", "pass"),
        ("Assigned.sample", "chosen = np.sort(", "chosen = np.arange(documents.n_docs) if True else np.sort("),
        ("cheap_merges", "(groups[j] == groups[k]) & ", ""),
        ("next_search", "if n_made else", "if not n_made else"),
    ),
    *of(
        "topic/_counts/chain.py",
        "tests/topic/test_split_merge.py",
        ("CollapsedChain._wants_search", "self.plan.streams or ", ""),
        ("CollapsedChain._wants_search", "n_burn - FEWEST_LEFT", "n_burn"),
    ),
    *of(
        "kernels/models/lda/split_merge.py",
        "tests/topic/test_split_merge.py",
        ("_log_predictive", "(in_doc[own] - 1.0) * (there - 1.0)", "in_doc[own] * (there - 1.0)"),
        ("_log_predictive", "if product < _SMALLEST:", "if product < 0.0:"),
    ),
    *of(
        "topic/_counts/start.py",
        "tests/topic/test_start.py",
        ("learnt_topics", "[:_MOST_DOCS]", ""),
    ),
    *of(
        "topic/_dmr/document_prior.py",
        "tests/topic/test_dmr_blocks.py",
        (
            "MetadataPrior.table",
            "return prior, shard.group if docs is None",
            "return prior, 0 * shard.group if docs is None",
        ),
    ),
    *of(
        "topic/_counts/doc_counts.py",
        "tests/topic/test_effects.py -k in_the_order",
        ("DocumentCounts.__init__", "rows = rows[np.argsort(np.concatenate([place for _, place in parts]))]", "pass"),
    ),
    *of(
        "topic/_counts/doc_counts.py",
        "tests/topic/test_effects.py -k evenly_spaced",
        ("DocumentRecord.offer", "self._every *= 2", "self._every *= 3"),
    ),
    *of(
        "topic/_dmr/proportions.py",
        "tests/topic/test_effects.py -k (bootstrap or drawn_again)",
        ("Weights.of_draw", "np.array([c * self.n_draws + s])", "np.array([0])"),
        ("Weights.of_draw", "(weights if self.cluster is None else weights[self.cluster])", "weights"),
    ),
    *of(
        "topic/_dmr/regression.py",
        "tests/topic/test_effects.py -k least_squares",
        ("RegressionMean.averages", "if is_own:", "if False:"),
        ("RegressionMean.__init__", "(own[:, None] * theta)", "theta"),
    ),
    *of(
        "topic/_dmr/evidence.py",
        "tests/topic/test_dmr_blocks.py",
        ("_summed", "first, *others = parts", "first, *others = parts[:-1]"),
    ),
    *of(
        "topic/_dmr/intercepts.py",
        "tests/topic/test_dmr.py -k intercepts",
        ("check_intercepts", "if found is None or not error > limit:", "if found is None or error > limit:"),
        ("mean_intercepts", "return mean[..., 0] + mean[..., 1:] @ centre", "return mean[..., 0]"),
    ),
    *of(
        "topic/_counts/corpus.py",
        "tests/topic/test_dmr.py -k (prevalence or tables or prior_of)",
        (
            "TokenCorpus.mean_of",
            "np.bincount(group) @ values_of(part[first])",
            "len(group) * values_of(part[first]).mean(axis=0)",
        ),
    ),
    *of(
        "topic/_dmr/model.py",
        "tests/topic/test_dmr.py -k metadata_of_other_documents",
        ("DMRTopicModel._known_metadata", "corpus.checksum == self._documents", "True"),
    ),
    *of(
        "topic/_dmr/prevalence.py",
        "tests/topic/test_dmr.py -k (prevalence or tables or prior_of)",
        ("difference_table", "difference = a - b", "difference = b - a"),
    ),
    *of(
        "topic/_counts/record.py",
        "tests/topic/test_draws.py -k (further_tokens or new_tokens)",
        ("TopicRecord.take_in", "present[self.orders[-1]] = order", "present[order] = self.orders[-1]"),
        ("Counts.plus", "values[at[known]] += added[known]", "values[at[known]] = added[known]"),
    ),
    *of(
        "topic/_counts/documents.py",
        "tests/topic/test_streaming.py -k last_of_several",
        ("BlockCorpus.last_block", "*_, last = self.corpora()", "last, *_ = self.corpora()"),
    ),
    *of(
        "topic/_counts/documents.py",
        "tests/topic/test_dmr_blocks.py -k stream_of_blocks",
        ("BlockInput.parts", "slice(start, stop)", "slice(0, stop - start)"),
    ),
    *of(
        "topic/_structural/model.py",
        "tests/topic/test_structural.py tests/topic/test_keywords.py -k refused",
        ("StructuralTopicModel._refuse_no_metadata", "if self.content is not None:", "if False:"),
    ),
    *of(
        "topic/_outcome/tables.py",
        "tests/topic/test_outcome.py -k (planted or tables)",
        ("contrast_table", "coef[:, a] - coef[:, b]", "coef[:, b] - coef[:, a]"),
        ("coefficient_table", '"covariate_coef")[:, j]', '"covariate_coef")[:, -1 - j]'),
    ),
    *of(
        "topic/_agreement.py",
        "tests/topic/test_agreement.py",
        ("number_topics", "_reorder(samples, (c,), order, axis=1)", "pass"),
    ),
    *of(
        "topic/_draws.py",
        "tests/topic/test_mean_topics.py",
        ("AveragedDraws.align", "orders[-1]", "orders[0]"),
    ),
    *of(
        "topic/_results/regression.py",
        "tests/topic/test_outcome.py -k regress_is",
        ("plug_in_table", "theta.mean(axis=0)", "theta.mean()"),
    ),
    *of(
        "topic/_results/covariates.py",
        "tests/topic/test_outcome.py -k covariates",
        ("Covariates.checked", "tuple(names) != self.names", "set(names) != set(self.names)"),
    ),
    *of(
        "topic/_dmr/permutations.py",
        "tests/topic/test_effects.py -k permut",
        ("permuted", "order[members] = np.lexsort", "order = np.lexsort"),
        ("_Refits.effects", "(each[order] for each in", "(each for each in"),
    ),
    *of(
        "topic/_structural/contrasts.py",
        "tests/topic/test_structural.py -k tables",
        ("contrast_table", "words] for g in groups)", "words] for g in groups[::-1])"),
    ),
    *of(
        "topic/_gamma_process/model.py",
        "tests/topic/test_gamma_process.py -k planted",
        ("GammaProcessTopicModel._count_topics", "self._numbers_of_topics(0.01)", "self._numbers_of_topics(0.0)"),
        (
            "GammaProcessTopicModel.topic_weights",
            "share = (draws / draws.sum(axis=1, keepdims=True)).mean(axis=0)",
            "share = draws.mean(axis=0)",
        ),
    ),
]

INSPECTION = [
    *of(
        "inspection/_prevalence.py",
        "tests/inspection/test_prevalence.py -k predicted",
        ("_predicted", "cells = row * values.size + column", "cells = column * len(groups) + row"),
    ),
    *of(
        "inspection/_prevalence.py",
        "tests/inspection/test_prevalence.py -k line_for_each_group",
        ("_averaged", "{by: group}", "{by: groups[0]}"),
    ),
    *of(
        "inspection/_export.py",
        "tests/inspection/test_inspection.py -k pyldavis",
        ("to_pyldavis", "names[words].tolist()", "names[: words.size].tolist()"),
    ),
    *of(
        "inspection/_report/markup.py",
        "tests/inspection/test_report.py -k (escaped or loaded)",
        ("escaped", "html.escape(", "str.format("),
    ),
    *of(
        "inspection/_report/contents.py",
        "tests/inspection/test_report.py -k (tables or difference or labels)",
        ("_by_groups", "differences = (means[:, 1] - means[:, 0])[:, None]", "differences = means[:, :1]"),
        (
            "gather",
            "proportion = np.stack([each[chosen, shown[:, None]] for each in draws])",
            "proportion = np.stack([each[chosen, shown[:, None] * 0] for each in draws])",
        ),
    ),
]

MODEL_SELECTION = [
    *of(
        "model_selection/_n_components.py",
        "tests/model_selection/test_n_components.py -k (hand or too_few)",
        ("_of_topics", "paired_difference(completion, best)", "paired_difference(best, completion)"),
    ),
]

FOLDERS = {
    "kernels": KERNELS,
    "utils": UTILS,
    "samplers": SAMPLERS,
    "chains": CHAINS,
    "base": BASE,
    "metrics": METRICS,
    "dense": DENSE,
    "covariates": COVARIATES,
    "density": DENSITY,
    "linear_model": LINEAR_MODEL,
    "mixture": MIXTURE,
    "topic": TOPIC,
    "inspection": INSPECTION,
    "model_selection": MODEL_SELECTION,
}


# ------------------------------------------------------------------------------------------------ finding a function


def _definitions(node, prefix=""):
    """Functions and classes below a node of a syntax tree, each with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + child.name, child
            yield from _definitions(child, f"{prefix}{child.name}.")
        else:
            yield from _definitions(child, prefix)


@cache
def _lines_of(text, function):
    """Where a function stands in the text of a file: (first line, line after the last), more than one if overloaded."""
    tree = ast.parse(text)
    if function == "<module>":
        nodes = [n for n in tree.body if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    else:
        nodes = [node for name, node in _definitions(tree) if name == function]
    return [
        (min(n.lineno for n in (node, *getattr(node, "decorator_list", ()))) - 1, node.end_lineno) for node in nodes
    ]


def missing(mutation):
    """What there is not of a mutation's file and function: None where both exist."""
    path = PACKAGE / mutation.file
    if not path.is_file():
        return f"there is no file {mutation.file}"
    if not _lines_of(path.read_text(encoding="utf-8"), mutation.function):
        return f"{mutation.file} has no function {mutation.function}"
    return None


def mutated(text, mutation):
    """The text of a file with the error in it; None where the function does not contain the old text.

    The error must be valid Python, since tests notice a file that cannot be read whatever they check.
    """
    lines = text.splitlines(keepends=True)
    found = False
    for first, end in _lines_of(text, mutation.function):
        source = "".join(lines[first:end])
        if mutation.old in source:
            found = True
            # All of it on the first of its lines, so that later definitions keep their places.
            lines[first:end] = [source.replace(mutation.old, mutation.new)] + [""] * (end - first - 1)
    if not found:
        return None
    ast.parse("".join(lines), filename=str(mutation))
    return "".join(lines)


# ------------------------------------------------------------------------------------------------------- running it

CAUGHT, SURVIVED, NO_END, STALE = "caught", "SURVIVED", "NO END", "STALE"


def _copied(folder):
    """A copy of the checkout's tests and package in a folder."""
    skip = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in ("sk_sgmcmc", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _run_tests(folder, mutation, limit, interpreted):
    """What became of a mutation that is in the copy, and the name of the first test that failed."""
    words = mutation.tests.split(" -k ")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *words[0].split()]
    if len(words) > 1:
        command += ["-k", words[1]]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NUMBA_CACHE_DIR"] = str(folder.parent / "cache")
    if interpreted or not mutation.compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return NO_END, f"no end after {limit:g} s; see --limit"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    detail = failed[0] if failed else (done.stdout + done.stderr).strip().splitlines()[-1]
    if done.returncode == 4:  # The command line or the environment is wrong, so that nothing has been tested.
        sys.exit(f"pytest could not run: {(done.stderr or done.stdout).strip()}")
    if done.returncode not in (0, 1):
        detail = f"pytest ended with {done.returncode}: {detail}"
    return (SURVIVED if done.returncode == 0 else CAUGHT), detail[:110]


def _try(folder, mutation, limit, interpreted):
    """Put a mutation into the copy, run its tests, and take it out."""
    path = folder / "sk_sgmcmc" / mutation.file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    wrong = mutated(text, mutation)
    if wrong is None:
        return STALE, missing(mutation) or f"the function has no {mutation.old!r}"
    path.write_text(wrong, encoding="utf-8")
    try:
        return _run_tests(folder, mutation, limit, interpreted)
    finally:
        path.write_text(text, encoding="utf-8")


def main(argv=None):
    """Try the mutations one at a time and print what became of each; 1 unless all are caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help=f"of {', '.join(FOLDERS)}; none: all")
    parser.add_argument("--only", default="", help="mutations whose file, function or new text contains this")
    parser.add_argument("--check", action="store_true", help="run no tests; only look whether each mutation applies")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for the tests of one mutation")
    parser.add_argument("--folder", help="of the copy and its kernels, for a next run; else temporary")
    parser.add_argument("--interpreted", action="store_true", help="run all tests without the compiler")
    given = parser.parse_args(argv)
    chosen = [
        mutation
        for name in given.folders or FOLDERS
        for mutation in FOLDERS[name]
        if given.only in f"{mutation.file} {mutation.function} {mutation.new}"
    ]
    if given.check:
        texts = {m.file: (PACKAGE / m.file).read_text(encoding="utf-8") for m in chosen if (PACKAGE / m.file).is_file()}
        stale = [m for m in chosen if mutated(texts.get(m.file, ""), m) in (None, texts.get(m.file))]
        for mutation in stale:
            print(f"{STALE:<10}{mutation}\n{'':10}{missing(mutation) or 'the function has no such text'}")
        print(f"{len(chosen)} mutations: {len(stale)} {STALE}")
        return int(bool(stale))
    counts = dict.fromkeys((CAUGHT, SURVIVED, NO_END, STALE), 0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.folder or temporary) / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        _copied(folder)
        for mutation in chosen:
            began = time.perf_counter()
            result, detail = _try(folder, mutation, given.limit, given.interpreted)
            counts[result] += 1
            seconds = time.perf_counter() - began
            print(f"{result:<10}{seconds:6.0f} s  {mutation}\n{'':20}{detail}", flush=True)
    print(f"{len(chosen)} mutations: " + ", ".join(f"{count} {result}" for result, count in counts.items()))
    return int(counts[CAUGHT] < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
