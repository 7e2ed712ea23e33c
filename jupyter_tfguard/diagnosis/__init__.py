"""From a bundle to findings. Reads nothing from the machine, so a bundle gives the same findings anywhere."""
