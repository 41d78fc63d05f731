//! Reading within limits: whatever a path of the user turns out to be (a device that never ends, a file of another kind), no
//! more of it is held than the limit. Reads what it is given; opens nothing itself.

use std::io::{Error, ErrorKind, Read, Result};

/// Bytes that a sweep file, a trial or another text that people write may have.
pub const WRITTEN_BY_HAND: u64 = 4 << 20;
/// Bytes that a token, a key or a certificate may have.
pub const SECRET: u64 = 1 << 20;
/// Bytes that a document which programs write may have, such as a saved table.
pub const DOCUMENT: u64 = 256 << 20;
/// Bytes that a table of runs or folds may have.
pub const TABLE: u64 = 4 << 30;

/// All bytes, or an error as soon as there are more than `most`.
pub fn bytes(reader: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let (size, unit) = if most < 1 << 30 { (most >> 20, "MiB") } else { (most >> 30, "GiB") };
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {size} {unit}")));
    }
    Ok(bytes)
}

/// The same for text.
pub fn text(reader: impl Read, most: u64) -> Result<String> {
    String::from_utf8(bytes(reader, most)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text (UTF-8)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused_and_the_limit_itself_is_fine() {
        let error = bytes(std::io::repeat(7), SECRET).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1 MiB");
        assert_eq!(bytes(&[7; 8][..], 8).unwrap(), [7; 8]);
        assert!(bytes(&[7; 9][..], 8).is_err());
    }

    #[test]
    fn text_is_text() {
        assert_eq!(text("naïve".as_bytes(), SECRET).unwrap(), "naïve");
        assert_eq!(text(&[0xff][..], SECRET).unwrap_err().to_string(), "it is not text (UTF-8)");
    }
}
