"""Groups of respondents: how many, the answers of each with intervals, a picture, and the groups of new respondents."""

import pandas as pd
from sklearn.model_selection import KFold, cross_val_score

from sk_sgmcmc import LatentClassModel
from sk_sgmcmc.inspection import ProfileDisplay

survey = pd.read_csv("survey.csv")
model, folds = LatentClassModel(random_state=1), KFold(5, shuffle=True, random_state=1)
scores = pd.DataFrame({k: cross_val_score(model.set_params(n_components=k), survey, cv=folds) for k in range(1, 9)})
gaps = scores.sub(scores[scores.mean().idxmax()], axis=0)
is_close = gaps.mean() >= -2 * gaps.sem()
print(pd.DataFrame({"score": scores.mean(), "is_close": is_close}))
model.set_params(n_components=is_close.idxmax(), n_chains=4).fit(survey)
print(model.profile_table())
ProfileDisplay.from_estimator(model).figure_.savefig("profiles.pdf")
print(model.predict_proba(pd.read_csv("new.csv")))
