"""From a bundle to findings: pure, reads no machine, so that a bundle replays anywhere."""
