"""What mends a history of OpenAI's two APIs."""
