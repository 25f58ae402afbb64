"""Models with dense rows and a continuous state, which a sampler moves as a whole."""
