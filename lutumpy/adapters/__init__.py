"""How a provider spells it: one folder for each SDK. An adapter sees plain tool specs and items,
never a user's classes.
"""
