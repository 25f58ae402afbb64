"""The table of cases of `hashes`: every sampler in every model, and what else moves a chain another way."""

import numpy as np

from sk_sgmcmc.targets import Positive, Simplex
from tests.goldens.hash_cases import (
    ALL_WAYS,
    ANY_SAMPLER,
    BASE,
    EM,
    FIT,
    FITTING,
    LANGEVIN,
    PARTICLES,
    SIMPLEX,
    SPHERE,
    USUAL_DATA,
    Case,
    Made,
    langevin,
)

MANY = ("fit", "resume", "stream", "after")
BY_BATCH = {"batch_size": 10}
FRESH = {"batch_size": 10, "assignments": "fresh", "n_sweeps": (1, 2)}
NORMAL = {"topic_prior": "normal"}
FEW = {"sampler__n_particles": 3}
SEEDED = np.full((3, 12), 0.01) + 2.0 * (np.arange(12) % 3 == np.arange(3)[:, None])
BY_WORD = 0.05 + np.arange(12) % 4 / 8.0
# Enough for the default: the others are those of a sampler with a name.
OF_NONE = ("step", "step, batch", "total_samples", "words' prior", "one chain")
DECAY = Made("PolynomialDecay", initial=0.01, offset=10.0)
CYCLE = Made("CyclicalStep", initial=0.01, cycle_length=3)
MASS = Made("MonteCarloEM", n_momenta=3, every=2)


def _case(model, name, params, ways=MANY, data=None):
    return Case(f"{model}, {name}", model, data or USUAL_DATA[model], {**BASE[model], **params}, ways)


def _named(sampler):
    """Few particles, and steps enough for the mass to be adapted once, which it is every ten."""
    return {"sampler": sampler, **(FEW if sampler in PARTICLES else {}), **({"n_iter": 24} if sampler in EM else {})}


# ---------------------------------------------------------------------------------------------------------- every pair


def pairs():
    """Every model with every sampler that fits it, and None; the others are refused."""
    for model, fitting in FITTING.items():
        yield _case(model, "None", {}, ALL_WAYS)
        for sampler in ANY_SAMPLER:
            ways = ALL_WAYS if sampler in fitting else FIT
            yield _case(model, sampler, _named(sampler) if sampler in fitting else {"sampler": sampler}, ways)


# -------------------------------------------------------------------------------------------------- count topic models


def of_count_models():
    """What LDA, DMR and the gamma process share."""
    for model in ("BayesianLDA", "DMRTopicModel", "GammaProcessTopicModel"):
        by_metadata = model == "DMRTopicModel"
        for sampler in (None, *FITTING[model]):
            of = _named(sampler) if sampler else {}
            yield _case(model, f"{sampler}, batch", {**of, **BY_BATCH})
            yield _case(model, f"{sampler}, fresh", {**of, **FRESH})
            if model != "GammaProcessTopicModel" and sampler not in SIMPLEX:
                yield _case(model, f"{sampler}, normal", {**of, **NORMAL}, ALL_WAYS)
                yield _case(model, f"{sampler}, normal, batch", {**of, **NORMAL, **BY_BATCH})
                yield _case(model, f"{sampler}, normal, fresh", {**of, **NORMAL, **FRESH})
        for sampler in (None, "scir", "sgrld", "gibbs"):
            for name, params in {
                "step": {"sampler__step_size": 0.5},
                "step, batch": {"sampler__step_size": 0.5, **BY_BATCH},
                "step, fresh": {"sampler__step_size": 0.5, **FRESH},
                "decaying step, batch": {"sampler__step_size": DECAY, **BY_BATCH},
                "cyclical step, batch": {"sampler__step_size": CYCLE, **BY_BATCH},
                "total_samples": {"total_samples": 1000},
                "total_samples, fresh": {"total_samples": 1000, **FRESH},
                "words' prior": {"topic_word_prior": BY_WORD},
                "words' prior, batch": {"topic_word_prior": BY_WORD, **BY_BATCH},
                "random start": {"init": "random"},
                "sweeps": {"n_sweeps": (1, 2)},
                "no burn-in, thin": {"burn_in": 0, "thin": 3},
                "one chain": {"n_chains": 1, "n_iter": 12},
            }.items():
                of = {"sampler": sampler} if sampler else {}
                if (sampler is None and name not in OF_NONE) or (sampler == "gibbs" and "sampler__step_size" in params):
                    continue
                yield _case(model, f"{sampler}, {name}", {**of, **params})
            for data in ("sparse counts", "fractional counts", "tables") if sampler else ():
                if by_metadata:
                    data = f"{data} and metadata"
                extend = {"new_features": "extend"} if "tables" in data else {}
                for name, params in {"": {}, ", batch": BY_BATCH, ", fresh": FRESH}.items():
                    yield _case(model, f"{sampler}, {data}{name}", {**of, **params, **extend}, data=data)
        if model != "GammaProcessTopicModel":
            yield from _normal(model)
            yield from _of_documents(model)


