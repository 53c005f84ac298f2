//! What the workspace-level suites share.
