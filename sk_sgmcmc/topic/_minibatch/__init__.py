"""Chains of count topic models that read minibatches, with their topics in the state."""
