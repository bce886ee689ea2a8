"""What mends histories of Gemini's generateContent."""
