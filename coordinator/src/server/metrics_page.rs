//! The pages for machines: `GET /metrics` for Prometheus and `GET /scale`, what whoever starts workers asks for, behind the same checks as everything else. From this machine it needs no
//! token; from another one it needs TLS and the token of a viewer or an operator.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use togl_scheduler::{Demand, FoldShape};
use tokio::net::TcpListener;
use tokio_stream::StreamExt;

use super::Protection;
use super::admission::Shown;
use super::complaints::Offence;
use super::connections::{Connections, Guarded};
use super::visitors::Visitor;
use crate::driver::Handle;
use crate::metrics::CoordinatorMetrics;
use crate::tasks;
use crate::tokens::Role;

/// What Prometheus calls the form of the text.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const JSON: &str = "application/json";

/// Serves the page until the task is dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    handle: Handle,
    protection: Protection,
    metrics: Arc<CoordinatorMetrics>,
) {
    let Protection { admission, tls, plaintext } = protection;
    let mut connections = Connections { admission, tls, plaintext, greetings: b"GH" }.open(listener);
    let page = Arc::new(Page { handle, metrics });
    while let Some(Ok(connection)) = connections.next().await {
        tasks::spawn("metrics page", answer(connection, page.clone()));
    }
}

struct Page {
    handle: Handle,
    metrics: Arc<CoordinatorMetrics>,
}

async fn answer(connection: Guarded, page: Arc<Page>) {
    let visitor = connection.visitor().clone();
    let respond = service_fn(move |request: Request<Incoming>| {
        let (page, visitor) = (page.clone(), visitor.clone());
        async move { Ok::<_, Infallible>(page.respond(&request, &visitor).await) }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false); // one page a connection: nobody who showed no token stays
    server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10)).max_buf_size(16 << 10);
    if let Err(error) = server.serve_connection(TokioIo::new(connection), respond).await {
        tracing::debug!(%error, "a connection to the metrics page ended");
    }
}

impl Page {
    async fn respond(&self, request: &Request<Incoming>, visitor: &Visitor) -> Response<Full<Bytes>> {
        if !may_read(request, visitor) {
            return plain(StatusCode::UNAUTHORIZED, "this page needs the token of a viewer or an operator\n");
        }
        let asked = matches!(request.method(), &Method::GET | &Method::HEAD).then(|| request.uri().path());
        let page = match asked {
            Some("/metrics") => self
                .metrics
                .text(&self.handle, visitor.admission.connections())
                .await
                .map(|text| (text, TEXT)),
            Some("/scale") => self.handle.demand().await.map(|demand| (scale(&demand), JSON)),
            _ => return plain(StatusCode::NOT_FOUND, "there are only /metrics and /scale here\n"),
        };
        match page {
            Ok((text, form)) => {
                let mut response = Response::new(Full::from(text));
                response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(form));
                response
            }
            Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "the coordinator is stopping\n"),
        }
    }
}

/// The demand as JSON; the keys are a promise to those who read it.
fn scale(demand: &Demand) -> String {
    let shape = |shape: &FoldShape| {
        serde_json::json!({
            "device": shape.device.as_str(),
            "memory": shape.memory,
            "resumable": shape.resumable,
            "p90_seconds": shape.p90_seconds,
            "folds": shape.folds,
            "free_slots": shape.free_slots,
        })
    };
    let shapes: Vec<_> = demand.shapes.iter().map(shape).collect();
    let (wanted, free) = (demand.slots_wanted(), demand.free_slots);
    let page = serde_json::json!({ "slots_wanted": wanted, "free_slots": free, "shapes": shapes });
    format!("{page}\n")
}

fn may_read(request: &Request<Incoming>, visitor: &Visitor) -> bool {
    if visitor.peer.to_canonical().is_loopback() {
        return true;
    }
    match visitor.admission.show(super::authorisation::bearer(request.headers()), visitor.peer) {
        Shown::Good(caller) if matches!(caller.role, Role::Operator | Role::Viewer) => {
            visitor.prove();
            true
        }
        Shown::Good(_) => {
            visitor.admission.complain(Offence::WrongRole, visitor.peer, request.uri().path());
            false
        }
        Shown::Bad | Shown::Tiresome => {
            visitor.admission.complain(Offence::BadToken, visitor.peer, request.uri().path());
            false
        }
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}
