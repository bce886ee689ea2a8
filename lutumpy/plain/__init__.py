"""Plain tools that know nothing of conversations: JSON, frozen values, texts for logs, JSON
Pointers.
"""
