//! The page over HTTP with a played source: who is let in, what is refused, what is answered, and that the API is what its
//! document says. Needs neither a coordinator nor Polars, so that it links in seconds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod document;
mod played;
mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use played::Played;
use serde_json::Value;
use togl_web::{PageSettings, Web};
use tower_service::Service;

/// A page with a visitor, who keeps his cookie.
struct World {
    source: Arc<Played>,
    web: Arc<Web<Played>>,
    router: Router,
    cookie: Option<String>,
}

thread_local! {
    static CLOCK: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::from_secs(5)) };
}

/// Moves the clock of this test.
fn pass(time: Duration) {
    CLOCK.set(CLOCK.get() + time);
}

fn secret() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{:064x}", NEXT.fetch_add(1, Ordering::SeqCst))
}

/// An answer that has arrived.
struct Seen {
    status: StatusCode,
    headers: header::HeaderMap,
    body: Vec<u8>,
}

impl Seen {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

impl World {
    fn new(may_steer: bool) -> Self {
        let source = Arc::new(Played::default());
        let settings = PageSettings { port: 7448, may_steer, now: || CLOCK.get(), secret };
        let web = Web::new(source.clone(), settings);
        Self { source, router: web.router(), web, cookie: None }
    }

    async fn signed_in(may_steer: bool) -> Self {
        let mut world = Self::new(may_steer);
        let code = world.code();
        assert_eq!(world.sign_in(&code).await.status, StatusCode::OK);
        world
    }

    /// The code of a new link.
    fn code(&self) -> String {
        let link = self.web.link();
        link.strip_prefix("http://127.0.0.1:7448/#").unwrap().to_owned()
    }

    async fn sign_in(&mut self, code: &str) -> Seen {
        let body = serde_json::json!({ "code": code }).to_string();
        let seen = self.send(self.post("/api/v1/session", &body)).await;
        if let Some(cookie) = seen.headers.get(header::SET_COOKIE) {
            self.cookie = Some(cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        seen
    }

    /// A request as the page itself makes it.
    fn request(&self, method: Method, path: &str) -> axum::http::request::Builder {
        let builder = Request::builder().method(method).uri(path).header("Host", "127.0.0.1:7448");
        self.cookie.iter().fold(builder, |builder, cookie| builder.header("Cookie", cookie))
    }

    fn post(&self, path: &str, body: &str) -> Request<Body> {
        let builder = self.request(Method::POST, path).header("Origin", "http://127.0.0.1:7448");
        let builder = builder.header("X-Togl", "1").header("Content-Type", "application/json");
        builder.body(Body::from(body.to_owned())).unwrap()
    }

    async fn get(&self, path: &str) -> Seen {
        self.send(self.request(Method::GET, path).body(Body::empty()).unwrap()).await
    }

    /// The answer, before its body has come.
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().call(request).await.unwrap()
    }

    async fn send(&self, request: Request<Body>) -> Seen {
        let (parts, body) = self.answer(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Seen { status: parts.status, headers: parts.headers, body }
    }
}
