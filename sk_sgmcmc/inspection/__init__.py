"""Pictures of fitted estimators, and their draws for ArviZ and pyLDAvis.

The packages that they need are optional, and imported on use: ``pip install sk-sgmcmc[inspection]``.
"""

from ._displays import TopicWordsDisplay, TraceDisplay
from ._export import to_arviz, to_pyldavis
from ._n_components import NumberOfTopicsDisplay
from ._prevalence import PrevalenceDisplay

__all__ = ["NumberOfTopicsDisplay", "PrevalenceDisplay", "TopicWordsDisplay", "TraceDisplay", "to_arviz", "to_pyldavis"]
