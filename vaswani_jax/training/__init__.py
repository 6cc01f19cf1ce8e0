"""Training, section 5: loop, step, loss and optimizer."""
