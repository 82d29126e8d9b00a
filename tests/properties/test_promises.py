"""The invariants of a trace analyzer, I1 to I16, and the tests that state each.

I1  the classes of device time partition the window           I9  time shift and time scale
I2  unions, sums and self times                               I10 other names for the same ids
I3  every table adds up to its total                          I11 other ways to write and pack the same
I4  acyclic, no negative weight, no cause after its effect    I12 things of no known meaning added
I5  the path is a chain that covers the window                I13 a rank twice: answers of several ranks
I6  slack                                                     I14 workers, hash seed, locale, time zone
I7  what-if                                                   I15 the same input twice is the same answer
I8  the order of events and keys                              I16 a trace compared with itself

I13 and the comparing half of I16 are about several traces and wait for the verbs that take several (what exists
of I16: a change that changes nothing saves nothing). Of I14, tests/cli runs the command in other environments.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STATED = {
    "I1": (
        "test_totals::test_classes_partition_the_window_of_every_device_like_a_bitmap",
        "test_totals::test_classes_partition_the_window_of_every_step_of_every_fixture",
    ),
    "I2": (
        "test_totals::test_one_more_activity_never_makes_a_device_less_busy",
        "test_totals::test_self_times_of_a_thread_add_up_to_what_its_events_cover",
        "test_totals::test_self_times_add_up_on_every_fixture",
    ),
    "I3": ("test_totals::test_every_table_and_bar_adds_up_to_its_total",),
    "I4": (
        "test_laws_on_traces::test_graph_path_and_slack_keep_their_laws_on_every_fixture",
        "test_laws_on_traces::test_graph_path_and_slack_keep_their_laws_on_crowded_traces",
    ),
    "I5": (
        "test_path::test_pieces_touch_and_cover_the_window",
        "test_path::test_path_is_the_walk_back_by_evidence_then_length_then_number",
        "test_path::test_path_count_is_the_number_of_longest_chains",
    ),
    "I6": (
        "test_slack_and_drag::test_total_slack_is_the_least_room_over_all_paths",
        "test_slack_and_drag::test_growth_by_total_slack_is_free_and_one_more_costs_one",
        "test_laws_on_traces::test_everything_on_the_path_is_without_slack",
        "test_laws_on_traces::test_start_may_be_late_by_the_slack_and_one_more_moves_the_end_by_one",
    ),
    "I7": (
        "test_whatif::test_nothing_changed_saves_nothing_under_either_policy",
        "test_whatif::test_prediction_is_the_replay_by_definition",
        "test_whatif::test_saving_lies_between_nothing_and_what_the_path_loses",
        "test_whatif::test_lengthening_never_shortens",
        "test_whatif::test_changes_of_different_things_commute",
        "test_whatif::test_saving_grows_and_flattens_as_more_is_taken_away",
        "test_laws_on_traces::test_saving_is_concave_in_what_is_taken_away_and_falls_with_the_factor",
        "test_laws_on_traces::test_order_of_changes_of_one_thing_does_not_matter",
    ),
    "I8": (
        "test_order_of_the_file::test_events_in_any_order_get_the_same_answers",
        "test_order_of_the_file::test_keys_in_any_order_get_the_same_answers",
        "test_order_of_the_file::test_events_of_the_same_instants_in_any_order_get_the_same_answers",
    ),
    "I9": (
        "test_shift_scale_rename::test_trace_of_another_time_gets_the_same_answers",
        "test_shift_scale_rename::test_times_that_are_so_many_times_longer_are_so_in_every_answer",
        "test_shift_scale_rename::test_path_slack_and_drag_scale_with_the_times",
    ),
    "I10": (
        "test_shift_scale_rename::test_other_ids_change_nothing_but_what_things_are_called",
        "test_shift_scale_rename::test_ascending_ids_may_have_any_gaps",
    ),
    "I11": (
        "test_ways_of_writing::test_layout_and_packing_decide_nothing",
        "test_ways_of_writing::test_size_of_the_pieces_in_which_it_is_read_decides_nothing",
        "test_ways_of_writing::test_any_trace_in_any_layout_and_pieces_gets_the_same_answers",
        "test_ways_of_writing::test_rows_may_be_written_as_begin_and_end",
    ),
    "I12": (
        "test_ways_of_writing::test_events_of_no_known_meaning_change_no_number",
        "test_ways_of_writing::test_unknown_keys_and_arguments_change_nothing",
    ),
    "I15": (
        "test_ways_of_writing::test_input_is_the_same_from_a_path_a_folder_a_stream_and_stdin",
        "test_ways_of_writing::test_one_trace_asked_twice_says_the_same",
    ),
    "I16": ("test_laws_on_traces::test_trace_compared_with_itself_shows_no_difference",),
}


@pytest.mark.parametrize("invariant", STATED)
def test_every_test_of_the_table_exists(invariant: str) -> None:
    for test in STATED[invariant]:
        module, _, name = test.partition("::")
        tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
