//! The bundle: the worker program and its libtorch on this machine, in the layout of an installation (`bin/togl-worker`,
//! `lib/togl/torch/lib`, `lib/togl/nvidia`). Finds it, and says what is in it; sends nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::looked::pair;
use super::{packed, scripts};
use crate::problem::Problem;

/// Which part of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The worker program.
    Programs,
    /// The libraries that it trains with.
    Libtorch,
}

impl PartKind {
    /// Its name in messages and paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Programs => "programs",
            Self::Libtorch => "libtorch",
        }
    }
}

/// A part that is sent as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundlePart {
    /// Which.
    pub kind: PartKind,
    /// Of all its files.
    pub digest: String,
    /// Bytes of its files.
    pub bytes: u64,
}

impl BundlePart {
    /// What it is called on a host and in the cache.
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind.as_str(), self.digest)
    }
}

/// What is in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// As `uname -m` calls it.
    pub arch: String,
    /// The GNU C library that the worker needs.
    pub glibc: (u32, u32),
    /// The worker program.
    pub programs: BundlePart,
    /// Its libtorch, if the bundle has one.
    pub libtorch: Option<BundlePart>,
    /// Whether that can use GPUs.
    pub cuda: bool,
}

/// A bundle on this machine.
#[derive(Debug, Clone)]
pub struct HostBundle {
    root: PathBuf,
    /// What is in it.
    pub contents: Contents,
}

const PROGRAM: &str = "bin/togl-worker";

impl HostBundle {
    /// The one that was named, a folder or a tarball, or the one that this program is part of.
    pub fn find(named: Option<&Path>) -> Result<Self, Problem> {
        let root = match named {
            Some(path) if path.is_dir() => path.to_owned(),
            Some(path) => unpacked(path)?,
            None => around_this_program()?,
        };
        Self::open(&root)
    }

    fn open(root: &Path) -> Result<Self, Problem> {
        let refuse = |error: io::Error| {
            Problem::usage(format!("{} is no bundle: {error}", root.display())).hint(
                "a bundle has bin/togl-worker and lib/togl/torch/lib; `make install PREFIX=DIR` makes one",
            )
        };
        let program = root.join(PROGRAM);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{PROGRAM}: {error}"));
        let (arch, glibc) = needs(&fs::read(&program).map_err(named).map_err(refuse)?).map_err(refuse)?;
        let part = |kind| part(root, kind).map_err(refuse);
        let libtorch = part(PartKind::Libtorch)?;
        let programs = part(PartKind::Programs)?.ok_or_else(|| refuse(io::ErrorKind::NotFound.into()))?;
        let cuda = root.join("lib/togl/torch/lib/libtorch_cuda.so").exists();
        let contents = Contents { arch, glibc, programs, libtorch, cuda };
        Ok(Self { root: root.to_owned(), contents })
    }

    /// Where the paths of a part begin, and which they are.
    pub fn paths(&self, kind: PartKind) -> io::Result<(PathBuf, Vec<PathBuf>)> {
        let base = base(&self.root, kind);
        let files = files(&base, kind)?;
        Ok((base, files))
    }
}

/// The layout around the program that runs.
fn around_this_program() -> Result<PathBuf, Problem> {
    let own = std::env::current_exe()?;
    let root = own.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    match root.join("lib/togl/torch/lib").is_dir() && root.join(PROGRAM).is_file() {
        true => Ok(root.to_owned()),
        false => Err(Problem::usage(format!("{} is not part of a bundle to send", own.display()))
            .hint("name one with --bundle DIR|TARBALL; `make install PREFIX=DIR` makes a folder")),
    }
}

/// A tarball in the cache, unpacked once.
fn unpacked(tarball: &Path) -> Result<PathBuf, Problem> {
    let refuse = |error: io::Error| {
        Problem::usage(format!("cannot unpack {}: {error}", tarball.display()))
            .hint("--bundle takes a folder, or a tarball with one folder in it")
    };
    let place = packed::cache()?.join(format!("bundle-{}", packed::digest_of_file(tarball).map_err(refuse)?));
    if !place.exists() {
        let parent = place.parent().unwrap_or(Path::new("."));
        let new = tempfile::Builder::new().prefix("new-").tempdir_in(parent)?;
        let mut tar = Command::new("tar");
        let output = tar.arg("-xf").arg(tarball).arg("-C").arg(new.path()).output().map_err(refuse)?;
        if !output.status.success() {
            return Err(refuse(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())));
        }
        fs::rename(new.path(), &place)?;
    }
    let mut folders = fs::read_dir(&place)?.filter_map(Result::ok).map(|entry| entry.path());
    match (folders.next(), folders.next()) {
        (Some(only), None) if only.is_dir() => Ok(only),
        _ => Err(refuse(io::Error::other("it does not have exactly one folder at its top"))),
    }
}

