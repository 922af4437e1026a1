"""The same learners when the data outgrow one machine, on Dask (`pip install 'samewise[scale]'`).

Each takes the parameters of the plain learner, data in parts, and gives the plain learner back.
"""

from __future__ import annotations

from samewise.scale.closed_forms import DaskCovariance, DaskLDA, DaskPCA, DaskRCA
from samewise.scale.cluster import progress
from samewise.scale.lmnn import DaskLMNN
from samewise.scale.mixing import mix
from samewise.scale.neighbor_sums import DaskMCML, DaskNCA
from samewise.scale.pair_sums import DaskITML, DaskMMC
from samewise.scale.parquet_streams import learn_stream
from samewise.scale.ranking_in_parts import classify, nearest, pair_roc, ranking_scores
from samewise.scale.space_partition import partition
from samewise.scale.topic_shards import TopicShards

__all__ = [
    "DaskCovariance",
    "DaskITML",
    "DaskLDA",
    "DaskLMNN",
    "DaskMCML",
    "DaskMMC",
    "DaskNCA",
    "DaskPCA",
    "DaskRCA",
    "TopicShards",
    "classify",
    "learn_stream",
    "mix",
    "nearest",
    "pair_roc",
    "partition",
    "progress",
    "ranking_scores",
]
