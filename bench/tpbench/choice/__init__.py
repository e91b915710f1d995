"""bench/planner_choice: the time that the planner's choices lose, over a grid.

grid: what is measured; policy: how a plan is chosen; report: tables and plots.
"""