def _normal(model):
    """Topics with a normal prior, or on flat space."""
    for sampler, name, params in (
        ("sghmc", "step", {"sampler__step_size": 0.1}),
        ("sghmc", "decaying step", {"sampler__step_size": DECAY}),
        ("sghmc", "friction", {"sampler__friction": 3.0}),
        ("sghmc", "euler", {"sampler__scheme": "euler"}),
        ("sghmc", "not whitened", {"whiten": False}),
        ("sghmc", "prior scale", {"topic_prior_scale": 0.3}),
        ("sgld", "not whitened", {"whiten": False}),
        ("sgnht", "white", {"sampler__form": "white", "sampler__scheme": "euler"}),
        ("sghmc-em", "every 2", {"sampler__mass": MASS}),
        ("blob", "start", {"sampler__start_scale": 0.2, **FEW}),
        (None, "total_samples", {"total_samples": 1000}),
    ):
        of = {"sampler": sampler, **NORMAL, **params} if sampler else {**NORMAL, **params}
        yield _case(model, f"{sampler}, normal, {name}", of)
        yield _case(model, f"{sampler}, normal, {name}, batch", {**of, **BY_BATCH})
    tables = "tables and metadata" if model == "DMRTopicModel" else "tables"
    yield _case(model, "normal, tables", {**NORMAL, "new_features": "extend"}, data=tables)


def _of_documents(model):
    """Priors of documents, and one of each topic's words."""
    for sampler in ("scir", "sgrld", "gibbs"):
        of = {"sampler": sampler} if sampler else {}
        for name, params in {
            "documents' prior": {"doc_topic_prior": 0.3},
            "documents' prior, fresh": {"doc_topic_prior": 0.3, **FRESH},
            "documents' prior of topics": {"doc_topic_prior": [0.1, 0.5, 1.0]},
            "documents' prior of topics, batch": {"doc_topic_prior": [0.1, 0.5, 1.0], **BY_BATCH},
            "seeded topics": {"topic_word_prior": SEEDED},
            "seeded topics, batch": {"topic_word_prior": SEEDED, **BY_BATCH},
            "seeded topics, fresh": {"topic_word_prior": SEEDED, **FRESH},
            "one topic": {"n_components": 1},
        }.items():
            yield _case(model, f"{sampler}, {name}", {**of, **params})


def of_dmr():
    """Coefficients by each sampler that fits them, and metadata given otherwise."""
    model = "DMRTopicModel"
    for coef_sampler in ("sgld", "sghmc", "sgnht", "sg-nphmc", "sghmc-em", "hmc"):
        of_steps = {"n_iter": 24} if coef_sampler in EM else {}
        for name, params in {
            "": {},
            ", batch": BY_BATCH,
            ", fresh": FRESH,
            ", scir": {"sampler": "scir"},
            ", gibbs": {"sampler": "gibbs"},
            ", normal": NORMAL,
            ", step": {"coef_sampler__step_size": 0.05},
        }.items():
            yield _case(model, f"coef {coef_sampler}{name}", {"coef_sampler": coef_sampler, **params, **of_steps})
    for sampler in (None, "scir", "gibbs", "sgrld"):
        of = {"sampler": sampler} if sampler else {}
        yield _case(model, f"{sampler}, no metadata", of, data="counts")
        yield _case(model, f"{sampler}, no metadata, fresh", {**of, **FRESH}, data="counts")
        yield _case(model, f"{sampler}, columns", {**of, "metadata_columns": 2}, data="counts with metadata")
        scales = {"metadata_prior_scale": 0.3, "intercept_prior_scale": 2.0}
        yield _case(model, f"{sampler}, prior scales", {**of, **scales})


