"""Planner settings: those of the modes, and random ones."""

import random

MODES = OFF, ON, ZERO = "off", "on", "zero"

# name, first version that has it
SWITCHES = [(name, 0) for name in (
    "enable_bitmapscan", "enable_gathermerge", "enable_hashagg", "enable_hashjoin",
    "enable_incremental_sort", "enable_indexonlyscan", "enable_indexscan", "enable_material",
    "enable_memoize", "enable_mergejoin", "enable_nestloop", "enable_parallel_append",
    "enable_parallel_hash", "enable_partition_pruning", "enable_seqscan", "enable_sort",
    "enable_tidscan")] + [("enable_presorted_aggregate", 16), ("enable_group_by_reordering", 17),
                          ("enable_distinct_reordering", 18), ("enable_self_join_elimination", 18)]
RARE = [("enable_partitionwise_join", 0), ("enable_partitionwise_aggregate", 0)]

# Costs that are far from the truth.
NONSENSE = [
    {"cpu_operator_cost": "0", "cpu_tuple_cost": "0", "seq_page_cost": "0", "random_page_cost": "0"},
    {"cpu_operator_cost": "1000"}, {"cpu_operator_cost": "0"}, {"cpu_tuple_cost": "1e10"}, {"seq_page_cost": "1e10"},
]

DEFAULT_COSTS = {
    "parallel_setup_cost": "1000", "parallel_tuple_cost": "0.1",
    "min_parallel_table_scan_size": "8MB", "min_parallel_index_scan_size": "512kB",
    "temp_parallel.write_temp_page_cost": "1.3", "temp_parallel.buffer_scan_cost": "0.01",
}
ZERO_COSTS = {name: "0" for name in DEFAULT_COSTS}


def of_mode(mode, cheap):
    """The settings of a mode; cheap: when on, tables of this size can be scanned in parallel."""
    if mode == ZERO:
        return dict(ZERO_COSTS, **{"temp_parallel.enabled": "on"})
    costs = dict(DEFAULT_COSTS)
    if cheap:
        costs.update({"parallel_setup_cost": "10", "min_parallel_table_scan_size": "64kB",
                      "min_parallel_index_scan_size": "64kB"})
    return dict(costs, **{"temp_parallel.enabled": mode})


def random_settings(rng, version):
    """Settings for one query, the same in all modes."""
    values = {}
    shares = rng.choice([0, 0, 0.1, 0.3])
    for name, since in SWITCHES:
        if version >= since:
            values[name] = "off" if rng.random() < shares else "on"
    for name, since in RARE:
        values[name] = rng.choice(["on", "off"])
    values["work_mem"] = rng.choice(["64kB", "64kB", "256kB", "4MB"])
    values["parallel_leader_participation"] = rng.choice(["on", "on", "off"])
    # Launching a worker takes longer than most of these queries.
    values["max_parallel_workers_per_gather"] = rng.choices(["1", "2", "3", "4"], [70, 22, 4, 4])[0]
    values["max_parallel_workers"] = rng.choices(["8", "1", "0"], [90, 6, 4])[0]
    values["plan_cache_mode"] = rng.choice(["auto", "force_generic_plan", "force_custom_plan"])
    values["geqo_threshold"] = rng.choice(["12", "12", "12", "2"])
    values["join_collapse_limit"] = rng.choice(["8", "8", "1"])
    values["cpu_tuple_cost"] = rng.choice(["0.01", "0.01", "0.5"])
    values["random_page_cost"] = rng.choice(["4", "1", "0.1"])
    values["debug_parallel_query" if version >= 16 else "force_parallel_mode"] = \
        rng.choices(["off", "on"], [94, 6])[0]  # with regress the module does nothing
    values["effective_io_concurrency"] = rng.choice(["0", "1", "16"])
    if version >= 17:
        values["io_combine_limit"] = rng.choice(["8kB", "128kB", "128kB"])
    # Without effect where the server has no JIT.
    values["jit"] = "on" if rng.random() < 0.004 else "off"
    # Not drawn from rng, so that a seed draws the same episode as before there were these settings.
    values["temp_parallel.processors"] = random.Random(repr(values)).choice(["0", "1", "2", "2", "100", "100"])
    values["temp_parallel.share_local_buffers"] = random.Random(repr(values) + "share").choice(["on", "on", "off"])
    # one query has others
    values["client_encoding"], values["cpu_operator_cost"], values["seq_page_cost"] = "utf8", "0.0025", "1"
    nonsense = random.Random(repr(values) + "nonsense")
    if nonsense.random() < 0.1:
        values.update(nonsense.choice([*NONSENSE, {name: "off" for name, since in SWITCHES if version >= since}]))
    return values


# The other settings of the queries, the same for the whole session.
SESSION = {"jit": "off", "jit_above_cost": "0", "jit_inline_above_cost": "0", "jit_optimize_above_cost": "0",
           "default_statistics_target": "30", "timezone": "UTC", "extra_float_digits": "1",
           "client_min_messages": "error"}

# The session's counters.
COUNTED = ("s.flushes, s.workers_launched, s.hints_dropped, s.pages_flushed, s.pages_shared"
           " FROM public.temp_parallel_stats() s")
# A statement among those of a query, before and after what its kind is about.
COUNTERS = f"SELECT {COUNTED}"

# The users' tables and indexes that the session has locked, by names that are the same in all
# modes. TOAST tables have none.
LOCKS = ("SELECT DISTINCT regexp_replace(c.relname, '_(off|on|zero)(?![a-z])', '') FROM pg_locks l"
         " JOIN pg_class c ON c.oid = l.relation WHERE l.pid = pg_backend_pid() AND c.oid >= 16384"
         " AND c.relname !~ '^pg_toast'")


def statement(values, more=""):
    """One statement that sets them all; more is added to its target list."""
    # as superuser, since the role may not set all of them
    items = sorted((n, v) for n, v in values.items() if n != "role")
    if "role" in values:
        items = [("role", "none")] + items
        if values["role"] != "none":
            items.append(("role", values["role"]))
    return "SELECT " + ", ".join(f"set_config('{n}', '{v}', false)" for n, v in items) + more
