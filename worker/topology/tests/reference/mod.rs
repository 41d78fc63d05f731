//! What the tests compare with: the specification read line by line, and a boundary-matrix reduction that shares
//! no code or idea with the crate. Slow and plain on purpose. Every integration test uses a part of it.
#![allow(dead_code, reason = "each integration test is its own program and uses a part of this module")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use togl_topology::{EdgeLists, IndexTables};

/// Indices of one graph under one filtration: death of each vertex, (birth, death) of each cycle edge.
pub type Indices = (Vec<usize>, Vec<Option<(usize, usize)>>);

/// Runs the crate on one graph and one filtration, and returns what it found in plain form.
pub fn computed(values: &[f32], edges: &[[u32; 2]]) -> Indices {
    let mut batch = EdgeLists::new();
    batch.push(values.len(), edges).unwrap();
    let mut tables = IndexTables::default();
    tables.compute(&batch, values, 1).unwrap();
    let death = tables.vertex_death().iter().map(|&index| index as usize).collect();
    let pair = |(&birth, &death): (&i64, &i64)| {
        let none = values.len() as i64;
        assert_eq!(birth == none, death == none, "half a pair: ({birth}, {death})");
        (birth != none).then_some((birth as usize, death as usize))
    };
    (death, tables.edge_birth().iter().zip(tables.edge_death()).map(pair).collect())
}

/// Section 1.2 of the specification, sentence by sentence, with floats and a stable sort.
pub fn by_the_book(f: &[f32], edges: &[[u32; 2]]) -> Indices {
    let edge = |e: usize| (edges[e][0] as usize, edges[e][1] as usize);
    let larger = |e: usize| if f[edge(e).0] < f[edge(e).1] { edge(e).1 } else { edge(e).0 };
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by(|&a, &b| f[larger(a)].partial_cmp(&f[larger(b)]).unwrap());
    let Some(&last) = order.last() else { return ((0..f.len()).collect(), vec![]) };
    let maximum = larger(last);
    let mut component: Vec<usize> = (0..f.len()).collect();
    let mut death: Vec<usize> = vec![maximum; f.len()];
    let mut cycles = vec![None; edges.len()];
    for e in order {
        let (a, b) = (component[edge(e).0], component[edge(e).1]);
        if a == b {
            cycles[e] = Some((larger(e), maximum));
            continue;
        }
        let (dying, survivor) = if f[a] < f[b] { (b, a) } else { (a, b) };
        death[dying] = larger(e);
        component.iter_mut().filter(|root| **root == dying).for_each(|root| *root = survivor);
    }
    (death, cycles)
}

/// Persistent homology by reducing the boundary matrix of explicitly listed simplices, each a sorted vertex list.
/// Simplices must come in filtration order, faces first. Returns (creator, destroyer) positions and the unpaired.
pub fn reduce_boundary(simplices: &[Vec<u32>]) -> (Vec<(usize, usize)>, Vec<usize>) {
    let facet = |simplex: &[u32], left_out: usize| {
        let mut facet = simplex.to_vec();
        facet.remove(left_out);
        simplices.iter().position(|other| *other == facet).expect("faces come first")
    };
    let mut columns: Vec<Vec<bool>> = Vec::new();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (j, simplex) in simplices.iter().enumerate() {
        let mut column = vec![false; simplices.len()];
        if simplex.len() > 1 {
            (0..simplex.len()).for_each(|i| column[facet(simplex, i)] ^= true);
        }
        while let Some(low) = column.iter().rposition(|&bit| bit) {
            match pairs.iter().find(|&&(creator, _)| creator == low) {
                Some(&(_, other)) => column.iter_mut().zip(&columns[other]).for_each(|(a, b)| *a ^= b),
                None => {
                    pairs.push((low, j));
                    break;
                }
            }
        }
        columns.push(column);
    }
    let paired = |j: usize| pairs.iter().any(|&(a, b)| a == j || b == j);
    let unpaired = (0..simplices.len()).filter(|&j| !paired(j)).collect();
    (pairs, unpaired)
}

/// Number of connected components.
pub fn components(vertices: usize, edges: &[[u32; 2]]) -> usize {
    let mut component: Vec<usize> = (0..vertices).collect();
    for &[u, w] in edges {
        let (from, to) = (component[u as usize], component[w as usize]);
        component.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
    }
    component.sort_unstable();
    component.dedup();
    component.len()
}
