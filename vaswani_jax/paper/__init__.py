"""The contents of `report`: the paper's tables and figures beside our own."""
