"""What mends a history of Amazon Bedrock's Converse."""
