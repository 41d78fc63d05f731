//! The published routine's own results: the table of the specification, a committed choice of reference cases with
//! ties, and all 60 reference cases when the shared folder is there. Values are compared exactly.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use togl_topology::{EdgeLists, IndexTables};

#[derive(Deserialize)]
struct Case {
    name: String,
    filtrations: usize,
    values: Vec<f32>,
    edges: Vec<[u32; 2]>,
    dim0: Vec<f32>,
    dim1: Vec<f32>,
    w0: Vec<f32>,
    w1: Vec<f32>,
    gradient: Vec<f32>,
}

/// (birth, death) values as a caller gathers them: vertex indices per row, a constant 0 in column N.
struct Gathered {
    dim0: Vec<f32>,
    dim1: Vec<f32>,
    gradient: Vec<f64>,
}

fn gather(case: &Case) -> Gathered {
    let vertices = case.values.len() / case.filtrations;
    let mut batch = EdgeLists::new();
    batch.push(vertices, &case.edges).unwrap();
    let mut tables = IndexTables::default();
    tables.compute(&batch, &case.values, case.filtrations).unwrap();
    let mut found = Gathered { dim0: vec![], dim1: vec![], gradient: vec![] };
    for row in 0..case.filtrations {
        let value = |&index: &i64| match index as usize {
            none if none == vertices => 0.0,
            vertex => case.values[row * vertices + vertex],
        };
        let own: Vec<i64> = (0..vertices as i64).collect();
        let death = &tables.vertex_death()[row * vertices..(row + 1) * vertices];
        let edges = row * case.edges.len()..(row + 1) * case.edges.len();
        let (birth1, death1) = (&tables.edge_birth()[edges.clone()], &tables.edge_death()[edges.clone()]);
        let mut gradient = vec![0.0; vertices + 1];
        for (birth, death, weights, out) in [
            (&own[..], death, &case.w0[2 * row * vertices..], &mut found.dim0),
            (birth1, death1, &case.w1[2 * edges.start..], &mut found.dim1),
        ] {
            for ((b, d), weight) in birth.iter().zip(death).zip(weights.chunks_exact(2)) {
                out.extend([value(b), value(d)]);
                gradient[*b as usize] += f64::from(weight[0]);
                gradient[*d as usize] += f64::from(weight[1]);
            }
        }
        found.gradient.extend_from_slice(&gradient[..vertices]);
    }
    found
}

fn check(case: &Case) {
    let found = gather(case);
    assert_eq!(found.dim0, case.dim0, "dimension 0 of case {}", case.name);
    assert_eq!(found.dim1, case.dim1, "dimension 1 of case {}", case.name);
    assert_eq!(found.gradient.len(), case.gradient.len());
    for (found, expected) in found.gradient.iter().zip(&case.gradient) {
        let expected = f64::from(*expected);
        let tolerance = 1e-5 + 1e-4 * expected.abs();
        assert!((found - expected).abs() <= tolerance, "gradient of case {}: {found} {expected}", case.name);
    }
}

fn table_row(values: &[f32], edges: &[[u32; 2]], dim0: &[[f32; 2]], dim1: &[[f32; 2]]) {
    let flat = |pairs: &[[f32; 2]]| pairs.concat();
    let case = Case {
        name: format!("{values:?} {edges:?}"),
        filtrations: 1,
        values: values.to_vec(),
        edges: edges.to_vec(),
        dim0: flat(dim0),
        dim1: flat(dim1),
        w0: vec![0.0; 2 * values.len()],
        w1: vec![0.0; 2 * edges.len()],
        gradient: vec![0.0; values.len()],
    };
    check(&case);
}

const NO: [f32; 2] = [0.0, 0.0];

