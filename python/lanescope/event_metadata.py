"""What a trace knows of device work and collectives, under the names that torch.profiler gives it."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional


class EventMetadata(NamedTuple):
    """What the trace knows of device work and collectives, in torch.profiler's words; None: the trace does not say."""

    registers_per_thread: Optional[int] = None
    shared_memory: Optional[int] = None
    grid: Optional[List[int]] = None
    block: Optional[List[int]] = None
    priority: Optional[int] = None
    blocks_per_sm: Optional[float] = None
    warps_per_sm: Optional[float] = None
    occupancy: Optional[Dict[str, Any]] = None
    est_occupancy_pct: Optional[float] = None
    queued: Optional[int] = None
    graph_id: Optional[int] = None
    graph_node_id: Optional[int] = None
    stream: Optional[int] = None
    context: Optional[int] = None
    channel: Optional[int] = None
    channel_type: Optional[int] = None
    bytes: Optional[int] = None
    bandwidth_gb_s: Optional[float] = None
    collective_name: Optional[str] = None
    dtype: Optional[str] = None
    in_msg_nelems: Optional[int] = None
    out_msg_nelems: Optional[int] = None
    in_split_size: Optional[str] = None
    out_split_size: Optional[str] = None
    global_rank_start: Optional[int] = None
    global_rank_stride: Optional[int] = None
    group_size: Optional[int] = None
    process_group_name: Optional[str] = None
    process_group_desc: Optional[str] = None
    group_ranks: Optional[str] = None
    rank: Optional[int] = None
    src_rank: Optional[int] = None
    dst_rank: Optional[int] = None
    seq: Optional[int] = None
    is_async: Optional[bool] = None


METADATA_KEYS = {  # the trace's argument -> the field above, where their names differ
    "registers per thread": "registers_per_thread",
    "shared memory": "shared_memory",
    "blocks per SM": "blocks_per_sm",
    "warps per SM": "warps_per_sm",
    "est. achieved occupancy %": "est_occupancy_pct",
    "graph id": "graph_id",
    "graph node id": "graph_node_id",
    "memory bandwidth (GB/s)": "bandwidth_gb_s",
    "Collective name": "collective_name",
    "In msg nelems": "in_msg_nelems",
    "Out msg nelems": "out_msg_nelems",
    "In split size": "in_split_size",
    "Out split size": "out_split_size",
    "Global rank start": "global_rank_start",
    "Global rank stride": "global_rank_stride",
    "Group size": "group_size",
    "Process Group Name": "process_group_name",
    "Process Group Description": "process_group_desc",
    "Process Group Ranks": "group_ranks",
    "Rank": "rank",
    "Src Rank": "src_rank",
    "Dst Rank": "dst_rank",
    "Seq": "seq",
    "Is asynchronized op": "is_async",
}
METADATA_KEYS.update((name, name) for name in EventMetadata._fields if name not in METADATA_KEYS.values())
METADATA_TEXTS = {"in_split_size", "out_split_size", "group_ranks"}  # torch gives these as JSON text
