//! The files of a program as one piece that has a digest: how they travel and are kept. Owns which names files may have and
//! how large they may be together; reads and writes no files itself.

use std::collections::BTreeMap;

/// Bytes of all files of a program together.
pub const MOST_BYTES: usize = 4 << 20;

/// Files of a program.
pub const MOST_FILES: usize = 256;

/// What a bundle begins with.
const MAGIC: &[u8] = b"togl program 1\n";

/// The longest name of a file.
const LONGEST_NAME: usize = 255;

/// Why files cannot be those of a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ProgramFilesError {
    #[error("`{0}` is not a path below the folder of the sweep file; write it without `..` and `/` in front")]
    Name(String),
    #[error(
        "the files of the program have {bytes} bytes together, more than {MOST_BYTES}; data belongs into the data folder"
    )]
    TooLarge { bytes: usize },
    #[error("the program has {0} files, more than {MOST_FILES}")]
    TooMany(usize),
    #[error("this is no bundle of files: {0}")]
    Damaged(&'static str),
}

/// Files by name, whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    files: BTreeMap<String, Vec<u8>>,
}

/// Refuses a name that could lead out of the folder it is unpacked into.
pub fn check_name(name: &str) -> Result<(), ProgramFilesError> {
    let plain = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.chars().any(|c| c.is_control() || c == '\\')
    };
    if name.len() <= LONGEST_NAME && name.split('/').all(plain) {
        return Ok(());
    }
    Err(ProgramFilesError::Name(name.chars().take(LONGEST_NAME).collect()))
}

impl ProgramFiles {
    /// These files, if they may be a program's.
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, ProgramFilesError> {
        files.keys().try_for_each(|name| check_name(name))?;
        if files.len() > MOST_FILES {
            return Err(ProgramFilesError::TooMany(files.len()));
        }
        let bytes = files.values().map(Vec::len).sum();
        if bytes > MOST_BYTES {
            return Err(ProgramFilesError::TooLarge { bytes });
        }
        Ok(Self { files })
    }

    /// The files, by name.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// All files in one piece; equal for equal files.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, content) in &self.files {
            for part in [name.as_bytes(), content] {
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] made, whoever it comes from.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProgramFilesError> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(ProgramFilesError::Damaged("it begins otherwise"))?;
        let mut files = BTreeMap::new();
        while !rest.is_empty() {
            let name = std::str::from_utf8(part(&mut rest)?)
                .map_err(|_| ProgramFilesError::Damaged("a name is no text"))?;
            let content = part(&mut rest)?.to_vec();
            if files.last_key_value().is_some_and(|(last, _): (&String, _)| last.as_str() >= name) {
                return Err(ProgramFilesError::Damaged("its files are not in order"));
            }
            files.insert(name.to_owned(), content);
        }
        Self::new(files)
    }

    /// What it is known by: 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        digest_of(&self.to_bytes())
    }
}

/// What a bundle in one piece is known by.
pub fn digest_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Whether a text could be the digest of a bundle; then it is a plain file name too.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], ProgramFilesError> {
    let short = ProgramFilesError::Damaged("it ends too early");
    let (length, behind) = rest.split_first_chunk::<8>().ok_or_else(|| short.clone())?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short.clone())?;
    let (part, behind) = behind.split_at_checked(length).ok_or(short)?;
    *rest = behind;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(files: &[(&str, &[u8])]) -> Result<ProgramFiles, ProgramFilesError> {
        ProgramFiles::new(files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect())
    }

    #[test]
    fn a_bundle_reads_back_and_every_change_changes_its_digest() {
        let one = bundle(&[("train.py", b"print(1)"), ("lib/model.py", b"")]).unwrap();
        assert_eq!(ProgramFiles::from_bytes(&one.to_bytes()), Ok(one.clone()));
        let others: [&[(&str, &[u8])]; 4] = [
            &[("train.py", b"print(2)"), ("lib/model.py", b"")],
            &[("train.py", b"print(1)")],
            &[("train.py", b"print(1)"), ("lib/models.py", b"")],
            &[("train.py", b""), ("lib/model.py", b"print(1)")],
        ];
        for other in others {
            assert_ne!(bundle(other).unwrap().digest(), one.digest());
        }
        assert!(is_digest(&one.digest()) && !is_digest("../x") && !is_digest(&"A".repeat(64)));
    }

    #[test]
    fn names_that_lead_elsewhere_and_files_that_are_too_large_are_refused() {
        for name in ["/etc/passwd", "../x", "a/../b", "", "a//b", "./a", "a\nb", "a\\b", &"x".repeat(300)] {
            assert!(matches!(bundle(&[(name, b"")]), Err(ProgramFilesError::Name(_))), "{name:?}");
        }
        let large = vec![0; MOST_BYTES + 1];
        assert_eq!(bundle(&[("x", &large)]), Err(ProgramFilesError::TooLarge { bytes: MOST_BYTES + 1 }));
    }

    #[test]
    fn no_bytes_make_anything_else_than_a_bundle_or_a_refusal() {
        let whole = bundle(&[("a", b"1"), ("b", b"22")]).unwrap().to_bytes();
        for end in 0..whole.len() {
            if let Ok(read) = ProgramFiles::from_bytes(&whole[..end]) {
                assert_eq!(read.to_bytes(), whole[..end], "only a shorter bundle");
            }
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                if let Ok(read) = ProgramFiles::from_bytes(&damaged) {
                    assert_eq!(read.to_bytes(), damaged, "what is read is what is there");
                }
            }
        }
    }
}
