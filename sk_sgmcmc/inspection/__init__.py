"""Pictures of fitted estimators, and their draws for ArviZ and pyLDAvis.

The packages behind them are optional and imported where they are used: ``pip install sk-sgmcmc[inspection]``.
"""

from ._displays import TopicWordsDisplay, TraceDisplay
from ._export import to_arviz, to_pyldavis

__all__ = ["TopicWordsDisplay", "TraceDisplay", "to_arviz", "to_pyldavis"]
