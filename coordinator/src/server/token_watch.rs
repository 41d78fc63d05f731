//! The token of a call, asked about again with every message: what a caller sends and what it is sent passes through
//! here, so that no service can forget to ask. Knows tokens and the frames of a body, not what is in them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body as Frames, Frame};
use tokio::time::Interval;
use tonic::Status;
use tonic::body::Body;

use super::admission::Admission;
use super::seats::Seat;

/// How often a stream on which nothing is said looks whether its token is still good.
const LOOK: Duration = Duration::from_secs(1);

/// Bytes that are handed over in one go. The transport asks for more only when the peer has taken them, so an answer that
/// nobody takes stays here, where it is counted, and not in buffers of its.
const SLICE: usize = 16 << 10;

/// By which token a call was made. Both bodies of a call keep its seat.
#[derive(Clone)]
pub(super) struct TokenWatch {
    pub(super) admission: Arc<Admission>,
    pub(super) seat: Seat,
}

impl TokenWatch {
    /// What the caller sends: an error from the moment on at which its token is good no more.
    pub(super) fn incoming(self, body: Body) -> Body {
        self.watch(body, |status| Some(Err(status)))
    }

    /// What the caller is sent: ends with the reason from that moment on.
    pub(super) fn outgoing(self, body: Body) -> Body {
        self.watch(body, |status| {
            let mut trailers = HeaderMap::new();
            Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers)))
        })
    }

    fn watch(self, body: Body, last: fn(Status) -> Next) -> Body {
        Body::new(Watched { body, rest: Bytes::new(), token: self, last: Some(last), look: None })
    }
}

type Next = Option<Result<Frame<Bytes>, Status>>;

/// A body that ends with its token.
struct Watched {
    body: Body,
    /// Of the last frame.
    rest: Bytes,
    token: TokenWatch,
    /// What comes last if the token ends; none once that was said.
    last: Option<fn(Status) -> Next>,
    /// Made when there is nothing to read for the first time.
    look: Option<Interval>,
}

impl Watched {
    fn slice(&mut self) -> Poll<Next> {
        let slice = self.rest.split_to(self.rest.len().min(SLICE));
        Poll::Ready(Some(Ok(Frame::data(slice))))
    }

    /// Whether it is time to look; if not, the reader is woken when it is.
    fn is_time(&mut self, cx: &mut Context<'_>) -> bool {
        let look = self.look.get_or_insert_with(|| tokio::time::interval(LOOK));
        let is_time = look.poll_tick(cx).is_ready();
        while look.poll_tick(cx).is_ready() {} // only a tick that is still to come wakes anybody
        is_time
    }
}

impl Frames for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        if self.last.is_none() {
            return Poll::Ready(None);
        }
        let next = if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        self.rest = data;
                        self.slice()
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending if self.is_time(cx) => Poll::Pending,
                Poll::Pending => return Poll::Pending,
            }
        } else {
            self.slice()
        };
        match self.token.admission.still_good(self.token.seat.token()) {
            Ok(()) => next,
            Err(status) => Poll::Ready(self.last.take().and_then(|last| last(status))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() || (self.rest.is_empty() && self.body.is_end_stream())
    }
}