def of_gamma_process():
    """Weights of topics by each flat sampler, and its own priors."""
    model = "GammaProcessTopicModel"
    for sampler in ("sgld", "sghmc", "sgnht", "sg-nphmc", "sgr-nphmc", *EM[1:]):
        yield _case(model, f"{sampler}, step", {**_named(sampler), "sampler__step_size": 0.01})
        yield _case(model, f"{sampler}, step, batch", {**_named(sampler), "sampler__step_size": 0.01, **BY_BATCH})
        for topics_sampler in ("scir", "sgrld", "gibbs"):
            params = {**_named(sampler), "topics_sampler": topics_sampler}
            yield _case(model, f"{sampler}, topics by {topics_sampler}", params)
            yield _case(model, f"{sampler}, topics by {topics_sampler}, batch", {**params, **BY_BATCH})
    for topics_sampler in ("scir", "sgrld", "exact-dirichlet", "gibbs"):
        yield _case(model, f"topics by {topics_sampler}", {"topics_sampler": topics_sampler})
    for sampler in ("scir", "gibbs", "sghmc", "sgr-nphmc"):
        of = {"sampler": sampler}
        for name, params in {
            "concentration": {"concentration_prior": (5.0, 1.0)},
            "hyper-priors": {"concentration_prior": (2.0, 0.5), "rate_prior": (2.0, 1.0), "scale_prior": (1.0, 0.5)},
            "atoms": {"atoms_per_round": 2.0},
            "inner": {"n_inner": 2},
            "inner, fresh": {"n_inner": 2, **FRESH},
        }.items():
            yield _case(model, f"{sampler}, {name}", {**of, **params})


# ---------------------------------------------------------------------------------------------------- other models


def of_directions():
    """The spherical topic model and the von Mises-Fisher mixture."""
    model = "SphericalAdmixtureModel"
    for sampler in FITTING[model]:
        of = {"sampler": sampler}
        for name, params in {
            "batch": BY_BATCH,
            "fresh": {"proportions": "fresh"},
            "fresh, batch": {"proportions": "fresh", **BY_BATCH},
            "hyper-parameters": {"kappa0": 5.0, "kappa1": 20.0, "sigma": 2.0},
            "drawn hyper-parameters": {"kappa0": "auto", "kappa1": "auto", "sigma": "auto"},
            "drawn hyper-parameters, fresh": {"kappa0": "auto", "kappa1": "auto", "proportions": "fresh", **BY_BATCH},
            "documents' prior": {"doc_topic_prior": 1.0},
            "random start": {"init": "random"},
            "documents' draws": {"n_doc_draws": (1, 2)},
            "step": {"sampler__step_size": 0.05},
            "decaying step": {"sampler__step_size": DECAY, **BY_BATCH},
            "total_samples, fresh": {"total_samples": 300, "proportions": "fresh", **BY_BATCH},
            "one chain": {"n_chains": 1, "n_iter": 12},
        }.items():
            yield _case(model, f"{sampler}, {name}", {**of, **params})
        yield _case(model, f"{sampler}, sparse", of, data="sparse directions")
    model = "VonMisesFisherMixture"
    for sampler in FITTING[model]:
        of = {"sampler": sampler}
        for name, params in {
            "batch": BY_BATCH,
            "kappa": {"kappa": 5.0},
            "kappa, batch": {"kappa": 5.0, **BY_BATCH},
            "kappa of each": {"kappa": [2.0, 5.0, 9.0]},
            "process": {"weight_concentration_prior_type": "dirichlet_process"},
            "process, batch": {"weight_concentration_prior_type": "dirichlet_process", **BY_BATCH},
            "kappa0": {"kappa0": 3.0},
            "weights' prior": {"weight_concentration_prior": 3.0, "kappa_prior_scale": 1.0},
            "step": {"sampler__step_size": 0.05},
            "decaying step": {"sampler__step_size": DECAY, **BY_BATCH},
            "one chain": {"n_chains": 1, "n_iter": 12},
        }.items():
            yield _case(model, f"{sampler}, {name}", {**of, **params})
        yield _case(model, f"{sampler}, sparse", of, data="sparse directions")
    for sampler in SPHERE[1:]:
        for name, params in {
            "friction": {"sampler__friction": 2.0},
            "noise": {"sampler__gradient_noise": 0.1},
            "estimated noise": {"sampler__gradient_noise": "estimated"},
            "thermostat": {"sampler__thermostat": 0.5},
        }.items():
            for model in ("SphericalAdmixtureModel", "VonMisesFisherMixture"):
                yield _case(model, f"{sampler}, {name}", {"sampler": sampler, **BY_BATCH, **params})


