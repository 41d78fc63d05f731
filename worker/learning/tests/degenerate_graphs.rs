//! Batches that lack something: cycles, edges, more than one vertex. Every network must take them, forward and backward,
//! because a data set may hold such graphs and chance may put them all into one batch.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic like the tests themselves")]

use tch::{Device, Kind};
use togl_data::{Dataset, DatasetBuilder, Stage, Task};
use togl_learning::batch::{BatchNeeds, Collator, DrawKey};
use togl_learning::layers::Pass;
use togl_learning::metrics;
use togl_learning::model::{Model, Shape};
use togl_learning::parameters::Parameters;
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Aggregation, Backbone, DeepsetType};

/// What all graphs of a data set are: its name, the nodes of a graph, its edges.
type Alike = (&'static str, usize, &'static [(u32, u32)]);

/// Each data set lacks something in all of its graphs.
fn data_sets() -> Vec<Dataset> {
    let graphs: [Alike; 3] =
        [("trees", 4, &[(0, 1), (1, 2), (1, 3)]), ("no edges", 3, &[]), ("single vertices", 1, &[])];
    let build = |(name, nodes, edges): Alike| {
        let mut builder = DatasetBuilder::new(name, Task::GraphClassification, 2, 2);
        for graph in 0..3 {
            let features: Vec<f32> = (0..2 * nodes).map(|i| (i + graph) as f32 / 3.0).collect();
            builder.push_undirected(nodes, edges, &features, &[graph as u32 % 2]);
        }
        builder.finish().unwrap()
    };
    graphs.map(build).into()
}

fn trials() -> Vec<TrialConfig> {
    let base = TrialConfig { dataset: "own".to_owned(), hidden_dim: 8, depth: 2, ..TrialConfig::default() };
    let togl = TrialConfig { togl: true, ..base.clone() };
    let deepset = TrialConfig { deepset: true, ..togl.clone() };
    let backbones =
        [Backbone::Gcn, Backbone::Gin, Backbone::Gat, Backbone::GatedGcn, Backbone::Gfl, Backbone::PersLay];
    let mut trials: Vec<_> = backbones.map(|model| TrialConfig { model, ..base.clone() }).into();
    trials.extend([
        TrialConfig { static_variant: true, ..togl.clone() },
        TrialConfig { residual_and_bn: false, share_filtration_parameters: false, ..togl.clone() },
        togl,
        TrialConfig { static_variant: true, dist_dim1: true, ..deepset.clone() },
        TrialConfig { deepset_type: DeepsetType::Shallow, ..deepset.clone() },
    ]);
    trials.extend(
        [Aggregation::Mean, Aggregation::Max, Aggregation::Sum]
            .map(|aggregation_fn| TrialConfig { aggregation_fn, ..deepset.clone() }),
    );
    trials
}

#[test]
fn every_network_takes_graphs_without_cycles_without_edges_and_single_vertices() {
    togl_learning::use_threads(1);
    let draws = DrawKey { seed: 4, split: 0, stage: Stage::Training, epoch: 0, step: 0 };
    for (data, trial) in
        data_sets().iter().flat_map(|data| trials().into_iter().map(move |trial| (data, trial)))
    {
        let about = format!("{} on {}", trial.method(), data.name());
        let mut parameters = Parameters::new(9, 0, Device::Cpu);
        let model = Model::new(&trial, Shape::of(data, &trial), &mut parameters).unwrap();
        let batch =
            Collator::new(data, BatchNeeds::of(&trial), Device::Cpu).collate(&[0, 1, 2], draws).unwrap();
        for training in [true, false] {
            let scores = model.forward(&Pass { batch: &batch, training, draws });
            let scores = scores.unwrap_or_else(|error| panic!("{about}: {error}"));
            let loss = metrics::loss(data.task(), data.classes(), &scores, &batch).unwrap();
            assert!(loss.double_value(&[]).is_finite(), "{about}");
            if training {
                loss.backward();
            }
        }
        for parameter in parameters.trainable().filter(|parameter| parameter.tensor.grad().defined()) {
            let finite = parameter.tensor.grad().isfinite().all().to_kind(Kind::Int64).int64_value(&[]);
            assert_eq!(finite, 1, "{about}: the gradient of {}", parameter.name);
        }
    }
}
