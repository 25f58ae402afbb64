"""Checks of the draws of a finished run: their definitions, their results, and the warning if some of them fail.

Every check of the package is defined here. Models compute the values: `BaseSGMCMC._checks` and the functions that it
calls return a `Check` for each comparison, and `warn_if_fired` issues one `ConvergenceWarning` for a run. A model lists
its checks in ``_check_definitions``, from which the list of the user guide is made.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..utils._warnings import warn_user
from .convergence import FAST, FEW_DRAWS, MIN_KEPT, MOVE, NARROW, R_HAT, VERY_WIDE, WIDE

SEE_GUIDE = 'See "Has the fit converged?" in the user guide.'  # the page doc/user_guide/converged.rst


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Parameters
    ----------
    name : str
        Name of its definition.
    value, limit : float
        The value, and the limit with which it was compared.
    meaning : str
        What a value beyond the limit means, in sentences that state the value; empty if the check passed.
    remedy : str
        What to do about it, in sentences.
    warns : bool
        Whether there is a warning if no other check fires.
    """

    name: str
    value: float
    limit: float
    meaning: str = ""
    remedy: str = ""
    warns: bool = True

    @property
    def fired(self):
        """Whether the value is beyond the limit."""
        return bool(self.meaning)

    @property
    def message(self):
        """The text of a warning."""
        return f"{self.meaning} {self.remedy}".strip()


@dataclass(frozen=True)
class CheckDefinition:
    """The definition of a check, as the user guide lists it.

    Parameters
    ----------
    name : str
        Name of the check in ``checks_``.
    quantity : str
        Description of the quantity that is compared with the limit.
    remedy : str
        What to do if the check fires, in general; messages also name the numbers of the run.
    limit : float
        The usual limit, which a run may replace.
    at_least : bool
        Whether the check fires for values below the limit, rather than above it.
    allowed : str
        The allowed values in words, where the limit alone does not describe them.
    warns : bool
        Whether there is a warning if the check is the only one that fires.
    """

    name: str
    quantity: str
    remedy: str
    limit: float
    at_least: bool = False
    allowed: str = ""
    warns: bool = True

    @property
    def allowed_values(self):
        """The allowed values in words."""
        return self.allowed or (f"at {'least' if self.at_least else 'most'} {self.limit:g}" if self.limit else "0")

    def passed(self, value, limit=None):
        """The `Check` of a value within the limit; ``limit`` replaces that of the definition."""
        return Check(self.name, float(value), float(self.limit if limit is None else limit))

    def fired(self, value, meaning, remedy, limit=None):
        """The `Check` of a value beyond the limit; ``limit`` replaces that of the definition."""
        limit = float(self.limit if limit is None else limit)
        return Check(self.name, float(value), limit, meaning, remedy, self.warns)


def warn_if_fired(checks, note=""):
    """Issue one `ConvergenceWarning` with a line for each check that fired, for ``note``, and for the guide.

    There is no warning without a check that fired and that warns by itself.
    """
    messages = [check.message for check in checks if check.fired]
    if any(check.fired and check.warns for check in checks):
        warn_user("\n".join([*messages, *([note] if note else []), SEE_GUIDE]), ConvergenceWarning)


def any_fired(checks):
    """Whether any of the checks fired."""
    return any(check.fired for check in checks)


def first_of_chains(results):
    """The checks of the first chain in which any fired, or of the first chain if none did.

    ``results`` is a list with the checks of each chain.
    """
    return next((checks for checks in results if any_fired(checks)), results[0])


def checks_table(checks):
    """The columns of ``checks_``."""
    return {
        "check": np.array([check.name for check in checks], dtype=object),
        "value": np.array([check.value for check in checks], dtype=np.float64),
        "limit": np.array([check.limit for check in checks], dtype=np.float64),
        "fired": np.array([check.fired for check in checks], dtype=bool),
    }


# ---------------------------------------------------------------------------------------------- agreement over time

