"""What is recorded of the process: samples, native text, stacks, imports and its end."""
