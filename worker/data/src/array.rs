//! One array of a data set: in memory of its own, or in place in a mapped file, where every process of the machine
//! shares the same pages. Whoever holds it sees a slice and need not know which.

use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use memmap2::Mmap;

/// A slice that somebody owns.
#[derive(Clone, Debug)]
pub(crate) enum Array<T> {
    /// Read or generated.
    Owned(Vec<T>),
    /// Some bytes of a mapped file.
    Mapped(Mapped<T>),
}

/// Bytes that were found to be a slice of `T`.
#[derive(Clone, Debug)]
pub(crate) struct Mapped<T> {
    map: Arc<Mmap>,
    bytes: Range<usize>,
    items: PhantomData<T>,
}

impl<T: AnyBitPattern> Array<T> {
    /// The items that lie here; nothing where bytes are missing, left over, or not aligned.
    pub(crate) fn mapped(map: &Arc<Mmap>, bytes: Range<usize>) -> Option<Array<T>> {
        bytemuck::try_cast_slice::<u8, T>(map.get(bytes.clone())?).ok()?;
        Some(Array::Mapped(Mapped { map: map.clone(), bytes, items: PhantomData }))
    }
}

impl<T: AnyBitPattern> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Array::Owned(items) => items,
            Array::Mapped(Mapped { map, bytes, .. }) => bytemuck::cast_slice(&map[bytes.clone()]),
        }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Array<T> {
        Array::Owned(items)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use memmap2::MmapMut;

    use super::*;

    /// Mapped memory that holds these bytes.
    pub(crate) fn mapped(bytes: &[u8]) -> Arc<Mmap> {
        let mut map = MmapMut::map_anon(bytes.len().max(1)).expect("memory");
        map[..bytes.len()].copy_from_slice(bytes);
        Arc::new(map.make_read_only().expect("memory"))
    }

    #[test]
    fn bytes_in_place_are_the_items_that_were_written() {
        let items = [3u32, 1, 4, 1, 5];
        let map = mapped(bytemuck::cast_slice(&items));
        let array = Array::<u32>::mapped(&map, 4..16).expect("aligned");
        drop(map);
        assert_eq!(array.clone()[..], items[1..4], "the array keeps its memory alive");
        assert_eq!(Array::from(items.to_vec())[..], items);
    }

    #[test]
    fn bytes_that_are_no_items_are_not_an_array() {
        let map = mapped(&[0; 16]);
        for (bytes, problem) in [(1..5, "not aligned"), (0..6, "half an item"), (12..20, "beyond the end")] {
            assert!(Array::<u32>::mapped(&map, bytes).is_none(), "{problem}");
        }
    }
}
