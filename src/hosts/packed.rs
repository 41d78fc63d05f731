//! Parts of a bundle as files in the cache, packed once, so that a copy that broke off can go on with the same bytes. Owns that
//! folder of the cache.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ring::digest::{Context, SHA256};
use togl_proto::own_machine;

use super::bundle::{BundlePart, HostBundle};
use super::scripts;
use crate::problem::Problem;

/// A part, packed.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha: String,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The folder for what is sent to hosts.
pub fn cache() -> Result<PathBuf, Problem> {
    let missing = || Problem::usage("no home directory for packed bundles").hint("set XDG_CACHE_HOME");
    let folder = own_machine::cache_folder().ok_or_else(missing)?.join("hosts");
    let refuse = |error| {
        Problem::usage(format!("cannot write {}: {error}", folder.display()))
            .hint("set XDG_CACHE_HOME to another folder")
    };
    fs::create_dir_all(&folder).map_err(refuse)?;
    Ok(folder)
}

/// SHA-256 of a file.
pub fn digest_of_file(path: &Path) -> io::Result<String> {
    struct Into(Context);
    impl io::Write for Into {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut into = Into(Context::new(&SHA256));
    io::copy(&mut File::open(path)?, &mut into)?;
    Ok(scripts::hex(into.0.finish().as_ref()))
}

/// The packed file of a part, made if it is not in the cache.
pub fn pack(bundle: &HostBundle, part: &BundlePart) -> Result<Packed, Problem> {
    let folder = cache()?;
    let path = folder.join(format!("{}.tar.gz", part.name()));
    if !path.exists() {
        let draft = tempfile::Builder::new().prefix("new-").tempfile_in(&folder)?;
        write(bundle, part, draft.path())?;
        draft.persist(&path).map_err(|error| Problem::ours(error.error))?;
    }
    let refuse = |error| Problem::usage(format!("cannot read {}: {error}", path.display()));
    let sha = digest_of_file(&path).map_err(refuse)?;
    let bytes = fs::metadata(&path).map_err(refuse)?.len();
    Ok(Packed { path, sha, bytes })
}

/// The same bytes for the same files: no times, no owners, the order of the list. Links become what they point to, because what
/// they point to may not be in the part.
fn write(bundle: &HostBundle, part: &BundlePart, target: &Path) -> Result<(), Problem> {
    let refuse = |error: &dyn std::fmt::Display| {
        Problem::usage(format!("cannot pack the {} of the bundle: {error}", part.kind.as_str()))
            .hint("`tar` and `gzip` are needed here, and room in the cache (XDG_CACHE_HOME)")
    };
    let (base, files) = bundle.paths(part.kind).map_err(|error| refuse(&error))?;
    let mut tar = Command::new("tar");
    tar.args(["--create", "--dereference", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u+rw,go-w", "--use-compress-program=gzip -n -1", "--file"]).arg(target);
    tar.arg("--directory").arg(base).arg("--").args(files).stdin(Stdio::null());
    let output = tar.output().map_err(|error| refuse(&error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(refuse(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}
