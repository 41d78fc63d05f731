//! The graph6 text format: one simple graph a line, as used for exhaustive lists of regular and strongly
//! regular graphs. It owns decoding and complementing; no input makes it panic or take memory beyond its
//! own length.

use std::io::ErrorKind;
use std::path::Path;

use thiserror::Error as ThisError;

use crate::error::Error;
use crate::files::{self, ReadLimits};
use crate::lines::Lines;

const HEADER: &[u8] = b">>graph6<<";
/// The printable characters carry six bits each, starting at `?`.
const FIRST_CHARACTER: u8 = 63;
const LONG_SIZE: u8 = 63;

/// An undirected graph without loops: each edge once as (smaller, larger), ascending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SimpleGraph {
    /// Number of vertices.
    pub nodes: u32,
    /// The edges.
    pub edges: Vec<(u32, u32)>,
}

impl SimpleGraph {
    /// The graph with exactly the edges that this one lacks.
    pub fn complement(&self) -> SimpleGraph {
        let mut present = self.edges.iter().peekable();
        let pairs = (0..self.nodes).flat_map(|u| (u + 1..self.nodes).map(move |v| (u, v)));
        let edges = pairs.filter(|pair| present.next_if(|edge| *edge == pair).is_none()).collect();
        SimpleGraph { nodes: self.nodes, edges }
    }
}

const NO_SIZE: &str = "the line ends within the number of vertices";
const PADDING: &str = "the bits that fill up the last character are not zero";

/// Why a line is not a graph in graph6, in words.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{0}")]
pub struct Graph6Error(String);

/// Decodes one graph.
pub fn parse_graph6(line: &[u8]) -> Result<SimpleGraph, Graph6Error> {
    let body = line.strip_prefix(HEADER).unwrap_or(line);
    if let Some(position) = body.iter().position(|byte| !(FIRST_CHARACTER..=126).contains(byte)) {
        let offset = line.len() - body.len();
        let (byte, position) = (body[position], position + offset);
        let problem = format!("byte {byte} at position {position} is not one of the characters ? to ~");
        return Err(Graph6Error(problem));
    }
    let (size, adjacency) = split_size(body).ok_or_else(|| Graph6Error(NO_SIZE.to_string()))?;
    let pairs = u128::from(size) * u128::from(size.saturating_sub(1)) / 2;
    let (expected, found) = (pairs.div_ceil(6), adjacency.len());
    // A line this long for more than 2^32 vertices cannot exist in memory.
    let (true, Ok(nodes)) = (expected == found as u128, u32::try_from(size)) else {
        return Err(Graph6Error(format!(
            "a graph on {size} vertices takes {expected} characters after its size, found {found}"
        )));
    };
    decode_pairs(nodes, pairs as usize, adjacency)
}

/// Reads a file with one graph per line.
pub fn read_graph6(path: &Path) -> Result<Vec<SimpleGraph>, Error> {
    let missing = || Error::Read { path: path.to_path_buf(), source: ErrorKind::NotFound.into() };
    let file = files::open(path)?.ok_or_else(missing)?;
    let shown = path.display().to_string();
    read_lines(Lines::new(Box::new(file), shown, path.to_path_buf(), ReadLimits::default()))
}

/// The same for lines from anywhere.
pub(crate) fn read_lines(mut lines: Lines<'_>) -> Result<Vec<SimpleGraph>, Error> {
    let mut graphs = Vec::new();
    while lines.advance()? {
        if lines.text() == HEADER {
            continue;
        }
        graphs.push(parse_graph6(lines.text()).map_err(|error| lines.malformed(error.to_string()))?);
    }
    Ok(graphs)
}

/// The number of vertices in its short (6 bits), long (18) or longest (36) form, and what follows it.
fn split_size(body: &[u8]) -> Option<(u64, &[u8])> {
    let (skipped, digits) = match body {
        [first, second, ..] if six_bits(*first) == LONG_SIZE && six_bits(*second) == LONG_SIZE => (2, 6),
        [first, ..] if six_bits(*first) == LONG_SIZE => (1, 3),
        _ => (0, 1),
    };
    let (size, adjacency) = body.get(skipped..)?.split_at_checked(digits)?;
    Some((size.iter().fold(0, |sum, byte| sum << 6 | u64::from(six_bits(*byte))), adjacency))
}

/// Bits come in columns of the upper triangle: (0,1), (0,2), (1,2), (0,3), ...
fn decode_pairs(nodes: u32, pairs: usize, adjacency: &[u8]) -> Result<SimpleGraph, Graph6Error> {
    let bit = |position: usize| six_bits(adjacency[position / 6]) >> (5 - position % 6) & 1 == 1;
    if (pairs..adjacency.len() * 6).any(bit) {
        return Err(Graph6Error(PADDING.to_string()));
    }
    let columns = (1..nodes).flat_map(|v| (0..v).map(move |u| (u, v)));
    let mut edges: Vec<(u32, u32)> =
        columns.enumerate().filter(|(position, _)| bit(*position)).map(|(_, pair)| pair).collect();
    edges.sort_unstable();
    Ok(SimpleGraph { nodes, edges })
}

