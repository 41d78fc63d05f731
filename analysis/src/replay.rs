//! Races over folds, run again on folds that have all finished: what each rule would have saved, and whether it would have kept
//! the winner. Sees validation values only. The rule itself is `togl_sweeps::race`; here are the groups, the draws that make
//! many searches of a few, and the counting.

use std::collections::{BTreeSet, HashMap, HashSet};

use polars::prelude::{DataFrame, UInt64Chunked};
use serde::Serialize;
use togl_sweeps::race::{Alpha, Criterion, FoldStanding, Heat, Race, RaceGroup, Score, Terms, run};
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, TrialId};

use crate::columns::label;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::render::aligned;
use crate::schema::{self, SETTINGS, check_label};
use crate::wording::fixed;

/// What is replayed.
#[derive(Debug, Clone)]
pub struct ReplaySpec {
    /// Trials that differ in nothing else race with each other.
    pub among: Vec<String>,
    /// What is compared.
    pub by: Metric,
    /// Splits that are compared at the first look that may stop anybody.
    pub after: u32,
    /// The size of the validation part divided by that of the training part, for folds that do not say.
    pub ratio: Option<f64>,
    /// How many smaller searches are drawn from each group; 0 replays the groups themselves.
    pub draws: u32,
    /// Trials of a drawn search.
    pub of: usize,
}

/// What a rule would have done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// The rule, in words.
    pub rule: String,
    /// Searches that were replayed.
    pub searches: usize,
    /// Folds that they have.
    pub folds: usize,
    /// Folds that would not have been trained.
    pub saved: usize,
    /// Searches in which the trial with the best mean over all splits would not have been stopped.
    pub kept: usize,
    /// 95% interval of the share of such searches (Wilson), as shares.
    pub interval: [f64; 2],
    /// What the best trial that was left has less than the winner, mean over all searches, in percentage points where
    /// values are shares.
    pub lost: f64,
}

/// Replays every rule, from the most careful to the boldest.
pub fn replay(frame: &FoldFrame, wanted: &ReplaySpec) -> Result<Vec<Replayed>> {
    let folds = Folds::of(frame, wanted)?;
    let searches: Vec<RaceGroup> = match wanted.draws {
        0 => folds.groups.clone(),
        draws => folds.groups.iter().flat_map(|group| drawn(group, draws, wanted.of)).collect(),
    };
    let tests = Alpha::ALL.into_iter().rev().map(Criterion::Test);
    let rules = tests.chain([Criterion::WorstSplit]);
    Ok(rules
        .map(|criterion| folds.replayed(&searches, Terms { after: wanted.after, criterion }, wanted.by))
        .collect())
}

/// As aligned text.
pub fn text(replayed: &[Replayed]) -> String {
    let head = ["rule", "searches", "folds saved", "winner kept", "95% interval", "lost"];
    let percent = |share: f64| format!("{}%", fixed(100.0 * share, 1));
    let line = |r: &Replayed| {
        vec![
            r.rule.clone(),
            r.searches.to_string(),
            format!("{} of {} ({})", r.saved, r.folds, percent(r.saved as f64 / r.folds.max(1) as f64)),
            format!("{} ({})", r.kept, percent(r.kept as f64 / r.searches.max(1) as f64)),
            format!("{} to {}", percent(r.interval[0]), percent(r.interval[1])),
            fixed(r.lost, 2),
        ]
    };
    aligned(&head, &replayed.iter().map(line).collect::<Vec<_>>())
}

/// Folds by group, and what is known of each.
struct Folds {
    groups: Vec<RaceGroup>,
    scores: HashMap<FoldKey, Score>,
    /// What a value is multiplied with to be printed.
    factor: f64,
}

impl Folds {
    fn of(frame: &FoldFrame, wanted: &ReplaySpec) -> Result<Self> {
        let (data, keys) = (frame.data(), frame.keys()?);
        let known = setting_columns(data, &keys)?;
        let strange = wanted.among.iter().filter(|name| !known.contains(&name.as_str()));
        strange.into_iter().try_for_each(|name| check_label(name))?;
        let assumed = wanted.ratio.map(|ratio| [1_000_000, (ratio * 1e6) as u32]);
        let scores = scores(frame, wanted.by, assumed)?;
        let (mut settings, mut seen) = (Vec::<(TrialId, Vec<String>)>::new(), HashSet::new());
        let others: Vec<&str> =
            known.into_iter().filter(|name| wanted.among.iter().all(|among| among != name)).collect();
        for (row, key) in keys.iter().enumerate() {
            if !scores.contains_key(key) {
                continue;
            }
            if seen.insert(key.trial) {
                let labels: Result<_> =
                    others.iter().map(|name| Ok(label(&data.column(name)?.get(row)?))).collect();
                settings.push((key.trial, labels?));
            }
        }
        let groups = grouped(&settings, &scores);
        if groups.is_empty() {
            let among = wanted.among.join(", ");
            return Err(Error::Unfit(format!(
                "nothing to replay: no two trials that differ only in {among} have finished on the same splits, of which \
                 there must be several"
            )));
        }
        if scores.values().any(|score| score.sizes.contains(&0)) {
            let reason = "these folds do not say how large the parts of their splits are, which the test needs; say \
                          validation size divided by training size with `--ratio`, such as 0.125";
            return Err(Error::Unfit(reason.to_owned()));
        }
        Ok(Self { groups, scores, factor: frame.scale(wanted.by)?.factor() })
    }