def of_dirichlet_process():
    """Likelihoods, weights and assignments."""
    model = "DPCategoricalMixture"
    for sampler in FITTING[model]:
        of = {"sampler": sampler}
        for likelihood, data in (("multinomial", "counts"), ("categorical", "codes"), ("bernoulli", "binary")):
            of_data = {"likelihood": likelihood, **of}
            for name, params in {
                "stored": {},
                "batch": BY_BATCH,
                "fresh": {"batch_size": 10, "assignments": "fresh"},
                "step": {"sampler__step_size": 0.5},
                "step, fresh": {"sampler__step_size": 0.5, "batch_size": 10, "assignments": "fresh"},
            }.items():
                yield _case(model, f"{sampler}, {likelihood}, {name}", {**of_data, **params}, data=data)
        for weights in ("replication", "survey"):
            for likelihood, data in (("multinomial", "weighted counts"), ("categorical", "weighted codes")):
                for name, params in {"": {}, ", batch": BY_BATCH}.items():
                    params = {"likelihood": likelihood, "weights": weights, **of, **params}
                    yield _case(model, f"{sampler}, {likelihood}, {weights}{name}", params, data=data)
        for name, params in {
            "decaying step": {"sampler__step_size": DECAY, **BY_BATCH},
            "concentration": {"concentration_prior": (5.0, 1.0)},
            "categories' prior": {"category_prior": 0.1},
            "total_samples, fresh": {"total_samples": 300, "batch_size": 10, "assignments": "fresh"},
            "binder": {"partition_loss": "binder"},
            "one chain": {"n_chains": 1, "n_iter": 12},
        }.items():
            yield _case(model, f"{sampler}, {name}", {**of, **params})


# What a sampler can be set to; each goes to models and targets with a gradient on flat space.
OPTIONS = (
    ("sgld", "temperature", {"temperature": 2.0}),
    ("sghmc", "euler", {"scheme": "euler"}),
    ("sghmc", "friction", {"friction": 3.0, "noise_estimate": 0.1}),
    ("sghmc", "mass, temperature", {"mass": MASS, "temperature": 0.5}),
    ("sgnht", "euler", {"scheme": "euler"}),
    ("sgnht", "white", {"form": "white", "scheme": "euler", "noise": 2.0, "thermostat_mass": 2.0}),
    ("sgnht", "mass", {"mass": MASS}),
    ("sg-nphmc", "likelihood", {"drive": "likelihood", "thermostat_friction": 0.1}),
    ("sg-nphmc", "mass", {"mass": MASS}),
    ("sgr-nphmc", "likelihood", {"drive": "likelihood"}),
    ("hmc", "fixed length", {"vary_length": False, "n_leapfrog": 3, "jitter": 0.0}),
    ("hmc", "mass", {"mass": MASS}),
    ("nuts", "few", {"max_depth": 2, "target_accept": 0.9}),
    ("nuts", "mass", {"mass": "diagonal"}),
    ("rhmc", "few", {"n_leapfrog": 3, "n_fixed_point": 5, "tolerance": 1e-6}),
    ("sghmc-em", "full mass", {"mass": Made("MonteCarloEM", structure="full", n_momenta=5, every=2)}),
    ("psghmc-det", "friction", {"friction": 2.0, "mass": 2.0, "n_particles": 4}),
    ("psghmc-fgh", "he", {"bandwidth": "he", "n_particles": 4}),
    ("blob", "he", {"bandwidth": "he", "n_particles": 4, "start_scale": 0.3}),
    ("gfsf", "ridge", {"ridge": 0.1, "n_particles": 4}),
)


