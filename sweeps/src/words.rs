//! Enums that are one of a few words: how they are defined, those that are settings, and the place of TOGL among the layers. Owns the spelling in sweep files
//! and in canonical JSON: a word here is part of trial identities and is never changed.

use serde::{Deserialize, Serialize};

/// Defines something that is one of a few words, with their one spelling.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// All of them, in the order of the documentation.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// All words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// What a word means.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words!(
    /// What is trained: a graph network, to which TOGL can be added, or a method that it is compared with.
    Backbone {
        /// Graph convolution.
        Gcn = "gcn",
        /// Graph isomorphism network.
        Gin = "gin",
        /// Graph attention.
        Gat = "gat",
        /// Gated graph convolution.
        GatedGcn = "gatedgcn",
        /// Weisfeiler-Lehman subtree kernel and a support vector machine.
        Wl = "wl",
        /// Weisfeiler-Lehman optimal assignment kernel and a support vector machine.
        WlOa = "wl-oa",
        /// Persistence of the degree filtration and a support vector machine.
        Ph = "ph",
        /// Graph filtration learning: a readout of the diagrams of one learned filtration in place of pooling.
        Gfl = "gfl",
        /// Weighted sums over the diagrams of fixed filtrations.
        PersLay = "perslay",
    }
);

impl Backbone {
    /// Whether it is a kernel with a support vector machine: nothing is trained by gradients.
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Wl | Self::WlOa | Self::Ph)
    }

    /// Whether it refines labels in rounds.
    pub fn refines_labels(self) -> bool {
        matches!(self, Self::Wl | Self::WlOa)
    }

    /// Whether a readout of persistence diagrams takes the place of pooling.
    pub fn reads_diagrams(self) -> bool {
        matches!(self, Self::Gfl | Self::PersLay)
    }

    /// Whether nodes have states that graph layers change.
    pub fn has_node_states(self) -> bool {
        !self.is_kernel() && self != Self::PersLay
    }

    /// Whether a topological layer can be added to it.
    pub fn takes_togl(self) -> bool {
        self.has_node_states() && self != Self::Gfl
    }
}

words!(
    /// The labels that Weisfeiler-Lehman refinement starts from.
    WlLabels {
        /// The degree of each node.
        Degree = "degree",
        /// The node labels of the data set.
        Node = "node",
    }
);
words!(
    /// What the nodes know.
    Features {
        /// The data set's own node features.
        Original = "original",
        /// Structure only: fresh standard normal features at every look.
        Random = "random",
        /// The colour of superpixels without their position: what the published runs on images without node
        /// attributes had.
        Colour = "colour",
    }
);
words!(
    /// How the DeepSet version embeds dimension 0.
    DeepsetType {
        /// Two equivariant layers.
        Full = "full",
        /// One equivariant layer.
        Shallow = "shallow",
        /// A linear map.
        Linear = "linear",
    }
);
words!(
    /// How a DeepSet looks at the other elements of its graph.
    Aggregation {
        /// Their mean.
        Mean = "mean",
        /// Their maximum.
        Max = "max",
        /// Their sum.
        Sum = "sum",
    }
);
words!(
    /// How TOGL enters the network.
    Placement {
        /// In addition to `depth` graph layers.
        Add = "add",
        /// In place of one of them.
        Replace = "replace",
    }
);
words!(
    /// Activation of the last graph layer.
    LastActivation {
        /// None.
        Identity = "identity",
        /// As the other layers.
        Relu = "relu",
    }
);
words!(
    /// Heads of the last attention layer.
    LastHeads {
        /// One head of full width.
        Single = "single",
        /// As the other layers.
        Concat = "concat",
    }
);
words!(
    /// What the epoch in which training stops does.
    LastEpoch {
        /// There is none: training stops at once.
        Full = "full",
        /// It trains exactly one mini-batch, as the published runs did.
        OneBatch = "one-batch",
    }
);

/// Where TOGL stands among the graph layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Position {
    /// After this many graph layers; 0 is directly on the embedding.
    After(u32),
    /// After the last layer.
    #[serde(with = "last_word")]
    Last,
}

mod last_word {
    //! (De)serialises the one word `last`.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// The position after the last layer has no number, so it is written as a word.
    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("last")
    }

    /// Any other word is refused, with what could stand here.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "last" { Ok(()) } else { Err(D::Error::custom("expected a number or `last`")) }
    }
}
