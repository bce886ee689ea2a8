"""Budgets in dollars, tokens, requests and calls, shared by any number of sessions and tasks.

Opt-in: nothing else in lutumpy imports it. Dollars need prices: those of `genai-prices` (extra
`cost`), which is imported with the first price, or a table of your own.
"""

from lutumpy.budget.budget import Budget
from lutumpy.budget.cost import cost_of
from lutumpy.budget.model import BudgetModel
from lutumpy.budget.prices import ModelName, Price, Prices
from lutumpy.budget.spent import Left, Spent

__all__ = [
    "Budget",
    "BudgetModel",
    "Left",
    "ModelName",
    "Price",
    "Prices",
    "Spent",
    "cost_of",
]
