//! The IDX format of the MNIST files: a magic number, the size of each dimension, then bytes. It checks what
//! the header claims before it takes memory for it; what the images show is not its business.

use crate::error::Error;
use crate::files::OpenFile;

/// Unsigned bytes in three dimensions: images, rows, columns.
const IMAGES_MAGIC: u32 = 0x0803;
/// Unsigned bytes in one dimension: labels.
const LABELS_MAGIC: u32 = 0x0801;
/// No image of a benchmark is larger, and no set of them.
const MOST_SIDE: u32 = 1024;
const MOST_IMAGES: u32 = 10_000_000;

/// Images of one size, row by row.
#[derive(Debug)]
pub(crate) struct IdxImages {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) pixels: Vec<u8>,
}

/// Reads the first images, or all of them.
pub(crate) fn read_images(file: &mut OpenFile<'_>, first: Option<usize>) -> Result<IdxImages, Error> {
    let [count, height, width] = header(file, IMAGES_MAGIC)?;
    if !(1..=MOST_SIDE).contains(&height) || !(1..=MOST_SIDE).contains(&width) {
        return Err(file.damaged(format!("images of {height} x {width} pixels are not read")));
    }
    let (height, width) = (height as usize, width as usize);
    let pixels = body(file, count, first, height * width, "pixels")?;
    Ok(IdxImages { height, width, pixels })
}

/// Reads the labels of the first images, or of all.
pub(crate) fn read_labels(file: &mut OpenFile<'_>, first: Option<usize>) -> Result<Vec<u8>, Error> {
    let [count] = header(file, LABELS_MAGIC)?;
    body(file, count, first, 1, "labels")
}

fn header<const DIMENSIONS: usize>(file: &mut OpenFile<'_>, magic: u32) -> Result<[u32; DIMENSIONS], Error> {
    let bytes = file.exactly(4 * (1 + DIMENSIONS), "header")?;
    let mut words =
        bytes.chunks_exact(4).map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
    let found = words.next().unwrap_or(0);
    if found != magic {
        return Err(file.damaged(format!(
            "not an IDX file of this kind: it starts with {found:#06x}, not {magic:#06x}"
        )));
    }
    let mut sizes = [0; DIMENSIONS];
    sizes.iter_mut().zip(words).for_each(|(size, word)| *size = word);
    Ok(sizes)
}

/// Where everything is read, the file must end there.
fn body(
    file: &mut OpenFile<'_>,
    count: u32,
    first: Option<usize>,
    bytes_each: usize,
    what: &str,
) -> Result<Vec<u8>, Error> {
    if count > MOST_IMAGES {
        return Err(file.damaged(format!("the header speaks of {count} images, more than {MOST_IMAGES}")));
    }
    let wanted = first.map_or(count as usize, |first| first.min(count as usize));
    let bytes = file.exactly(wanted * bytes_each, what)?;
    if wanted == count as usize && !file.up_to(1)?.is_empty() {
        return Err(file.damaged(format!("the file goes on after its {count} {what}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(content: &[u8]) -> OpenFile<'_> {
        OpenFile::new(Box::new(content), "file".to_string(), PathBuf::from("file"))
    }

    const TWO_IMAGES: [u8; 20] = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40];

    #[test]
    fn images_and_labels_are_read_whole_or_from_the_start() {
        let all = read_images(&mut file(&TWO_IMAGES), None).expect("two images");
        assert_eq!((all.height, all.width, all.pixels), (1, 2, vec![10, 20, 30, 40]));
        assert_eq!(read_images(&mut file(&TWO_IMAGES), Some(1)).expect("one image").pixels, [10, 20]);
        assert_eq!(read_images(&mut file(&TWO_IMAGES), Some(9)).expect("both images").pixels.len(), 4);
        let labels = [0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9];
        assert_eq!(read_labels(&mut file(&labels), None).expect("three labels"), [7, 8, 9]);
    }

    #[test]
    fn damage_is_named_and_claims_of_the_header_cost_no_memory() {
        let problem =
            |content: &[u8]| read_images(&mut file(content), None).expect_err("damaged").to_string();
        assert_eq!(problem(&TWO_IMAGES[..18]), "file: the file ends after 2 of 4 bytes of its pixels");
        assert_eq!(problem(&TWO_IMAGES[..7]), "file: the file ends after 7 of 16 bytes of its header");
        assert!(problem(&[TWO_IMAGES.as_slice(), &[1]].concat()).contains("goes on after its 2 pixels"));
        assert!(problem(b"<html>not found</html>").contains("starts with 0x3c68746d, not 0x0803"));
        let huge = [0, 0, 8, 3, 0, 0x90, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 1];
        assert!(problem(&huge).contains("the file ends after 1 of"), "{}", problem(&huge));
        assert!(problem(&[0, 0, 8, 3, 255, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]).contains("more than 10000000"));
        assert!(problem(&[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]).contains("0 x 1 pixels"));
    }
}
