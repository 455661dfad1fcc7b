"""What learns: a transformer of the sandbox, alone or many seeds together, or a language model of Hugging Face."""
