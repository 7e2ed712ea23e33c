"""The user's Keras and TensorFlow, once the user's own code has imported them."""
