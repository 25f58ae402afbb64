"""What a model says to a sampler about a minibatch: expected counts, a log density and its gradient."""
