//! The PATTERN data: find the nodes of a small random graph that was hidden in a stochastic block model.
//! A hundred patterns are drawn once; every graph hides one of them among five communities. Token and
//! position of a node say nothing by themselves: nodes are shuffled and tokens are uniform.

use crate::block_model::{BlockModel, TokenGraph, community_size, random_edges};
use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::streams::{Purpose, RandomStream};

const MODEL: BlockModel =
    BlockModel { name: "pattern", classes: 2, tokens: 3, sizes: [10_000, 2_000, 2_000] };
const PATTERNS: usize = 100;
const COMMUNITIES: usize = 5;
const WITHIN_COMMUNITY: f64 = 0.5;
const ACROSS_COMMUNITIES: f64 = 0.35;
const WITHIN_PATTERN: f64 = 0.5;
const PATTERN_TO_REST: f64 = 0.5;

/// One hidden graph.
struct Template {
    tokens: Vec<u32>,
    adjacent: Vec<Vec<bool>>,
}

#[derive(Clone, Copy)]
enum Role {
    Community(usize),
    Pattern(usize),
}

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    let templates: Vec<Template> = (0..PATTERNS as u64)
        .map(|number| {
            RandomStream::new(options.data_seed, 0, Purpose::Generate("pattern templates"), 0, number)
        })
        .map(|mut stream| draw_template(&mut stream))
        .collect();
    // Taking turns gives each pattern the same share of every part, at every size.
    MODEL.generate(options, |stream, position| hide(stream, &templates[position % PATTERNS]))
}

fn draw_template(stream: &mut RandomStream) -> Template {
    let size = community_size(stream);
    let tokens = draw_tokens(stream, size);
    let mut adjacent = vec![vec![false; size]; size];
    for (u, v) in random_edges(stream, &tokens, |_, _| WITHIN_PATTERN) {
        adjacent[u as usize][v as usize] = true;
        adjacent[v as usize][u as usize] = true;
    }
    Template { tokens, adjacent }
}

fn hide(stream: &mut RandomStream, template: &Template) -> TokenGraph {
    let mut roles: Vec<Role> = (0..template.tokens.len()).map(Role::Pattern).collect();
    for community in 0..COMMUNITIES {
        let size = community_size(stream);
        roles.extend(std::iter::repeat_n(Role::Community(community), size));
    }
    stream.shuffle(&mut roles);
    let mut tokens = draw_tokens(stream, roles.len());
    for (token, role) in tokens.iter_mut().zip(&roles) {
        if let Role::Pattern(position) = role {
            *token = template.tokens[*position];
        }
    }
    let edges = random_edges(stream, &roles, |left, right| match (left, right) {
        (Role::Pattern(u), Role::Pattern(v)) => f64::from(u8::from(template.adjacent[*u][*v])),
        (Role::Community(a), Role::Community(b)) if a == b => WITHIN_COMMUNITY,
        (Role::Community(_), Role::Community(_)) => ACROSS_COMMUNITIES,
        (Role::Pattern(_), Role::Community(_)) | (Role::Community(_), Role::Pattern(_)) => PATTERN_TO_REST,
    });
    let classes = roles.iter().map(|role| u32::from(matches!(role, Role::Pattern(_)))).collect();
    TokenGraph { edges, tokens, classes }
}

fn draw_tokens(stream: &mut RandomStream, count: usize) -> Vec<u32> {
    (0..count).map(|_| stream.uniform_below(MODEL.tokens as u64) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::open;

    fn opened(graphs: usize) -> Dataset {
        open("PATTERN", &OpenOptions { graphs: Some(graphs), ..OpenOptions::default() })
            .expect("no files needed")
    }

    /// Edges among the given class pair, as a share of the pairs there are.
    fn density(dataset: &Dataset, classes: [u32; 2]) -> f64 {
        let (mut edges, mut pairs) = (0, 0);
        for graph in dataset.graphs() {
            let joins = |u: u32, v: u32| {
                let mut found = [graph.labels[u as usize], graph.labels[v as usize]];
                found.sort_unstable();
                found == classes
            };
            let nodes = graph.node_count as u32;
            edges += graph.undirected_edges().filter(|(u, v)| joins(*u, *v)).count();
            pairs += (0..nodes)
                .flat_map(|u| (u + 1..nodes).map(move |v| (u, v)))
                .filter(|(u, v)| joins(*u, *v))
                .count();
        }
        edges as f64 / pairs as f64
    }

    #[test]
    fn densities_and_sizes_are_those_of_the_model() {
        let dataset = opened(700);
        assert_eq!((dataset.classes(), dataset.feature_width()), (2, 3));
        let mean_nodes = dataset.node_count() as f64 / 700.0;
        assert!((mean_nodes - 117.0).abs() < 4.0, "{mean_nodes} nodes; six parts of 5 to 34");
        assert!((density(&dataset, [1, 1]) - WITHIN_PATTERN).abs() < 0.03);
        assert!((density(&dataset, [0, 1]) - PATTERN_TO_REST).abs() < 0.01);
        // Of the pairs outside, about 0.223 lie within one community: 5 * 217.8 / (10 * 380.25 + 5 * 217.8).
        assert!((density(&dataset, [0, 0]) - 0.383).abs() < 0.01, "{}", density(&dataset, [0, 0]));
    }

    #[test]
    fn the_same_pattern_returns_with_its_tokens_and_edges_in_another_place() {
        let mut stream = RandomStream::new(0, 0, Purpose::Generate("test"), 0, 0);
        let template = draw_template(&mut stream);
        let signature = |graph: &TokenGraph| {
            let inside = |node: u32| graph.classes[node as usize] == 1;
            let edges = graph.edges.iter().filter(|(u, v)| inside(*u) && inside(*v));
            let mut tokens: Vec<u32> =
                (0u32..).zip(&graph.tokens).filter(|(n, _)| inside(*n)).map(|(_, t)| *t).collect();
            tokens.sort_unstable();
            (edges.count(), tokens)
        };
        let (first, second) = (hide(&mut stream, &template), hide(&mut stream, &template));
        assert_eq!(signature(&first), signature(&second));
        assert_ne!(first.classes, second.classes);
    }

    #[test]
    fn parts_keep_their_shares_and_are_the_only_split() {
        let dataset = opened(140);
        let split = dataset.split(0).expect("published with the data");
        assert_eq!([split.train.len(), split.validation.len(), split.test.len()], [100, 20, 20]);
        let hint = dataset.split(1).expect_err("one split").hint();
        assert_eq!(hint.as_deref(), Some("valid splits are 0"));
        assert_eq!(MODEL.sizes.iter().sum::<usize>(), PATTERNS * (100 + 20 + 20));
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened(140).digest().as_str()[..16], *"8d0ac6552bc97226");
    }
}
