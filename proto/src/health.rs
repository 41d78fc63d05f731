//! Whether a coordinator serves, as its gRPC health says. Asking needs no token; over a network it needs the CA that must
//! answer, because a coordinator speaks without TLS within its machine only.

use std::path::Path;
use std::time::Duration;

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::addresses::{Tried, each};
use crate::client::{ConnectError, Road};
use crate::token::Pin;

/// For the whole question: a coordinator that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a coordinator says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It decides and stores. With its address.
    Serving(String),
    /// It answers, but its driver is stuck or its store is damaged.
    NotServing(String),
}

/// Asks the first of these addresses at which somebody answers; with a PEM file of an own certificate and its key where the
/// coordinator asks for one.
pub async fn ask(
    addresses: &str,
    pin: Option<&Pin>,
    identity: Option<&Path>,
) -> Result<Health, ConnectError> {
    let road = Road::new(pin, identity)?;
    let mut tried = Tried::new(addresses);
    for address in each(addresses) {
        match ask_one(&road, address).await {
            Ok(true) => {
                tried.answered(address);
                return Ok(Health::Serving(address.to_owned()));
            }
            Ok(false) => return Ok(Health::NotServing(address.to_owned())),
            Err(error) => tried.note(address, error)?,
        }
    }
    Err(tried.in_vain())
}

async fn ask_one(road: &Road, address: &str) -> Result<bool, ConnectError> {
    let asking = async {
        let mut client = HealthClient::new(road.open(address).await?);
        let reply = client.check(HealthCheckRequest::default()).await;
        let reply = reply.map_err(|status| ConnectError::Stranger {
            address: address.to_owned(),
            reason: match status.code() {
                Code::Unimplemented => "it has no gRPC health".to_owned(),
                _ => status.message().to_owned(),
            },
        })?;
        Ok(reply.into_inner().status() == ServingStatus::Serving)
    };
    let late = |_| ConnectError::Unreachable {
        address: address.to_owned(),
        reason: format!("no answer within {} seconds", PATIENCE.as_secs()),
    };
    tokio::time::timeout(PATIENCE, asking).await.map_err(late)?
}
