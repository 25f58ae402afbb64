"""Documents, their priors, sweeps, chains and records: the model that all topic models of counts share."""
