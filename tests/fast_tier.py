"""The fast tier (`make test-fast`): all tests but those that start processes, write reports, or take long.

In the tier a test that starts a process, writes a report or takes a second of CPU time fails, and so does a
tier of too few tests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Generator, Mapping
from pathlib import Path

import pytest

LEAST_TESTS = 6000
MOST_CPU_S = 1.0

SLOW: Mapping[str, Collection[str]] = {
    "tests/contracts/test_clusterer_contract.py": (
        "test_clients_without_a_model_need_not_be_served",
        "test_clusterers_that_cannot_bear_clients_without_a_model_are_refused",
        "test_clusterers_that_place_a_joined_client_in_a_model_that_is_not_there_are_refused",
        "test_clusterers_that_rely_on_every_response_are_refused",
        "test_what_a_clusterer_says_of_clients_that_hold_no_data_does_not_count",
    ),
    "tests/contracts/test_contracts.py": (
        "test_aggregators_that_change_models_without_updates_are_refused",
        "test_parts_that_draw_from_a_global_generator_are_refused",
        "test_parts_that_read_the_truth_must_declare_it",
        "test_surroundings_that_draw_from_a_global_generator_are_refused",
        "test_the_cohort_a_pacing_is_made_for_is_handed_to_it",
    ),
    "tests/contracts/test_models_and_rules.py": (
        "test_a_rule_and_a_model_of_a_third_party_pass",
        "test_contracts_without_models_and_rules_need_no_torch",
        "test_models",
        "test_models_of_larger_images",
        "test_rules",
    ),
    "tests/contracts/test_numbers.py": (),
    "tests/contracts/test_parts.py": (
        "test_a_mean_is_not_a_robust_aggregator",
        "test_aggregators",
        "test_clusterers",
        "test_memories",
        "test_pacings",
        "test_robust_aggregators",
        "test_schedules",
        "test_selectors",
    ),
    "tests/contracts/test_selector_contract.py": (
        "test_its_stories_have_every_outcome_rounds_without_updates_and_changing_lanes",
    ),
    "tests/contracts/test_traces.py": (
        "test_a_trace_that_ends_before_its_run_is_refused",
        "test_sources_that_break_a_rule_are_refused",
        "test_trace_sources",
    ),
    "tests/coordinator/aggregators/test_against_plain.py": (
        "test_krum",
        "test_norm_clip",
    ),
    "tests/coordinator/clusterers/test_joining.py": (
        "test_all_clients_that_hold_data_have_a_model_and_no_others",
    ),
    "tests/coordinator/clusterers/test_kmeans.py": (
        "test_the_inertia_is_no_worse_than_that_of_scikit_learn_from_the_same_starts",
    ),
    "tests/coordinator/clusterers/test_partition.py": (
        "test_a_clustering_of_long_reports_holds_few_copies_of_them",
        "test_a_subsample_of_one_client_from_each_cluster_decides_nothing",
        "test_k_is_the_one_of_the_largest_silhouette",
    ),
    "tests/coordinator/clusterers/test_silhouette.py": ("test_they_are_those_of_scikit_learn",),
    "tests/coordinator/federation/hearing/test_who_is_heard.py": (
        "test_a_run_stored_after_any_step_and_resumed_is_the_run_that_was_never_stopped",
    ),
    "tests/coordinator/federation/test_faults.py": (
        "test_every_permutation_of_a_report_is_as_likely",
        "test_extra_packets_are_negative_binomial",
    ),
    "tests/coordinator/federation/evaluation/test_mean_client_distance.py": (
        "test_it_equals_the_mean_over_all_pairs",
    ),
    "tests/coordinator/federation/test_membership.py": ("test_lanes_equal_those_of_a_scan_for_each_lane",),
    "tests/coordinator/pacing/test_sync.py": (
        "test_lanes_without_a_quota_take_from_the_largest_one_after_another",
        "test_pacings_of_equal_shares_keep_the_contract",
    ),
    "tests/coordinator/selectors/test_fastest_first.py": ("test_it_passes_the_contract_of_selectors",),
    "tests/coordinator/selectors/test_random.py": (
        "test_every_candidate_is_equally_likely_and_so_is_every_pair",
    ),
    "tests/coordinator/selectors/test_utility.py": (
        "test_clients_below_the_cut_off_are_drawn_only_if_there_are_not_ten_times_as_many_above",
        "test_pairs_are_as_likely_as_those_of_one_draw_after_the_other",
    ),
    "tests/coordinator/test_assignment.py": (
        "test_a_warm_start_is_the_mean_over_members_of_the_model_each_one_had",
        "test_an_identity_passes_one_to_one_and_only_along_shared_members",
    ),
    "tests/coordinator/test_candidates.py": (
        "test_drawing_by_rejection_is_uniform_over_all_that_are_there",
        "test_every_pair_of_those_that_are_there_is_equally_likely",
    ),
    "tests/coordinator/test_clients_that_come_and_go.py": (
        "test_with_reports_at_present_models_all_report_anew_when_a_client_joins",
    ),
    "tests/coordinator/test_closings.py": ("test_every_round_ends_as_in_the_reference",),
    "tests/coordinator/test_faults_in_rounds.py": (
        "test_a_run_with_faults_that_is_resumed_from_any_step_is_the_same_run",
    ),
    "tests/coordinator/test_late_imports.py": (),
    "tests/coordinator/test_selector_requests.py": (
        "test_a_run_resumed_between_any_two_steps_is_the_same_run",
        "test_it_keeps_to_the_contract_of_selectors",
    ),
    "tests/coordinator/test_visit_counts.py": (),
    "tests/coordinator/test_visits.py": (
        "test_ends_in_bulk_come_to_the_same_as_one_by_one",
        "test_visits_opened_are_completed_dropped_abandoned_or_out",
    ),
    "tests/device_profiles/test_catalogue.py": (
        "test_smartphones_have_the_published_means_and_quantiles",
        "test_the_package_imports_nothing_heavy",
        "test_the_smartphone_tables_are_the_recovered_ones",
        "test_uniform_is_the_median_smartphone",
    ),
    "tests/device_profiles/test_fedscale.py": (
        "test_a_command_in_a_pickle_is_named_and_not_run",
        "test_a_damaged_file_is_read_or_refused_and_never_crashes",
        "test_every_truncation_is_refused",
    ),
    "tests/device_profiles/test_fedscale_round_durations.py": (),
    "tests/docs/test_playing.py": (
        "test_a_block_that_fails_is_named_with_its_line_command_and_output",
        "test_a_command_without_an_end_is_stopped_with_what_it_has_started",
        "test_a_page_that_is_as_it_says_has_no_failure",
        "test_blocks_are_played_in_their_order_in_a_folder_that_is_empty_first",
    ),
    "tests/driftscale/test_calls.py": (),
    "tests/driftscale/test_notebook.py": (
        "test_a_run_is_one_output_and_prints_nothing",
        "test_a_sweep_is_one_output_too",
        "test_failures_are_in_the_output_and_the_error_is_raised",
        "test_without_progress_there_is_no_output_but_for_notes",
    ),
    "tests/driftscale/test_public_names.py": (
        "test_a_clone_called_driftscale_does_not_shadow_the_package",
        "test_a_folder_that_shadows_one_of_ours_is_named_in_one_line",
        "test_a_foreign_package_that_was_imported_before_is_named_too",
        "test_a_module_of_that_name_is_named_with_its_folder",
        "test_the_import_waits_for_no_heavy_library",
    ),
    "tests/driftscale/test_results.py": ("test_a_run_that_recorded_all_has_every_figure",),
    "tests/emulator/storage/test_bounded.py": (
        "test_a_document_as_long_as_one_may_be_is_refused_in_a_moment",
        "test_a_document_nested_too_deeply_is_refused",
        "test_a_sparse_file_of_terabytes_is_refused_at_once",
    ),
    "tests/emulator/storage/test_packed.py": (
        "test_shares_are_kept_to_the_last_bit",
        "test_whole_numbers_are_kept_to_the_last_digit",
    ),
    "tests/emulator/storage/test_state_tree.py": ("test_what_is_read_is_what_was_written_to_the_bit",),
    "tests/emulator/test_arrays.py": (
        "test_narrow_and_wide_rows_have_the_bits_of_one_addition_after_another",
        "test_sums_equal_the_naive_double_loop_to_the_bit",
    ),
    "tests/emulator/test_in_flight.py": (
        "test_visits_come_as_from_a_heap_whatever_is_pushed_and_popped_in_between",
    ),
    "tests/emulator/test_messages.py": (
        "test_rows_and_counts_of_ranges_equal_a_naive_listing",
        "test_taking_rows_repeats_and_reorders_their_ranges",
    ),
    "tests/emulator/test_own_parts.py": ("test_a_name_that_stands_for_no_part_of_the_kind_is_one_line",),
    "tests/emulator/test_counts.py": ("test_quotas_sum_to_the_total_and_are_within_one_of_proportion",),
    "tests/emulator/test_queue.py": (
        "test_the_order_of_insertion_decides_nothing_between_events_of_distinct_kinds",
    ),
    "tests/emulator/test_seeding.py": (
        "test_streams_named_together_are_those_named_one_by_one",
        "test_the_order_in_which_streams_are_read_changes_none_of_them",
    ),
    "tests/executor/test_executor.py": (
        "test_importing_the_package_loads_no_torch",
        "test_the_number_of_threads_changes_no_bit",
        "test_training_and_evaluation_leave_the_global_generators_alone",
    ),
    "tests/executor/test_flops.py": (
        "test_counting_does_not_import_torchs_compiler",
        "test_the_count_equals_torchs_on_the_meta_device",
    ),
    "tests/executor/test_gloo.py": (
        "test_a_store_that_does_not_respond_is_resumable",
        "test_processes_exchange_by_gloo",
    ),
    "tests/executor/test_malloc.py": (),
    "tests/executor/test_ranges.py": (),
    "tests/executor/test_ranks.py": ("test_a_silent_rank_is_given_up_after_the_timeout",),
    "tests/executor/test_replicas.py": (
        "test_evaluation_scores_and_reports_are_the_same_by_any_number_of_ranks",
        "test_expected_sums_come_with_the_training_and_are_the_same",
        "test_training_is_the_same_by_any_number_of_ranks",
    ),
    "tests/executor/training/test_measured.py": ("test_every_strategy_measures_what_an_ordinary_loop_does",),
    "tests/executor/training/test_strategies.py": (),
    "tests/benchmarks/building/test_table.py": ("test_builds_are_measured_against_writing_and_reading",),
    "tests/benchmarks/probes/test_growth.py": ("test_a_short_run_tells_its_memory_after_every_round",),
    "tests/benchmarks/test_clustering.py": (),
    "tests/benchmarks/asynchronous/test_completions.py": (
        "test_the_order_is_exact_where_visits_end_at_one_instant",
    ),
    "tests/benchmarks/building/test_decoding.py": ("test_the_figures_are_ratios_of_one_process",),
    "tests/benchmarks/test_digits.py": (
        "test_a_round_of_fedyogi_is_compared_with_one_of_fedavg",
        "test_digits_gives_the_wall_time_and_the_share_outside",
    ),
    "tests/benchmarks/test_gradients.py": (
        "test_a_gradient_is_the_step_of_the_plain_loop_on_the_same_samples",
    ),
    "tests/benchmarks/test_jobs.py": ("test_a_command_that_fails_ends_the_bench_with_its_last_line",),
    "tests/benchmarks/test_measure.py": ("test_the_collector_does_not_traverse_earlier_objects",),
    "tests/benchmarks/test_memory.py": (
        "test_a_process_of_its_own_prints_the_bytes_it_added",
        "test_a_process_that_fails_ends_the_bench_with_its_last_line",
    ),
    "tests/benchmarks/test_plot.py": (
        "test_a_file_that_cannot_be_written_is_one_line",
        "test_the_same_figures_are_the_same_bytes",
    ),
    "tests/benchmarks/test_rounds.py": (
        "test_a_round_has_a_figure_against_each_reference",
        "test_fleet_sizes_lie_on_two_curves_and_the_smallest_is_their_reference",
    ),
    "tests/benchmarks/test_streaming.py": (
        "test_both_train_what_clients_hold_at_their_step",
        "test_streaming_has_a_figure_for_advancing_and_one_for_training",
    ),
    "tests/benchmarks/files/test_trace_folder.py": ("test_opening_is_measured_against_sorting",),
    "tests/benchmarks/test_training.py": (
        "test_ranks_have_a_figure_beside_that_of_one_process",
        "test_the_plain_loop_and_the_executor_make_the_same_updates",
    ),
    "tests/benchmarks/test_typo.py": ("test_reporting_a_misspelt_key_takes_some_cpu_time",),
    "tests/experiments/cli/test_completing.py": (
        "test_a_configuration_is_a_shipped_name_or_a_file_here",
        "test_keys_are_those_of_the_configuration_its_arms_and_their_parts",
    ),
    "tests/experiments/cli/test_view.py": (
        "test_a_table_links_to_no_page_but_those_of_finished_runs",
        "test_the_files_of_a_view_are_those_of_a_report",
        "test_the_page_that_is_opened_was_written_by_the_same_command",
        "test_without_a_browser_or_a_screen_the_path_is_printed_and_a_line_says_so",
        "test_without_a_report_to_write_nothing_is_opened_and_the_line_is_that_of_report",
    ),
    "tests/experiments/cli/configurations/test_writing.py": (
        "test_the_default_is_commented_has_the_name_of_its_file_and_is_valid",
    ),
    "tests/experiments/cli/exporting/test_command.py": (
        "test_recorded_frames_are_written_and_nothing_else_changes",
    ),
    "tests/experiments/cli/test_added_tables.py": (),
    "tests/experiments/cli/test_degenerate.py": (),
    "tests/experiments/cli/test_bad_input.py": (
        "test_a_bad_availability_ends_with_2_and_names_file_row_and_rule",
        "test_a_bad_device_table_ends_with_2_and_names_file_row_and_rule",
        "test_a_bad_label_trace_ends_with_2_and_names_file_and_column",
        "test_a_configuration_that_cannot_be_read_ends_with_2_and_one_line",
        "test_a_device_file_of_another_kind_or_damaged_ends_with_2",
        "test_a_failing_arm_ends_with_3_and_the_others_are_summarised",
        "test_a_file_that_changed_half_way_ends_with_2_and_the_summary_of_finished_runs",
        "test_a_fleet_that_is_never_online_again_ends_with_3_and_the_reason_is_stored",
        "test_a_label_trace_as_damaged_parquet_ends_with_2",
        "test_a_label_trace_with_more_labels_than_classes_ends_with_2",
        "test_a_profile_whose_name_no_file_can_have_is_bad_input",
        "test_a_run_directory_in_which_all_failed_says_so",
        "test_a_run_directory_that_cannot_be_read_ends_with_2",
        "test_a_truncated_idx_file_ends_with_2_and_names_it",
        "test_a_wait_longer_than_allowed_ends_with_3",
        "test_a_wrong_key_name_or_number_ends_with_2_and_one_line",
        "test_an_error_found_while_building_names_the_file_too",
        "test_an_idx_folder_that_lacks_a_file_ends_with_2",
        "test_clients_without_data_end_with_2",
        "test_finished_runs_stay_when_the_next_command_is_wrong",
        "test_published_values_of_a_trace_without_concepts_are_refused",
        "test_unknown_names_of_the_other_commands_list_the_choices",
        "test_without_its_reference_arm_a_run_succeeds_and_states_why_there_is_no_report",
    ),
    "tests/benchmarks/test_command.py": ("test_a_plot_is_written_beside_the_table",),
    "tests/experiments/cli/test_cluster.py": (),
    "tests/experiments/cli/test_commands.py": (
        "test_a_check_of_a_folder_has_a_row_for_each_configuration_and_names_a_gpu_build_once",
        "test_a_check_prints_the_facts_of_the_configuration_and_writes_nothing",
        "test_a_check_shows_the_labels_that_a_table_calls_the_classes",
        "test_a_check_warns_of_rounds_in_which_nobody_can_come_back_and_a_run_of_them_ends_with_3",
        "test_a_longer_run_has_the_same_figures_up_to_the_same_horizon",
        "test_a_mistake_in_a_part_prints_its_traceback_ends_with_3_and_the_run_can_be_resumed",
        "test_a_report_can_be_made_while_a_process_runs_into_the_directory",
        "test_a_report_prints_the_same_as_the_run_before",
        "test_a_run_in_json_prints_the_summary_and_nothing_else",
        "test_a_run_prints_one_table_then_what_was_found_and_the_path_of_the_report",
        "test_a_run_that_is_resumed_has_the_commands_of_all_its_attempts",
        "test_commands_that_play_runs_are_recorded_and_others_are_not",
        "test_git_is_not_run_for_a_mistake",
        "test_options_choose_folder_arms_seeds_and_settings",
        "test_parts_in_json_have_a_kind_a_name_a_description_and_their_settings",
        "test_parts_of_one_kind_are_all_of_that_kind",
        "test_profiles_are_reached_through_the_entry_point",
        "test_progress_is_plain_lines_on_stderr_where_there_is_no_terminal",
        "test_targets_baselines_and_the_headline_are_set_without_running_anything_again",
        "test_with_explain_a_run_prints_all_tables_and_notes_before_what_was_found",
    ),
    "tests/experiments/cli/test_compare.py": (),
    "tests/experiments/cli/test_folder_commands.py": (),
    "tests/experiments/cli/test_own_parts.py": (),
    "tests/experiments/cli/test_paths.py": (
        "test_data_may_be_given_several_times_or_listed_in_the_variable",
    ),
    "tests/experiments/cli/test_profiles.py": ("test_the_commands_import_nothing_heavy_before_they_run",),
    "tests/experiments/cli/test_progress.py": ("test_there_are_as_many_bars_as_the_terminal_has_room_for",),
    "tests/experiments/cli/test_shipped_names.py": (
        "test_a_folder_of_shipped_ones_is_checked_and_run_whole",
        "test_a_name_is_run_into_the_present_folder_and_resumes_what_its_path_has_begun",
    ),
    "tests/experiments/cli/test_signals.py": (
        "test_a_signal_while_libraries_are_imported_ends_with_a_line_and_130",
    ),
    "tests/experiments/cli/test_streams.py": (),
    "tests/experiments/cli/test_sweep_commands.py": (
        "test_a_cell_that_adopts_all_its_runs_has_the_command_in_its_manifest",
        "test_a_cell_that_does_not_fit_its_world_is_named_before_anything_is_touched",
        "test_a_folder_is_swept_configuration_by_configuration",
        "test_a_sweep_and_one_experiment_do_not_share_a_folder",
        "test_a_sweep_is_run_into_one_table_with_a_run_directory_for_each_cell",
        "test_a_table_in_the_file_is_run_and_checked",
        "test_bad_sweeps_are_refused_in_one_line",
    ),
    "tests/experiments/cli/traces/test_build.py": (),
    "tests/experiments/cli/traces/test_inspect.py": (
        "test_a_drawn_trace_is_shown_by_its_samples",
        "test_a_table_may_have_more_labels_than_the_images_have_classes",
        "test_onsets_and_mass_events_of_a_drift_are_shown",
    ),
    "tests/experiments/cli/traces/test_inspect_folder.py": (
        "test_a_configuration_has_a_page_too",
        "test_a_folder_is_shown_as_its_rows_are",
        "test_a_page_without_an_observed_cell_says_so",
        "test_no_name_gets_into_the_page_as_markup",
        "test_the_page_draws_shares_and_distances_and_contacts_no_host",
        "test_the_page_draws_the_clients_that_are_named",
        "test_windows_are_chosen_as_in_the_settings_of_the_source",
    ),
    "tests/experiments/cluster/test_addresses.py": ("test_a_scheduler_file_that_never_comes_is_reported",),
    "tests/experiments/cluster/test_connection.py": (),
    "tests/experiments/cluster/test_pool.py": (
        "test_a_job_for_a_worker_that_has_just_left_has_ended",
        "test_a_worker_that_is_silent_is_not_waited_for",
    ),
    "tests/experiments/cluster/test_members.py": (
        "test_a_worker_at_a_run_is_busy_for_every_command_and_keeps_it",
        "test_a_worker_that_was_met_does_jobs_and_logs_events_for_its_command",
        "test_stop_and_runs_beside_reach_the_command_s_own_runs_only",
    ),
    "tests/experiments/cluster/test_scratch.py": (
        "test_the_folder_of_a_killed_command_is_deleted_and_that_of_one_at_work_is_not",
    ),
    "tests/experiments/cluster/test_serve.py": (),
    "tests/experiments/configs/test_feddrift.py": (
        "test_adaptive_fedavg_is_the_constant_answer_on_circle_2_and_window_is_not",
        "test_all_eight_configurations_exist_under_their_names",
        "test_the_slowest_method_is_evaluated_before_the_horizon",
    ),
    "tests/experiments/configs/test_fielding.py": (
        "test_configurations_without_a_sweep_can_be_loaded_without_data",
    ),
    "tests/experiments/jobs/test_command.py": (
        "test_a_busy_worker_is_met_again_for_as_long_as_it_takes",
        "test_a_worker_that_did_not_answer_is_met_again",
        "test_an_experiment_with_a_damaged_manifest_leaves_a_folders_others",
        "test_whatever_happens_in_whatever_order_every_run_ends_once",
    ),
    "tests/experiments/jobs/test_workplace.py": (
        "test_a_run_is_stored_when_it_is_stopped_and_resumes_after_it",
        "test_a_run_that_another_process_is_at_is_held",
        "test_a_world_is_drawn_once_for_the_arms_of_a_seed",
        "test_a_world_that_differs_from_another_workers_is_refused",
        "test_notes_come_with_the_answer_again",
        "test_runs_come_to_the_bytes_that_they_come_to_one_after_another",
        "test_the_facts_of_a_drawn_world_are_plain_values_as_a_manifest_records_them",
        "test_the_most_runs_that_were_beside_it_stand_in_its_timing",
    ),
    "tests/experiments/results/pages/test_findings.py": (
        "test_every_number_of_the_findings_is_in_the_report",
    ),
    "tests/experiments/results/tables/test_cluster_changes.py": (
        "test_the_page_has_the_table_with_its_note",
    ),
    "tests/experiments/results/drawing/test_plotly_js.py": (
        "test_the_file_is_written_where_its_content_differs_only",
    ),
    "tests/experiments/results/frames/test_result_frames.py": (
        "test_frames_of_a_folder_begin_with_the_experiment_and_the_keys_that_differ",
        "test_frames_of_experiments_with_other_arms_and_figures_are_put_below_each_other",
    ),
    "tests/experiments/results/many_runs/test_sections.py": (
        "test_a_swept_key_of_the_trace_pairs_by_the_number_of_the_seed",
        "test_an_arm_that_the_first_directory_lacks_is_compared_with_its_reference_arm",
        "test_equal_arms_of_equal_directories_differ_in_at_most_the_nominal_share_of_tables",
        "test_identical_results_are_called_identical",
        "test_runs_that_directories_share_are_one_row",
        "test_sweeps_have_sections_of_their_own",
        "test_the_same_trace_by_its_hashes_is_the_same_whatever_the_configurations_say",
    ),
    "tests/experiments/results/statistics/test_significance.py": (
        "test_equal_arms_differ_at_most_in_the_nominal_share_of_experiments",
        "test_without_correction_some_of_six_equal_arms_differ_far_too_often",
    ),
    "tests/experiments/results/tables/test_seeds.py": (
        "test_the_csv_in_the_page_has_the_unrounded_numbers_of_the_table",
    ),
    "tests/experiments/results/pages/test_for_whom.py": (
        "test_figures_stay_small_with_many_arms_and_clusters",
        "test_intervals_and_lines_are_named_as_what_they_are",
        "test_the_page_shows_the_tables_and_plots",
        "test_without_logged_accuracies_the_page_names_the_option",
    ),
    "tests/experiments/results/tables/test_updates_by_speed.py": (
        "test_runs_of_different_numbers_of_rounds_are_reported_loaded_and_compared",
    ),
    "tests/experiments/results/tables/test_faults.py": (
        "test_the_page_has_the_section_only_if_there_were_faults",
    ),
    "tests/experiments/results/pages/test_hostile_names.py": (),
    "tests/experiments/results/pages/test_report_in_browser.py": (),
    "tests/experiments/results/pages/test_report_page.py": (),
    "tests/experiments/results/pages/test_what_was_run.py": (
        "test_a_report_states_its_drift_where_it_says_what_was_run",
    ),
    "tests/experiments/results/many_runs/test_section_plots.py": (
        "test_more_panels_than_fit_are_a_sentence",
    ),
    "tests/experiments/results/tables/test_serving_maps.py": (
        "test_a_report_of_a_trace_without_concepts_has_no_sections_on_them",
        "test_maps_that_cannot_be_read_are_left_out_with_a_note",
        "test_the_report_has_the_figures_beside_the_published_ones_and_a_map_for_each_arm",
    ),
    "tests/experiments/results/figures/test_timeline.py": (
        "test_the_timelines_of_22_arms_of_a_thousand_participants_stay_small",
    ),
    "tests/experiments/results/statistics/test_medians.py": (
        "test_intervals_miss_the_true_median_no_more_often_than_their_level_allows",
        "test_ranks_of_thousands_of_seeds_are_found_at_once",
    ),
    "tests/experiments/results/many_runs/test_folder_table.py": (),
    "tests/experiments/results/statistics/test_time_to_accuracy.py": (
        "test_mean_accuracy_is_the_share_of_time_at_a_target_averaged_over_all_targets",
    ),
    "tests/experiments/running/test_command_facts.py": (),
    "tests/experiments/running/test_folder.py": (
        "test_a_run_directory_does_not_take_a_folder_of_experiments",
        "test_an_arm_that_its_trace_or_its_model_does_not_fit_is_reported_before_anything_is_touched",
        "test_an_experiment_that_fails_stops_no_other_and_is_named_at_the_end",
        "test_arms_that_only_some_configurations_have_are_run_where_they_are",
        "test_every_configuration_is_run_by_name_into_a_directory_of_its_own",
        "test_finished_runs_are_kept",
    ),
    "tests/experiments/running/test_leftovers.py": (
        "test_nothing_is_cleared_while_a_process_is_at_work_on_a_run",
        "test_what_killed_processes_left_is_swept_up_but_for_runs_that_are_at_work",
    ),
    "tests/experiments/running/test_locking.py": (),
    "tests/experiments/running/test_manifest.py": (),
    "tests/experiments/running/test_plan.py": (),
    "tests/experiments/running/test_replicas.py": (),
    "tests/experiments/running/test_runner.py": (),
    "tests/experiments/running/test_sharing.py": (),
    "tests/experiments/running/test_sweep.py": (
        "test_every_cell_has_a_name_that_an_experiment_may_have",
        "test_numbers_are_read_as_they_are_written",
    ),
    "tests/experiments/running/test_visits.py": (),
    "tests/experiments/test_build.py": (
        "test_a_seed_determines_the_world_and_another_seed_gives_another",
        "test_a_step_at_which_nobody_can_be_tested_is_refused_if_it_is_evaluated",
        "test_a_step_at_which_nobody_can_train_is_refused_before_the_run",
        "test_flops_as_model_factor_is_the_quotient_of_the_models_and_the_references_flops",
        "test_the_oracle_has_a_model_for_each_composition_of_swaps",
        "test_the_parts_of_an_arm_affect_neither_the_world_nor_the_first_model",
    ),
    "tests/experiments/test_faults.py": (
        "test_a_faulty_run_is_repeatable_and_records_its_faults",
        "test_arms_of_a_seed_share_their_faults",
        "test_the_shipped_experiment_has_byzantine_clients_and_an_arm_for_each_robust_aggregator",
    ),
    "tests/experiments/test_personal_presets.py": (
        "test_three_groups_of_clients_each_swap_a_pair_of_labels_in_round_100",
    ),
    "tests/experiments/test_reference.py": (
        "test_a_selector_that_compares_reports_is_refused_where_nobody_reports_new_data",
        "test_flexcfl_has_at_most_as_many_groups_as_clients_and_needs_the_shares_of_labels",
        "test_gradients_at_the_global_model_of_one_round_need_all_clients",
    ),
    "tests/experiments/tracking/test_live.py": (),
    "tests/golden/test_changes.py": (),
    "tests/golden/test_clients_that_come_and_go.py": (
        "test_a_real_run_has_the_same_log_by_two_ranks_and_after_stops",
        "test_a_run_resumed_after_any_step_has_the_same_log",
    ),
    "tests/golden/test_drifting_methods.py": (),
    "tests/golden/test_repeatability.py": (
        "test_another_seed_is_another_run",
        "test_the_same_run_twice_writes_the_same_bytes",
    ),
    "tests/golden/test_resumption.py": ("test_a_run_stored_after_any_step_ends_with_the_same_log",),
    "tests/golden/test_second_fielding.py": (),
    "tests/processes/test_forked.py": (),
    "tests/ratchets/test_calls_of_a_round.py": (),
    "tests/ratchets/test_modules_of_a_typo.py": (),
    "tests/ratchets/test_processes.py": ("test_every_test_that_may_start_python_exists",),
    "tests/ratchets/test_report_bytes.py": (),
    "tests/reliability/test_bombs.py": (
        "test_a_gzipped_image_set_is_read_as_far_as_its_header_says",
        "test_a_line_of_columns_without_end_is_refused",
        "test_a_line_without_end_is_refused",
        "test_an_array_of_a_log_is_unpacked_as_far_as_there_are_clients",
        "test_gzipped_cells_beyond_the_bound_are_refused",
        "test_gzipped_text_beyond_the_bound_is_refused",
    ),
    "tests/reliability/test_checkpoints.py": (),
    "tests/reliability/test_disk.py": (),
    "tests/reliability/test_failing_calls.py": (),
    "tests/reliability/test_files.py": (),
    "tests/reliability/test_foreign_files.py": (),
    "tests/reliability/test_fuzz.py": (),
    "tests/reliability/test_fuzz_runs.py": (),
    "tests/reliability/test_fuzz_structured.py": (),
    "tests/reliability/test_hostile_data_sets.py": (),
    "tests/reliability/test_jobs.py": (),
    "tests/reliability/test_kills.py": (),
    "tests/reliability/test_memory.py": (),
    "tests/reliability/test_replicas.py": (),
    "tests/reliability/test_signals.py": (),
    "tests/reliability/test_stops.py": (),
    "tests/reliability/test_sweeps.py": (),
    "tests/test_against.py": ("test_what_git_does_not_know_is_refused_in_one_line",),
    "tests/test_imports.py": (
        "test_a_command_that_does_not_train_imports_no_heavy_library",
        "test_a_configuration_is_read_without_the_analysis_libraries",
        "test_a_mistake_in_a_configuration_is_reported_before_the_engine_is_imported",
        "test_a_package_of_the_same_name_that_comes_first_ends_in_one_clear_line",
        "test_a_run_on_the_digits_does_not_import_scikit_learn",
        "test_a_trace_is_inspected_without_torch",
    ),
    "tests/test_mutants.py": ("test_a_mutant_is_killed_or_survives_and_the_tree_is_as_it_was",),
    "tests/test_plugin_package.py": (),
    "tests/test_steps.py": (),
    "tests/test_words.py": (),
    "tests/traces/availability/test_diurnal.py": (
        "test_hours_online_spread_over_devices_as_published",
        "test_the_mean_share_online_is_the_published_one",
    ),
    "tests/traces/availability/test_interval_availability.py": (
        "test_queries_equal_a_scan_of_the_ten_real_entries_over_three_periods",
        "test_queries_equal_a_scan_over_three_periods",
    ),
    "tests/traces/availability/test_intervals.py": (
        "test_fedscales_ten_entries_are_read_with_their_periods",
        "test_flash_keeps_its_rhythm_of_the_day_if_aligned_by_the_clock",
    ),
    "tests/traces/building/kinds/test_waymo.py": ("test_images_are_read_a_few_rows_at_a_time",),
    "tests/traces/building/table/test_build.py": (),
    "tests/traces/building/table/test_refusals.py": (
        "test_a_value_of_another_type_than_the_first_rows_is_named_with_its_row",
        "test_fractions_among_whole_labels_are_a_regression_target",
    ),
    "tests/traces/building/test_pipeline.py": (),
    "tests/traces/concepts/test_images.py": ("test_mnist_is_enough_for_the_published_patterns",),
    "tests/traces/concepts/test_tables.py": (
        "test_a_continuous_column_is_no_label",
        "test_a_test_sample_recurs_in_earlier_batches_as_often_as_the_closed_form_says",
        "test_every_row_is_as_likely",
        "test_the_authors_files_of_sea_label_by_the_last_two_features",
    ),
    "tests/traces/files/test_checking.py": ("test_a_flipped_byte_never_ends_in_a_traceback",),
    "tests/traces/files/test_folder.py": ("test_a_flipped_byte_is_one_line_or_another_value",),
    "tests/traces/partitions/test_dirichlet.py": (
        "test_shares_of_a_class_have_the_mean_and_variance_of_the_dirichlet_distribution",
    ),
    "tests/traces/sources/test_concepts.py": (
        "test_runs_of_all_seeds_see_the_same_data_unless_they_are_to_draw_their_own",
    ),
    "tests/traces/sources/test_file.py": (
        "test_a_day_is_a_window_and_clients_start_with_those_they_retain",
        "test_a_digest_is_of_the_files_the_settings_and_the_seed_of_a_drawn_split",
        "test_a_drawn_split_does_not_depend_on_the_number_of_rounds",
        "test_a_drawn_split_has_its_share_of_each_client_and_label_and_is_seeded",
        "test_features_are_mapped_and_not_copied",
    ),
    "tests/traces/sources/test_label_replay.py": (
        "test_a_csv_replays_as_its_parquet_does",
        "test_the_order_of_the_tables_rows_changes_nothing",
        "test_variants_of_the_virus_by_country_replay_onto_digits",
    ),
    "tests/traces/sources/test_sources.py": (
        "test_a_partition_a_seed_and_a_setting_name_one_trace",
        "test_a_seed_names_one_trace",
        "test_every_new_key_is_known_to_the_digest",
        "test_no_image_is_drawn_for_both_training_and_testing",
        "test_noise_changes_no_draw",
        "test_static_data_is_what_clients_hold_at_the_start_for_the_whole_run",
        "test_the_pixels_of_a_digit_are_of_its_label",
    ),
    "tests/traces/changes/test_against_brute_force.py": (),
    "tests/traces/tables/test_even_and_sorted.py": (),
    "tests/traces/test_draw.py": ("test_the_memory_of_a_mapped_trace_does_not_grow_with_its_length",),
    "tests/traces/test_idx.py": (
        "test_a_file_that_unpacks_to_more_than_its_header_states_is_not_unpacked",
        "test_a_wrong_number_of_labels_is_refused_before_any_pixel_is_read",
        "test_the_pixels_of_a_folder_are_held_once",
        "test_the_published_files_are_read",
    ),
    "tests/traces/test_images.py": (
        "test_every_image_is_on_one_side_and_every_label_gives_its_share_to_test",
    ),
    "tests/traces/test_trace.py": (
        "test_label_counts_kept_by_arrivals_and_expiries_equal_recounting_however_far_a_step_goes",
        "test_the_digest_knows_every_column_and_no_order_of_the_clients_rows",
        "test_what_is_held_equals_a_scan_of_every_row_at_every_step",
    ),
    "tests/experiments/results/reading/test_run_directory.py": (
        "test_a_look_at_the_files_of_a_run_beside_the_process_that_writes_them_never_fails",
    ),
    "tests/coordinator/test_giving_up.py": (
        "test_a_run_that_was_stopped_and_resumed_is_given_up_at_the_same_visit_or_not_at_all",
    ),
    "tests/coordinator/aggregators/test_corrections.py": (
        "test_of_a_sample_of_the_clients_in_each_round_the_model_ends_there_too",
        "test_the_models_end_at_the_optimum_of_the_clients_that_they_have_then",
    ),
    "tests/executor/test_corrected_descent.py": (
        "test_fednova_ends_where_the_way_per_step_of_all_clients_is_0",
    ),
    "tests/experiments/results/tables/test_detection.py": (
        "test_a_report_and_its_summary_have_detectors_if_runs_recorded_decisions",
        "test_without_decisions_nothing_is_there",
    ),
    "tests/coordinator/detectors/test_against_river.py": (
        "test_every_decision_is_that_of_an_object_of_river",
    ),
    "tests/experiments/results/figures/test_model_accuracy.py": (
        "test_each_arm_that_measured_models_has_a_map_of_its_last_evaluation",
        "test_without_the_field_there_is_no_map_and_a_notebook_is_told_how_to_record_it",
    ),
    "tests/experiments/results/figures/test_flags.py": (
        "test_the_figure_is_on_the_page_if_a_detector_made_decisions",
    ),
    "tests/experiments/cli/traces/test_from_data_to_a_report.py": (
        "test_the_commands_of_a_page_make_a_trace_and_a_report",
    ),
    "tests/test_fast_tier.py": ("test_all_that_is_left_out_exists",),
}
"""By file, the names of tests that are not of the tier; none: the whole file, which is then not imported."""


class FastTier:
    """The plug-in of `--fast`: leaves out what is not of the tier, and fails what does not belong into it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._done: list[str] | None = None  # what the present test has done that it may not; None: no test
        sys.addaudithook(self._hear)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if self._slow(collection_path) == () else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = {item for item in items if item.name.partition("[")[0] in (self._slow(item.path) or ())}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        is_whole = session.config.args == session.config.getini("testpaths")
        if is_whole and len(session.items) < LEAST_TESTS:
            raise pytest.UsageError(
                f"the fast tier has {len(session.items)} tests, not {LEAST_TESTS} or more"
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._done = []
        try:
            return (yield)
        finally:
            self._done = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """A test that has passed fails if it, or a fixture that was made for it, does not belong here."""
        before_s = time.process_time()
        result = yield
        done = list(self._done or ())
        if (cpu_s := time.process_time() - before_s) > MOST_CPU_S:
            done.append(f"takes {cpu_s:.1f} s of CPU time")
        if done:
            pytest.fail(f"it {done[0]}: not of the fast tier (tests/fast_tier.py)", pytrace=False)
        return result

    def _slow(self, path: Path) -> Collection[str] | None:
        """What `SLOW` says of a file; None if it says nothing."""
        return SLOW.get(path.relative_to(self._root).as_posix()) if path.suffix == ".py" else None

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._done is None:
            return
        if event in ("subprocess.Popen", "tests.forked", "os.fork", "os.posix_spawn", "os.system"):
            self._done.append(f"starts a process ({event})")
        elif event == "open" and str(arguments[0]).endswith("report.html"):
            self._done.append("writes or reads a report")