fn base(root: &Path, kind: PartKind) -> PathBuf {
    match kind {
        PartKind::Programs => root.to_owned(),
        PartKind::Libtorch => root.join("lib/togl"),
    }
}

/// The files of a part, sorted, as paths from its base.
fn files(base: &Path, kind: PartKind) -> io::Result<Vec<PathBuf>> {
    let tops: &[&str] = match kind {
        PartKind::Programs => return Ok(vec![PathBuf::from(PROGRAM)]), // a host that trains needs no more of them
        PartKind::Libtorch => &["torch/lib", "nvidia"],
    };
    let mut found = Vec::new();
    for top in tops.iter().map(Path::new).filter(|top| base.join(top).is_dir()) {
        walk(base, top, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn walk(base: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(base.join(folder))? {
        let path = folder.join(entry?.file_name());
        match fs::metadata(base.join(&path))?.is_dir() {
            true => walk(base, &path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

/// A part by the digests of its files in their order; none if it has no files.
fn part(root: &Path, kind: PartKind) -> io::Result<Option<BundlePart>> {
    let base = base(root, kind);
    let (mut all, mut bytes) = (blake3::Hasher::new(), 0);
    let files = files(&base, kind)?;
    for path in &files {
        let mut hasher = blake3::Hasher::new();
        bytes += io::copy(&mut File::open(base.join(path))?, &mut hasher)?;
        all.update(format!("{} {}\n", hasher.finalize().to_hex(), path.display()).as_bytes());
    }
    let digest = scripts::hex(&all.finalize().as_bytes()[..16]);
    Ok((!files.is_empty()).then_some(BundlePart { kind, digest, bytes }))
}

/// Architecture and glibc that a program needs, from its header and the names of the versions that it asks for.
fn needs(program: &[u8]) -> io::Result<(String, (u32, u32))> {
    let strange = || io::Error::other(format!("{PROGRAM} is no Linux program of a known architecture"));
    let header = program.get(..20).filter(|header| header.starts_with(b"\x7fELF")).ok_or_else(strange)?;
    let arch = match header[18] {
        62 => "x86_64",
        183 => "aarch64",
        _ => return Err(strange()),
    };
    const NAME: &[u8] = b"GLIBC_";
    let versions = program.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let version = |at: usize| {
        let text: Vec<u8> =
            program[at + NAME.len()..].iter().copied().take(8).take_while(|b| *b != 0).collect();
        pair(std::str::from_utf8(&text).ok()?)
    };
    Ok((arch.to_owned(), versions.filter_map(|(at, _)| version(at)).max().unwrap_or((2, 17))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(arch: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes[18] = arch;
        bytes.extend(b"\0GLIBC_2.17\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_PRIVATE\0");
        bytes
    }

    #[test]
    fn a_program_says_what_it_needs() {
        assert_eq!(needs(&program(62)).unwrap(), ("x86_64".to_owned(), (2, 34)));
        assert_eq!(needs(&program(183)).unwrap().0, "aarch64");
        assert!(needs(b"#!/bin/sh").is_err() && needs(&program(3)).is_err());
    }

    #[test]
    fn a_part_changes_with_its_files_and_with_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, bytes: &[u8]| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), bytes).unwrap();
        };
        write(PROGRAM, &program(62));
        assert_eq!(HostBundle::open(root).unwrap().contents.libtorch, None);
        write("lib/togl/torch/lib/libtorch_cpu.so", b"cpu");
        write("lib/togl/nvidia/cu13/lib/libcudart.so.13", b"rt");
        write("lib/togl/torch/include/header.h", b"not sent");
        let first = HostBundle::open(root).unwrap();
        let part = first.contents.libtorch.clone().unwrap();
        assert_eq!((part.bytes, first.contents.cuda), (5, false));
        write("bin/togl", b"the command is not sent either");
        write("lib/togl/torch/include/header.h", b"changed");
        assert_eq!(HostBundle::open(root).unwrap().contents, first.contents);
        write("lib/togl/torch/lib/libtorch_cuda.so", b"cuda");
        let second = HostBundle::open(root).unwrap().contents;
        assert!(second.cuda && second.libtorch.unwrap().digest != part.digest);
        assert_eq!(second.programs, first.contents.programs);
    }
}
