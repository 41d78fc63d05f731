//! From filtration values to persistence pairs that carry gradients: values are copied to the host once, indices
//! come from `togl-topology` (or from random draws for the static variant), pairs are gathered from the tensor.
//! Tree edges gather a constant 0 that is appended as a last row, so no gradient reaches them.

use std::cell::OnceCell;

use tch::{Device, Kind, Tensor};
use togl_data::{Purpose, RandomStream, Stage};
use togl_topology::{EdgeLists, IndexTables, Indices};

use crate::batch::DrawKey;
use crate::error::Result;
use crate::native;
use crate::sparse::Segments;

/// Pairs (birth, death), one row a vertex or an edge, one column a filtration.
#[derive(Debug)]
pub struct Pairs {
    /// `[M, k]`.
    pub birth: Tensor,
    /// `[M, k]`.
    pub death: Tensor,
    /// `[M, 2k]`, birth then death of each filtration in turn, where they were gathered so.
    pub together: Option<Tensor>,
}

impl Pairs {
    /// `[M, 2k]`: birth then death of each filtration in turn.
    pub fn interleaved(&self) -> Tensor {
        if let Some(together) = &self.together {
            return together.shallow_clone();
        }
        let (rows, filtrations) = (self.birth.size()[0], self.birth.size()[1]);
        Tensor::stack(&[&self.birth, &self.death], 2).view([rows, 2 * filtrations])
    }
}

/// Dimension 1: the edges that are not zero in every filtration, grouped by graph.
#[derive(Debug)]
pub struct Cycles {
    /// Pairs of the kept edges.
    pub pairs: Pairs,
    /// The kept edges of each graph.
    pub graphs: Segments,
}

/// Indices into the `[N + 1, k]` values, from one host copy of them.
#[derive(Debug)]
pub struct Diagrams<'a> {
    topology: &'a EdgeLists,
    values: Tensor,
    /// The same with a last row of zeros, made when it is first asked for.
    padded: OnceCell<Tensor>,
    host: Vec<f32>,
    filtrations: usize,
    vertex_death: Option<Vec<i64>>,
    edge_birth: Vec<i64>,
    edge_death: Vec<i64>,
}

impl<'a> Diagrams<'a> {
    /// Persistent homology of the values `[N, k]`.
    pub fn persistent(values: &Tensor, topology: &'a EdgeLists) -> Result<Self> {
        let (host, filtrations) = to_host(values)?;
        let mut vertex_death = vec![0; filtrations * topology.vertices()];
        let mut edge_birth = vec![0; filtrations * topology.edge_count()];
        let mut edge_death = edge_birth.clone();
        let (vertices, births, deaths) = (&mut vertex_death[..], &mut edge_birth[..], &mut edge_death[..]);
        let indices = Indices { vertex_death: vertices, edge_birth: births, edge_death: deaths };
        togl_topology::persist(topology, &host, filtrations, indices)?;
        let (values, padded) = (values.shallow_clone(), OnceCell::new());
        let vertex_death = Some(vertex_death);
        Ok(Self { topology, values, padded, host, filtrations, vertex_death, edge_birth, edge_death })
    }

    /// The static variant: every vertex dies at birth; of each graph and filtration one random edge gets
    /// (0, its value). The edge depends on the draws and on the graph, not on the batch it is in.
    pub fn fixed(
        values: &Tensor,
        topology: &'a EdgeLists,
        graph_ids: &[u32],
        draws: DrawKey,
    ) -> Result<Self> {
        let (host, filtrations) = to_host(values)?;
        check_finite(topology, &host, filtrations)?;
        let none = topology.vertices() as i64;
        let mut edge_death = vec![none; filtrations * topology.edge_count()];
        let epoch = if draws.stage == Stage::Test { 0 } else { draws.epoch };
        for (graph, id) in graph_ids.iter().enumerate() {
            let (edges, first) = (topology.edges(graph), topology.edge_offsets()[graph]);
            let purpose = Purpose::StaticEdges(draws.stage);
            let mut stream = RandomStream::new(draws.seed, draws.split, purpose, epoch, u64::from(*id));
            for filtration in 0..filtrations {
                let chosen = stream.uniform_below(edges.len() as u64) as usize;
                let Some([u, w]) = edges.get(chosen) else { continue };
                let vertex = |v: &u32| topology.node_offsets()[graph] + *v as usize;
                let value = |v: usize| host[filtration * topology.vertices() + v];
                let (u, w) = (vertex(u), vertex(w));
                let upper = if value(u) < value(w) { w } else { u };
                edge_death[filtration * topology.edge_count() + first + chosen] = upper as i64;
            }
        }
        let edge_birth = vec![none; edge_death.len()];
        let (values, padded) = (values.shallow_clone(), OnceCell::new());
        Ok(Self { topology, values, padded, host, filtrations, vertex_death: None, edge_birth, edge_death })
    }

