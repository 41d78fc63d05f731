//! libtorch's CUDA half: looked for beside the processor's half and opened at run time, so that one program serves
//! machines with and without it. Owns where it lies and what became of it; must not know which device trains.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Serialize;

use crate::native;

const CPU_HALF: &str = "libtorch_cpu.so";
const CUDA_HALF: &str = "libtorch_cuda.so";

/// What became of the CUDA half.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum CudaHalf {
    /// This libtorch has none.
    Absent,
    /// It is part of this process.
    Opened {
        /// The file.
        path: PathBuf,
    },
    /// It is there, but the system cannot load it.
    Broken {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: String,
    },
}

/// Opens the CUDA half, once a process. libtorch looks for it when it is first asked about CUDA and never again, so this
/// comes before any such question. It takes seconds and a gigabyte of addresses: only who wants CUDA calls it.
pub(crate) fn open() -> &'static CudaHalf {
    static HALF: OnceLock<CudaHalf> = OnceLock::new();
    HALF.get_or_init(|| libtorch_folder().map_or(CudaHalf::Absent, |folder| open_in(&folder)))
}

/// The folder of the libtorch in this process; none where the system does not tell.
pub(crate) fn libtorch_folder() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    folder_of(CPU_HALF, &maps)
}

fn folder_of(library: &str, maps: &str) -> Option<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    paths
        .filter(|path| path.file_name().is_some_and(|name| name == library))
        .find_map(|path| path.parent().map(Path::to_owned))
}

fn open_in(folder: &Path) -> CudaHalf {
    let path = folder.join(CUDA_HALF);
    if !path.exists() {
        return CudaHalf::Absent;
    }
    match native::open_library(&path) {
        Ok(()) => CudaHalf::Opened { path },
        Err(error) => CudaHalf::Broken { path, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_libtorch_is_read_from_the_list_of_what_is_loaded() {
        let maps = "7f00-7f01 r-xp 00000000 fe:00 11 /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0 \n\
                    7f04-7f05 r-xp 00000000 fe:00 12 /home/a b/torch/lib/libtorch_cpu.so\n";
        assert_eq!(folder_of(CPU_HALF, maps), Some(PathBuf::from("/home/a b/torch/lib")));
        assert_eq!(folder_of(CUDA_HALF, maps), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_half_that_is_not_there_is_absent_and_one_that_cannot_be_loaded_says_why() {
        assert!(libtorch_folder().is_some_and(|folder| folder.join(CPU_HALF).exists()));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(open_in(folder.path()), CudaHalf::Absent);
        std::fs::write(folder.path().join(CUDA_HALF), "no library").unwrap();
        let CudaHalf::Broken { path, error } = open_in(folder.path()) else { panic!("rubbish was loaded") };
        assert_eq!(path, folder.path().join(CUDA_HALF));
        assert!(error.contains(CUDA_HALF), "{error}");
    }
}
