//! The simulated network: connections that tonic can use on either side.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use togl_agent::courier;
use togl_agent::link::Connected as Link;
use togl_proto::client::{self, Bearer, ConnectError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_stream::Stream;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};
use turmoil::net::{TcpListener, TcpStream};

pub const COORDINATOR: &str = "coordinator";
/// A second one, which waits for the store of the first, or is not there.
pub const STANDBY: &str = "standby";
/// All of them, in the order in which they are tried.
pub const COORDINATORS: [&str; 2] = [COORDINATOR, STANDBY];
pub const PORT: u16 = 7447;

/// A connection as the server takes it.
pub struct Accepted(TcpStream);

impl Connected for Accepted {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Connections that arrive at the port of this host.
pub async fn incoming() -> io::Result<impl Stream<Item = io::Result<Accepted>>> {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    Ok(futures::stream::unfold(listener, |listener| async move {
        let accepted = listener.accept().await.map(|(stream, _)| Accepted(stream));
        Some((accepted, listener))
    }))
}

/// A channel to the first coordinator that answers, with the timeouts of the real client.
pub async fn connect() -> Result<Channel, tonic::transport::Error> {
    Ok(find().await?.1)
}

/// The same, and whose it is.
async fn find() -> Result<(&'static str, Channel), tonic::transport::Error> {
    match connect_to(COORDINATOR, Duration::from_secs(2)).await {
        Ok(channel) => Ok((COORDINATOR, channel)),
        Err(_) => Ok((STANDBY, connect_to(STANDBY, Duration::from_secs(5)).await?)),
    }
}

async fn connect_to(host: &'static str, patience: Duration) -> Result<Channel, tonic::transport::Error> {
    let connector = tower::service_fn(move |_: Uri| async move {
        Ok::<_, io::Error>(TokioIo::new(TcpStream::connect((host, PORT)).await?))
    });
    Endpoint::from_static("http://coordinator:7447")
        .connect_timeout(patience)
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .connect_with_connector(connector)
        .await
}

/// Whom a courier found last.
pub type Found = Arc<Mutex<&'static str>>;

/// A connection for a worker's courier.
pub async fn checkpoints(token: String, found: Found) -> courier::CourierConnection {
    let (host, channel) = find().await.map_err(unreachable)?;
    *found.lock().unwrap() = host;
    Ok(client::checkpoints_on(channel, Bearer::new(&token)?))
}

fn unreachable(error: tonic::transport::Error) -> ConnectError {
    ConnectError::Unreachable { address: COORDINATOR.to_owned(), reason: error.to_string() }
}

/// A connection for a worker's link.
pub async fn workers(token: String) -> Link {
    Ok(client::workers_on(connect().await.map_err(unreachable)?, Bearer::new(&token)?))
}
