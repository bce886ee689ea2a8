"""What mends a history of Responses."""
