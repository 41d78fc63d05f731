//! What else is wrong with a file: what the first error is about is taken out of the tree and the rest is read again, so
//! that a file with five mistakes is mended in one go. An error that may only follow from what was taken out is not told.

use std::collections::HashSet;

use crate::spec::SpecError;
use crate::yaml::{Key, LineColumn, Node, NodeKind};

/// Errors that are told at once.
const MOST: usize = 10;

/// The first error together with the others, in the order of the file.
pub(super) fn beside(first: SpecError, mut tree: Node) -> SpecError {
    let mut errors = vec![first];
    let mut touched: HashSet<LineColumn> = HashSet::from([None]);
    while errors.len() < MOST
        && errors.last().is_some_and(|error| take_out(&mut tree, error.at, &mut touched))
    {
        match super::blocks_of(&tree) {
            Err(error) if !touched.contains(&error.at) => errors.push(error),
            _ => break,
        }
    }
    errors.sort_by_key(|error| error.at);
    let mut errors = errors.into_iter();
    let first = errors.next().unwrap_or_else(|| SpecError::new(None, "the file cannot be read"));
    SpecError { further: errors.collect(), ..first }
}

/// Takes the entry at this place out of its block, and remembers the block: what it lacks now is no mistake of the file.
fn take_out(node: &mut Node, at: LineColumn, touched: &mut HashSet<LineColumn>) -> bool {
    let here = node.at;
    // A list goes as a whole: without one of its values the others would be called by wrong numbers.
    let is_meant = |node: &Node| match &node.kind {
        NodeKind::Map(_) => false,
        NodeKind::List(nodes) => {
            node.at == at || nodes.iter().any(|node| node.at == at && node.scalar().is_some())
        }
        NodeKind::Null | NodeKind::Flag(_) | NodeKind::Number(_) | NodeKind::Text(_) => node.at == at,
    };
    let found = match &mut node.kind {
        NodeKind::Map(entries) => {
            let place = entries.iter().position(|(key, node)| key.at == at || is_meant(node));
            place.map(|place| drop(entries.remove(place)))
        }
        NodeKind::List(_) | NodeKind::Null | NodeKind::Flag(_) | NodeKind::Number(_) | NodeKind::Text(_) => {
            None
        }
    };
    let taken = found.is_some()
        || match &mut node.kind {
            NodeKind::List(nodes) => nodes.iter_mut().any(|node| take_out(node, at, touched)),
            NodeKind::Map(entries) => {
                let inside = entries.iter_mut().position(|(_, node)| take_out(node, at, touched));
                // An empty block would be the next mistake.
                let emptied =
                    |(_, node): &(Key, Node)| matches!(&node.kind, NodeKind::Map(left) if left.is_empty());
                if let Some(place) = inside.filter(|place| emptied(&entries[*place])) {
                    entries.remove(place);
                }
                inside.is_some()
            }
            NodeKind::Null | NodeKind::Flag(_) | NodeKind::Number(_) | NodeKind::Text(_) => false,
        };
    if taken {
        touched.insert(here);
    }
    taken
}
