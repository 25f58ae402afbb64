"""The estimator that all topic models of counts share: its methods, its plan of a fit, its checks and tables."""
