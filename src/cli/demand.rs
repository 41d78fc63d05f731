//! `togl demand`: how many folds could start now if there were slots for them, by what they need.

use serde::Serialize;
use togl_proto::wire;

use crate::output::{self, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::{self, CoordinatorTarget};

/// Say how many folds could start if there were slots for them
#[derive(Debug, clap::Args)]
pub struct Demand {
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

/// Folds that need the same.
#[derive(Serialize)]
struct Shape {
    device: String,
    /// In bytes; 0 if any will do.
    memory: u64,
    resumable: bool,
    p90_seconds: Option<u64>,
    folds: u64,
    free_slots: u64,
    /// Slots that they could fill beside those.
    slots_wanted: u64,
}

impl From<wire::Shape> for Shape {
    fn from(shape: wire::Shape) -> Self {
        let wire::Shape { device, memory, resumable, p90_seconds, folds, free_slots } = shape;
        let slots_wanted = folds.saturating_sub(free_slots);
        Self { device, memory, resumable, p90_seconds, folds, free_slots, slots_wanted }
    }
}

impl ListRow for Shape {
    const COLUMNS: &'static [&'static str] =
        &["DEVICE", "MEMORY", "RESUMABLE", "P90 SECONDS", "FOLDS", "FREE SLOTS", "WANTED"];

    fn cells(&self) -> Vec<String> {
        let memory = match self.memory {
            0 => "any".to_owned(),
            bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        };
        let resumable = if self.resumable { "yes" } else { "no" };
        let p90 = self.p90_seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
        let counts = [self.folds, self.free_slots, self.slots_wanted].map(|count| count.to_string());
        [self.device.clone(), memory, resumable.to_owned(), p90].into_iter().chain(counts).collect()
    }
}

impl Demand {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let reply = client.demand(wire::DemandRequest {}).await.map_err(remote::refused)?.into_inner();
        let shapes: Vec<Shape> = reply.shapes.into_iter().map(Into::into).collect();
        let idle = format!("no fold waits for a slot; {} slots are free", reply.free_slots);
        output::list_unless_empty(&shapes, &self.listing, &idle)
    }
}
