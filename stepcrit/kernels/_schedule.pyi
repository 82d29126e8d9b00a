from stepcrit.model.arrays import Int64Array

REVISION: int

def forward(
    src: Int64Array, ptr: Int64Array, dur_ns: Int64Array, lag_ns: Int64Array, start_ns: Int64Array, /
) -> None: ...
def latest(
    src: Int64Array,
    ptr: Int64Array,
    dur_ns: Int64Array,
    lag_ns: Int64Array,
    late_ns: Int64Array,
    last: int,
    far_ns: int,
    /,
) -> None: ...
def paint(left: Int64Array, right: Int64Array, value: Int64Array, best: Int64Array, /) -> None: ...
def overlaps(
    start_ns: Int64Array,
    end_ns: Int64Array,
    tile_start_ns: Int64Array,
    tile_end_ns: Int64Array,
    node: Int64Array,
    tile: Int64Array,
    length_ns: Int64Array,
    /,
) -> int: ...
