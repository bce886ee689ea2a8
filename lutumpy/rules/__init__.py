"""What each API refuses, as data and small functions: a folder for each provider. Standard library
only, no I/O.

Each API's rules check a whole request and the transcript in it. They report every `Problem` found,
in the order in which the provider would meet them, and no JSON makes them raise.
"""
