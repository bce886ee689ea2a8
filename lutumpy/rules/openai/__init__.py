"""What OpenAI's two APIs refuse, and what both have in common."""
