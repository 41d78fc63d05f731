//! Authorisation: every call must carry a token of a role that may make it. The table of calls is here, and a call that is
//! not in it is the operator's alone. Says no before a byte of the message is read, and watches
//! the token of each call for as long as it lasts (`token_watch.rs`).

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
use super::token_watch::TokenWatch;
use crate::tokens::{Caller, Role};

const TRAIN: &[Role] = &[Role::Worker];
const CHANGE: &[Role] = &[Role::Operator];
const READ: &[Role] = &[Role::Operator, Role::Viewer];

/// Who may call what. A test compares it with the services.
pub const CALLS: &[(&str, &[Role])] = &[
    ("/togl.v1.Workers/Session", TRAIN),
    ("/togl.v1.Sweeps/Submit", CHANGE),
    ("/togl.v1.Sweeps/Preview", CHANGE),
    ("/togl.v1.Sweeps/Cancel", CHANGE),
    ("/togl.v1.Sweeps/Pause", CHANGE),
    ("/togl.v1.Sweeps/Resume", CHANGE),
    ("/togl.v1.Sweeps/Retry", CHANGE),
    ("/togl.v1.Sweeps/Archive", CHANGE),
    ("/togl.v1.Sweeps/Prioritise", CHANGE),
    ("/togl.v1.Sweeps/Drain", CHANGE),
    ("/togl.v1.Sweeps/SettleData", CHANGE),
    ("/togl.v1.Sweeps/ListDisputes", READ),
    ("/togl.v1.Sweeps/History", READ),
    ("/togl.v1.Sweeps/ListSweeps", READ),
    ("/togl.v1.Sweeps/ListWorkers", READ),
    ("/togl.v1.Sweeps/Status", READ),
    ("/togl.v1.Sweeps/Watch", READ),
    ("/togl.v1.Sweeps/Follow", READ),
    ("/togl.v1.Sweeps/Explain", READ),
    ("/togl.v1.Sweeps/Read", READ),
    ("/togl.v1.Sweeps/Log", READ),
];

/// Health says nothing but "serving", and whoever asks for it has no token.
const FREE: &str = "/grpc.health.v1.Health/";

/// Reflection tells what calls there are: anybody with a token may know.
const ANYBODY: &str = "/grpc.reflection.";

fn allowed(path: &str) -> &'static [Role] {
    if path.starts_with(ANYBODY) {
        return &Role::ALL;
    }
    CALLS.iter().find(|(call, _)| *call == path).map_or(CHANGE, |(_, roles)| roles)
}

/// Lets only calls with a token of the right role pass.
#[derive(Clone)]
pub(super) struct Authorisation<S> {
    inner: S,
    admission: Arc<Admission>,
}

impl<S> Authorisation<S> {
    pub(super) fn new(inner: S, admission: Arc<Admission>) -> Self {
        Self { inner, admission }
    }

    fn look_at(&self, request: &Request<Body>) -> Result<Option<Caller>, Status> {
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
                let roles = allowed(path);
                if roles.contains(&caller.role) {
                    return Ok(Some(caller));
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
        let caller = match self.look_at(&request) {
            Ok(caller) => caller,
            Err(status) => return ready(Ok(status.into_http())).boxed(),
        };
        // The secret has done its work; nobody further in can log it.
        request.headers_mut().remove(AUTHORIZATION);
        let Some(caller) = caller else { return self.inner.call(request).boxed() };
        let watch = TokenWatch { admission: self.admission.clone(), token: caller.token.clone() };
        request.extensions_mut().insert(caller);
        let answer = self.inner.call(request.map(|body| watch.clone().incoming(body)));
        async move { Ok(answer.await?.map(|body| watch.outgoing(body))) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_table_is_the_operators() {
        assert_eq!(allowed("/togl.v1.Sweeps/Surprise"), &[Role::Operator]);
        assert_eq!(allowed("/togl.v1.Workers/Session"), &[Role::Worker]);
        assert_eq!(allowed("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo").len(), 3);
    }
}
