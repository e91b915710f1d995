"""bench/planner_choice: the time that the planner's choices lose, over a grid.

grid is what is measured, policy how a plan is chosen, report what is shown.
"""
