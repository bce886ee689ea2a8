"""What Gemini's generateContent takes, and in which words it refuses the rest."""
