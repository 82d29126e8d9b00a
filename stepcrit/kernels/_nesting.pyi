from stepcrit.model.arrays import Int32Array, Int64Array

REVISION: int

def sweep(
    start_ns: Int64Array,
    end_ns: Int64Array,
    rows: Int64Array,
    now: int,
    until: int,
    parent: Int32Array,
    depth: Int32Array,
    tile_start: Int64Array,
    tile_end: Int64Array,
    tile_owner: Int32Array,
    /,
) -> tuple[int, int]: ...
def inherit(parent: Int32Array, value: Int32Array, /) -> None: ...
