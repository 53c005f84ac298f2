//! Files that several processes write: whole or not at all, changed by one at a time.

use crate::error::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Writes a file so that readers, and other processes writing the same, see either the old text or the new one.
pub fn write_atomically(path: &Path, text: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| Error::File(format!("cannot write {}: {error}", path.display()));
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A temporary file is private; what we leave behind is read by other people's tools.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(failed)?;
    }
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Reads, changes and writes files of a folder while no other process does the same through this function.
///
/// The lock lies on the folder itself, so that nothing is left behind, and ends with the process that holds it. Systems
/// that are no Unix have none: there, only the threads of one process wait for one another.
pub fn alone<T>(folder: &Path, change: impl FnOnce() -> Result<T>) -> Result<T> {
    static THREADS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    #[cfg(unix)]
    let _held = {
        let failed = |error: std::io::Error| Error::File(format!("cannot lock {}: {error}", folder.display()));
        let held = std::fs::File::open(folder).map_err(failed)?;
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        held
    };
    #[cfg(not(unix))]
    let _ = folder;
    change()
}
