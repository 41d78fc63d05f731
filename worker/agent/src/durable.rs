//! Files that are whole or not there: written beside, fsynced, renamed, and the folder fsynced too. What fails
//! leaves nothing behind; only a killed process can leave a `.partial` file, which no reader looks at. They are for this
//! user alone, whatever the umask says.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::{crash, identity};

/// Makes a folder, and those that it is in, for this user alone; one that is there stays as it is.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The mode of a file that is for this user alone.
pub const MINE: u32 = 0o600;

/// The mode of a file that is for whom the umask says.
pub const EVERYBODYS: u32 = 0o666;

/// How the names of unfinished files end.
pub const PARTIAL: &str = "partial";

/// Writes `folder/name`, replacing what was there. Several processes, also of several machines, may write into one
/// folder: the unfinished file of each has a name of its own.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(folder, name, bytes, MINE)
}

/// The same with another mode, for what the user wants elsewhere.
pub fn write_with_mode(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let partial = folder.join(format!("{name}.{:08x}.{PARTIAL}", identity::random()));
    crash::point("write");
    let written =
        write_and_sync(&partial, bytes, mode).and_then(|()| fs::rename(&partial, folder.join(name)));
    if let Err(error) = written {
        let _ = fs::remove_file(&partial); // it may not even be there
        return Err(error);
    }
    crash::point("renamed");
    File::open(folder)?.sync_all()?;
    crash::point("kept");
    Ok(())
}

fn write_and_sync(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(&bytes[..bytes.len() / 2])?;
    crash::point("half-written");
    file.write_all(&bytes[bytes.len() / 2..])?;
    crash::point("written");
    file.sync_all()?;
    crash::point("synced");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_for_this_user_alone_unless_it_is_wanted_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "mine", b"one").unwrap();
        write_with_mode(folder.path(), "ours", b"two", EVERYBODYS).unwrap();
        let mode = |name| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("as the umask says"), b"three").unwrap();
        assert_eq!((mode("mine"), mode("ours")), (0o600, mode("as the umask says")));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", b"one").unwrap();
        write(folder.path(), "a", b"two").unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"two");
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(write(folder.path(), "taken", b"three").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a, taken, and no rest of the attempt");
    }
}
