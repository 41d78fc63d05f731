//! Wire to domain and back. A wire message that does not make sense is refused here, with the name of the
//! field; nothing that a peer sent can get past this file unchecked.

use togl_sweeps::failure::UnknownClass;
use togl_sweeps::result::{EpochRecord, Metrics, Provenance, RESULT_VERSION, ResultError};
use togl_sweeps::{Attempt, CheckedResult, Failure, FoldKey, FoldResult, Goal, Scale, TrialConfig};

use crate::wire;

/// Why a wire message was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A message that must be there is not.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// A field holds something that it cannot hold.
    #[error("the field `{field}` is wrong: {reason}")]
    Wrong {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A result whose numbers cannot be, or of a newer form.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// A failure of a kind that came later.
    #[error("{0} that this program knows; upgrade it")]
    Class(#[from] UnknownClass),
}

impl ConvertError {
    /// Whether a newer version of this program might read it.
    pub fn is_newer(&self) -> bool {
        match self {
            Self::Result(ResultError::Newer { .. }) | Self::Class(_) => true,
            Self::Result(
                ResultError::Impossible { .. }
                | ResultError::Contradiction { .. }
                | ResultError::Score(_)
                | ResultError::TooLong { .. },
            )
            | Self::Missing(_)
            | Self::Wrong { .. } => false,
        }
    }
}

fn wrong(field: &'static str) -> impl Fn(&dyn std::fmt::Display) -> ConvertError {
    move |reason| ConvertError::Wrong { field, reason: reason.to_string() }
}

impl From<FoldKey> for wire::Fold {
    fn from(fold: FoldKey) -> Self {
        Self { trial: fold.trial.to_string(), split: fold.split, seed: fold.seed }
    }
}

impl TryFrom<wire::Fold> for FoldKey {
    type Error = ConvertError;

    fn try_from(fold: wire::Fold) -> Result<Self, ConvertError> {
        let trial = fold.trial.parse().map_err(|e| wrong("fold.trial")(&e))?;
        Ok(Self { trial, split: fold.split, seed: fold.seed })
    }
}

/// A fold that must be there.
pub fn fold(fold: Option<wire::Fold>) -> Result<FoldKey, ConvertError> {
    fold.ok_or(ConvertError::Missing("fold"))?.try_into()
}

/// An attempt counts from 1.
pub fn attempt(number: u32) -> Result<Attempt, ConvertError> {
    if number == 0 {
        return Err(wrong("attempt")(&"attempts count from 1"));
    }
    Ok(Attempt(number))
}

/// A trial from its canonical JSON, if it has the id that the fold claims.
pub fn trial(config: &str, fold: FoldKey) -> Result<TrialConfig, ConvertError> {
    let trial = TrialConfig::from_canonical(config).map_err(|e| wrong("config")(&e))?;
    if trial.id() != fold.trial {
        return Err(wrong("config")(&format!("has id {}, not {}", trial.id(), fold.trial)));
    }
    Ok(trial)
}

impl From<Metrics> for wire::Metrics {
    fn from(metrics: Metrics) -> Self {
        Self { loss: metrics.loss, accuracy: metrics.accuracy }
    }
}

impl From<wire::Metrics> for Metrics {
    fn from(metrics: wire::Metrics) -> Self {
        Self { loss: metrics.loss, accuracy: metrics.accuracy }
    }
}

fn metrics(field: &'static str, metrics: Option<wire::Metrics>) -> Result<Metrics, ConvertError> {
    Ok(metrics.ok_or(ConvertError::Missing(field))?.into())
}

impl From<Scale> for wire::Scale {
    fn from(scale: Scale) -> Self {
        let Scale { goal, high, low, name } = scale;
        Self { name: name.into_owned(), goal: goal.as_str().to_owned(), low, high }
    }
}

impl TryFrom<wire::Scale> for Scale {
    type Error = ConvertError;

    fn try_from(scale: wire::Scale) -> Result<Self, ConvertError> {
        let wire::Scale { name, goal, low, high } = scale;
        let goal = Goal::from_word(&goal)
            .ok_or_else(|| wrong("score.goal")(&format!("`{goal}` is neither `max` nor `min`")))?;
        let scale = Self { goal, high, low, name: name.into() };
        scale.check().map_err(|error| wrong("score")(&error))?;
        Ok(scale)
    }
}

impl From<Failure> for wire::Failure {
    fn from(failure: Failure) -> Self {
        Self { class: failure.class.to_string(), message: failure.message }
    }
}

impl TryFrom<wire::Failure> for Failure {
    type Error = ConvertError;

    fn try_from(failure: wire::Failure) -> Result<Self, ConvertError> {
        let class = failure.class.parse()?;
        Ok(Self { class, message: failure.message.chars().take(2000).collect() })
    }
}

impl From<Provenance> for wire::Provenance {
    fn from(p: Provenance) -> Self {
        let Provenance { code_version, commit, dirty, libtorch, device, processor, host, worker } = p;
        Self { code_version, commit, dirty, libtorch, device, processor, host, worker }
    }
}

impl From<wire::Provenance> for Provenance {
    fn from(p: wire::Provenance) -> Self {
        let wire::Provenance { code_version, commit, dirty, libtorch, device, processor, host, worker } = p;
        Self { code_version, commit, dirty, libtorch, device, processor, host, worker }
    }
}

impl From<EpochRecord> for wire::Epoch {
    fn from(record: EpochRecord) -> Self {
        Self {
            epoch: record.epoch,
            lr: record.lr,
            train: Some(record.train.into()),
            validation: Some(record.validation.into()),
        }
    }
}

impl TryFrom<wire::Epoch> for EpochRecord {
    type Error = ConvertError;

    fn try_from(epoch: wire::Epoch) -> Result<Self, ConvertError> {
        Ok(Self {
            epoch: epoch.epoch,
            lr: epoch.lr,
            train: metrics("history.train", epoch.train)?,
            validation: metrics("history.validation", epoch.validation)?,
        })
    }
}

impl From<FoldResult> for wire::FoldResult {
    fn from(result: FoldResult) -> Self {
        Self {
            version: result.version,
            numerics: result.numerics,
            test: Some(result.test.into()),
            validation: Some(result.validation.into()),
            train: Some(result.train.into()),
            last_validation: Some(result.last_validation.into()),
            best_epoch: result.best_epoch,
            epochs: result.epochs,
            seconds: result.seconds,
            peak_memory: result.peak_memory,
            parameters: result.parameters,
            confusion: result.confusion.into_iter().map(|counts| wire::ConfusionRow { counts }).collect(),
            part_sizes: result.part_sizes.to_vec(),
            data_digest: result.data_digest,
            split_digest: result.split_digest,
            provenance: Some(result.provenance.into()),
            history: result.history.into_iter().map(Into::into).collect(),
            finished_at: result.finished_at.unwrap_or_default(),
            energy_joules: result.energy_joules,
            score: result.score.map(Into::into),
        }
    }
}

impl TryFrom<wire::FoldResult> for FoldResult {
    type Error = ConvertError;

    /// Reads it, whatever it says; who takes one in asks for a [`CheckedResult`].
    fn try_from(result: wire::FoldResult) -> Result<Self, ConvertError> {
        let sizes: Result<[u64; 3], _> = result.part_sizes.try_into();
        Ok(Self {
            version: result.version,
            numerics: result.numerics,
            score: result.score.map(TryInto::try_into).transpose()?,
            test: metrics("result.test", result.test)?,
            validation: metrics("result.validation", result.validation)?,
            train: metrics("result.train", result.train)?,
            last_validation: metrics("result.last_validation", result.last_validation)?,
            best_epoch: result.best_epoch,
            epochs: result.epochs,
            seconds: result.seconds,
            finished_at: Some(result.finished_at).filter(|time| *time > 0),
            energy_joules: result.energy_joules,
            peak_memory: result.peak_memory,
            parameters: result.parameters,
            confusion: result.confusion.into_iter().map(|row| row.counts).collect(),
            part_sizes: sizes.map_err(|_| wrong("result.part_sizes")(&"expected three sizes"))?,
            data_digest: result.data_digest,
            split_digest: result.split_digest,
            provenance: result.provenance.ok_or(ConvertError::Missing("result.provenance"))?.into(),
            history: result.history.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<wire::FoldResult> for CheckedResult {
    type Error = ConvertError;

    fn try_from(result: wire::FoldResult) -> Result<Self, ConvertError> {
        // First of all: what a newer form holds cannot be judged, not even what is missing.
        if result.version > RESULT_VERSION {
            return Err(ResultError::Newer { found: result.version }.into());
        }
        Ok(FoldResult::try_from(result)?.check()?)
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use togl_sweeps::result;

    use super::*;

    #[test]
    fn a_result_crosses_the_wire_unchanged() {
        let old = result::example(0.1 + 0.2);
        let (finished_at, energy_joules) = (Some(1_700_000_000_123), Some(0.0));
        for result in [FoldResult { finished_at, energy_joules, ..old.clone() }, old] {
            let wire: wire::FoldResult = result.clone().into();
            assert_eq!(*CheckedResult::try_from(wire).unwrap(), result);
        }
    }

    #[test]
    fn the_bytes_of_a_result_from_before_there_were_scores_are_what_they_were() {
        let old = include_bytes!("../tests/fixtures/result-1.bin");
        let wire = wire::FoldResult::decode(&old[..]).unwrap();
        assert_eq!(*CheckedResult::try_from(wire.clone()).unwrap(), result::example(0.75));
        assert_eq!((wire.encode_to_vec().as_slice(), wire.score), (&old[..], None));
    }

    fn scored(value: f64) -> FoldResult {
        let score = Scale { goal: Goal::Min, high: None, low: Some(0.0), name: "MAE".into() };
        FoldResult { version: 2, confusion: Vec::new(), score: Some(score), ..result::example(value) }
    }

    #[test]
    fn a_score_crosses_the_wire_unchanged_and_an_impossible_one_is_refused_by_field() {
        let wire: wire::FoldResult = scored(3.5).into();
        assert_eq!(*CheckedResult::try_from(wire.clone()).unwrap(), scored(3.5));
        let score = wire.score.clone().unwrap();
        let with = |score| CheckedResult::try_from(wire::FoldResult { score, ..wire.clone() }).unwrap_err();
        let upwards = wire::Scale { goal: "up".to_owned(), ..score.clone() };
        assert_eq!(
            with(Some(upwards)).to_string(),
            "the field `score.goal` is wrong: `up` is neither `max` nor `min`"
        );
        let reversed = with(Some(wire::Scale { high: Some(-1.0), ..score }));
        assert!(reversed.to_string().contains("the range is empty"), "{reversed}");
        assert!(with(None).to_string().contains("version = 2"), "without a score it is of version 1");
        let below: wire::FoldResult = scored(-3.5).into();
        assert!(CheckedResult::try_from(below).unwrap_err().to_string().contains("test MAE = -3.5"));
    }

    #[test]
    fn what_a_hostile_peer_might_send_is_refused_by_field() {
        let good: wire::FoldResult = result::example(0.5).into();
        let nan = Some(wire::Metrics { loss: f64::NAN, accuracy: 0.5 });
        let refusals = [
            CheckedResult::try_from(wire::FoldResult { test: nan, ..good.clone() }),
            CheckedResult::try_from(wire::FoldResult { validation: None, ..good.clone() }),
            CheckedResult::try_from(wire::FoldResult { part_sizes: vec![1], ..good.clone() }),
            CheckedResult::try_from(wire::FoldResult { version: 99, ..good }),
        ];
        let texts: Vec<String> = refusals.into_iter().map(|r| r.unwrap_err().to_string()).collect();
        assert_eq!(texts[0], "result has test loss = NaN, which is not a possible value");
        assert_eq!(texts[1], "the field `result.validation` is missing");
        assert_eq!(texts[2], "the field `result.part_sizes` is wrong: expected three sizes");
        assert!(texts[3].starts_with("result has version 99"));
        let fold = wire::Fold { trial: "../../etc/passwd".to_owned(), split: 0, seed: 0 };
        assert!(FoldKey::try_from(fold).is_err());
        assert!(attempt(0).is_err());
    }

    #[test]
    fn a_trial_that_is_not_what_its_id_says_is_refused() {
        let config = r#"{"canonical":1,"dataset":"cycles","numerics":1}"#;
        let honest = TrialConfig::from_canonical(config).unwrap();
        let mut fold = FoldKey { trial: honest.id(), split: 0, seed: 0 };
        assert_eq!(trial(config, fold).unwrap(), honest);
        fold.trial = togl_sweeps::TrialId::from_bytes([7; 16]);
        assert!(trial(config, fold).unwrap_err().to_string().contains("has id"));
    }
}
