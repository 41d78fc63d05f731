//! What long work tells the one who waits: how far it is, as plain numbers. Whoever shows them decides how;
//! nothing is printed here.

/// Which long work is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataWork {
    /// Images become graphs; counted in images.
    Superpixels,
    /// A file comes from the network or from another folder; counted in bytes.
    Download,
}

/// How far some work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataProgress {
    /// Which work.
    pub work: DataWork,
    /// What is done of it.
    pub done: u64,
    /// What there is to do, where that is known.
    pub total: Option<u64>,
}

/// Is told about progress, from any thread, at most a few hundred times a second.
pub type DataObserver<'a> = &'a (dyn Fn(DataProgress) + Sync);

/// For callers who do not want to know.
pub(crate) fn nobody(_: DataProgress) {}