    /// Dimension 0: the pair of every vertex.
    pub fn vertices(&self) -> Pairs {
        let birth = self.padded().narrow(0, 0, self.topology.vertices() as i64);
        let death = match &self.vertex_death {
            Some(index) => self.gather(index, self.topology.vertices()),
            None => birth.shallow_clone(),
        };
        Pairs { birth, death, together: None }
    }

    /// Dimension 1: the pair of every edge, (0, 0) for tree edges.
    pub fn edges(&self) -> Pairs {
        let edges = self.topology.edge_count();
        Pairs {
            birth: self.gather(&self.edge_birth, edges),
            death: self.gather(&self.edge_death, edges),
            together: None,
        }
    }

    /// Dimension 1: only the edges whose row is not zero in every filtration.
    pub fn cycles(&self) -> Result<Cycles> {
        let (kept, offsets) = self.kept();
        let device = self.values.device();
        let pick = |table: &[i64]| {
            let edges = self.topology.edge_count();
            let rows = kept.iter().flat_map(|edge| (0..self.filtrations).map(|f| table[f * edges + *edge]));
            let index = Tensor::from_slice(&rows.collect::<Vec<i64>>()).view([-1, self.filtrations as i64]);
            self.padded().gather(0, &index.to_device(device), false)
        };
        let pairs = Pairs { birth: pick(&self.edge_birth), death: pick(&self.edge_death), together: None };
        Ok(Cycles { pairs, graphs: Segments::new(offsets, device)? })
    }

    /// Both dimensions with as few launches as there are, for devices: one index for all pairs, one copy of it.
    pub fn at_once(&self, zero: &Tensor) -> Result<(Pairs, Cycles)> {
        let (vertices, edges, count) =
            (self.topology.vertices(), self.topology.edge_count(), self.filtrations);
        let none = (vertices * count) as i64;
        let place = |vertex: i64, f: usize| {
            if vertex as usize == vertices { none } else { vertex * count as i64 + f as i64 }
        };
        let (kept, offsets) = self.kept();
        let mut index = Vec::with_capacity(2 * count * (vertices + kept.len()));
        for vertex in 0..vertices {
            for f in 0..count {
                let own = vertex as i64;
                let death = self.vertex_death.as_ref().map_or(own, |table| table[f * vertices + vertex]);
                index.extend([place(own, f), place(death, f)]);
            }
        }
        for edge in kept {
            for f in 0..count {
                let at = f * edges + edge;
                index.extend([place(self.edge_birth[at], f), place(self.edge_death[at], f)]);
            }
        }
        let device = self.values.device();
        let index = Tensor::from_slice(&index).to_device(device);
        let (dim0, dim1) = native::all_pairs(&self.values, zero, &index, vertices as i64)?;
        let pairs = |together: Tensor| {
            let split = together.view([-1, count as i64, 2]);
            Pairs { birth: split.select(2, 0), death: split.select(2, 1), together: Some(together) }
        };
        Ok((pairs(dim0), Cycles { pairs: pairs(dim1), graphs: Segments::new(offsets, device)? }))
    }

    /// Kept edges, and the offsets of each graph among them.
    fn kept(&self) -> (Vec<usize>, Vec<usize>) {
        let (vertices, edges) = (self.topology.vertices(), self.topology.edge_count());
        let mut alive = vec![false; edges];
        for filtration in 0..self.filtrations {
            let values = &self.host[filtration * vertices..][..vertices];
            let not_zero = |index: i64| values.get(index as usize).is_some_and(|value| *value != 0.0);
            let row = filtration * edges..(filtration + 1) * edges;
            let pairs = self.edge_birth[row.clone()].iter().zip(&self.edge_death[row]);
            for (alive, (birth, death)) in alive.iter_mut().zip(pairs) {
                *alive |= not_zero(*birth) || not_zero(*death);
            }
        }
        let mut kept = Vec::new();
        let mut offsets = vec![0];
        for bounds in self.topology.edge_offsets().windows(2) {
            kept.extend((bounds[0]..bounds[1]).filter(|edge| alive[*edge]));
            offsets.push(kept.len());
        }
        (kept, offsets)
    }

