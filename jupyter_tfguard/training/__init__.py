"""Works with the user's Keras and TensorFlow, after user code has imported them."""
