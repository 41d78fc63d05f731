//! The connection to the coordinator: keeps one session open, reconnects with growing pauses, and hands every
//! message to the agent. How a connection is made is an argument; what the messages mean is not its business.

use std::future::Future;
use std::time::Duration;

use togl_proto::client::{self, AuthorisedChannel, ConnectError};
use togl_proto::wire::workers_client::WorkersClient;
use togl_proto::wire::{CoordinatorMessage, WorkerMessage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// What happens to the connection.
#[derive(Debug)]
pub enum LinkEvent {
    /// A session is open; messages for the coordinator go here. The agent must say hello first.
    Open(mpsc::Sender<WorkerMessage>),
    /// The coordinator said something.
    Message(Box<CoordinatorMessage>),
    /// The session ended; a new one is being tried.
    Lost(String),
    /// It will never work.
    Refused(LinkRefusal),
}

/// Why a coordinator will never take this worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkRefusal {
    /// Its token is unknown, was revoked or has expired.
    #[error("{0}")]
    Token(String),
    /// Anything else: the address, the role of the token, the version of the program.
    #[error("{0}")]
    Other(String),
}

/// Pauses between attempts to connect: quick at first, because a coordinator restarts in a moment.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// What a connection gives: somebody to open sessions with.
pub type Connected = Result<WorkersClient<AuthorisedChannel>, ConnectError>;

/// Keeps a session open until the agent stops listening. Each connection is made by `connect`.
pub async fn keep<C>(connect: impl Fn() -> C + Send, events: mpsc::Sender<LinkEvent>)
where
    C: Future<Output = Connected> + Send,
{
    let mut failures = 0;
    loop {
        let ended = session(connect().await, &events).await;
        let pause = match ended {
            Ended::AgentGone => return,
            Ended::Refused(reason) => {
                let _ = events.send(LinkEvent::Refused(reason)).await;
                return;
            }
            Ended::Lost { reason, was_open } => {
                failures = if was_open { 0 } else { failures + 1 };
                if events.send(LinkEvent::Lost(reason)).await.is_err() {
                    return;
                }
                PAUSES[failures.min(PAUSES.len() - 1)]
            }
        };
        tokio::time::sleep(pause).await;
    }
}

enum Ended {
    AgentGone,
    Refused(LinkRefusal),
    Lost { reason: String, was_open: bool },
}

async fn session(connected: Connected, events: &mpsc::Sender<LinkEvent>) -> Ended {
    let mut client = match connected {
        Ok(client) => client,
        // A stranger may be a proxy in front of a coordinator that is being started again.
        Err(error @ (ConnectError::Unreachable { .. } | ConnectError::Stranger { .. })) => {
            return Ended::Lost { reason: error.to_string(), was_open: false };
        }
        Err(error) => return Ended::Refused(LinkRefusal::Other(error.to_string())),
    };
    let (sender, outgoing) = mpsc::channel(64);
    let mut incoming = match client.session(ReceiverStream::new(outgoing)).await {
        Ok(response) => response.into_inner(),
        Err(status) => return ended_by(&status, false),
    };
    if events.send(LinkEvent::Open(sender)).await.is_err() {
        return Ended::AgentGone;
    }
    loop {
        match incoming.message().await {
            Ok(Some(message)) => {
                if events.send(LinkEvent::Message(Box::new(message))).await.is_err() {
                    return Ended::AgentGone;
                }
            }
            Ok(None) => {
                return Ended::Lost {
                    reason: "the coordinator ended the session".to_owned(),
                    was_open: true,
                };
            }
            Err(status) => return ended_by(&status, true),
        }
    }
}

fn ended_by(status: &tonic::Status, was_open: bool) -> Ended {
    use tonic::Code;
    match status.code() {
        Code::Unauthenticated => Ended::Refused(LinkRefusal::Token(status.message().to_owned())),
        Code::PermissionDenied | Code::Unimplemented | Code::InvalidArgument | Code::FailedPrecondition => {
            Ended::Refused(LinkRefusal::Other(status.message().to_owned()))
        }
        _ => {
            let reason = client::broken(status).unwrap_or_else(|| status.message().to_owned());
            Ended::Lost { reason, was_open }
        }
    }
}