NOT_CONVERGED = CheckDefinition(
    "not_converged",
    "largest split R-hat, and smallest effective sample size over all chains, of the quantities in ``diagnostics_``",
    "a larger ``n_iter``, or another step size",
    limit=R_HAT,
    allowed=f"R-hat at most {R_HAT:g} (more in short runs), effective sample size at least {FEW_DRAWS} for each of up "
    "to four chains (a twelfth of the draws is enough)",
)
TOPICS_CHANGE = CheckDefinition(
    "topics_still_change",
    "largest change between the means of ``log_predictive`` (``mean_cosine`` on the sphere) over thirds of the kept "
    "draws",
    "a larger ``n_iter``",
    limit=MOVE,
    allowed=f"at most {MOVE:.0%} and three standard errors",
)
# In 16 default fits to five corpora, with 15 to 100 topics, the value was 0.007 to 0.029, and 0.034 in two fits of
# `DMRTopicModel` whose effects changed when n_iter was six times larger.
SHARES_CHANGE = CheckDefinition(
    "shares_still_change",
    "share of the tokens that change topics between the first and the last third of the kept draws; there is no "
    "warning for this alone",
    "a larger ``n_iter``, before you report shares or effects",
    limit=0.03,
    warns=False,
)
CHAINS_DISAGREE = CheckDefinition(
    "chains_disagree",
    "number of topics on which the chains do not agree (``chains_agree_``)",
    "fewer topics, seed words, a larger ``n_iter``, or ``n_chains=1``",
    limit=0,
)
NOT_IDENTIFIED = CheckDefinition(
    "coefficient_not_identified",
    "largest posterior standard deviation of the difference between a topic's coefficient and the mean of all, divided "
    "by the standard deviation of the prior",
    "fewer topics, or more documents",
    limit=0.5,
)
DISPERSION_MATTERS = CheckDefinition(
    "dispersion_matters",
    "largest change of a difference between the coefficients of two topics, if each topic has a dispersion of its own, "
    "in posterior standard deviations",
    '``dispersion="topic"``',
    limit=1.0,
)
NO_DRAWS = CheckDefinition(
    "no_draws_kept",
    "number of draws kept when a callback ends the fit",
    "``resume``, a callback that waits for longer, or a smaller ``burn_in``",
    limit=1,
    at_least=True,
)
TOO_FEW_DRAWS = CheckDefinition(
    "too_few_draws",
    "number of kept draws of a chain, where it is too small to judge convergence; there is no warning for this alone",
    "a larger ``n_iter``, or a smaller ``burn_in`` or ``thin``",
    limit=MIN_KEPT,
    at_least=True,
    warns=False,
)

# -------------------------------------------------------------------------------------------------- spread of draws

TOO_NARROW = CheckDefinition(
    "spread_too_narrow",
    "standard deviation of draws over the one that is implied by the curvature of the log density, by the assignments "
    "of words (topics), or by the topics (coefficients of metadata)",
    'a larger step size, ``"auto"``, or a larger ``n_iter``',
    limit=float(np.sqrt(NARROW)),
    at_least=True,
)
# The limit of the variance of changes of topics over the variance of topics given the assignments. For nine samplers
# on seven corpora, with 5 to 50 topics, the ratio was 1.0 to 3.9 at default step sizes, and 3.6 to 27 at step sizes of
# SGRLD that were ten to a hundred times larger. With steps too small to move the topics, it fell below `NARROW`; the
# smallest ratio at default step sizes was 0.6.
WIDE_TOPICS = 6.0
TOO_WIDE = CheckDefinition(
    "spread_too_wide",
    "as for ``spread_too_narrow``, but for topics and coefficients standard deviation of the changes between draws, "
    "and for targets with a known distribution root mean square distance from the exact mean over the exact standard "
    "deviation",
    'a smaller step size, ``"auto"``, a larger ``batch_size``, or ``control_variates=True``',
    limit=float(np.sqrt(WIDE)),
    allowed=f"at most {np.sqrt(WIDE):.2g} ({np.sqrt(WIDE_TOPICS):.2g} for topics, {np.sqrt(VERY_WIDE):.2g} for "
    "coefficients and for chains that have not converged)",
)
COLLAPSED = CheckDefinition(
    "spread_collapsed",
    "standard deviation of draws within chains, in units of the normal approximation at the mode (median over "
    "coordinates)",
    "a larger ``n_iter``, or a larger step size",
    limit=0.3,
    at_least=True,
)
# Correct draws of skewed posteriors stay within 3.6.
FAR_FROM_MODE = CheckDefinition(
    "far_from_mode",
    "distance of the draws from the mode, and their standard deviation, in standard deviations of the normal "
    "approximation at the mode",
    'a smaller ``prior_scale``, rows of every class, columns without outliers, a larger ``n_iter``, or "nuts"',
    limit=5.0,
)
TOO_FAST = CheckDefinition(
    "velocities_too_fast",
    "mean square of the velocities over its exact value",
    "a smaller step size",
    limit=FAST,
    allowed=f"at most {FAST:g} in ``sample`` ({VERY_WIDE:g} for chains that have not converged), 3 in models on the "
    "sphere",
)
NEVER_MOVED = CheckDefinition(
    "directions_never_moved",
    "number of chains on the sphere whose draws are all equal",
    'a smaller step size, or ``"auto"``',
    limit=0,
)

# ------------------------------------------------------------------------------------------------------------ topics

