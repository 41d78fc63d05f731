//! Authorisation: every call must carry a token of a role that may make it. The table of calls is here, and a call that is
//! not in it is the operator's alone. Says no before a byte of the message is read, also to a token that has too much under
//! way (`seats.rs`), and watches the token of each call for as long as it lasts (`token_watch.rs`).

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt, ready};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::admission::{Admission, Shown};
use super::complaints::Offence;
use super::connections::From;
use super::seats::{CallKind, Seat, Seats};
use super::token_watch::TokenWatch;
use crate::tasks;
use crate::tokens::Role;

const TRAIN: &[Role] = &[Role::Worker];
const CHANGE: &[Role] = &[Role::Operator];
const READ: &[Role] = &[Role::Operator, Role::Viewer];

/// Who may call what, and what it takes. A test compares it with the services.
pub const CALLS: &[(&str, &[Role], CallKind)] = &[
    ("/togl.v1.Workers/Session", TRAIN, CallKind::Session),
    ("/togl.v1.Workers/Program", TRAIN, CallKind::Checkpoint),
    ("/togl.v1.Checkpoints/Put", TRAIN, CallKind::Checkpoint),
    ("/togl.v1.Checkpoints/Get", TRAIN, CallKind::Checkpoint),
    ("/togl.v1.Checkpoints/Place", TRAIN, CallKind::Checkpoint),
    ("/togl.v1.Checkpoints/Placed", TRAIN, CallKind::Checkpoint),
    ("/togl.v1.Checkpoints/TryStorage", TRAIN, CallKind::Checkpoint),
    ("/togl.v1.Sweeps/Submit", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Adopt", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Preview", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Cancel", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Pause", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Resume", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Retry", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Archive", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Prioritise", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Drain", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/Demand", READ, CallKind::Single),
    ("/togl.v1.Sweeps/HoldPool", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/ListPools", READ, CallKind::Single),
    ("/togl.v1.Sweeps/Curves", READ, CallKind::Single),
    ("/togl.v1.Sweeps/SettleData", CHANGE, CallKind::Single),
    ("/togl.v1.Sweeps/ListDisputes", READ, CallKind::Single),
    ("/togl.v1.Sweeps/History", READ, CallKind::Read),
    ("/togl.v1.Sweeps/Acts", READ, CallKind::Read),
    ("/togl.v1.Sweeps/ListSweeps", READ, CallKind::Single),
    ("/togl.v1.Sweeps/ListWorkers", READ, CallKind::Single),
    ("/togl.v1.Sweeps/Status", READ, CallKind::Single),
    ("/togl.v1.Sweeps/Watch", READ, CallKind::Watch),
    ("/togl.v1.Sweeps/Follow", READ, CallKind::Watch),
    ("/togl.v1.Sweeps/Explain", READ, CallKind::Read),
    ("/togl.v1.Sweeps/Read", READ, CallKind::Read),
    ("/togl.v1.Sweeps/Log", READ, CallKind::Read),
];

/// Health says nothing but "serving", and whoever asks for it has no token.
const FREE: &str = "/grpc.health.v1.Health/";

/// Reflection tells what calls there are: anybody with a token may know.
const ANYBODY: &str = "/grpc.reflection.";

fn rule(path: &str) -> (&'static [Role], CallKind) {
    if path.starts_with(ANYBODY) {
        return (&Role::ALL, CallKind::Single);
    }
    let call = CALLS.iter().find(|(call, ..)| *call == path);
    call.map_or((CHANGE, CallKind::Single), |(_, roles, kind)| (roles, *kind))
}

/// Lets only calls with a token of the right role pass.
#[derive(Clone)]
pub(super) struct Authorisation<S> {
    inner: S,
    admission: Arc<Admission>,
    seats: Seats,
}

impl<S> Authorisation<S> {
    pub(super) fn new(inner: S, admission: Arc<Admission>, seats: Seats) -> Self {
        Self { inner, admission, seats }
    }

    /// The seat of a call that may be made; none if it needs none.
    fn look_at(&self, request: &Request<Body>) -> Result<Option<Seat>, Status> {
        let path = request.uri().path();
        if path.starts_with(FREE) {
            return Ok(None);
        }
        let from = request.extensions().get::<From>();
        let peer = from.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), From::peer);
        match self.admission.show(bearer(request.headers()), peer) {
            Shown::Good(caller) => {
                if let Some(From(visitor)) = from {
                    visitor.prove();
                }
                let (roles, kind) = rule(path);
                if roles.contains(&caller.role) {
                    return self.seats.take(caller.token, kind).map(Some);
                }
                self.admission.complain(Offence::WrongRole, peer, path);
                Err(Status::permission_denied(wrong_role(roles, caller.role)))
            }
            Shown::Bad => {
                self.admission.complain(Offence::BadToken, peer, "");
                Err(Status::unauthenticated("the token is unknown, revoked or expired"))
            }
            Shown::Tiresome => {
                self.admission.complain(Offence::TooManyBadTokens, peer, "");
                if let Some(From(visitor)) = from {
                    visitor.send_away();
                }
                Err(Status::unauthenticated("too many bad tokens; wait a minute"))
            }
        }
    }
}

