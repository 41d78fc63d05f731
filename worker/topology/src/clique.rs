//! Builds the clique (flag) complex of one small graph: every clique is a simplex.
//! Owns the enumeration of cliques, their facets and the limit on their number; knows no filtration and no
//! algebra (see `homology` and `reduction`). Made for graphs of tens of vertices, by the thousand.

use crate::TopologyError;

/// No complex with more simplices than this is built; a clique of 22 vertices alone would be larger.
pub const MAX_SIMPLICES: usize = 1 << 22;

/// The clique complex of a graph, complete or cut above a dimension.
#[derive(Debug, Clone)]
pub struct FlagComplex {
    /// Index d holds the simplices of dimension d.
    pub(crate) levels: Vec<Level>,
    /// Homology is known in dimensions below this number.
    pub(crate) dimensions: usize,
}

/// All simplices of one dimension in lexicographic order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    /// Sorted vertices, `width` of them a simplex.
    pub vertices: Vec<u32>,
    /// For each simplex, the indices (one dimension below) of its facets: entry i leaves out vertex i.
    /// Empty in dimension 0.
    pub facets: Vec<u32>,
    /// Vertices per simplex: dimension plus one.
    pub width: usize,
    /// Where the simplices that extend a simplex by a larger vertex start in the next level; one more at the end.
    children: Vec<u32>,
}

impl FlagComplex {
    /// The complex of all cliques; homology is known in every dimension that has a simplex.
    ///
    /// Edges may be given in any order and direction; self-loops and duplicates do not matter.
    ///
    /// # Errors
    /// An edge out of range, or more than [`MAX_SIMPLICES`] cliques.
    pub fn full(vertices: usize, edges: &[[u32; 2]]) -> Result<Self, TopologyError> {
        let levels = build(vertices, edges, usize::MAX)?;
        let dimensions = levels.len();
        Ok(Self { levels, dimensions })
    }

    /// The complex of all cliques of up to `dimension` + 2 vertices: what homology through `dimension` needs.
    ///
    /// Homology is reported for dimensions 0 to `dimension`, though never for more dimensions than vertices.
    ///
    /// # Errors
    /// As [`FlagComplex::full`].
    pub fn up_to(vertices: usize, edges: &[[u32; 2]], dimension: usize) -> Result<Self, TopologyError> {
        let levels = build(vertices, edges, dimension.saturating_add(2))?;
        Ok(Self { levels, dimensions: dimension.saturating_add(1).min(vertices) })
    }

    /// Number of stored simplices by dimension. A complex cut by [`FlagComplex::up_to`] holds one dimension more
    /// than the homology it was built for.
    pub fn simplex_counts(&self) -> Vec<usize> {
        self.levels.iter().map(Level::len).collect()
    }

    /// Number of vertices of the graph.
    pub fn vertices(&self) -> usize {
        self.levels.first().map_or(0, Level::len)
    }
}

impl Level {
    pub(crate) fn len(&self) -> usize {
        self.vertices.len() / self.width.max(1)
    }

    /// The vertices of every simplex, in order.
    pub(crate) fn simplices(&self) -> impl Iterator<Item = &[u32]> {
        self.vertices.chunks_exact(self.width.max(1))
    }

    /// The facets of simplex `index`.
    pub(crate) fn facets_of(&self, index: usize) -> &[u32] {
        if self.facets.is_empty() { &[] } else { &self.facets[index * self.width..(index + 1) * self.width] }
    }

    /// The simplex of this level that extends `parent` (one level below) by `vertex`.
    fn child(&self, below: &Level, parent: u32, vertex: u32) -> Option<u32> {
        let range = below.children[parent as usize]..below.children[parent as usize + 1];
        range.into_iter().find(|&index| self.last_vertex(index) == vertex)
    }

    fn last_vertex(&self, index: u32) -> u32 {
        self.vertices[(index as usize + 1) * self.width - 1]
    }
}

/// Levels of cliques of up to `largest` vertices, without empty levels.
fn build(vertices: usize, edges: &[[u32; 2]], largest: usize) -> Result<Vec<Level>, TopologyError> {
    if vertices == 0 && edges.is_empty() {
        return Ok(Vec::new());
    }
    let graph = LaterNeighbours::new(vertices, edges)?;
    let first = Level { vertices: (0..vertices as u32).collect(), width: 1, ..Level::default() };
    let mut levels = vec![first];
    let mut total = vertices;
    while let Some((current, earlier)) = levels.split_last_mut()
        && current.width < largest
    {
        let next = extend(current, earlier.last(), &graph, MAX_SIMPLICES.saturating_sub(total))?;
        if next.vertices.is_empty() {
            break;
        }
        total += next.len();
        levels.push(next);
    }
    Ok(levels)
}

