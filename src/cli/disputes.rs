//! `togl disputes` lists data sets about which results disagree; `togl settle DATA DIGEST` decides which data is right.

use serde::Serialize;
use togl_proto::wire;

use super::steer::Because;
use crate::output::{self, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::{self, CoordinatorTarget};

/// List data sets about which results disagree
#[derive(Debug, clap::Args)]
pub struct Disputes {
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

/// Say which data a data set is made of
#[derive(Debug, clap::Args)]
pub struct Settle {
    /// The data set, as `togl disputes` names it
    data: String,
    /// The digest that is right, as `togl disputes` shows it
    digest: String,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    target: CoordinatorTarget,
}

#[derive(Serialize)]
struct Dissent {
    data: String,
    expected: String,
    found: String,
    fold: String,
}

impl ListRow for Dissent {
    const COLUMNS: &'static [&'static str] = &["DATA", "EXPECTED", "FOUND", "FOLD"];

    fn cells(&self) -> Vec<String> {
        vec![self.data.clone(), self.expected.clone(), self.found.clone(), self.fold.clone()]
    }
}

impl Disputes {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let reply = client.list_disputes(wire::ListDisputesRequest {}).await.map_err(remote::refused)?;
        let mut rows = Vec::new();
        for wire::Dispute { data, expected, dissent } in reply.into_inner().disputes {
            rows.extend(dissent.into_iter().map(|other| Dissent {
                data: data.clone(),
                expected: expected.clone(),
                found: other.digest,
                fold: remote::fold_text(other.fold.as_ref()),
            }));
        }
        output::list_unless_empty(&rows, &self.listing, "all results come from the same data")
    }
}

impl Settle {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let request = wire::SettleDataRequest { data: self.data.clone(), digest: self.digest };
        let request = self.because.ask(request);
        let reopened = client.settle_data(request).await.map_err(remote::refused)?.into_inner().reopened;
        eprintln!("{}: settled; {reopened} folds with other data will be trained again", self.data);
        Ok(())
    }
}
