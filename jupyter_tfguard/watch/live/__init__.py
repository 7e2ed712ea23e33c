"""What a running kernel reports, and what follows from its memory."""
