//! Checkpoints in a world: what a slot saves on its machine, brings to the coordinator by the real courier and fetches from it.
//! Some are brought late, some torn, some never. What a slot goes on from must be what a slot has saved, byte for byte.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use togl_agent::courier::{Brought, Courier, CourierError};
use togl_proto::checkpoint::Held;
use togl_proto::wire::checkpoint_chunk::Kind;
use togl_proto::wire::{CheckpointChunk, CheckpointHead};
use togl_sweeps::{Attempt, FoldKey};

use crate::ledger::Ledger;
use crate::network::{self, Found};

/// Epochs of every fold.
pub const EPOCHS: u32 = 5;

/// The disk of a machine: how far its furthest checkpoint of a fold is.
pub type Checkpoints = Arc<Mutex<BTreeMap<FoldKey, u32>>>;

/// How a checkpoint is brought.
#[derive(Debug, Clone, Copy)]
pub enum How {
    Well,
    /// When the attempt may be over.
    Late,
    /// Promised further than it is, and not all of it comes.
    Cut,
    /// The same, and other bytes come.
    Other,
    Never,
}

pub const HOW: [How; 6] = [How::Well, How::Well, How::Late, How::Cut, How::Other, How::Never];

#[derive(Clone)]
pub struct Moving {
    worker: String,
    token: String,
    checkpoints: Checkpoints,
    ledger: Ledger,
}

/// The bytes of a checkpoint: nobody else has the same.
pub fn content(fold: FoldKey, epochs: u32) -> Vec<u8> {
    let line = format!("{fold} after epoch {epochs}\n");
    let lines = if fold.split.is_multiple_of(3) { 400 } else { 4 };
    line.repeat(lines).into_bytes()
}

impl Moving {
    pub fn new(worker: &str, token: String, checkpoints: Checkpoints, ledger: Ledger) -> Self {
        Self { worker: worker.to_owned(), token, checkpoints, ledger }
    }

    /// A courier, and whom it finds.
    fn courier(&self) -> (Courier, Found) {
        let (token, found) = (self.token.clone(), Found::default());
        let on = found.clone();
        let connect = move || network::checkpoints(token.clone(), on.clone());
        (Courier::new(self.worker.parse().unwrap(), connect), found)
    }

    /// Where an attempt begins: after so many epochs.
    pub async fn begin(self, fold: FoldKey, attempt: Attempt, held: Option<Held>) -> u32 {
        let here = self.checkpoints.lock().unwrap().get(&fold).copied().unwrap_or(0);
        if held.is_none_or(|held| held.epochs <= here) {
            return here;
        }
        match self.courier().0.fetch(fold, attempt).await {
            Ok(Some((held, bytes))) => {
                if bytes != content(fold, held.epochs) || held.epochs > EPOCHS {
                    self.ledger.broken(format!(
                        "{} goes on from a checkpoint of {fold} that nobody saved",
                        self.worker
                    ));
                }
                self.ledger.count("folds that moved");
                self.save(fold, held.epochs);
                held.epochs
            }
            Ok(None) => {
                self.ledger.count("checkpoints that were gone");
                here
            }
            Err(CourierError::Torn(torn)) => {
                self.ledger.torn(fold, &torn);
                here
            }
            Err(error) => {
                self.ledger.tell("courier", &error);
                self.ledger.count("checkpoints that did not come");
                here
            }
        }
    }

    /// Writes a checkpoint on this machine.
    pub fn save(&self, fold: FoldKey, epochs: u32) {
        let mut all = self.checkpoints.lock().unwrap();
        let furthest = all.entry(fold).or_default();
        *furthest = epochs.min(EPOCHS).max(*furthest);
    }

    /// Brings what is on this machine.
    pub async fn bring(self, fold: FoldKey, attempt: Attempt, how: How) {
        let Some(epochs) = self.checkpoints.lock().unwrap().get(&fold).copied() else { return };
        let bytes = content(fold, epochs);
        match how {
            How::Never => return self.ledger.count("checkpoints that never came"),
            How::Late => {
                self.ledger.count("late checkpoints");
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            How::Cut => return self.deceive(fold, attempt, &bytes, bytes[..bytes.len() / 2].to_vec()).await,
            How::Other => return self.deceive(fold, attempt, &bytes, vec![0; bytes.len()]).await,
            How::Well => {}
        }
        let (courier, found) = self.courier();
        match courier.bring(fold, attempt, epochs, bytes).await {
            Ok(Brought::Kept) => self.ledger.brought(*found.lock().unwrap(), fold, epochs),
            Ok(Brought::Declined(_)) => self.ledger.count("declined checkpoints"),
            Ok(Brought::NobodyHolds) => {
                self.ledger.broken("a coordinator forgot that it holds checkpoints".to_owned())
            }
            Err(error) => {
                self.ledger.tell("courier", &error);
                self.ledger.count("checkpoints that did not arrive");
            }
        }
    }

    /// Promises a checkpoint further than any, and sends other bytes. The courier would not. A coordinator that compares nothing is
    /// played by a promise that fits whatever is sent.
    async fn deceive(self, fold: FoldKey, attempt: Attempt, promised: &[u8], sent: Vec<u8>) {
        let compares_nothing = self.ledger.notes().compares_nothing;
        let held = Held::of(EPOCHS + 1, if compares_nothing { &sent } else { promised });
        let head = CheckpointHead {
            fold: Some(fold.into()),
            attempt: attempt.0,
            worker: self.worker.clone(),
            held: Some(held.into()),
            url: String::new(),
        };
        let chunks = [Kind::Head(head), Kind::Bytes(sent)].map(|kind| CheckpointChunk { kind: Some(kind) });
        let Ok(mut client) = network::checkpoints(self.token.clone(), Found::default()).await else { return };
        match client.put(tokio_stream::iter(chunks)).await {
            // Whoever goes on from it notices, too.
            Ok(reply) if reply.get_ref().kept && compares_nothing => self.ledger.count("kept torn"),
            Ok(reply) if reply.get_ref().kept => {
                self.ledger.broken(format!("a torn checkpoint of {fold} was kept"));
            }
            Ok(_) => self.ledger.count("declined checkpoints"),
            Err(status) if status.code() == tonic::Code::InvalidArgument => {
                self.ledger.count("torn checkpoints")
            }
            Err(_) => {} // a fault came first
        }
    }
}