    fn padded(&self) -> &Tensor {
        self.padded.get_or_init(|| with_zero_row(&self.values))
    }

    /// Values at `[k, M]` indices, as `[M, k]`.
    fn gather(&self, index: &[i64], rows: usize) -> Tensor {
        let index = Tensor::from_slice(index).view([self.filtrations as i64, rows as i64]).transpose(0, 1);
        self.padded().gather(0, &index.contiguous().to_device(self.values.device()), false)
    }
}

/// The `[N, k]` values as a `[k, N]` host table.
fn to_host(values: &Tensor) -> Result<(Vec<f32>, usize)> {
    let (_, filtrations) = values.size2()?;
    let table = values.detach().transpose(0, 1).to_device(Device::Cpu).to_kind(Kind::Float).contiguous();
    Ok((Vec::<f32>::try_from(table.view([-1]))?, filtrations as usize))
}

fn with_zero_row(values: &Tensor) -> Tensor {
    let zero = Tensor::zeros([1, values.size()[1]], (values.kind(), values.device()));
    Tensor::cat(&[values, &zero], 0)
}

fn check_finite(topology: &EdgeLists, host: &[f32], filtrations: usize) -> Result<()> {
    if host.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    // Persistence names the graph, vertex and filtration at fault.
    Ok(IndexTables::default().compute(topology, host, filtrations)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TrainError;

    const DRAWS: DrawKey = DrawKey { seed: 3, split: 0, stage: Stage::Training, epoch: 0, step: 0 };

    fn square_with_diagonal() -> EdgeLists {
        let mut topology = EdgeLists::new();
        topology.push(4, &[[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]).unwrap();
        topology.push(2, &[]).unwrap();
        topology
    }

    fn column(values: &[f32]) -> Tensor {
        Tensor::from_slice(values).view([-1, 1]).set_requires_grad(true)
    }

    fn list(tensor: &Tensor) -> Vec<f32> {
        Vec::<f32>::try_from(tensor.detach().contiguous().view([-1])).unwrap()
    }

    #[test]
    fn gradients_reach_exactly_the_vertices_that_were_gathered() {
        let topology = square_with_diagonal();
        let values = column(&[1.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
        let diagrams = Diagrams::persistent(&values, &topology).unwrap();
        let vertices = diagrams.vertices();
        assert_eq!(list(&vertices.death), [4.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
        let cycles = diagrams.cycles().unwrap();
        assert_eq!(list(&cycles.pairs.birth), [4.0, 3.0]);
        assert_eq!(list(&cycles.pairs.death), [4.0, 4.0]);
        assert_eq!(cycles.graphs.offsets(), [0, 2, 2]);
        (vertices.death.sum(Kind::Float) + cycles.pairs.birth.sum(Kind::Float) * 10.0).backward();
        assert_eq!(list(&values.grad()), [0.0, 1.0, 11.0, 12.0, 1.0, 1.0]);
        assert_eq!(list(&diagrams.edges().death).iter().filter(|value| **value != 0.0).count(), 2);
    }

    #[test]
    fn a_value_that_is_not_finite_is_an_error_that_names_its_place() {
        let topology = square_with_diagonal();
        for bad in [f32::NAN, f32::INFINITY] {
            let values = column(&[1.0, 2.0, 3.0, 4.0, 7.0, bad]);
            let error = Diagrams::persistent(&values, &topology).unwrap_err();
            assert!(
                matches!(&error, TrainError::NotFinite(text) if text.contains("vertex 1 of graph 1")),
                "{error}"
            );
            assert!(Diagrams::fixed(&values, &topology, &[0, 1], DRAWS).is_err());
        }
    }

    #[test]
    fn the_static_variant_gives_one_edge_a_graph_and_filtration_and_nothing_to_an_edgeless_graph() {
        let topology = square_with_diagonal();
        let values = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 7.0, 8.0]).view([6, 1]).repeat([1, 3]);
        let diagrams = Diagrams::fixed(&values, &topology, &[5, 9], DRAWS).unwrap();
        let vertices = diagrams.vertices();
        assert_eq!(list(&vertices.birth), list(&vertices.death));
        let edges = diagrams.edges();
        assert_eq!(list(&edges.birth), [0.0; 15]);
        let chosen = edges.death.ne(0.0).sum_dim_intlist(&[0i64][..], false, Kind::Float);
        assert_eq!(list(&chosen), [1.0, 1.0, 1.0]);
        let again = Diagrams::fixed(&values, &topology, &[5, 9], DRAWS).unwrap();
        assert_eq!(list(&edges.death), list(&again.edges().death));
    }
}