fn six_bits(byte: u8) -> u8 {
    byte.wrapping_sub(FIRST_CHARACTER)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(graph: &SimpleGraph, size_digits: usize) -> Vec<u8> {
        let mut line = vec![126; size_digits / 3];
        line.extend(
            (0..size_digits).rev().map(|digit| 63 + (u64::from(graph.nodes) >> (6 * digit) & 63) as u8),
        );
        let bits: Vec<bool> = (1..graph.nodes)
            .flat_map(|v| (0..v).map(move |u| (u, v)))
            .map(|pair| graph.edges.contains(&pair))
            .collect();
        for chunk in bits.chunks(6) {
            let value = (0..6).fold(0, |sum, bit| sum << 1 | u8::from(chunk.get(bit) == Some(&true)));
            line.push(63 + value);
        }
        line
    }

    #[test]
    fn the_example_of_the_format_description_is_read() {
        let graph = parse_graph6(b"DQc").expect("five vertices");
        assert_eq!(graph, SimpleGraph { nodes: 5, edges: vec![(0, 2), (0, 4), (1, 3), (3, 4)] });
        assert_eq!(parse_graph6(b">>graph6<<DQc"), Ok(graph));
        assert_eq!(parse_graph6(b"?").expect("no vertices").nodes, 0);
        assert_eq!(parse_graph6(b"@").expect("one vertex").edges, []);
    }

    #[test]
    fn the_three_forms_of_the_size_mean_the_same() {
        let graph = SimpleGraph { nodes: 7, edges: vec![(0, 6), (2, 3)] };
        for size_digits in [1, 3, 6] {
            assert_eq!(parse_graph6(&encode(&graph, size_digits)).as_ref(), Ok(&graph));
        }
        let large = SimpleGraph { nodes: 100, edges: vec![(0, 99)] };
        assert_eq!(parse_graph6(&encode(&large, 3)), Ok(large));
    }

    #[test]
    fn damage_is_named() {
        let problem = |line: &[u8]| parse_graph6(line).expect_err("no graph").to_string();
        assert_eq!((problem(b""), problem(b"~~??")), (NO_SIZE.to_string(), NO_SIZE.to_string()));
        let length = "a graph on 5 vertices takes 2 characters after its size, found";
        assert_eq!(problem(b"DQ"), format!("{length} 1"));
        assert_eq!(problem(b"DQcc"), format!("{length} 3"));
        assert_eq!(problem(b"D c"), "byte 32 at position 1 is not one of the characters ? to ~");
        assert_eq!(problem(b"DQ~"), PADDING);
        let huge = parse_graph6(b"~~~~~~~~").expect_err("2^36 vertices in eight bytes");
        assert!(huge.to_string().starts_with("a graph on 68719476735 vertices"), "{huge}");
    }

    #[test]
    fn a_file_is_read_to_its_end_and_errors_carry_the_line() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("list.g6");
        std::fs::write(&path, ">>graph6<<\nDQc\nA_\n").expect("temporary file");
        assert_eq!(read_graph6(&path).expect("two graphs").len(), 2);
        std::fs::write(&path, "DQc\nDQ\n").expect("temporary file");
        let error = read_graph6(&path).expect_err("truncated").to_string();
        assert!(error.contains("list.g6, line 2: a graph on 5 vertices takes 2 characters"), "{error}");
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding_and_complementing_twice_changes_nothing(
            nodes in 0u32..20,
            seed in any::<u64>(),
            size_digits in prop_oneof![Just(1usize), Just(3), Just(6)],
        ) {
            let mut stream = crate::RandomStream::new(seed, 0, crate::Purpose::Generate("graph6"), 0, 0);
            let pairs = (0..nodes).flat_map(|u| (u + 1..nodes).map(move |v| (u, v)));
            let graph = SimpleGraph { nodes, edges: pairs.filter(|_| stream.coin()).collect() };
            let all = (nodes as usize * (nodes as usize).saturating_sub(1)) / 2;
            prop_assert_eq!(graph.edges.len() + graph.complement().edges.len(), all);
            prop_assert_eq!(&graph.complement().complement(), &graph);
            prop_assert_eq!(parse_graph6(&encode(&graph, size_digits)), Ok(graph));
        }

        #[test]
        fn no_line_whatever_makes_the_decoder_panic(line in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse_graph6(&line);
            let printable: Vec<u8> = line.iter().map(|byte| 63 + byte % 64).collect();
            let _ = parse_graph6(&printable);
        }
    }
}