# In 360 fits to planted topics from random starts, 31 had a perplexity 2% worse than that of a default fit and no other
# warning. In 26 of these, the nearest two topics were closer than this limit. So were they in 3 of the 283 fits that
# were as good as a default fit, all on one data set, in which two planted topics are as close. The nearest of 10 to 150
# topics of seven corpora were at distances of 0.47 to 0.73.
DUPLICATE_TOPICS = CheckDefinition(
    "duplicate_topics",
    'smallest Hellinger distance between two topics, after ``init="random"``',
    '``init="soft"``, a larger ``n_iter``, or fewer topics',
    limit=0.4,
    at_least=True,
)
WORSE_THAN_UNIGRAM = CheckDefinition(
    "worse_than_unigram",
    "log predictive probability of a word under the unigram model, less that under the topics",
    'a smaller step size, ``"auto"``, or a larger ``n_iter``',
    limit=0.1,
)
SEEDS_LOST = CheckDefinition(
    "seeds_lost",
    "number of seeded topics whose seed words or keywords are more probable in another topic",
    "a larger ``seed_weight``, more seed words, or another ``n_components``",
    limit=0,
)
KEYWORDS_ABANDONED = CheckDefinition(
    "keywords_abandoned",
    "smallest share of a topic's tokens that come from its keywords",
    "more frequent ``keywords``, or another ``n_components``",
    limit=0.01,
    at_least=True,
)
# With right keywords of planted topics, all ratios exceeded 1.1, unless the topic was another one than named.
KEYWORDS_APART = CheckDefinition(
    "keywords_apart",
    "smallest ratio of how probable a topic is for other words in documents with one of its keywords, to all documents",
    "``keywords`` without those that the message names, or another ``n_components``",
    limit=1.0,
    at_least=True,
)
CLIPPED_PREDICTOR = CheckDefinition(
    "clipped_predictor",
    "largest share of documents whose linear predictor of a topic reaches a bound, -20 or 10",
    "smaller ``metadata_prior_scale`` and ``intercept_prior_scale``, or fewer topics",
    limit=0,
)
# In 24 default fits to planted topics, from 40 documents of 8 words to 2,000 documents of 60, the error exceeded this
# limit twice. The priors of these two fits moved by factors of 2 and 3. The median error was 0.03.
INTERCEPTS_NOT_CONVERGED = CheckDefinition(
    "intercepts_not_converged",
    "Monte Carlo standard error of the mean intercept, if its R-hat or effective sample size is beyond the limits of "
    "``not_converged``",
    "a larger ``n_iter``, or a smaller ``intercept_prior_scale``",
    limit=0.2,
)

# ------------------------------------------------------------------------------------------------------- other models

PARTICLES_TOO_CLOSE = CheckDefinition(
    "particles_too_close",
    "standard deviation of topics between particles over the one of independent draws",
    'another sampler: "gibbs" has exact draws',
    limit=0.8,
    at_least=True,
)
FLOW_TOO_SHORT = CheckDefinition(
    "flow_too_short",
    "time for which particles have moved: the sum of the step sizes",
    'a larger ``n_iter``, or ``step_size="auto"``',
    limit=3.0,
    at_least=True,
)
TOO_FEW_COMPONENTS = CheckDefinition(
    "too_few_components",
    "share of draws that use all ``n_components``, under a Dirichlet process prior",
    "a larger ``n_components``",
    limit=0.9,
)
TOO_FEW_ITEMS = CheckDefinition(
    "too_few_items",
    "number of parameters of a latent class model over the number of cells of the table of all answers, less one, "
    "where all columns have levels",
    "fewer classes, or more columns",
    limit=1.0,
)
EMPTY_CLASSES = CheckDefinition(
    "empty_classes",
    "largest share of draws in which a latent class has no rows",
    "a smaller ``n_components``",
    limit=0.1,
)
SEVERAL_MODES = CheckDefinition(
    "several_modes",
    "number of chains that found other latent classes than the chain with the largest mean log posterior",
    "fewer classes, or a larger ``n_iter``",
    limit=0,
)
SORTED_STREAM = CheckDefinition(
    "sorted_stream",
    "whether the normal approximation of discarded rows misrepresents them, as where rows come sorted by their class "
    "(1 if it does)",
    "shuffled rows in a new stream, or ``fit`` with all rows",
    limit=0,
)

# --------------------------------------------------------------------------------------- a user's density in `sample`

DIVERGED = CheckDefinition(
    "diverging_trajectories",
    "number of trajectories of `NUTS` after burn-in that diverged",
    "a larger ``target_accept``, or other coordinates",
    limit=0,
)
LOST_AT_BOUND = CheckDefinition(
    "trajectories_lost_at_bound",
    "number of parameters with a bound at which trajectories diverge",
    "`Positive` or `Simplex` parameters",
    limit=0,
)
WRONG_GRADIENT = CheckDefinition(
    "gradient_does_not_fit",
    "number of draws, of up to 25, at which the gradient differs from differences of the log density",
    "a correct ``gradient``, or none",
    limit=0,
)
EXCEPTIONS = CheckDefinition(
    "exceptions_in_density",
    "share of trajectories that ended with an exception in the log density",
    "a function that is defined at the start and nearby, or ``Positive``, ``Simplex`` or ``Ordered`` parameters",
    limit=0.5,
)