    fn replayed(&self, searches: &[RaceGroup], terms: Terms, by: Metric) -> Replayed {
        let (mut folds, mut saved, mut kept, mut lost) = (0, 0, 0, 0.0);
        for group in searches {
            let race = Race { by, terms, groups: Vec::new(), rungs: None };
            let heat = run(&race, group, |fold| {
                self.scores.get(fold).map_or(FoldStanding::Open, |s| FoldStanding::Scored(*s))
            });
            let means: Vec<f64> = (0..group.trials.len()).map(|trial| self.mean(group, trial)).collect();
            folds += means.len() * of_splits(group, 0);
            saved += (0..means.len())
                .filter_map(|trial| heat.stop(trial))
                .map(|s| of_splits(group, s.look as usize))
                .sum::<usize>();
            let (winner, left) = (best(&means, |_| true), best(&means, |trial| is_live(&heat, trial)));
            kept += usize::from(winner == left);
            lost += self.factor * (means[winner] - means[left]);
        }
        let rule = match terms.criterion {
            Criterion::Test(alpha) => format!("alpha {alpha}"),
            Criterion::WorstSplit => "mean below the leader's worst split".to_owned(),
            Criterion::Best(share) => format!("the best {share} of a rung"), // not replayed
        };
        let interval = wilson(kept, searches.len());
        Replayed {
            rule,
            searches: searches.len(),
            folds,
            saved,
            kept,
            interval,
            lost: lost / searches.len().max(1) as f64,
        }
    }

    /// The mean over all splits, with the seeds of each averaged.
    fn mean(&self, group: &RaceGroup, trial: usize) -> f64 {
        let split = |split: usize| {
            let values: Vec<f64> = group
                .folds(trial, split)
                .filter_map(|fold| Some(f64::from(self.scores.get(&fold)?.validation)))
                .collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        (0..group.splits.len()).map(split).sum::<f64>() / group.splits.len() as f64
    }
}

/// The settings of a frame: ours, and what programs declare. What else somebody keeps beside folds is not the same in all folds of
/// a trial, or says by its name that it is of another system.
fn setting_columns<'a>(data: &'a DataFrame, keys: &[FoldKey]) -> Result<Vec<&'a str>> {
    let mut known: Vec<&str> = SETTINGS.iter().map(|spec| spec.name).collect();
    let others = data.columns().iter().filter(|column| {
        let name = column.name().as_str();
        !name.starts_with("wandb_") && !schema::columns().any(|spec| spec.name == name)
    });
    for column in others {
        let mut values: HashMap<TrialId, String> = HashMap::new();
        let mut same = true;
        for (row, key) in keys.iter().enumerate() {
            let value = label(&column.get(row)?);
            same &= *values.entry(key.trial).or_insert_with(|| value.clone()) == value;
        }
        known.extend(same.then_some(column.name().as_str()));
    }
    Ok(known)
}

/// What a race knows of each fold of a frame that has a value, with these sizes where it does not say its own.
pub(crate) fn scores(
    frame: &FoldFrame,
    by: Metric,
    assumed: Option<[u32; 2]>,
) -> Result<HashMap<FoldKey, Score>> {
    let column = |name: &str| Ok::<_, Error>(frame.data().column(name)?.u64()?);
    let (train, validation) = (column("train_size")?, column("validation_size")?);
    let values = frame.validation()?.values(by)?;
    let mut scores = HashMap::new();
    for (row, key) in frame.keys()?.into_iter().enumerate() {
        let Some(value) = values[row] else { continue };
        let size = |column: &UInt64Chunked| column.get(row).and_then(|size| u32::try_from(size).ok());
        let said = size(train).zip(size(validation)).map(|(train, validation)| [train, validation]);
        let sizes = said.filter(|sizes| !sizes.contains(&0)).or(assumed).unwrap_or_default();
        scores.insert(key, Score { validation: value as f32, last_validation: value as f32, sizes });
    }
    Ok(scores)
}

/// Folds of a trial on the splits from this one on.
fn of_splits(group: &RaceGroup, from: usize) -> usize {
    group.splits[from..].iter().map(|(_, seeds)| seeds.len()).sum()
}

