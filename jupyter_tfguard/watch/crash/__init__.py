"""The end of a kernel: exit status, last text, facts."""
