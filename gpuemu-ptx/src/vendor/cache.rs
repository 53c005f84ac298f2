//! Answers kept by content: one file a question, whole or not at all. A damaged file is a file that is not there.

use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// First line of every file; the number changes with the layout.
const MAGIC: &[u8] = b"gpuemu vendor 1\n";

/// Hash of everything an answer depends on.
pub struct Key(String);

impl Key {
    /// Of parts, each of any length.
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut hash = Blake2b::<U32>::new();
        for part in parts {
            // The lengths keep apart what only joins to the same bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hex(&hash.finalize()))
    }
}

/// A folder of answers, or none.
pub struct Cache<'folder>(pub Option<&'folder Path>);

impl Cache<'_> {
    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.0?.join(&key.0))
    }

    /// The answer that was kept: a text and bytes.
    pub fn load(&self, key: &Key) -> Option<(String, Vec<u8>)> {
        let file = fs::read(self.path(key)?).ok()?;
        let rest = file.strip_prefix(MAGIC)?;
        let (digest, body) = (rest.get(..64)?, rest.get(64..)?);
        if digest != hex(&Blake2b::<U32>::digest(body)).as_bytes() {
            return None;
        }
        let length = u64::from_le_bytes(body.get(..8)?.try_into().ok()?);
        let length = usize::try_from(length).ok()?;
        let text = String::from_utf8(body.get(8..)?.get(..length)?.to_vec()).ok()?;
        Some((text, body[8 + length..].to_vec()))
    }

    /// Keeps an answer. That it cannot be kept (no room, no right) costs time the next time and nothing else.
    pub fn store(&self, key: &Key, text: &str, bytes: &[u8]) {
        let Some(path) = self.path(key) else { return };
        let body = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), bytes].concat();
        let write = || -> std::io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(MAGIC)?;
            file.write_all(hex(&Blake2b::<U32>::digest(&body)).as_bytes())?;
            file.write_all(&body)?;
            file.persist(&path)?;
            Ok(())
        };
        let _ = write();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache(Some(folder.path()));
        let key = Key::of(&[b"a", b"bc"]);
        assert_eq!(cache.load(&key), None);
        cache.store(&key, "text", b"\0\xffbytes");
        assert_eq!(cache.load(&key), Some(("text".into(), b"\0\xffbytes".to_vec())));

        let path = folder.path().join(&key.0);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(cache.load(&key), None, "byte {at} damaged");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.load(&key), None, "cut off at {at}");
        }
        cache.store(&key, "again", b"");
        assert_eq!(cache.load(&key), Some(("again".into(), Vec::new())));
    }

    #[test]
    fn keys_differ_where_parts_differ() {
        let same = Key::of(&[b"ab", b"c"]).0;
        assert_eq!(same, Key::of(&[b"ab", b"c"]).0);
        for parts in [&[&b"a"[..], b"bc"][..], &[b"abc"], &[b"ab", b"c", b""], &[b"c", b"ab"]] {
            assert_ne!(same, Key::of(parts).0, "{parts:?}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache(Some(file.path()));
        let key = Key::of(&[b"x"]);
        cache.store(&key, "text", b"");
        assert_eq!(cache.load(&key), None);
        Cache(None).store(&key, "text", b"");
        assert_eq!(Cache(None).load(&key), None);
    }
}
