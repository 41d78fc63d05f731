//! Finished folds of a sweep that goes on: results come and go, and whoever wants the table gets the frame that all of them
//! would make if they were read at once. News are kept until then and worked in together, so that a fold costs little
//! however many there are. What no table and no figure of a sweep looks at is not kept. Knows no coordinator and computes no
//! number: tables are made by [`crate::table`] as ever.

use std::collections::HashMap;

use togl_sweeps::FoldKey;

use crate::error::Result;
use crate::frame::{FoldFrame, FoldRow};

/// News that wait at least until they are worked in, if nobody asks, and at the most: a row of news takes kilobytes.
const WAITING: [usize; 2] = [4_096, 16_384];

/// The finished folds of a sweep, as far as they are known.
#[derive(Debug)]
pub struct LiveFolds {
    settled: FoldFrame,
    /// Folds with a new result, and folds that have none any more.
    news: HashMap<FoldKey, Option<FoldRow>>,
}

impl LiveFolds {
    /// No fold yet.
    pub fn new() -> Result<Self> {
        Ok(Self { settled: FoldFrame::from_rows([])?, news: HashMap::new() })
    }

    /// A fold has this result now; an older one of the same fold does not count any more. Learning curves are let go.
    pub fn put(&mut self, row: FoldRow) -> Result<()> {
        self.news.insert(row.fold, Some(essential(row)));
        // As many as there are already, so that a large sweep that is read in pieces is not copied once a piece.
        let [least, most] = WAITING;
        if self.news.len() >= self.settled.len().clamp(least, most) {
            self.settle()?;
        }
        Ok(())
    }

    /// A fold has no result that counts, or does not belong to the sweep any more.
    pub fn take_away(&mut self, fold: FoldKey) {
        self.news.insert(fold, None);
    }

    /// All folds that are known to have finished, in the order of the sweep.
    pub fn frame(&mut self) -> Result<&FoldFrame> {
        self.settle()?;
        Ok(&self.settled)
    }

    fn settle(&mut self) -> Result<()> {
        if self.news.is_empty() {
            return Ok(());
        }
        // Only what was worked in is forgotten: a result that cannot be leaves everything as it was.
        self.settled = self.settled.changed(&self.news)?;
        self.news.clear();
        Ok(())
    }
}

