"""The lowest cost of a sequence of statements, known only at its end.

A table's dirty pages are a bit mask. A state is a tuple with the mask of each table. best
maps each state that can be reached to the lowest cost of reaching it. Only flushes just
before a query are considered: an earlier one writes no fewer pages. Workers read all tables of
a query, which are flushed for that, or those that are clean, if there is such a plan.
"""

from itertools import combinations


def subsets(tables):
    tables = sorted(tables)
    return [frozenset(c) for n in range(len(tables) + 1) for c in combinations(tables, n)]


class Hindsight:
    def __init__(self, tables, page_cost):
        self.page_cost = page_cost
        self.best = {(0,) * tables: 0.0}

    def change(self, table, dirtied, is_new):
        """A statement has dirtied pages of table; is_new: none of its old pages remain."""
        after = {}
        for state, cost in self.best.items():
            mask = dirtied if is_new else state[table] | dirtied
            state = state[:table] + (mask,) + state[table + 1:]
            after[state] = min(cost, after.get(state, cost))
        self.best = after

    def flush(self):
        """A statement has written all dirty pages."""
        after = {}
        for state, cost in self.best.items():
            total = cost + self.page_cost * sum(mask.bit_count() for mask in state)
            new = (0,) * len(state)
            after[new] = min(total, after.get(new, total))
        self.best = after

    def query(self, costs):
        """A query has been run. costs maps each set of its tables to the cost of the best
        plan if workers can read the tables of that set."""
        tables = max(costs, key=len)
        after = {}
        for state, cost in self.best.items():
            for flushed in {frozenset(), frozenset(t for t in tables if state[t])}:
                new = tuple(0 if t in flushed else mask for t, mask in enumerate(state))
                total = (cost + costs[frozenset(t for t in tables if not new[t])] +
                         self.page_cost * sum(state[t].bit_count() for t in flushed))
                after[new] = min(total, after.get(new, total))
        self.best = after

    def cost(self):
        return min(self.best.values())
