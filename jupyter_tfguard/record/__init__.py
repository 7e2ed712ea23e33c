"""Files of recordings and crash bundles: writing, reading, retention."""
