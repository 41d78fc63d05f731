//! Data sets: the digest that results must agree on. The catalogue says at submission what to expect, else the
//! first result proposes it. A result from other data is kept, the data set is disputed, none of its folds is
//! handed out, and the operator decides which digest is right.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use togl_sweeps::FoldKey;

use crate::change::{Change, DataChange, FoldChange};
use crate::fold::{State, Wait};
use crate::place::{DataAt, FoldAt};
use crate::reply::{Rejection, Reply};
use crate::state::Scheduler;

/// Every data set that a trial names.
#[derive(Debug, Default)]
pub(crate) struct DataBooks {
    pub(crate) table: Vec<DataSet>,
    places: HashMap<Arc<str>, DataAt>,
}

/// A data set.
#[derive(Debug)]
pub(crate) struct DataSet {
    pub(crate) name: Arc<str>,
    /// The digest that counts; unknown before the first result.
    pub(crate) digest: Option<Arc<str>>,
    /// Finished folds whose results come from other data, with their digests. Not empty: disputed.
    pub(crate) dissent: BTreeMap<FoldKey, Arc<str>>,
}

impl DataBooks {
    pub(crate) fn enrol(&mut self, name: &str) -> DataAt {
        if let Some(at) = self.places.get(name) {
            return *at;
        }
        let (at, name): (_, Arc<str>) = (DataAt::next(self.table.len()), name.into());
        self.table.push(DataSet { name: name.clone(), digest: None, dissent: BTreeMap::new() });
        self.places.insert(name, at);
        at
    }

    pub(crate) fn is_disputed(&self, at: DataAt) -> bool {
        self.table.get(at.at()).is_some_and(|data| !data.dissent.is_empty())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&DataSet> {
        self.places.get(name).and_then(|at| self.table.get(at.at()))
    }
}

/// A data set about which results disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispute {
    /// Which data set; generated ones with their seed, such as `cycles#3`.
    pub data: Arc<str>,
    /// The digest that counted so far.
    pub expected: Arc<str>,
    /// Finished folds with another digest.
    pub dissent: Vec<(FoldKey, Arc<str>)>,
}

impl Scheduler {
    /// Data sets that wait for a decision.
    pub fn disputes(&self) -> Vec<Dispute> {
        let disputed = self.data.table.iter().filter(|data| !data.dissent.is_empty());
        let dispute = |data: &DataSet| Dispute {
            data: data.name.clone(),
            expected: data.digest.clone().unwrap_or_default(),
            dissent: data.dissent.iter().map(|(fold, digest)| (*fold, digest.clone())).collect(),
        };
        disputed.map(dispute).collect()
    }

    /// Refuses a submission that expects other data than the results in this store were made with.
    pub(crate) fn check_digests(&self, expected: &[(String, String)]) -> Result<(), Rejection> {
        for (data, digest) in expected {
            if let Some(known) = self.data.find(data).and_then(|data| data.digest.as_deref())
                && known != digest
            {
                let (data, expected, known) = (data.clone(), digest.clone(), known.to_owned());
                return Err(Rejection::OtherData { data, expected, known });
            }
        }
        Ok(())
    }

    /// Remembers what a data set must be, unless that is known.
    pub(crate) fn expect_digest(&mut self, name: &str, digest: &str, changes: &mut Vec<Change>) {
        let at = self.data.enrol(name);
        let data = &mut self.data.table[at.at()];
        if data.digest.is_none() && !digest.is_empty() {
            data.digest = Some(digest.into());
            let (data, digest) = (data.name.to_string(), digest.to_owned());
            changes.push(Change::Data(DataChange::Pinned { data, digest }));
        }
    }

    /// Compares the data of an accepted result with what is expected.
    pub(crate) fn weigh_digest(&mut self, at: FoldAt, digest: &str, changes: &mut Vec<Change>) {
        let fold = self.folds[at.at()].key;
        let Some(data_at) = self.trials.get(&fold.trial).and_then(|trial| trial.data) else { return };
        let data = &mut self.data.table[data_at.at()];
        let name = data.name.clone();
        match &data.digest {
            _ if digest.is_empty() => {}
            None => self.expect_digest(&name, digest, changes),
            Some(expected) if **expected == *digest => {}
            Some(_) => {
                data.dissent.insert(fold, digest.into());
                let (data, digest) = (name.to_string(), digest.to_owned());
                changes.push(Change::Data(DataChange::Disputed { data, fold, digest }));
                self.revision += 1;
            }
        }
    }

    /// The operator says which digest is right: results from other data are set aside, their folds are pending.
    pub(crate) fn settle_data(
        &mut self,
        name: &str,
        digest: &str,
        changes: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let Some(at) = self.data.places.get(name).copied().filter(|at| self.data.is_disputed(*at)) else {
            return Err(Rejection::NoDispute { data: name.to_owned() });
        };
        let data = &mut self.data.table[at.at()];
        let stays = data.digest.as_deref() == Some(digest);
        if !stays && !data.dissent.values().any(|seen| **seen == *digest) {
            let (data, digest) = (name.to_owned(), digest.to_owned());
            return Err(Rejection::UnknownDigest { data, digest });
        }
        let dissent = std::mem::take(&mut data.dissent);
        data.digest = Some(digest.into());
        let wrong = |key: &FoldKey| dissent.get(key).map_or(!stays, |seen| **seen != *digest);
        let folds = (0..).map(FoldAt).zip(self.folds.iter());
        let of_data = folds.filter(|(_, fold)| {
            let trial = self.trials.get(&fold.key.trial);
            matches!(fold.state, State::Finished { .. }) && trial.is_some_and(|trial| trial.data == Some(at))
        });
        let wrong: Vec<FoldAt> = of_data.filter(|(_, fold)| wrong(&fold.key)).map(|(at, _)| at).collect();
        for at in &wrong {
            self.set_aside(*at, changes);
        }
        let (data, digest) = (name.to_owned(), digest.to_owned());
        changes.push(Change::Data(DataChange::Settled { data, digest }));
        self.revision += 1;
        self.supply += 1;
        Ok(Reply::Settled { reopened: wrong.len() as u64 })
    }

    /// The accepted result of a fold is kept as a replicate, and the fold is to be trained again.
    fn set_aside(&mut self, at: FoldAt, changes: &mut Vec<Change>) {
        let fold = &self.folds[at.at()];
        if let State::Finished { attempt, digest, .. } = fold.state {
            changes.push(Change::Fold(fold.key, FoldChange::SetAside));
            self.replicates.insert((at, attempt), digest);
            self.set_state(at, State::Pending(Wait::Nothing));
        }
    }
}
