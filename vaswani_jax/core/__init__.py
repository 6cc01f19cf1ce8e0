"""Settings, devices, processes, memory and files, which all of the package uses."""
