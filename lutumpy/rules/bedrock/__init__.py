"""The law of Amazon Bedrock's Converse."""
