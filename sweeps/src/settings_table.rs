//! The rows of the table of settings, from which everything else about settings comes: the fields of a trial with their
//! frozen defaults, checks, identities, the JSON schema, the columns of folds and the tables of the documentation. A new
//! setting is a row here and the place that uses it.
//!
//! **Never change a default here**: identities leave defaults out, so another default would be another training under an
//! old name; add a preset instead. Ranges are limits of what can be built, not recommendations.

use serde::{Deserialize, Serialize};

use super::ValueKind::{self, Flag, Position as Layers, Real, Text, Whole, Word};
use super::{Field, Place, Setting, needs};
use crate::program::ProgramTrial;
use crate::words::{
    Aggregation, Backbone, DeepsetType, Features, LastActivation, LastEpoch, LastHeads, Placement, Position,
    WlLabels,
};

const WIDTH: ValueKind = Whole(1, 65_536);
const COUNT: ValueKind = Whole(1, 1024);
const COST: ValueKind = Real(1e-9, 1e9);

settings! {
    "Data" {
        dataset: String = String::new(), Text, NOTHING, "name of the data set; required";
        data_seed: u64 = 0, Whole(0, u64::MAX), NOTHING, "seed of generated data sets";
        features: Features = Features::Original, Word(Features::WORDS), NODE_STATES,
            "the data set's own node features, fresh standard normal ones (structure only), or of images the colour alone: what the published structure-only runs on MNIST and CIFAR-10 saw";
    }
    "Network" {
        model: Backbone = Backbone::Gcn, Word(Backbone::WORDS), NOTHING,
            "the graph network, or the method that it is compared with";
        depth: u32 = 4, Whole(0, 64), DEPTH, "graph layers; for `wl` and `wl-oa` rounds of refinement";
        hidden_dim: u32 = 146, Whole(4, 65_536), NETWORK, "width of the node states; for `gat` of each head";
        num_heads: u32 = 1, Whole(1, 256), GAT, "attention heads";
        residual: bool = true, Flag, GCN, "a graph layer adds its input to its output; layers of other networks always do";
        batch_norm: bool = true, Flag, LAYERS, "graph layers normalise over the batch";
        dropout_p: f64 = 0.0, Real(0.0, 0.99), NODE_STATES, "dropout after every layer";
        activation_last: LastActivation = LastActivation::Identity, Word(LastActivation::WORDS), LAYERS,
            "activation of the last graph layer";
        gat_last: LastHeads = LastHeads::Single, Word(LastHeads::WORDS), GAT,
            "heads of the last attention layer";
    }
    "Topological layer" {
        togl: bool = false, Flag, BACKBONE, "whether the network has a topological layer";
        togl_position: Position = Position::After(1), Layers, TOGL,
            "graph layers before it; 0 is directly on the embedding";
        placement: Placement = Placement::Add, Word(Placement::WORDS), TOGL,
            "in addition to `depth` graph layers, or in place of one";
        deepset: bool = false, Flag, TOGL, "DeepSet version instead of coordinate functions";
        static_variant as "static": bool = false, Flag, TOGL,
            "the control: the same layer with pairs that know no topology";
        dim1: bool = true, Flag, DIAGRAMS, "use cycles (dimension 1) too";
        num_filtrations: u32 = 8, COUNT, TOGL, "number of filtrations";
        filtration_hidden: u32 = 24, WIDTH, DIAGRAMS,
            "hidden width of the filtration network; for `perslay` of the weights of points";
        num_coord_funs: u32 = 3, COUNT, DIAGRAM_COORDINATES, "units of each coordinate function";
        tanh_filtrations: bool = false, Flag, COORDINATES, "tanh on the filtration values";
        share_filtration_parameters: bool = true, Flag, COORDINATES,
            "one filtration network with many outputs, or many with one";
        residual_and_bn: bool = true, Flag, TOGL,
            "residual connection and batch norm; otherwise concatenation";
        swap_bn_order: bool = false, Flag, TOGL_RESIDUAL, "activation after the batch norm";
        deepset_type: DeepsetType = DeepsetType::Full, Word(DeepsetType::WORDS), DEEPSET,
            "shape of the dimension-0 DeepSet";
        aggregation_fn: Aggregation = Aggregation::Mean, Word(Aggregation::WORDS), DEEPSET,
            "how the DeepSet looks at the other elements of the graph";
        dim0_out_dim: u32 = 32, WIDTH, DEEPSET_INNER, "inner width of the dimension-0 DeepSet";
        dim1_out_dim: u32 = 32, WIDTH, DEEPSET_CYCLES, "width of the dimension-1 graph vector";
        dist_dim1: bool = false, Flag, TOGL_CYCLES,
            "give the dimension-1 vector to the nodes instead of the classifier";
    }
    "Training" {
        batch_size: u32 = 32, Whole(1, 1_000_000), NETWORK, "graphs in a batch";
        lr: f64 = 1e-3, Real(1e-12, 1e3), NETWORK, "initial learning rate (Adam)";
        lr_patience: u32 = 10, Whole(0, 1_000_000), NETWORK,
            "epochs without a better validation loss before the rate is halved";
        lr_min: f64 = 1e-5, Real(0.0, 1e3), NETWORK, "training stops when the rate falls below it";
        weight_decay: f64 = 0.0, Real(0.0, 1e3), NETWORK, "weight decay of Adam";
        max_epochs: u32 = 1000, Whole(1, 1_000_000), NETWORK, "training stops after this many epochs";
        last_epoch: LastEpoch = LastEpoch::Full, Word(LastEpoch::WORDS), NETWORK,
            "stop at once when the rate is exhausted, or train one more mini-batch, as the published runs did";
    }
    "Kernels" {
        wl_labels: WlLabels = WlLabels::Degree, Word(WlLabels::WORDS), REFINEMENT,
            "labels that refinement starts from: degrees, or the node labels of the data set", since 3;
        choose_rounds: bool = false, Flag, REFINEMENT,
            "inner cross-validation chooses among 0 to `depth` rounds", since 3;
        as_published: bool = false, Flag, WL, "leave out the last round, as the published runs did: the same trial as one round less", since 3;
        svm_c_min: f64 = 1e-3, COST, KERNEL, "smallest cost of the support vector machine", since 3;
        svm_c_max: f64 = 1e3, COST, KERNEL, "largest cost; each is ten times the one before", since 3;
        inner_folds: u32 = 5, Whole(2, 100), KERNEL,
            "folds of the inner cross-validation that chooses the cost", since 3;
        outer_folds: u32 = 0, Whole(0, 100), KERNEL,
            "stratified folds that each training seed draws anew, in place of the data set's own splits; 0 for those, else at least 2", since 4;
    }
}
