//! Gradients against central differences in double precision, for every kind of layer. Doubles take the general
//! forms of the native operations; a second test holds the fast float forms against them.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic like the tests themselves")]

use tch::{Device, Kind, Tensor};
use togl_data::{Dataset, OpenOptions, Stage};
use togl_learning::batch::{Batch, BatchNeeds, Collator, DrawKey};
use togl_learning::layers::Pass;
use togl_learning::metrics;
use togl_learning::model::{Model, Shape};
use togl_learning::parameters::Parameters;
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Aggregation, Backbone, DeepsetType};

const DRAWS: DrawKey = DrawKey { seed: 4, split: 0, stage: Stage::Training, epoch: 0, step: 0 };

fn trials() -> Vec<(&'static str, TrialConfig)> {
    let base = TrialConfig {
        dataset: "necklaces".to_owned(),
        hidden_dim: 8,
        depth: 1,
        num_heads: 2,
        num_filtrations: 3,
        filtration_hidden: 5,
        num_coord_funs: 2,
        dim0_out_dim: 6,
        dim1_out_dim: 5,
        ..TrialConfig::default()
    };
    let togl = TrialConfig { togl: true, ..base.clone() };
    let deepset = TrialConfig { deepset: true, ..togl.clone() };
    vec![
        ("gcn", base.clone()),
        ("gin", TrialConfig { model: Backbone::Gin, ..base.clone() }),
        ("gat", TrialConfig { model: Backbone::Gat, depth: 2, ..base.clone() }),
        ("gatedgcn", TrialConfig { model: Backbone::GatedGcn, ..base.clone() }),
        ("dropout", TrialConfig { dropout_p: 0.3, depth: 2, ..base }),
        ("coordinates", togl.clone()),
        ("tanh, swapped", TrialConfig { tanh_filtrations: true, swap_bn_order: true, ..togl.clone() }),
        (
            "separate",
            TrialConfig { share_filtration_parameters: false, residual_and_bn: false, ..togl.clone() },
        ),
        ("static", TrialConfig { static_variant: true, ..togl }),
        ("gfl", TrialConfig { model: Backbone::Gfl, togl: false, ..deepset.clone() }),
        ("perslay", TrialConfig { model: Backbone::PersLay, togl: false, ..deepset.clone() }),
        ("deepset full", deepset.clone()),
        (
            "deepset max",
            TrialConfig { aggregation_fn: Aggregation::Max, swap_bn_order: true, ..deepset.clone() },
        ),
        ("deepset sum", TrialConfig { aggregation_fn: Aggregation::Sum, dist_dim1: true, ..deepset.clone() }),
        (
            "deepset shallow",
            TrialConfig { deepset_type: DeepsetType::Shallow, residual_and_bn: false, ..deepset },
        ),
    ]
}

fn data() -> Dataset {
    togl_data::open("necklaces", &OpenOptions { graphs: Some(10), ..OpenOptions::default() }).unwrap()
}

struct Setup {
    parameters: Parameters,
    model: Model,
    batch: Batch,
    data: Dataset,
}

impl Setup {
    fn new(trial: &TrialConfig, kind: Kind) -> Self {
        togl_learning::use_threads(1);
        let data = data();
        let mut parameters = Parameters::of_kind(9, 0, Device::Cpu, kind);
        let model = Model::new(trial, Shape::of(&data, trial), &mut parameters).unwrap();
        let collator = Collator::new(&data, BatchNeeds::of(trial), Device::Cpu).with_kind(kind);
        let batch = collator.collate(&[0, 3, 5, 8], DRAWS).unwrap();
        Self { parameters, model, batch, data }
    }

    fn loss(&self) -> Tensor {
        let scores = self.model.forward(&Pass { batch: &self.batch, training: true, draws: DRAWS }).unwrap();
        metrics::loss(self.data.task(), self.data.classes(), &scores, &self.batch).unwrap()
    }

    fn moved(&self, tensor: &Tensor, entry: i64, step: f64) -> f64 {
        tch::no_grad(|| {
            let mut value = tensor.view([-1]).narrow(0, entry, 1);
            let before = value.copy();
            let _ = value.g_add_scalar_(step);
            let loss = self.loss().double_value(&[]);
            value.copy_(&before);
            loss
        })
    }
}

#[test]
fn gradients_of_every_parameter_equal_central_differences() {
    const STEP: f64 = 1e-6;
    for (name, trial) in trials() {
        let setup = Setup::new(&trial, Kind::Double);
        setup.loss().backward();
        for parameter in setup.parameters.trainable() {
            let (tensor, gradient) = (&parameter.tensor, parameter.tensor.grad());
            let count = tensor.numel() as i64;
            for entry in [0, count / 2, count - 1] {
                let measured =
                    (setup.moved(tensor, entry, STEP) - setup.moved(tensor, entry, -STEP)) / (2.0 * STEP);
                let computed =
                    if gradient.defined() { gradient.view([-1]).double_value(&[entry]) } else { 0.0 };
                let allowed = 1e-7 + 1e-4 * measured.abs();
                assert!(
                    (measured - computed).abs() < allowed,
                    "{name}, {}[{entry}]: {computed} computed, {measured} measured",
                    parameter.name
                );
            }
        }
    }
}

#[test]
fn fast_float_forms_give_the_gradients_of_the_general_ones() {
    for (name, trial) in trials() {
        let (fast, exact) = (Setup::new(&trial, Kind::Float), Setup::new(&trial, Kind::Double));
        let (left, right) = (fast.loss(), exact.loss());
        assert!((left.double_value(&[]) - right.double_value(&[])).abs() < 1e-5, "{name}: loss");
        left.backward();
        right.backward();
        for (ours, theirs) in fast.parameters.trainable().zip(exact.parameters.trainable()) {
            let gradient = theirs.tensor.grad();
            if !gradient.defined() {
                continue;
            }
            let difference =
                (ours.tensor.grad().to_kind(Kind::Double) - &gradient).abs().max().double_value(&[]);
            let allowed = 2e-5 + 1e-3 * gradient.abs().max().double_value(&[]);
            assert!(difference < allowed, "{name}, {}: {difference}", ours.name);
        }
    }
}
