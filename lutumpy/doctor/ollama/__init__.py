"""What mends a history of Ollama's API."""
