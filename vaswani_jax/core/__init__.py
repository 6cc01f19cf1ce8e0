"""Settings, devices, processes, memory and files, on which all other subpackages stand."""
