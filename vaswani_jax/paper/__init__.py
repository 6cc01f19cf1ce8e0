"""What `report` prints: the paper's tables and figures beside our own."""
