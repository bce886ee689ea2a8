"""What happens this turn: availability, requirement, the round, its outcome."""
