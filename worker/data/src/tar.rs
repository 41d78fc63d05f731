//! The members of a tar archive, in the order of the archive, each as a reader that ends with the member.
//! Only what is needed to read regular files is understood; names are matched, never used as paths.

use crate::error::Error;
use crate::files::OpenFile;

const BLOCK: usize = 512;
const SIZE_FIELD: std::ops::Range<usize> = 124..136;
const MOST_SKIPPED_AT_ONCE: usize = 1 << 20;

/// The header of one member.
pub(crate) struct Member {
    /// With its folders.
    pub(crate) name: String,
    /// Bytes of content.
    pub(crate) size: u64,
}

/// Moves to the next header; nothing at the end of the archive.
pub(crate) fn next_member(file: &mut OpenFile<'_>) -> Result<Option<Member>, Error> {
    let header = file.up_to(BLOCK)?;
    if header.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if header.len() < BLOCK {
        return Err(file.damaged("the archive ends within a header".to_string()));
    }
    let name = header[..100].split(|byte| *byte == 0).next().unwrap_or_default();
    let digits = header[SIZE_FIELD].trim_ascii();
    let digits = digits.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii();
    if digits.len() > 11 || !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        return Err(file.damaged("a header of the archive has no readable size".to_string()));
    }
    let size = digits.iter().fold(0, |sum, digit| sum * 8 + u64::from(digit - b'0'));
    Ok(Some(Member { name: String::from_utf8_lossy(name).into_owned(), size }))
}

/// Passes over what is left of a member of which `read` bytes were read, up to the next header.
pub(crate) fn skip_rest(file: &mut OpenFile<'_>, member: &Member, read: u64) -> Result<(), Error> {
    let mut left = member.size.next_multiple_of(BLOCK as u64).saturating_sub(read);
    while left > 0 {
        let passed = file.up_to(left.min(MOST_SKIPPED_AT_ONCE as u64) as usize)?.len() as u64;
        if passed == 0 {
            return Err(file.damaged(format!("the archive ends within {}", member.name)));
        }
        left -= passed;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use super::*;

    /// An archive of these members.
    pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, content) in members {
            let mut header = [0u8; BLOCK];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[SIZE_FIELD].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
            bytes.extend_from_slice(&header);
            bytes.extend_from_slice(content);
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
        bytes.resize(bytes.len() + 2 * BLOCK, 0);
        bytes
    }

    fn file(content: &[u8]) -> OpenFile<'_> {
        OpenFile::new(Box::new(content), "file".to_string(), PathBuf::from("file"))
    }

    #[test]
    fn members_follow_one_another_whether_they_are_read_or_not() {
        let bytes = archive(&[("a/one", &[7; 700]), ("two", b"xyz"), ("three", b"")]);
        let mut file = file(&bytes);
        let one = next_member(&mut file).expect("readable").expect("a member");
        assert_eq!((one.name.as_str(), one.size), ("a/one", 700));
        assert_eq!(file.up_to(10).expect("readable"), [7; 10]);
        skip_rest(&mut file, &one, 10).expect("complete");
        let two = next_member(&mut file).expect("readable").expect("a member");
        assert_eq!(two.name, "two");
        skip_rest(&mut file, &two, 0).expect("complete");
        assert_eq!(next_member(&mut file).expect("readable").expect("a member").size, 0);
        assert!(next_member(&mut file).expect("readable").is_none());
    }

    #[test]
    fn damage_is_named() {
        let bytes = archive(&[("one", &[7; 700])]);
        let mut cut = file(&bytes[..900]);
        let member = next_member(&mut cut).expect("readable").expect("a member");
        assert!(skip_rest(&mut cut, &member, 0).expect_err("cut").to_string().contains("ends within one"));
        assert!(next_member(&mut file(&bytes[..300])).is_err());
        assert!(next_member(&mut file(&[b'x'; BLOCK])).is_err());
    }
}