fn is_live(heat: &Heat, trial: usize) -> bool {
    heat.stop(trial).is_none()
}

/// The first of the best.
fn best(means: &[f64], counts: impl Fn(usize) -> bool) -> usize {
    let better = |best: usize, trial: usize| {
        if counts(trial) && (!counts(best) || means[trial] > means[best]) { trial } else { best }
    };
    (0..means.len()).fold(0, better)
}

/// Trials that differ only in what is raced among and have finished on the same folds as the fullest of them.
fn grouped(settings: &[(TrialId, Vec<String>)], scores: &HashMap<FoldKey, Score>) -> Vec<RaceGroup> {
    let mut of: HashMap<TrialId, BTreeSet<(u32, u64)>> = HashMap::new();
    for fold in scores.keys() {
        of.entry(fold.trial).or_default().insert((fold.split, fold.seed));
    }
    let mut alike: Vec<(&[String], Vec<TrialId>)> = Vec::new();
    for (trial, labels) in settings {
        match alike.iter_mut().find(|(known, _)| *known == labels.as_slice()) {
            Some((_, trials)) => trials.push(*trial),
            None => alike.push((labels, vec![*trial])),
        }
    }
    let group = |(_, trials): (&[String], Vec<TrialId>)| {
        let fullest = trials.iter().map(|trial| &of[trial]).max_by_key(|folds| folds.len())?;
        let mut splits: Vec<(u32, Vec<u64>)> = Vec::new();
        for (split, seed) in fullest {
            match splits.last_mut().filter(|(last, _)| last == split) {
                Some((_, seeds)) => seeds.push(*seed),
                None => splits.push((*split, vec![*seed])),
            }
        }
        let trials: Vec<TrialId> = trials.iter().copied().filter(|trial| of[trial] == *fullest).collect();
        (trials.len() > 1 && splits.len() > 2).then_some(RaceGroup { trials, splits, rungs: Vec::new() })
    };
    alike.into_iter().filter_map(group).collect()
}

/// Smaller searches: some of the trials, and the splits in another order. The n-th is the same each time.
fn drawn(group: &RaceGroup, draws: u32, of: usize) -> impl Iterator<Item = RaceGroup> + '_ {
    (0..draws).map(move |draw| {
        let place = |what: &[u8]| {
            *blake3::Hasher::new().update(&draw.to_le_bytes()).update(what).finalize().as_bytes()
        };
        let mut trials = group.trials.clone();
        trials.sort_by_cached_key(|trial| place(trial.as_bytes()));
        trials.truncate(of.max(2));
        let mut splits = group.splits.clone();
        splits.sort_by_cached_key(|(split, _)| place(&split.to_le_bytes()));
        RaceGroup { trials, splits, rungs: Vec::new() }
    })
}