def of_dense_rows():
    """Logistic regression and the Gaussian."""
    for model in ("BayesianLogisticRegression", "BayesianGaussian"):
        for sampler in FITTING[model]:
            of = _named(sampler)
            for name, params in {
                "batch": BY_BATCH,
                "batch with replacement": {"with_replacement": True, **BY_BATCH},
                "step, batch": {"sampler__step_size": 0.01, **BY_BATCH},
                "decaying step": {"sampler__step_size": DECAY, **BY_BATCH},
            }.items():
                yield _case(model, f"{sampler}, {name}", {**of, **params})
        for sampler, name, params in OPTIONS:
            options = {"sampler": sampler} | {f"sampler__{key}": value for key, value in params.items()}
            yield _case(model, f"{sampler}, {name}", options)
            yield _case(model, f"{sampler}, {name}, batch", {**options, **BY_BATCH})
        yield _case(model, "cyclical step", {"sampler__step_size": CYCLE, **BY_BATCH})
        yield _case(model, "no burn-in, thin", {"burn_in": 0, "thin": 3})
        yield _case(model, "one chain", {"n_chains": 1, "n_iter": 12})
    model = "BayesianLogisticRegression"
    for sampler in (None, "sgld", "hmc", "rhmc", "blob"):
        of = _named(sampler) if sampler else {}
        yield _case(model, f"{sampler}, three classes", of, data="three classes")
        yield _case(model, f"{sampler}, three classes, batch", {**of, **BY_BATCH}, data="three classes")
        yield _case(model, f"{sampler}, weights", of, data="weighted classes")
        yield _case(model, f"{sampler}, weights, batch", {**of, **BY_BATCH}, data="weighted classes")
        yield _case(model, f"{sampler}, no control variates", {"control_variates": False, **of, **BY_BATCH})
        for name, params in {
            "no intercept": {"fit_intercept": False},
            "class weights": {"class_weight": {0: 2.0, 1: 1.0}},
            "balanced classes": {"class_weight": "balanced"},
            "priors": {"prior_scale": 0.3, "intercept_prior_scale": 5.0},
        }.items():
            yield _case(model, f"{sampler}, {name}", {**of, **params})
    prior = {
        "mean_prior": np.array([0.5, 0.0, 1.0]), "mean_precision_prior": 0.5, "degrees_of_freedom_prior": 5.0,
        "covariance_prior": np.diag([1.0, 2.0, 3.0]),
    }  # fmt: skip
    for sampler in (None, "sgld", "hmc", "rhmc", "blob"):
        yield _case("BayesianGaussian", f"{sampler}, prior", {**prior, **(_named(sampler) if sampler else {})})


# ------------------------------------------------------------------------------------------------------------ `sample`


def _sampled(target, name, **params):
    return Case(f"sample {target}, {name}", target, params=params, ways=("sample",))


PRODUCTS = {
    "frame and sphere": [("stiefel", 2), ("sphere", 1)],
    "sphere and simplex": [("sphere", 1), ("simplex", 2)],
    "all": [("simplex", 1), ("sphere", 1), ("stiefel", 1)],
}


def _particles(sampler):
    class_of = {"blob": "Blob", "gfsd": "GFSD", "gfsf": "GFSF", "svgd": "SVGD"}
    if sampler in class_of:
        return Made(class_of[sampler], n_particles=3)
    return Made("PSGHMC", kind=sampler[-3:], n_particles=3)


CLASS_OF = {
    "sgld": "SGLD", "sghmc": "SGHMC", "sgnht": "SGNHT", "sg-nphmc": "SGNPHMC", "sgr-nphmc": "SGRNPHMC", "hmc": "HMC",
    "nuts": "NUTS",
    "rhmc": "RHMC", "blob": "Blob", "gfsf": "GFSF",
}  # fmt: skip


