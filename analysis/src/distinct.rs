//! Different values in the order in which they first appear, each with its place: rows of a table, cells, families of
//! trials. Knows nothing of what they are.

use std::collections::HashMap;
use std::hash::Hash;

/// Different values and their places.
pub struct Distinct<T> {
    /// The values, in the order in which they came.
    pub in_order: Vec<T>,
    place: HashMap<T, usize>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self { in_order: Vec::new(), place: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Distinct<T> {
    /// The place of a value, which is a new one if it did not appear before.
    pub fn place(&mut self, value: T) -> usize {
        let next = self.in_order.len();
        *self.place.entry(value).or_insert_with_key(|value| {
            self.in_order.push(value.clone());
            next
        })
    }

    /// The different values of pairs, each with what it was paired with.
    pub fn grouped<V>(pairs: impl IntoIterator<Item = (T, V)>) -> Vec<(T, Vec<V>)> {
        let (mut distinct, mut groups) = (Self::default(), Vec::<Vec<V>>::new());
        for (value, with) in pairs {
            let at = distinct.place(value);
            groups.resize_with(distinct.in_order.len(), Vec::new);
            groups[at].push(with);
        }
        distinct.in_order.into_iter().zip(groups).collect()
    }

    /// The different ones of these.
    pub fn of(values: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut distinct = Self::default();
        for value in values {
            distinct.place(value);
        }
        distinct.in_order
    }
}
