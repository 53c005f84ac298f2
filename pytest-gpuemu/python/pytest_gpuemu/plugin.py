"""The pytest plugin. It does nothing without `--gpuemu`."""