/// The interval of Wilson for a share, at 95%.
fn wilson(hits: usize, of: usize) -> [f64; 2] {
    if of == 0 {
        return [0.0, 1.0];
    }
    let (z, n) = (1.959_963_984_540_054_f64, of as f64);
    let share = hits as f64 / n;
    let middle = share + z * z / (2.0 * n);
    let wide = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [-1.0, 1.0].map(|side| ((middle + side * wide) / (1.0 + z * z / n)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use togl_sweeps::TrialConfig;
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::frame::FoldRow;
    use crate::test_folds::{folds, frame, trial};

    fn wanted() -> ReplaySpec {
        let among = vec!["lr".to_owned()];
        ReplaySpec { among, by: Metric::ValidationAccuracy, after: 4, ratio: None, draws: 0, of: 4 }
    }

    /// Trials on ten splits, each as good as its place, but for a late bloomer.
    fn search() -> Vec<FoldRow> {
        let rate = |at: u32| TrialConfig { lr: f64::from(at + 1) / 100.0, ..trial("DD", Backbone::Gcn, 4) };
        let noise = |at: u32, split: u32| f64::from((at * 7 + split * 3) % 5) / 100.0;
        let value = |at: u32, split: u32| match at {
            5 if split > 4 => 0.99,
            5 => 0.3 + noise(at, split),
            _ => 0.2 + f64::from(at) / 10.0 + noise(at, split),
        };
        (0..6)
            .flat_map(|at| {
                folds(at.into(), &rate(at), &(0..10).map(|split| value(at, split)).collect::<Vec<_>>())
            })
            .collect()
    }

    #[test]
    fn bolder_rules_save_more_and_a_winner_that_blooms_late_is_lost() {
        let replayed = replay(&frame(search()), &wanted()).expect("replayed");
        assert!(replayed.windows(2).take(4).all(|pair| pair[0].saved <= pair[1].saved), "{replayed:#?}");
        assert!(replayed.iter().all(|rule| rule.folds == 60 && rule.searches == 1));
        let usual = &replayed[2];
        assert_eq!((usual.rule.as_str(), usual.kept), ("alpha 0.025", 0), "{usual:?}");
        assert!(usual.lost > 3.0, "{usual:?}");
        assert!(usual.saved >= 4 * 6 - 6, "{usual:?}");
        assert!(text(&replayed).contains("mean below the leader's worst split"));
    }

    #[test]
    fn trials_with_fewer_folds_do_not_race_and_without_sizes_nothing_is_guessed() {
        let mut some = search();
        some.pop();
        let replayed = replay(&frame(some), &wanted()).expect("replayed");
        assert_eq!(replayed[0].folds, 50);
        let mut unsized_folds = search();
        unsized_folds.iter_mut().for_each(|row| row.result.part_sizes = [0; 3]);
        let frame = frame(unsized_folds);
        assert!(replay(&frame, &wanted()).expect_err("no sizes").to_string().contains("`--ratio`"));
        assert!(replay(&frame, &ReplaySpec { ratio: Some(0.125), ..wanted() }).is_ok());
        let other = ReplaySpec { among: vec!["depth".to_owned()], ..wanted() };
        assert!(
            replay(&frame, &other).expect_err("nobody differs").to_string().contains("nothing to replay")
        );
    }

    #[test]
    fn folds_of_programs_race_by_the_settings_that_their_program_declares() {
        let sweep = "version: 1\nname: x\nprogram: {run: [t], version: 1, settings: {rate: number, width: whole}}\n\
                     base: {dataset: own}\ngrid: {rate: [0.1, 0.2, 0.3], width: [8, 16]}\n";
        let spec = togl_sweeps::SweepSpec::parse(sweep).expect("a sweep");
        let rows = spec.trials.iter().flat_map(|trial| {
            let of = |split: u32| 0.3 + 0.1 * (trial.position / 2) as f64 + f64::from(split % 3) / 100.0;
            folds(trial.position, &trial.config, &(0..10).map(of).collect::<Vec<_>>())
        });
        let frame = frame(rows.collect::<Vec<_>>());
        let of = |among: &str| {
            let among = among.split(',').map(str::to_owned).collect();
            replay(&frame, &ReplaySpec { among, ..wanted() })
        };
        let (apart, together) = (of("rate").expect("replayed"), of("rate,width").expect("replayed"));
        assert_eq!((apart[2].searches, apart[2].folds), (2, 60), "trials of different width do not race");
        assert_eq!((together[2].searches, together[2].folds), (1, 60));
        assert!(of("rat").expect_err("no such setting").to_string().contains("rat"));
    }

    #[test]
    fn a_trial_races_once_also_where_its_folds_do_not_stand_together() {
        let mut rows = search();
        // As in an import, where each run has a place of its own.
        rows.sort_by_key(|row| row.fold.split);
        (0..).zip(&mut rows).for_each(|(position, row)| row.position = position);
        assert_eq!(
            replay(&frame(rows), &wanted()).expect("replayed"),
            replay(&frame(search()), &wanted()).expect("replayed")
        );
    }

    #[test]
    fn what_somebody_keeps_beside_folds_is_no_setting_that_keeps_trials_apart() {
        let mut data = frame(search()).data().clone();
        let notes: Vec<String> = (0..data.height()).map(|row| format!("run {row}")).collect();
        data.with_column(polars::prelude::Column::new("note".into(), notes.clone())).expect("a column");
        data.with_column(polars::prelude::Column::new("wandb_Agent".into(), vec!["a"; notes.len()]))
            .expect("a column");
        let noted = FoldFrame::from_data(&data, "test").expect("a frame");
        assert_eq!(
            replay(&noted, &wanted()).expect("replayed"),
            replay(&frame(search()), &wanted()).expect("replayed")
        );
    }

    #[test]
    fn draws_are_the_same_each_time_and_smaller_than_their_group() {
        let wanted = ReplaySpec { draws: 20, of: 3, ..wanted() };
        let (one, other) = (replay(&frame(search()), &wanted), replay(&frame(search()), &wanted));
        let one = one.expect("drawn");
        assert_eq!(one, other.expect("drawn again"));
        assert_eq!((one[0].searches, one[0].folds), (20, 20 * 3 * 10));
    }

    #[test]
    fn the_interval_is_the_one_of_statsmodels() {
        // statsmodels.stats.proportion.proportion_confint(95, 100, method="wilson")
        let [low, high] = wilson(95, 100);
        assert!(
            (low - 0.888_249_530_768_080_8).abs() < 1e-9 && (high - 0.978_456_320_845_631_9).abs() < 1e-9,
            "{low} {high}"
        );
    }
}
