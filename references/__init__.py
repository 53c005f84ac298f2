"""Reference implementations in plain NumPy, one operator a file. Copy the one you need."""
