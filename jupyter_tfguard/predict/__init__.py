"""Memory that a model, a batch and an optimizer will need."""
