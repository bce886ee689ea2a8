"""What the Messages API of Anthropic refuses."""
