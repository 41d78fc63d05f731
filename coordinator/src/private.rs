//! Files that only their owner may read, whatever the umask says; tokens and keys are written whole or not at all.
//! Knows nothing of what they hold.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use togl_durable::Draft;

/// For as long as this lives, every file that this process makes is for its owner alone: for writers that leave the mode to
/// the umask. What other threads make meanwhile is, too.
#[derive(Debug)]
pub struct OwnerOnly {
    usual: libc::mode_t,
}

impl OwnerOnly {
    /// From now on.
    pub fn begin() -> Self {
        // SAFETY: the call only exchanges a number of this process, and cannot fail.
        Self { usual: unsafe { libc::umask(0o077) } }
    }
}

impl Drop for OwnerOnly {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::umask(self.usual) };
    }
}

/// How to open a file that is private if it is made now. One that is there keeps the mode that its owner gave it.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Whether everybody may write to a folder, and so put files of their own in the place of private ones.
pub(crate) fn is_open_to_all(folder: &Path) -> io::Result<bool> {
    Ok(fs::metadata(folder)?.permissions().mode() & 0o002 != 0)
}

/// Replaces `path` by `contents`, mode 0600. After a crash either the old or the new file is there.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let partial = path.with_extension(togl_durable::PARTIAL);
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // A new file, so that neither the mode nor the owner of an older one is kept.
    let mut draft = Draft::at(partial, path, options().write(true).create_new(true))?;
    draft.write_all(contents)?;
    draft.publish_seen_by(crate::crash::point).map(drop)
}

/// The contents of `path`; none if there is no such file.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps other processes from changing `path` until the guard is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = options().write(true).create(true).truncate(false).open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_is_private_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name| {
            fs::write(folder.path().join(name), "text").unwrap();
            fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777
        };
        let usual = mode("before");
        let only = OwnerOnly::begin();
        assert_eq!(mode("during"), 0o600);
        drop(only);
        assert_eq!(mode("after"), usual);
    }

    #[test]
    fn a_private_file_is_private_even_where_a_public_one_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.json");
        assert_eq!(read(&path).unwrap(), None);
        fs::write(&path, "for everybody").unwrap();
        fs::write(path.with_extension("partial"), "left by a crash").unwrap();
        write(&path, b"for me").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"for me");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
