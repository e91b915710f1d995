"""The measurements that the programs in bench and script/demo run.

Packages: versus (bench/versus), filled (bench/fill_and_query), choice
(bench/planner_choice), sequences (bench/planner_sequences), job (bench/job), pictures
(bench/pictures, of their results), and common, which several of them use. Programs of a single
module: demo, share, sessions, planning, insert_select, index_build.
"""
