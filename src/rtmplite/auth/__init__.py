"""Guards: who may connect, publish and play."""
