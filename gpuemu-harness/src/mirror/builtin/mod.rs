//! Built-in references, one operator or family a file.
