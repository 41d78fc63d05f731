//! What a worker keeps, by way of `togl-durable`, for this user alone, whatever the umask says; with the points at which
//! tests end the process.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use togl_durable::{Draft, MINE};

use crate::crash;

/// Makes a folder, and those that it is in, for this user alone; one that is there stays as it is.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file for this user alone, replacing what was there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, MINE)
}

/// The same with another mode, for what the user wants elsewhere.
pub fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    crash::point("write");
    let mut draft = Draft::beside(path, mode)?;
    let (first, second) = bytes.split_at(bytes.len() / 2);
    draft.write_all(first)?;
    crash::point("half-written");
    draft.write_all(second)?;
    crash::point("written");
    draft.publish_seen_by(crash::point).map(drop)
}
