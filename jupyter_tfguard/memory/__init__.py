"""Which memory limit binds, what is in use and what is left: one answer for every view, the stop and the estimate."""
