//! The page of `togl web`, `run --web` and `serve --web`: binds a loopback address, finds out what the token may do, and
//! serves `togl-web` from the one live source. Owns the words around the link; shows nothing itself.

mod asked;
#[cfg(test)]
mod bounds_tests;
mod compare;
mod curves;
mod failed;
mod live;
mod open;
mod steer;
mod views;
mod worker;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};
use togl_coordinator::private;
use togl_proto::wire;
use togl_web::PageSettings;
use tokio::net::TcpListener;
use tonic::Code;

use crate::clock;
use crate::problem::Problem;
use crate::remote::{Client, CoordinatorTarget};
use crate::state::StateDir;

pub use self::live::Live;
pub use self::open::open;

/// Where the page is unless the user says otherwise.
pub const USUAL: &str = "127.0.0.1:7448";

/// A page with somewhere to come from.
pub struct Page {
    web: Arc<togl_web::Web<Live>>,
    port: u16,
}

/// Takes an address of this machine, before anything else is done.
pub async fn bind(address: &str) -> Result<TcpListener, Problem> {
    let address = loopback(address)?;
    TcpListener::bind(address).await.map_err(|error| {
        Problem::usage(format!("cannot serve the page at {address}: {error}"))
            .hint("choose another port, such as 127.0.0.1:0 for one that is free")
    })
}

/// The same, if a page is wanted.
pub async fn bind_if(address: Option<&str>) -> Result<Option<TcpListener>, Problem> {
    match address {
        Some(address) => Ok(Some(bind(address).await?)),
        None => Ok(None),
    }
}

/// The target that is the coordinator of this process.
pub fn own(state: &StateDir, address: SocketAddr) -> CoordinatorTarget {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let token_file = Some(state.path().join("operator.token"));
    let folder = Some(state.path().to_owned());
    CoordinatorTarget {
        coordinator: Some(address.to_string()),
        token_file,
        identity: None,
        state: folder,
        context: None,
    }
}

impl Page {
    /// Asks the coordinator what the token may do. `look` leaves the steering out.
    pub async fn open(
        target: CoordinatorTarget,
        listener: &TcpListener,
        look: bool,
    ) -> Result<Self, Problem> {
        let port = listener.local_addr()?.port();
        let client = target.connect().await?;
        let may_steer = may_steer(client.clone()).await? && !look;
        let source = Live::new(target, client)?;
        let settings = PageSettings { port, may_steer, now: clock::running, secret };
        Ok(Self { web: togl_web::Web::new(Arc::new(source), settings), port })
    }

    /// A new link, good for one person.
    pub fn link(&self) -> String {
        self.web.link()
    }

    /// What is said about the link.
    pub fn sentence(&self) -> String {
        format!("page at {} (the link opens it once, within ten minutes)", self.link())
    }

    /// How one comes here from another machine.
    pub fn elsewhere(&self) -> String {
        format!(
            "from another machine: `ssh -L {0}:127.0.0.1:{0} THIS-HOST`, and the same link there",
            self.port
        )
    }

    /// Serves until `stop`.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) -> Result<(), Problem> {
        tokio::select! {
            served = self.web.serve(listener) => served.map_err(Problem::from),
            () = stop => Ok(()),
        }
    }

    /// Keeps a good link in a file for the user alone, where nobody reads what is said.
    pub async fn keep_link(&self, state: &StateDir) {
        loop {
            if let Err(error) = private::write(&link_file(state), (self.link() + "\n").as_bytes()) {
                tracing::warn!(%error, "the link of the page cannot be written");
            }
            tokio::time::sleep(togl_web::CODE_LIFE / 2).await;
        }
    }
}

/// Where [`Page::keep_link`] writes.
pub fn link_file(state: &StateDir) -> PathBuf {
    state.path().join("web.link")
}

/// An address of this machine that no other can reach.
fn loopback(text: &str) -> Result<SocketAddr, Problem> {
    let address: SocketAddr = text.parse().map_err(|_| {
        Problem::usage(format!("`{text}` is no address of this machine"))
            .hint(format!("use IP:PORT, such as {USUAL}"))
    })?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(Problem::usage(format!(
            "the page is not served at {address}: other machines could reach it, unencrypted"
        ))
        .hint("keep it on 127.0.0.1 and come with `ssh -L 7448:127.0.0.1:7448 HOST`")),
    }
}

/// Whether the token may change something: asked with a change that cannot be, since no sweep has an empty name.
async fn may_steer(mut client: Client) -> Result<bool, Problem> {
    let nobody = wire::PauseRequest { sweep: String::new() };
    match client.pause(nobody).await {
        Err(status) if status.code() == Code::PermissionDenied => Ok(false),
        Err(status) if status.code() == Code::InvalidArgument => Ok(true),
        Err(status) => Err(crate::remote::refused(status)),
        Ok(_) => Err(Problem::ours("the coordinator paused a sweep without a name")),
    }
}

/// 256 random bits.
pub fn secret() -> String {
    let mut bytes = [0_u8; 32];
    // Without randomness there are no secrets; the system has some in a moment.
    while SystemRandom::new().fill(&mut bytes).is_err() {
        std::thread::yield_now();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stays_on_this_machine() {
        for good in ["127.0.0.1:7448", "[::1]:0", "127.8.8.8:1"] {
            assert!(loopback(good).is_ok(), "{good}");
        }
        for bad in ["0.0.0.0:7448", "192.168.1.5:7448", "[::]:7448", "7448", "example.org:80", ""] {
            assert!(loopback(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        assert_ne!(secret(), secret());
        assert_eq!(secret().len(), 64);
    }
}
