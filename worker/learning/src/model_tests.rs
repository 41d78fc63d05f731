//! Parameter counts of the published networks.

use super::*;
use togl_sweeps::trial::{Backbone, DeepsetType};

fn count(trial: TrialConfig) -> u64 {
    let mut parameters = Parameters::new(0, 0, tch::Device::Cpu);
    let trial = TrialConfig { dataset: "any".to_owned(), ..trial };
    Model::new(&trial, Shape { features: 3, classes: 2, node_task: false }, &mut parameters).unwrap();
    parameters.count()
}

fn plain(model: Backbone, depth: u32, hidden_dim: u32, num_heads: u32) -> TrialConfig {
    TrialConfig { model, depth, hidden_dim, num_heads, ..TrialConfig::default() }
}

#[test]
fn plain_networks_have_the_published_number_of_parameters() {
    assert_eq!(count(plain(Backbone::Gcn, 4, 146, 1)), 101_069);
    assert_eq!(count(plain(Backbone::Gcn, 3, 146, 1)), 79_315);
    assert_eq!(count(plain(Backbone::Gcn, 4, 138, 1)), 90_425);
    assert_eq!(count(plain(Backbone::Gin, 4, 146, 1)), 186_921);
    assert_eq!(count(plain(Backbone::Gin, 4, 110, 1)), 106_677);
    assert_eq!(count(plain(Backbone::Gat, 4, 19, 8)), 97_491);
}

#[test]
fn networks_with_togl_have_the_published_number_of_parameters() {
    use DeepsetType::{Full, Linear, Shallow};
    let rows = [
        (3, 24, [104_549, 99_353, 97_273, 89_721]),
        (4, 24, [126_303, 121_107, 119_027, 111_475]),
        (3, 32, [105_789, 100_593, 98_513, 90_961]),
    ];
    for (depth, filtration_hidden, counts) in rows {
        let versions = [(false, Full), (true, Full), (true, Shallow), (true, Linear)];
        for ((deepset, deepset_type), wanted) in versions.into_iter().zip(counts) {
            let base = plain(Backbone::Gcn, depth, 146, 1);
            let trial = TrialConfig { togl: true, deepset, deepset_type, filtration_hidden, ..base };
            assert_eq!(count(trial), wanted, "depth {depth}, {deepset_type:?}, deepset {deepset}");
        }
    }
    assert_eq!(count(TrialConfig { togl: true, ..plain(Backbone::Gin, 3, 146, 1) }), 168_938);
    assert_eq!(count(TrialConfig { togl: true, ..plain(Backbone::Gat, 3, 19, 8) }), 113_092);
}
