"""What mends a history of Chat Completions."""
