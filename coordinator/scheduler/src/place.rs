//! Places: small numbers that stand for entries of the scheduler's tables. Each table has a type of its own, so
//! that one cannot be used for another.

/// Defines a number that stands for an entry of one of the tables.
macro_rules! place {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// The place as an index into its table.
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }

            /// The place of the next entry of a table that has `len`.
            pub(crate) fn next(len: usize) -> Self {
                Self(u32::try_from(len).unwrap_or(u32::MAX)) // tables are bounded far below by `Limits`
            }
        }
    };
}

place!(
    /// A fold's place.
    FoldAt
);
place!(
    /// A sweep's place.
    SweepAt
);
place!(
    /// A worker's place.
    WorkerAt
);
place!(
    /// A data set's place.
    DataAt
);
place!(
    /// A host's place.
    HostAt
);
place!(
    /// The place of an obstacle; see [`crate::fit::Obstacle`].
    ObstacleAt
);
