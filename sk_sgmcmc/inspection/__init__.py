"""Plots and reports of fitted estimators, and conversion of their draws for ArviZ and pyLDAvis.

The packages that they need are optional and are imported on use. The extra ``inspection`` installs them.
"""

from ._clusters import CoClusteringDisplay, ProfileDisplay
from ._contrasts import WordContrastDisplay
from ._displays import TopicWordsDisplay, TraceDisplay
from ._documents import TopicDocumentsDisplay, TopicsOverTimeDisplay
from ._effects import EffectsDisplay
from ._export import to_arviz, to_pyldavis
from ._keywords import KeywordDisplay
from ._n_components import NumberOfTopicsDisplay
from ._prevalence import PrevalenceDisplay
from ._report.report import topic_report
from ._similarity import TopicHierarchyDisplay, TopicMapDisplay

__all__ = [
    "CoClusteringDisplay",
    "EffectsDisplay",
    "KeywordDisplay",
    "NumberOfTopicsDisplay",
    "PrevalenceDisplay",
    "ProfileDisplay",
    "TopicDocumentsDisplay",
    "TopicHierarchyDisplay",
    "TopicMapDisplay",
    "TopicWordsDisplay",
    "TopicsOverTimeDisplay",
    "TraceDisplay",
    "WordContrastDisplay",
    "to_arviz",
    "to_pyldavis",
    "topic_report",
]
