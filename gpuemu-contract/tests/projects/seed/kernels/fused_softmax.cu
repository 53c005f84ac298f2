// Named by a contract under test; never compiled.