/// The token that came with a request; empty if there is none.
pub(super) fn bearer(headers: &HeaderMap) -> &str {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
}

fn wrong_role(needed: &[Role], has: Role) -> String {
    let needed: Vec<&str> = needed.iter().map(|role| role.with_article()).collect();
    format!("this call needs {} token, and this is {} token", needed.join(" or "), has.with_article())
}

impl<S> Service<Request<Body>> for Authorisation<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let seat = match self.look_at(&request) {
            Ok(seat) => seat,
            Err(status) => return ready(Ok(status.into_http())).boxed(),
        };
        // The secret has done its work; nobody further in can log it.
        request.headers_mut().remove(AUTHORIZATION);
        let Some(seat) = seat else { return self.inner.call(request).boxed() };
        request.extensions_mut().insert(seat.clone());
        let watch = TokenWatch { admission: self.admission.clone(), seat };
        let answer = self.inner.call(request.map(|body| watch.clone().incoming(body)));
        // What a caller began goes on without him, and so keeps its seat: leaving at once does not help him to a further one.
        let call = tasks::spawn("call", async move { Ok(answer.await?.map(|body| watch.outgoing(body))) });
        let failed =
            |_| Ok(Status::internal("the call failed; the log of the coordinator says why").into_http());
        async move { call.await.unwrap_or_else(failed) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;
    use tower_service::Service as _;

    use super::*;
    use crate::tokens::Tokens;

    /// A call that lasts until it is told to end.
    #[derive(Clone, Default)]
    struct Slow(Arc<Notify>);

    impl Service<Request<Body>> for Slow {
        type Response = Response<Body>;
        type Error = Status;
        type Future = BoxFuture<'static, Result<Response<Body>, Status>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            let told = self.0.clone();
            async move {
                told.notified().await;
                Ok(Response::default())
            }
            .boxed()
        }
    }

    #[tokio::test]
    async fn who_leaves_before_the_answer_gets_no_further_seat_for_it() {
        let tokens = Tokens { operator: "togl1.operator.1".to_owned(), worker: "togl1.worker.1".to_owned() };
        let slow = Slow::default();
        let mut service = Authorisation::new(slow.clone(), Admission::of(&tokens).unwrap(), Seats::default());
        let mut ask = || {
            let call = Request::get("http://h/togl.v1.Sweeps/Status");
            let call = call.header(AUTHORIZATION, format!("Bearer {}", tokens.operator));
            service.call(call.body(Body::empty()).unwrap())
        };
        let refused = |answer: Option<Result<Response<Body>, Status>>| {
            answer.is_some_and(|answer| answer.unwrap().headers()["grpc-status"] == "8")
        };
        let mut begun = 0;
        while !refused(ask().now_or_never()) {
            begun += 1;
            assert!(begun < 1_000, "there is no bound");
        }
        slow.0.notify_waiters();
        let mut tries = 0;
        while refused(ask().now_or_never()) {
            tries += 1;
            assert!(tries < 1_000, "the seats of calls that ended are free again");
            slow.0.notify_waiters();
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_the_operators() {
        assert_eq!(rule("/togl.v1.Sweeps/Surprise"), (CHANGE, CallKind::Single));
        assert_eq!(rule("/togl.v1.Workers/Session"), (TRAIN, CallKind::Session));
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert_eq!(rule(reflection), (&Role::ALL[..], CallKind::Single));
    }
}
