"""Recorded traffic: written once, replayed without a network."""
