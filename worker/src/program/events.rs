//! What a program says on its descriptor, one JSON object a line: reads lines that are never longer than they may be, and
//! knows each event. What is no event is given back as it is; what follows from an event is decided elsewhere.

use std::io::Read;
use std::sync::mpsc::SyncSender;

use serde::Deserialize;
use togl_sweeps::{Failure, FailureClass};

use super::Heard;

/// The longest line.
const LONGEST: usize = 1 << 20;

/// An event of a program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ProgramEvent {
    /// It has read what it was asked for.
    Started { fold: Option<String> },
    /// An epoch is done.
    Epoch(EpochLine),
    /// A checkpoint is written.
    Saved { epoch: u32, fold: Option<String> },
    /// The fold is finished.
    Result(Box<ResultLine>),
    /// The fold cannot be finished.
    Failed {
        #[serde(default)]
        class: String,
        #[serde(default)]
        message: String,
        fold: Option<String>,
    },
}

/// A line of the learning curve. A value that JSON cannot hold, such as NaN, is none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EpochLine {
    pub epoch: u32,
    #[serde(default)]
    pub of: u32,
    pub train: Option<f64>,
    pub validation: Option<f64>,
    pub train_loss: Option<f64>,
    pub validation_loss: Option<f64>,
    pub lr: Option<f64>,
    pub fold: Option<String>,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ResultLine {
    pub test: Option<f64>,
    pub validation: Option<f64>,
    pub train: Option<f64>,
    pub test_loss: Option<f64>,
    pub validation_loss: Option<f64>,
    pub train_loss: Option<f64>,
    pub best_epoch: Option<u32>,
    pub parameters: Option<u64>,
    /// Examples in the training, the validation and the test part.
    pub sizes: Option<[u64; 3]>,
    pub data_digest: Option<String>,
    pub environment: Option<String>,
    pub fold: Option<String>,
}

impl ProgramEvent {
    /// The fold that it says it is about.
    pub fn fold(&self) -> Option<&str> {
        match self {
            Self::Started { fold } | Self::Saved { fold, .. } | Self::Failed { fold, .. } => fold.as_deref(),
            Self::Epoch(line) => line.fold.as_deref(),
            Self::Result(line) => line.fold.as_deref(),
        }
    }
}

/// The failure that a program reports. Classes that say something of workers are not a program's to claim.
pub fn failure(class: &str, message: &str) -> Failure {
    const CLAIMED: [FailureClass; 4] =
        [FailureClass::OutOfMemory, FailureClass::NotFinite, FailureClass::Data, FailureClass::Config];
    let claimed = CLAIMED.into_iter().find(|known| known.as_str() == class);
    let line = message.lines().next().unwrap_or_default();
    let message: String = if line.is_empty() {
        "the program gave no reason".to_owned()
    } else {
        line.chars().take(1_000).collect()
    };
    Failure::new(claimed.unwrap_or(FailureClass::Error), message)
}

/// Hears events until the descriptor is closed, or nobody wants to hear more. Ends after the first line that is none.
pub fn hear(mut from: impl Read, heard: &SyncSender<Heard>) {
    let (mut line, mut block) = (Vec::new(), [0; 1 << 14]);
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for byte in &block[..read] {
            if *byte == b'\n' {
                if !line.is_empty() && !pass(&line, heard) {
                    return;
                }
                line.clear();
            } else if line.len() < LONGEST {
                line.push(*byte);
            } else {
                let _ = heard.send(Heard::Rubbish(format!("a line of more than {LONGEST} bytes")));
                return;
            }
        }
    }
    if !line.is_empty() {
        pass(&line, heard); // it ended in the middle of a line, or left the end of the line away
    }
}

/// Says whether to go on.
fn pass(line: &[u8], heard: &SyncSender<Heard>) -> bool {
    match serde_json::from_slice::<ProgramEvent>(&without_nan(line)) {
        Ok(event) => heard.send(Heard::Said(Box::new(event))).is_ok(),
        Err(_) => {
            let _ = heard.send(Heard::Rubbish(String::from_utf8_lossy(line).into_owned()));
            false
        }
    }
}

/// Python's `NaN` and `Infinity` are no JSON: they become nothing, which is what is then complained about.
fn without_nan(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    let mut plain = text.into_owned();
    for (word, null) in [(": NaN", ": null"), (": -Infinity", ": null"), (": Infinity", ": null")] {
        if plain.contains(word) {
            plain = plain.replace(word, null);
        }
    }
    plain.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn heard(bytes: &[u8]) -> Vec<String> {
        let (sender, receiver) = sync_channel(64);
        hear(bytes, &sender);
        drop(sender);
        let word = |heard: Heard| match heard {
            Heard::Said(event) => {
                format!("{event:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
            }
            Heard::Rubbish(line) => format!("rubbish {}", line.chars().take(12).collect::<String>()),
        };
        receiver.iter().map(word).collect()
    }

    #[test]
    fn events_are_heard_in_order_and_what_is_none_ends_it() {
        let good = b"{\"event\":\"started\"}\n\n{\"event\":\"epoch\",\"epoch\":0,\"extra\":1}\n{\"event\":\"result\",\"test\":1}";
        assert_eq!(heard(good), ["Started", "Epoch", "Result"]);
        assert_eq!(heard(b"hello\n{\"event\":\"started\"}\n"), ["rubbish hello"]);
        assert_eq!(heard(b"{\"event\":\"dance\"}\n"), ["rubbish {\"event\":\"da"]);
        assert_eq!(heard(b"\xff\xfe\n").len(), 1);
        assert_eq!(heard(&vec![b'x'; LONGEST + 2]), ["rubbish a line of mo"]);
    }

    #[test]
    fn a_value_that_is_not_finite_is_heard_as_none() {
        let (sender, receiver) = sync_channel(4);
        hear(&b"{\"event\": \"result\", \"test\": NaN, \"validation\": 0.5}\n"[..], &sender);
        drop(sender);
        let Some(Heard::Said(event)) = receiver.iter().next() else { panic!("an event") };
        let ProgramEvent::Result(line) = *event else { panic!("a result") };
        assert_eq!((line.test, line.validation), (None, Some(0.5)));
    }

    #[test]
    fn a_program_claims_only_classes_that_are_its_own_business() {
        assert_eq!(failure("out-of-memory", "x").class, FailureClass::OutOfMemory);
        for class in ["preempted", "worker-lost", "kills-its-worker", "", "dance"] {
            assert_eq!(failure(class, "x").class, FailureClass::Error, "{class}");
        }
        assert_eq!(failure("error", "one\ntwo").message, "one");
    }
}
