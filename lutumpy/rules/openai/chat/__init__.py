"""What Chat Completions refuses."""