CHECKS = {each.name: each for each in list(globals().values()) if isinstance(each, CheckDefinition)}


# -------------------------------------------------------------------------------------------- checks of several models


def convergence_checks(diagnosis, remedy, moving=()):
    """The check that chains agree with each other and over time, in a list; empty if the chains are too short.

    Parameters
    ----------
    diagnosis : Diagnosis
    remedy : callable
        Function that returns the remedy for an `Unsettled`, in words.
    moving : sequence of str
        As for `Diagnosis.unsettled`.
    """
    found = diagnosis.unsettled(moving)
    if found is not None:
        value, limit = (found.r_hat, found.limit) if found.r_hat > found.limit else (found.ess, found.least)
        meaning = f"The draws have not converged: {unsettled_meaning(found)}"
        return [NOT_CONVERGED.fired(value, meaning, remedy(found), limit)]
    worst = diagnosis.worst_r_hat()
    return [] if worst is None else [NOT_CONVERGED.passed(*worst)]


def check_enough_draws(n_kept, n_iter):
    """The check that a chain of ``n_kept`` draws is long enough to be judged, in a list; empty if it is.

    ``n_iter`` is a number of steps that would be enough.
    """
    if n_kept >= MIN_KEPT:
        return []
    meaning = (
        f"Convergence was not judged: {n_kept} draws of a chain were kept, and {MIN_KEPT} are needed. The draws may be "
        "far from the posterior, and intervals from them are rough."
    )
    return [TOO_FEW_DRAWS.fired(n_kept, meaning, f"Use a larger n_iter, such as n_iter={n_iter}.")]


def unsettled_meaning(found):
    """An `Unsettled` in words, to follow a colon; the number beyond its limit comes first."""
    if not np.isfinite(found.r_hat):
        return f"{found.name} never moved."
    of = "" if found.slowest == found.name else f" of {found.slowest}"
    if found.r_hat > found.limit:
        least = "" if found.ess >= found.least else f" ({found.least:.3g} at least)"
        return (
            f"split R-hat of {found.name} is {found.r_hat:.4g} (1 if chains agree with each other and over time, "
            f"{found.limit:.3g} at most). The effective sample size{of} over all chains is {found.ess:.0f}{least}."
        )
    return (
        f"the effective sample size of {found.slowest} over all chains is {found.ess:.3g} ({found.least:.3g} at "
        f"least), though split R-hat of {found.name} is {found.r_hat:.4g} ({found.limit:.3g} at most)."
    )


def curvature_checks(ratios, remedies, name, limits=(NARROW, WIDE), given=None):
    """Checks that the spread of draws agrees with the curvature of the log density.

    Parameters
    ----------
    ratios : ndarray of shape (D,), or None
        Ratios of variances of a `Spread`. None: no check is made.
    remedies : dict of str to str
        Remedies by the checks to make, "narrow" and "wide".
    name : str or list of str
        Name of the array of draws, or of each entry.
    limits : pair of float or ndarray of shape (D,)
        The smallest and the largest ratio that pass.
    given : ndarray of bool of shape (D,), default=None
        Entries whose ratio is mostly about their conditional variance, given the entries before.
    """
    if ratios is None or not np.all(np.isfinite(ratios)):
        return []
    found = []
    narrow, wide = (np.broadcast_to(limit, ratios.shape) for limit in limits)
    for kind, definition, limit, bad in (
        ("narrow", TOO_NARROW, narrow, ratios < narrow),
        ("wide", TOO_WIDE, wide, ratios > wide),
    ):
        if kind not in remedies:
            continue
        among = bad if bad.any() else np.ones(ratios.shape, dtype=bool)
        at = int(np.argmin(np.where(among, ratios, np.inf)) if kind == "narrow" else np.argmax(among * ratios))
        value, most = (np.sqrt(max(number, 0.0)) for number in (ratios[at], limit[at]))
        if not bad.any():
            # An entry within a few standard errors of 1 has no finite limit; report the usual one if the value is
            # within it.
            is_usual = value >= definition.limit if kind == "narrow" else value <= definition.limit
            found.append(definition.passed(value, definition.limit if is_usual else most))
            continue
        entry = f"{name}[{at}]" if isinstance(name, str) else name[at]
        of = ", given the parameters before it," if given is not None and given[at] else ""
        meaning = (
            f"The draws of {entry} are too {kind}: their standard deviation{of} is {value:.2g} times the one that the "
            f"curvature of the log density implies ({most:.2g} at {'least' if kind == 'narrow' else 'most'})."
        )
        found.append(definition.fired(value, meaning, remedies[kind], most))
    return found
