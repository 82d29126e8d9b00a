"""B and E events become rows: an E ends the innermost open B of its track."""

from __future__ import annotations

import numpy as np

from stepcrit.model.arrays import NONE, Int32Array, Int64Array


def pair_ends(
    begins: tuple[Int64Array, Int64Array, Int32Array], ends: tuple[Int64Array, Int64Array, Int32Array]
) -> tuple[Int64Array, Int64Array, int]:
    """Find the end of every B.

    Args:
        begins: time, position in the file and track of the B events.
        ends: the same of the E events.

    Returns:
        The end time of each B (0 when it has none), the position of the E that ends it (-1 when none does),
        and how many E found no open B.
    """
    time = np.concatenate((begins[0], ends[0]))
    order = np.concatenate((begins[1], ends[1]))
    track = np.concatenate((begins[2], ends[2]))
    count = len(begins[0])
    end_time = np.zeros(count, np.int64)
    closed_by = np.full(count, NONE, np.int64)
    open_rows: dict[int, list[int]] = {}
    strays = 0
    # Writers need not sort; events of one time keep their order in the file.
    for event in np.lexsort((order, time)).tolist():
        stack = open_rows.setdefault(int(track[event]), [])
        if event < count:
            stack.append(event)
        elif stack:
            row = stack.pop()
            end_time[row], closed_by[row] = time[event], order[event]
        else:
            strays += 1
    return end_time, closed_by, strays