#[test]
fn the_table_of_the_specification_holds_for_plain_graphs() {
    let house = [[0, 3], [1, 2], [2, 3], [2, 4], [3, 4]];
    table_row(
        &[1., 2., 3., 4., 5.],
        &house,
        &[[1., 5.], [2., 4.], [3., 3.], [4., 4.], [5., 5.]],
        &[NO, NO, NO, NO, [5., 5.]],
    );
    table_row(
        &[1., 1., 3., 3., 2.],
        &house,
        &[[1., 3.], [1., 3.], [3., 3.], [3., 3.], [2., 3.]],
        &[NO, NO, NO, NO, [3., 3.]],
    );
    table_row(
        &[1., 1., 2., 3., 4.],
        &[[0, 2], [0, 3], [2, 3], [3, 4], [1, 4]],
        &[[1., 4.], [1., 4.], [2., 2.], [3., 3.], [4., 4.]],
        &[NO, NO, [3., 4.], NO, NO],
    );
    table_row(
        &[-3., -1., -2.],
        &[[0, 1], [1, 2], [0, 2]],
        &[[-3., -1.], [-1., -1.], [-2., -2.]],
        &[NO, [-1., -1.], NO],
    );
}

#[test]
fn the_table_of_the_specification_holds_for_odd_graphs() {
    let two_triangles = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]];
    table_row(
        &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        &two_triangles,
        &[[0.1, 0.6], [0.2, 0.2], [0.3, 0.3], [0.4, 0.6], [0.5, 0.5], [0.6, 0.6]],
        &[NO, NO, [0.3, 0.6], NO, NO, [0.6, 0.6]],
    );
    table_row(&[1., 2., 9.], &[[0, 1]], &[[1., 2.], [2., 2.], [9., 2.]], &[NO]);
    table_row(&[1., 2.], &[[0, 0], [0, 1]], &[[1., 2.], [2., 2.]], &[[1., 2.], NO]);
    table_row(&[1., 1., 1., 1.], &[[0, 1], [1, 2], [2, 3], [0, 3]], &[[1., 1.]; 4], &[NO, NO, NO, [1., 1.]]);
    table_row(&[1., 2.], &[[0, 1], [0, 1]], &[[1., 2.], [2., 2.]], &[NO, [2., 2.]]);
    table_row(&[5., -7.], &[], &[[5., 5.], [-7., -7.]], &[]);
}

#[test]
fn gradients_of_the_first_table_row_are_the_published_ones() {
    let house = vec![[0, 3], [1, 2], [2, 3], [2, 4], [3, 4]];
    for (w0, w1, expected) in [(1.0, 0.0, [1., 1., 2., 3., 3.]), (0.0, 1.0, [0., 0., 0., 0., 2.])] {
        let case = Case {
            name: "gradient".into(),
            filtrations: 1,
            values: vec![1., 2., 3., 4., 5.],
            edges: house.clone(),
            dim0: vec![],
            dim1: vec![],
            w0: vec![w0; 10],
            w1: vec![w1; 10],
            gradient: vec![],
        };
        assert_eq!(gather(&case).gradient, expected);
    }
}

#[test]
fn committed_reference_cases_with_ties_agree_exactly() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/tied_cases.json")).unwrap();
    assert_eq!(cases.len(), 4);
    cases.iter().for_each(check);
}

#[test]
fn all_reference_cases_agree_exactly() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/persistence.safetensors");
    let Ok(bytes) = std::fs::read(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut checked = 0;
    while file.tensor(&format!("{checked:03}.f")).is_ok() {
        check(&read_case(&file, &format!("{checked:03}")));
        checked += 1;
    }
    assert_eq!(checked, 60);
}

fn read_case(file: &SafeTensors<'_>, name: &str) -> Case {
    let floats = |key: &str| -> Vec<f32> {
        let tensor = file.tensor(&format!("{name}.{key}")).unwrap();
        assert_eq!(tensor.dtype(), Dtype::F32);
        tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let edges = file.tensor(&format!("{name}.edges")).unwrap();
    assert_eq!(edges.dtype(), Dtype::I64);
    let ends: Vec<u32> = edges
        .data()
        .chunks_exact(8)
        .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()).try_into().unwrap())
        .collect();
    Case {
        name: name.into(),
        filtrations: file.tensor(&format!("{name}.f")).unwrap().shape()[0],
        values: floats("f"),
        edges: ends.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
        dim0: floats("dim0"),
        dim1: floats("dim1"),
        w0: floats("w0"),
        w1: floats("w1"),
        gradient: floats("grad_f"),
    }
}
