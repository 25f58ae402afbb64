"""Models whose data are dense rows and whose state moves as a whole."""
