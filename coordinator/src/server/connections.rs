//! Accepts connections, finds out whether they are encrypted, and hands on those that may come in. A
//! connection from this machine may go without TLS; any other may not, unless the operator said so. Whoever shows no
//! good token in time is sent away. Knows bytes and tokens' standing, not calls.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::admission::Admission;
use super::complaints::Offence;
use super::visitors::Visitor;
use crate::tasks;

/// First byte of a TLS connection.
const TLS_HELLO: u8 = 0x16;

/// How long to wait when the system has no more connections to give.
const BREATH: Duration = Duration::from_millis(100);

/// Who may come in how.
#[derive(Clone)]
pub(super) struct Connections {
    pub(super) admission: Arc<Admission>,
    pub(super) tls: Arc<ServerConfig>,
    /// Whether other machines may come without TLS.
    pub(super) plaintext: bool,
    /// First bytes of what is spoken inside: the preface of HTTP/2 begins with `P`, other requests of HTTP/1 with `G`.
    pub(super) greetings: &'static [u8],
}

impl Connections {
    /// A stream of connections that ends when its receiver is dropped.
    pub(super) fn open(self, listener: TcpListener) -> ReceiverStream<io::Result<Guarded>> {
        let (entered, connections) = mpsc::channel(64);
        tasks::spawn("connections", self.accept(listener, entered));
        ReceiverStream::new(connections)
    }

    async fn accept(self, listener: TcpListener, entered: mpsc::Sender<io::Result<Guarded>>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = entered.closed() => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Some(visitor) = self.admission.enter(peer.ip().to_canonical()) else { continue };
                    let (connections, entered) = (self.clone(), entered.clone());
                    tasks::spawn("handshake", async move {
                        if let Some(guarded) = connections.admit(stream, visitor).await {
                            let _ = entered.send(Ok(guarded)).await; // the server has ended: so does the connection
                        }
                    });
                }
                Err(error) => {
                    let anybody = IpAddr::from([0, 0, 0, 0]);
                    self.admission.complain(Offence::Exhausted, anybody, &error.to_string());
                    self.admission.visitors().thin_out();
                    sleep(BREATH).await;
                }
            }
        }
    }

    /// Everything up to the first byte that is meant for the server, within the time that strangers have.
    async fn admit(&self, stream: TcpStream, visitor: Arc<Visitor>) -> Option<Guarded> {
        let patience = || visitor.standing.clone().patience(self.admission.bounds.time_to_prove);
        let shaken = tokio::select! {
            shaken = self.shake_hands(stream, &visitor) => shaken,
            () = patience() => Err(Refusal { offence: Offence::Silent, detail: String::new() }),
        };
        match shaken {
            Ok(bytes) => {
                let deadline = Some(patience().boxed());
                Some(Guarded { bytes, visitor, deadline })
            }
            Err(Refusal { offence, detail }) => {
                if !visitor.is_unwelcome() {
                    self.admission.complain(offence, visitor.peer, &detail);
                }
                None
            }
        }
    }

    async fn shake_hands(&self, stream: TcpStream, visitor: &Visitor) -> Result<Bytes, Refusal> {
        let refuse = |offence, detail: String| Refusal { offence, detail };
        let lost = |error: io::Error| refuse(Offence::Silent, error.to_string());
        stream.set_nodelay(true).map_err(lost)?;
        let mut first = [0];
        if stream.peek(&mut first).await.map_err(lost)? == 0 {
            return Err(refuse(Offence::Silent, "it closed without a word".to_owned()));
        }
        visitor.speak();
        match first[0] {
            TLS_HELLO => {
                let accepted = TlsAcceptor::from(self.tls.clone()).accept(stream).await;
                let failed = |error: io::Error| refuse(Offence::Handshake, error.to_string());
                accepted.map(|tls| Bytes::Tls(Box::new(tls))).map_err(failed)
            }
            byte if !self.greetings.contains(&byte) => {
                Err(refuse(Offence::Garbage, format!("first byte {byte:#04x}")))
            }
            _ if self.plaintext || stays_here(&stream) => Ok(Bytes::Plain(stream)),
            _ => Err(refuse(Offence::Unencrypted, "use the join line with its whole token".to_owned())),
        }
    }
}

struct Refusal {
    offence: Offence,
    detail: String,
}

/// Whether both ends of a connection are on this machine.
fn stays_here(stream: &TcpStream) -> bool {
    let ends = [stream.peer_addr(), stream.local_addr()];
    ends.into_iter().all(|end| end.is_ok_and(|end| end.ip().to_canonical().is_loopback()))
}

enum Bytes {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that has come in, watched until it has shown a good token.
pub(super) struct Guarded {
    bytes: Bytes,
    visitor: Arc<Visitor>,
    /// When a stranger is sent away; none for those who are known.
    deadline: Option<BoxFuture<'static, ()>>,
}

impl Guarded {
    pub(super) fn visitor(&self) -> &Arc<Visitor> {
        &self.visitor
    }

    /// An error once the peer has lost the right to be here.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.visitor.is_unwelcome() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let Some(deadline) = &mut self.deadline else { return Ok(()) };
        if !self.visitor.is_stranger() {
            self.deadline = None;
        } else if deadline.as_mut().poll(cx).is_ready() {
            if !self.visitor.is_unwelcome() {
                self.visitor.admission.complain(Offence::Silent, self.visitor.peer, "");
            }
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

/// What is known of a connection, for whoever handles its calls.
#[derive(Clone)]
pub(super) struct From(pub(super) Arc<Visitor>);

impl From {
    pub(super) fn peer(&self) -> IpAddr {
        self.0.peer
    }
}

impl Connected for Guarded {
    type ConnectInfo = From;

    fn connect_info(&self) -> From {
        From(self.visitor.clone())
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.watch(cx)?;
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(cx, to),
            Bytes::Tls(stream) => Pin::new(stream).poll_read(cx, to),
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(cx, from),
            Bytes::Tls(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Bytes::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, from),
            Bytes::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, from),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