/// The cliques with one vertex more than those of `current`; fills in `current.children`.
fn extend(
    current: &mut Level,
    below: Option<&Level>,
    graph: &LaterNeighbours,
    room: usize,
) -> Result<Level, TopologyError> {
    let mut next = Level { width: current.width + 1, ..Level::default() };
    let mut common = vec![0; graph.words];
    let mut children = Vec::with_capacity(current.len() + 1);
    for index in 0..current.len() {
        let simplex = &current.vertices[index * current.width..(index + 1) * current.width];
        children.push(next.len() as u32);
        graph.common(simplex, &mut common);
        for vertex in ones(&common) {
            next.vertices.extend_from_slice(simplex);
            next.vertices.push(vertex);
            push_facets(&mut next.facets, current, below, index, vertex);
        }
        if next.len() > room {
            return Err(TopologyError::TooManySimplices { limit: MAX_SIMPLICES });
        }
    }
    children.push(next.len() as u32);
    current.children = children;
    Ok(next)
}

/// Facets of "simplex `index` of `current`, extended by `vertex`": leaving out an old vertex leaves the extension
/// of a facet, which is a child of that facet; leaving out the new one leaves the simplex itself.
fn push_facets(facets: &mut Vec<u32>, current: &Level, below: Option<&Level>, index: usize, vertex: u32) {
    match below {
        None => facets.push(vertex),
        Some(below) => {
            let olds = current.facets_of(index).iter();
            facets.extend(olds.filter_map(|&facet| current.child(below, facet, vertex)));
        }
    }
    facets.push(index as u32);
}

/// For each vertex, its neighbours with a larger number, as bits.
struct LaterNeighbours {
    words: usize,
    bits: Vec<u64>,
}

impl LaterNeighbours {
    fn new(vertices: usize, edges: &[[u32; 2]]) -> Result<Self, TopologyError> {
        if vertices > MAX_SIMPLICES {
            return Err(TopologyError::TooManySimplices { limit: MAX_SIMPLICES });
        }
        let words = vertices.div_ceil(64);
        let mut bits = vec![0; words * vertices];
        for (edge, &[a, b]) in edges.iter().enumerate() {
            let (low, high) = (a.min(b) as usize, a.max(b) as usize);
            if high >= vertices {
                return Err(TopologyError::VertexOutOfRange {
                    graph: 0,
                    edge,
                    vertex: high as i64,
                    vertices,
                });
            }
            if low < high {
                bits[low * words + high / 64] |= 1 << (high % 64);
            }
        }
        Ok(Self { words, bits })
    }

    /// Vertices after all of `simplex` and adjacent to all of it.
    fn common(&self, simplex: &[u32], out: &mut [u64]) {
        out.fill(u64::MAX);
        for &vertex in simplex {
            let row = &self.bits[vertex as usize * self.words..(vertex as usize + 1) * self.words];
            for (word, &own) in out.iter_mut().zip(row) {
                *word &= own;
            }
        }
    }
}

/// Positions of the set bits, ascending.
fn ones(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
    words.iter().enumerate().flat_map(|(index, &word)| {
        std::iter::successors(Some(word), |&rest| Some(rest & rest.wrapping_sub(1)))
            .take_while(|&rest| rest != 0)
            .map(move |rest| index as u32 * 64 + rest.trailing_zeros())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(vertices: u32) -> Vec<[u32; 2]> {
        (0..vertices).flat_map(|u| (u + 1..vertices).map(move |w| [u, w])).collect()
    }

    #[test]
    fn a_complete_graph_has_every_subset_as_a_simplex() {
        let complex = FlagComplex::full(5, &complete(5)).unwrap();
        assert_eq!(complex.simplex_counts(), [5, 10, 10, 5, 1]);
    }

    #[test]
    fn facets_leave_out_one_vertex_each() {
        let complex = FlagComplex::full(6, &complete(6)).unwrap();
        for pair in complex.levels.windows(2) {
            let lower: Vec<&[u32]> = pair[0].simplices().collect();
            for (index, simplex) in pair[1].simplices().enumerate() {
                assert_eq!(pair[1].facets_of(index).len(), simplex.len());
                for (left_out, &facet) in pair[1].facets_of(index).iter().enumerate() {
                    let mut expected = simplex.to_vec();
                    expected.remove(left_out);
                    assert_eq!(lower[facet as usize], expected);
                }
            }
        }
    }

    #[test]
    fn loops_duplicates_and_directions_do_not_matter() {
        let plain = FlagComplex::full(3, &[[0, 1], [1, 2], [0, 2]]).unwrap();
        let messy = FlagComplex::full(3, &[[2, 0], [1, 1], [1, 0], [0, 1], [2, 1]]).unwrap();
        assert_eq!(messy.simplex_counts(), plain.simplex_counts());
    }

    #[test]
    fn a_complex_that_explodes_is_refused_not_built() {
        let error = FlagComplex::full(40, &complete(40)).unwrap_err();
        assert_eq!(error, TopologyError::TooManySimplices { limit: MAX_SIMPLICES });
        assert_eq!(FlagComplex::up_to(40, &complete(40), 1).unwrap().simplex_counts(), [40, 780, 9880]);
    }

    #[test]
    fn an_edge_out_of_range_is_refused_also_without_vertices() {
        assert!(matches!(
            FlagComplex::full(2, &[[0, 2]]),
            Err(TopologyError::VertexOutOfRange { vertex: 2, .. })
        ));
        assert!(FlagComplex::full(0, &[[0, 0]]).is_err());
        assert_eq!(FlagComplex::full(0, &[]).unwrap().simplex_counts(), []);
    }
}