/// A row without what is long or another in each fold and nobody looks at in a table or figure of the sweep; the page of a
/// fold reads it from the store.
fn essential(mut row: FoldRow) -> FoldRow {
    row.attempt = 0;
    let result = &mut row.result;
    result.history = Vec::new();
    result.best_epoch = 0;
    result.energy_joules = None;
    result.peak_memory = 0;
    result.parameters = 0;
    result.provenance.host = String::new();
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use togl_sweeps::TrialConfig;
    use togl_sweeps::spec::TableSpec;
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::plan::Plan;
    use crate::render;
    use crate::table::Table;
    use crate::test_folds::{fold, plan, trial};

    const SPLITS: u32 = 4;

    /// What happens to one of the folds.
    #[derive(Debug, Clone)]
    enum Step {
        Finishes { trial: usize, split: u32, accuracy: f64, device: &'static str },
        Reopens { trial: usize, split: u32 },
        SomebodyLooks,
    }

    fn step() -> impl Strategy<Value = Step> {
        let place = || (0..6_usize, 0..SPLITS);
        let device = prop_oneof![4 => Just("cpu"), 1 => Just("cuda")];
        prop_oneof![
            6 => (place(), 0_u32..=1000, device).prop_map(|((trial, split), accuracy, device)| Step::Finishes {
                trial, split, accuracy: f64::from(accuracy) / 1000.0, device
            }),
            2 => place().prop_map(|(trial, split)| Step::Reopens { trial, split }),
            2 => Just(Step::SomebodyLooks),
        ]
    }

    fn trials() -> Vec<TrialConfig> {
        let of = |dataset| {
            [(Backbone::Gcn, 2), (Backbone::Gcn, 4), (Backbone::Gin, 2)]
                .map(|(model, depth)| trial(dataset, model, depth))
        };
        [of("necklaces"), of("cycles")].concat()
    }

    fn table(frame: &FoldFrame, plan: &Plan) -> String {
        Table::of_block(frame, plan, &TableSpec::default(), None).map_or_else(
            |error| error.to_string(),
            |table| format!("{}\n{}", render::json(&table), render::latex(&table)),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn after_every_step_the_live_table_is_the_one_of_all_results_read_at_once(
            steps in prop::collection::vec(step(), 1..40)
        ) {
            let trials = trials();
            let planned: Vec<(&TrialConfig, u32)> = trials.iter().map(|trial| (trial, SPLITS)).collect();
            let plan = plan(&planned);
            let (mut live, mut all) = (LiveFolds::new().unwrap(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Finishes { trial, split, accuracy, device } => {
                        let mut row = fold(trial as u64, &trials[trial], split, accuracy);
                        row.result.provenance.device = device.to_owned();
                        all.insert(row.fold, row.clone());
                        live.put(row).unwrap();
                    }
                    Step::Reopens { trial, split } => {
                        let key = fold(trial as u64, &trials[trial], split, 0.0).fold;
                        all.remove(&key);
                        live.take_away(key);
                    }
                    Step::SomebodyLooks => _ = live.frame().unwrap(),
                }
                let whole = FoldFrame::from_rows(all.values().cloned()).unwrap();
                let at_once = FoldFrame::from_rows(all.values().cloned().map(essential)).unwrap();
                // A copy looks, so that news of several steps wait together in the original.
                let mut looking = LiveFolds { settled: live.settled.clone(), news: live.news.clone() };
                let seen = looking.frame().unwrap();
                prop_assert_eq!(seen, &at_once);
                prop_assert_eq!(table(seen, &plan), table(&whole, &plan));
            }
        }
    }

    #[test]
    fn a_large_sweep_is_worked_in_while_it_is_read() {
        let config = trial("necklaces", Backbone::Gcn, 2);
        let mut live = LiveFolds::new().unwrap();
        let [least, most] = WAITING;
        for split in 0..3 * least as u32 {
            live.put(fold(0, &config, split, 0.5)).unwrap();
            assert!(live.news.len() <= live.settled.len().clamp(least, most));
        }
        assert_eq!(live.frame().unwrap().len(), 3 * least);
    }

    #[test]
    fn a_finished_fold_takes_less_than_two_hundred_bytes() {
        let mut live = LiveFolds::new().unwrap();
        let configs: Vec<TrialConfig> =
            (1..=10).map(|depth| trial("necklaces", Backbone::Gcn, depth)).collect();
        for (at, config) in configs.iter().enumerate() {
            for split in 0..200 {
                let mut row = fold(at as u64, config, split, f64::from(split) / 200.0);
                row.worker = format!("worker-with-a-long-name-{}", split % 8);
                row.result.seconds = f64::from(split);
                row.result.finished_at = Some(u64::from(split));
                row.result.split_digest = format!("{:064x}", split % 10);
                live.put(row).unwrap();
                if split % 50 == 0 {
                    live.frame().unwrap();
                }
            }
        }
        let frame = live.frame().unwrap();
        let each = crate::compact::bytes(frame.data()) / frame.len();
        assert!(each <= 200, "{each} bytes a fold");
        eprintln!("{each} bytes a fold");
    }

    #[test]
    fn a_result_that_cannot_be_leaves_what_was_known() {
        let config = trial("necklaces", Backbone::Gcn, 2);
        let mut live = LiveFolds::new().unwrap();
        live.put(fold(0, &config, 0, 0.5)).unwrap();
        assert_eq!(live.frame().unwrap().len(), 1);
        let mut wrong = fold(0, &config, 1, 0.5);
        wrong.result.version = u32::MAX;
        live.put(wrong.clone()).unwrap();
        assert!(live.frame().is_err());
        live.take_away(wrong.fold);
        assert_eq!(live.frame().unwrap().len(), 1);
    }
}
