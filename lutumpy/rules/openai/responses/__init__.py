"""What Responses refuses."""
