"""What is kept on disk, and how to read it back."""
