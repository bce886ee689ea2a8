"""What a legal conversation is: items, tool specs, the transcript.

Standard library only, no I/O, no clock, no randomness.
"""
