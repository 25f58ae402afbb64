"""Groups of respondents: how many, the answers of each with intervals, a picture, and the groups of new respondents."""

import pandas as pd

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.inspection import ProfileDisplay

survey = pd.read_csv("survey.csv")
mixture = DPCategoricalMixture(likelihood="categorical", random_state=1).fit(survey)
print(mixture.n_clusters_posterior())
print(mixture.profile_table())
ProfileDisplay.from_estimator(mixture).figure_.savefig("profiles.pdf")
print(mixture.predict_proba(pd.read_csv("new.csv")))
