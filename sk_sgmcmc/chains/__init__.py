"""Markov chains of all models: their steps and kept draws, how several run at a time, and checks of their draws."""
