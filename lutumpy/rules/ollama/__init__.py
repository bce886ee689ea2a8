"""What Ollama's API refuses."""
