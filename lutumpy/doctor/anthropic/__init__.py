"""What mends a history of Anthropic Messages."""