def of_targets():
    """Every target by every sampler that fits it, on every manifold."""
    for target, samplers in {
        "DirichletCategorical": ("scir", "sgrld", "exact-dirichlet"),
        "GammaPoisson": ("scir", "exact-dirichlet"),
        "LogNormalMedian": ("exponential-ou",),
        "GaussianMean": (*LANGEVIN[:-1], "hmc", "nuts", *EM),
        "ChainedVonMisesFisher": SPHERE,
        "MatrixCompletion": SPHERE,
    }.items():
        for sampler in (None, *samplers):
            of = {"sampler": sampler, **({"n_iter": 24} if sampler in EM else {})}
            yield _sampled(target, f"{sampler}", **of)
            yield _sampled(target, f"{sampler}, batch", batch_size=10, **of)
            yield _sampled(target, f"{sampler}, rows", batch_size=10, with_replacement=True, **of)
    for name in ("expanded-mean", "expanded-natural", "reduced-mean", "reduced-natural"):
        sampler = Made("SGRLD", step_size=0.001, parameterization=name)
        yield _sampled("DirichletCategorical", f"sgrld {name}", sampler=sampler, batch_size=10)
    for sampler in PARTICLES:
        yield _sampled("GaussianMean", sampler, sampler=_particles(sampler))
        yield _sampled("GaussianMean", f"{sampler}, batch", sampler=_particles(sampler), batch_size=10)
    recipes = {"recipe": Made("Recipe", matrices=langevin)}
    recipes["particle recipe"] = Made("ParticleRecipe", matrices=langevin, n_particles=3)
    for name, sampler in recipes.items():
        yield _sampled("GaussianMean", name, sampler=sampler)
    for sampler, name, params in OPTIONS:
        if sampler in CLASS_OF:
            yield _sampled("GaussianMean", f"{sampler}, {name}", sampler=Made(CLASS_OF[sampler], **params))

    for target in ("RestrictedGaussian", "ExponentialMixture"):
        for geometry in ("sphere", "simplex", "stiefel", *PRODUCTS):
            for sampler in (None, *SPHERE):
                params = {"geometry": PRODUCTS.get(geometry, geometry)}
                yield _sampled(target, f"{geometry}, {sampler}", sampler=sampler, **params)
    start = np.array([0.6, 0.0, 0.8, 0.25, 0.75])
    for sampler in (None, *SPHERE):
        yield _sampled("ManifoldDensity", f"{sampler}", sampler=sampler)
        yield _sampled("ManifoldDensity", f"{sampler}, start", sampler=sampler, init=start)
    for name, sampler in {
        "friction": Made("SGGMC", friction=2.0, gradient_noise=0.1),
        "estimated noise": Made("SGGMC", gradient_noise="estimated"),
        "thermostat": Made("GSGNHT", thermostat=0.5, thermostat_mass=2.0),
        "trajectories": Made("GMC", n_leapfrog=3, jitter=0.0, step_size=0.1),
    }.items():
        yield _sampled("ChainedVonMisesFisher", name, sampler=sampler, batch_size=10)

    named = {"parameters": {"mu": (), "tau": Positive(), "p": Simplex(3)}}
    for sampler in (None, "hmc", "sghmc", "nuts"):
        yield _sampled("log density", f"{sampler}", sampler=sampler, **named)
        windows = {"n_iter": 60, "burn_in": 40}
        yield _sampled("log density", f"{sampler}, windows", sampler=sampler, **windows, **named)
    for sampler in (None, "sgld", "hmc", "svgd", "psghmc-fgh"):
        of = _particles(sampler) if sampler in PARTICLES else sampler
        yield _sampled("Density", f"{sampler}", sampler=of)
        yield _sampled("Density", f"{sampler}, batch", sampler=of, batch_size=10)
    yield _sampled("Density", "recipe", sampler=Made("Recipe", matrices=langevin, step_size=0.01))
    yield _sampled("Density, control variates", "sghmc, batch", sampler="sghmc", batch_size=10)
    for target in ("Density, metric", "Density, diagonal metric"):
        yield _sampled(target, "rhmc", sampler="rhmc")
        yield _sampled(target, "sgr-nphmc, batch", sampler="sgr-nphmc", batch_size=10)


CASES = (
    *pairs(), *of_count_models(), *of_dmr(), *of_gamma_process(), *of_directions(), *of_dirichlet_process(),
    *of_dense_rows(), *of_targets(),
)  # fmt: skip
