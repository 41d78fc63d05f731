//! Two filtrations that are known before training, F `[N, 2]` from the edges of a batch alone: ln(1 + degree), and the
//! heat kernel signature of the normalised Laplacian at time t = 0.1, moved and stretched to be p2 + (t / 3) p3, where
//! p2 and p3 are the chances that a random walk is back after two and three steps. (The signature is
//! e^-t (1 + t^2/2 p2 + t^3/6 p3 + ...); what is left out is below 3e-4 of the whole.) A node without edges has 0 in both.

use tch::{Device, Kind, Tensor};
use togl_topology::EdgeLists;

/// Number of filtrations.
pub const FIXED_FILTRATIONS: i64 = 2;

const TIME: f32 = 0.1;

/// The values of all nodes of a batch.
pub fn fixed_filtrations(topology: &EdgeLists, kind: Kind, device: Device) -> Tensor {
    let mut values = Vec::with_capacity(2 * topology.vertices());
    for (graph, bounds) in topology.node_offsets().windows(2).enumerate() {
        of_graph(bounds[1] - bounds[0], topology.edges(graph), &mut values);
    }
    Tensor::from_slice(&values).view([-1, FIXED_FILTRATIONS]).to_kind(kind).to_device(device)
}

/// Appends both values of every node of a graph. Self-loops are not walked.
fn of_graph(nodes: usize, edges: &[[u32; 2]], values: &mut Vec<f32>) {
    let mut around: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for [u, w] in edges.iter().filter(|[u, w]| u != w) {
        around[*u as usize].push(*w);
        around[*w as usize].push(*u);
    }
    let degree = |node: u32| around[node as usize].len() as f32;
    let mut beside = vec![false; nodes];
    for (node, neighbours) in around.iter().enumerate() {
        neighbours.iter().for_each(|other| beside[*other as usize] = true);
        let (mut back2, mut back3) = (0.0, 0.0);
        for other in neighbours {
            back2 += 1.0 / degree(*other);
            let third = around[*other as usize].iter().filter(|third| beside[**third as usize]);
            back3 += third.map(|third| 1.0 / (degree(*other) * degree(*third))).sum::<f32>();
        }
        neighbours.iter().for_each(|other| beside[*other as usize] = false);
        let own = (neighbours.len() as f32).max(1.0);
        values.push((1.0 + degree(node as u32)).ln());
        values.push((back2 + TIME / 3.0 * back3) / own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: usize, edges: &[[u32; 2]]) -> Vec<f32> {
        let mut topology = EdgeLists::new();
        topology.push(nodes, edges).unwrap();
        let values = fixed_filtrations(&topology, Kind::Float, Device::Cpu);
        Vec::<f32>::try_from(values.view([-1])).unwrap()
    }

    #[test]
    fn walks_on_small_graphs_come_back_as_often_as_counted_by_hand() {
        // A path: the ends come back from the middle every second time; no odd walk comes back.
        let path = of(3, &[[0, 1], [1, 2]]);
        assert_eq!(path, [2f32.ln(), 0.5, 3f32.ln(), 1.0, 2f32.ln(), 0.5]);
        // A triangle: back after two steps with chance 1/2, after three with chance 1/4. One node apart.
        let triangle = of(4, &[[0, 1], [1, 2], [0, 2]]);
        assert!((triangle[1] - (0.5 + 0.1 / 3.0 * 0.25)).abs() < 1e-7, "{triangle:?}");
        assert_eq!(triangle[6..], [0.0, 0.0]);
    }

    /// The heat kernel itself, from powers of the normalised adjacency up to the tenth.
    #[test]
    fn the_second_value_orders_nodes_as_the_heat_kernel_does() {
        let edges = [[0u32, 1], [1, 2], [0, 2], [2, 3], [3, 4]];
        let adjacency = Tensor::zeros([5, 5], (Kind::Double, Device::Cpu));
        for [u, w] in edges.map(|edge| edge.map(i64::from)) {
            let _ = adjacency.get(u).get(w).fill_(1.0);
            let _ = adjacency.get(w).get(u).fill_(1.0);
        }
        let root = adjacency.sum_dim_intlist(&[1i64][..], true, Kind::Double).rsqrt();
        let step = &adjacency * &root * root.transpose(0, 1);
        let (mut power, mut weight) = (Tensor::eye(5, (Kind::Double, Device::Cpu)), 1.0);
        let mut heat = power.copy();
        for order in 1..=10 {
            power = power.matmul(&step);
            weight *= 0.1 / f64::from(order);
            heat += &power * weight;
        }
        let signature = Vec::<f64>::try_from(heat.diagonal(0, 0, 1).contiguous()).unwrap();
        for (ours, heat) in of(5, &edges).chunks(2).zip(signature) {
            let wanted = (heat - 1.0) / 0.005;
            assert!((f64::from(ours[1]) - wanted).abs() < 1e-3, "{} {wanted}", ours[1]);
        }
    }
}
