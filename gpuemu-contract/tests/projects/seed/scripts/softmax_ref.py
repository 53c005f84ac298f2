"""Named by a contract under test; never run."""
