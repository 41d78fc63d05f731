//! Persistence diagrams and Betti numbers of a clique complex under a vertex filtration.
//! Owns the order of simplices (value, then lexicographic), the walk from the top dimension down that clears
//! columns known to be zero, and the diagrams. The enumeration is in `clique`, the algebra in `reduction`.

use crate::{FlagComplex, TopologyError, clique::Level, rank::running_starts, reduction::Reduction};

/// The persistence diagram of one dimension.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagram {
    /// (birth, death) of every class that dies, those of zero length included, by order of death.
    pub pairs: Vec<[f64; 2]>,
    /// Birth of every class that never dies, ascending.
    pub essential: Vec<f64>,
}

impl Diagram {
    /// Sum of death minus birth over the classes that die.
    pub fn total_persistence(&self) -> f64 {
        // The sum of nothing is -0.0, which compares equal to zero but has other bits; adding zero makes it plain.
        self.pairs.iter().map(|[birth, death]| death - birth).sum::<f64>() + 0.0
    }

    /// Number of classes that live for a while: pairs of positive length and essential classes.
    #[cfg(test)]
    fn visible_classes(&self) -> usize {
        self.essential.len() + self.pairs.iter().filter(|[birth, death]| birth < death).count()
    }
}

impl FlagComplex {
    /// Diagrams of dimension 0, 1, ... of the lower-star filtration: a simplex appears with its last vertex.
    ///
    /// # Errors
    /// A wrong number of values, or the first one that is NaN or infinite.
    pub fn persistence(&self, values: &[f64]) -> Result<Vec<Diagram>, TopologyError> {
        if values.len() != self.vertices() {
            let (expected, actual) = (self.vertices(), values.len());
            return Err(TopologyError::Length { what: "values", expected, actual });
        }
        if let Some(vertex) = values.iter().position(|value| !value.is_finite()) {
            let value = values[vertex];
            return Err(TopologyError::NotFinite { graph: 0, vertex, filtration: 0, value });
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        let rank: Vec<u32> =
            values.iter().map(|value| sorted.partition_point(|smaller| smaller < value) as u32).collect();
        let mut diagrams = vec![Diagram::default(); self.dimensions];
        self.classes(&rank, |class| {
            let diagram = &mut diagrams[class.dimension];
            let birth = sorted[class.birth as usize];
            match class.death {
                Some(death) => diagram.pairs.push([birth, sorted[death as usize]]),
                None => diagram.essential.push(birth),
            }
        });
        Ok(diagrams)
    }

    /// Betti numbers of dimension 0, 1, ...: how many classes the whole complex has.
    pub fn betti_numbers(&self) -> Vec<usize> {
        let mut numbers = vec![0; self.dimensions];
        self.classes(&vec![0; self.vertices()], |class| {
            numbers[class.dimension] += usize::from(class.death.is_none());
        });
        numbers
    }

    /// Finds every class under the filtration by vertex ranks, from the top dimension down: a simplex that is the
    /// pivot of a column above it creates a class, so its own column is zero and need not be reduced.
    fn classes(&self, rank: &[u32], mut report: impl FnMut(Class)) {
        let Some(top) = self.levels.last() else { return };
        let mut columns = Sequence::new(top, rank);
        let mut cleared = vec![false; top.len()];
        for dimension in (0..self.levels.len()).rev() {
            let rows = dimension.checked_sub(1).map(|below| Sequence::new(&self.levels[below], rank));
            let row_count = rows.as_ref().map_or(0, |rows| rows.order.len());
            let mut reduction = Reduction::new(row_count);
            let mut pivots = vec![false; row_count];
            for (&simplex, _) in columns.order.iter().zip(&cleared).filter(|&(_, &cleared)| !cleared) {
                let facets = self.levels[dimension].facets_of(simplex as usize);
                let row_of = |&facet: &u32| rows.as_ref().map_or(0, |rows| rows.place[facet as usize]);
                let own = columns.rank[simplex as usize];
                match (reduction.add_column(facets.iter().map(row_of)), &rows) {
                    (Some(pivot), Some(rows)) => {
                        pivots[pivot as usize] = true;
                        let birth = rows.rank[rows.order[pivot as usize] as usize];
                        report(Class { dimension: dimension - 1, birth, death: Some(own) });
                    }
                    _ if dimension < self.dimensions => report(Class { dimension, birth: own, death: None }),
                    _ => {}
                }
            }
            let Some(rows) = rows else { return };
            (columns, cleared) = (rows, pivots);
        }
    }
}

/// A homology class; birth and death are ranks of values.
struct Class {
    dimension: usize,
    birth: u32,
    death: Option<u32>,
}

/// The simplices of one dimension in order of appearance.
struct Sequence {
    /// Simplices by place.
    order: Vec<u32>,
    /// Place of each simplex.
    place: Vec<u32>,
    /// Rank of the value of each simplex.
    rank: Vec<u32>,
}

impl Sequence {
    fn new(level: &Level, vertex_rank: &[u32]) -> Self {
        let last = |simplex: &[u32]| simplex.iter().map(|&v| vertex_rank[v as usize]).max().unwrap_or(0);
        let rank: Vec<u32> = level.simplices().map(last).collect();
        let mut starts = vec![0; vertex_rank.len()];
        for &rank in &rank {
            starts[rank as usize] += 1;
        }
        running_starts(&mut starts);
        let (mut order, mut place) = (vec![0; rank.len()], vec![0; rank.len()]);
        for (simplex, &rank) in rank.iter().enumerate() {
            let next = &mut starts[rank as usize];
            place[simplex] = *next;
            order[*next as usize] = simplex as u32;
            *next += 1;
        }
        Self { order, place, rank }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octahedron() -> Vec<[u32; 2]> {
        (0..6).flat_map(|u| (u + 1..6).map(move |w| [u, w])).filter(|[u, w]| u + 3 != *w).collect()
    }

    #[test]
    fn betti_numbers_of_a_point_a_circle_a_sphere_and_pieces() {
        assert_eq!(FlagComplex::full(1, &[]).unwrap().betti_numbers(), [1]);
        assert_eq!(FlagComplex::full(3, &[[0, 1], [1, 2], [0, 2]]).unwrap().betti_numbers(), [1, 0, 0]);
        let square = [[0, 1], [1, 2], [2, 3], [0, 3]];
        assert_eq!(FlagComplex::full(5, &square).unwrap().betti_numbers(), [2, 1]);
        assert_eq!(FlagComplex::full(6, &octahedron()).unwrap().betti_numbers(), [1, 0, 1]);
        assert_eq!(FlagComplex::full(0, &[]).unwrap().betti_numbers(), []);
    }

    #[test]
    fn a_cut_complex_agrees_with_the_full_one_where_it_speaks() {
        let full = FlagComplex::full(6, &octahedron()).unwrap();
        let values = [3.0, 1.0, 2.0, 6.0, 5.0, 4.0];
        for dimension in 0..4 {
            let cut = FlagComplex::up_to(6, &octahedron(), dimension).unwrap();
            let (cut, full) = (cut.persistence(&values).unwrap(), full.persistence(&values).unwrap());
            assert_eq!(cut.len(), dimension + 1);
            for (cut, full) in cut.iter().zip(&full) {
                assert_eq!(cut, full);
            }
        }
    }

    #[test]
    fn the_sphere_of_an_octahedron_is_born_with_its_last_vertex() {
        let complex = FlagComplex::full(6, &octahedron()).unwrap();
        // The square 0-1-3-4 closes at 4; vertex 2 fills it as one cap at 5, vertex 5 adds the other at 6.
        let diagrams = complex.persistence(&[1.0, 2.0, 5.0, 3.0, 4.0, 6.0]).unwrap();
        assert_eq!(diagrams[0].essential, [1.0]);
        assert_eq!(diagrams[1].essential, []);
        assert!(diagrams[1].pairs.contains(&[4.0, 5.0]));
        assert_eq!(diagrams[2], Diagram { pairs: vec![], essential: vec![6.0] });
        // Vertex 3, the antipode of 0, is adjacent to 1 and so never alone: one visible class a dimension.
        assert_eq!(diagrams.iter().map(Diagram::visible_classes).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(diagrams.iter().map(Diagram::total_persistence).collect::<Vec<_>>(), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn no_pairs_have_a_total_of_plain_zero() {
        assert_eq!(Diagram::default().total_persistence().to_bits(), 0);
    }

    #[test]
    fn values_of_the_wrong_number_or_kind_are_refused() {
        let complex = FlagComplex::full(2, &[[0, 1]]).unwrap();
        assert!(matches!(
            complex.persistence(&[1.0]),
            Err(TopologyError::Length { expected: 2, actual: 1, .. })
        ));
        assert!(matches!(
            complex.persistence(&[1.0, f64::NAN]),
            Err(TopologyError::NotFinite { vertex: 1, .. })
        ));
    }
}
