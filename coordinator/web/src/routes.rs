//! From a request to a source and back: who may ask, what was asked, and the answer. The routes themselves are the table in
//! [`crate::api`]. Computes nothing.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, Response, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::api::{self, Call, ROUTES};
use crate::sessions::{NotLetIn, SESSION_LIFE};
use crate::source::{Answer, FigureAsked, FoldsAsked, Source, TableAsked, TableForm};
use crate::{Web, answer, events, files, guard, view};

/// The longest body of a request, in bytes.
const LONGEST: usize = 4 * 1024;

/// Folds of a page, unless asked otherwise, and at the most.
const PAGE: u64 = 200;
const LARGEST_PAGE: u64 = 500;

/// Trials of a page at the most.
const MOST_TRIALS: u64 = 1_000;

/// The last whole number that browsers tell from its neighbours.
const LAST: u64 = (1 << 53) - 1;

type Page<S> = State<Arc<Web<S>>>;
type Name = Result<Path<String>, PathRejection>;

/// The session of who asks.
#[derive(Clone, Copy)]
struct Session(u64);

/// The answer to every request.
pub(crate) fn router<S: Source>(web: &Arc<Web<S>>) -> Router {
    let routes =
        ROUTES.iter().fold(Router::new(), |routes, route| routes.route(route.path, method(route.call)));
    let routes = routes.fallback(file).method_not_allowed_fallback(not_allowed);
    routes.layer(middleware::from_fn_with_state(web.clone(), guarded)).with_state(web.clone())
}

fn method<S: Source>(call: Call) -> MethodRouter<Arc<Web<S>>> {
    match call {
        Call::SignIn => post(sign_in),
        Call::Me => get(me),
        Call::Document => get(document),
        Call::Events => get(stream),
        Call::Overview => get(overview),
        Call::Sweep => get(sweep),
        Call::Table => get(table),
        Call::TableText => get(table_text),
        Call::Folds => get(folds),
        Call::Failures => get(failures),
        Call::Curves => get(curves),
        Call::CurvePoints => get(curve_points),
        Call::AgainstPoints => get(against_points),
        Call::Worker => get(worker),
        Call::Timeline => get(timeline),
        Call::Against => get(against),
        Call::Trials => get(trials),
        Call::Compare => get(compare),
        Call::ActsOfSweep => get(acts_of_sweep),
        Call::Acts => get(acts),
        Call::Fold => get(fold),
        Call::SteerSweep => post(steer_sweep),
        Call::SteerWorker => post(steer_worker),
    }
}

/// What is asked of every request, and said with every answer.
async fn guarded<S: Source>(State(web): Page<S>, mut request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path();
    let is_data = path.starts_with("/api/");
    let open = ["/api/v1/session", "/api/v1/openapi.json"].contains(&path) || !is_data;
    let signing_in = path == "/api/v1/session";
    let name = format!("togl-{}", web.settings.port);
    let session = guard::cookie(request.headers(), &name)
        .and_then(|secret| web.sessions().find(&secret, (web.settings.now)()));
    let may_change = signing_in || web.settings.may_steer;
    let turned = match guard::check(request.method(), request.headers(), is_data) {
        Err((status, words)) => Some(answer::wrong(status, words)),
        Ok(()) if request.method() == Method::POST && !may_change => {
            Some(answer::wrong(StatusCode::METHOD_NOT_ALLOWED, "this page may only look"))
        }
        Ok(()) if session.is_none() && !open => Some(answer::wrong(
            StatusCode::UNAUTHORIZED,
            "not signed in; open the link that `togl web` prints",
        )),
        Ok(()) => None,
    };
    let mut response = match turned {
        Some(turned) => turned,
        None => {
            if let Some(session) = session {
                request.extensions_mut().insert(Session(session));
            }
            next.run(request).await
        }
    };
    guard::harden(response.headers_mut(), is_data);
    response
}

async fn file(method: Method, uri: Uri) -> Response<Body> {
    match files::find(uri.path()) {
        Some((kind, content)) if method != Method::POST => {
            answer::text(StatusCode::OK, kind, content.into_owned())
        }
        _ => answer::wrong(StatusCode::NOT_FOUND, "there is no such page"),
    }
}

async fn not_allowed() -> Response<Body> {
    answer::wrong(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here")
}

/// The body of a request as what it must be.
async fn body<T: DeserializeOwned>(request: Request) -> Result<T, Response<Body>> {
    let bytes = to_bytes(request.into_body(), LONGEST).await;
    let bytes = bytes
        .map_err(|_| answer::wrong(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long or was cut short"))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| answer::wrong(StatusCode::BAD_REQUEST, &format!("the body makes no sense: {error}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    code: String,
}

#[derive(Serialize)]
struct Me {
    about: view::AboutPage,
    may_steer: bool,
}

async fn sign_in<S: Source>(State(web): Page<S>, request: Request) -> Response<Body> {
    let SignIn { code } = match body(request).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let secret = (web.settings.secret)();
    let now = (web.settings.now)();
    let let_in = web.sessions().sign_in(&code, secret.clone(), now);
    match let_in {
        Ok(()) => {
            let mut response = answer::data(&HeaderMap::new(), Ok(who(&web).await));
            let cookie = format!(
                "togl-{}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
                web.settings.port,
                SESSION_LIFE.as_secs()
            );
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        Err(NotLetIn::Unknown) => answer::wrong(
            StatusCode::UNAUTHORIZED,
            "this link was used already or is too old; ask `togl web` for a new one",
        ),
        Err(NotLetIn::TooMany) => {
            answer::wrong(StatusCode::TOO_MANY_REQUESTS, "too many wrong codes; try again in a minute")
        }
    }
}

async fn who<S: Source>(web: &Arc<Web<S>>) -> Me {
    Me { about: web.source.about().await, may_steer: web.settings.may_steer }
}

async fn me<S: Source>(State(web): Page<S>, headers: HeaderMap) -> Response<Body> {
    answer::data(&headers, Ok(who(&web).await))
}

async fn document() -> Response<Body> {
    answer::text(StatusCode::OK, "application/json", api::document())
}

#[derive(Deserialize)]
struct OfSweep {
    sweep: Option<String>,
}

async fn stream<S: Source>(
    State(web): Page<S>,
    Extension(Session(session)): Extension<Session>,
    query: Result<Query<OfSweep>, QueryRejection>,
) -> Response<Body> {
    let Ok(Query(OfSweep { sweep })) = query else { return bad_query() };
    match events::begin(&web, session, sweep) {
        Some(events) => events.into_response(),
        None => events::none(),
    }
}

fn bad_query() -> Response<Body> {
    answer::wrong(StatusCode::BAD_REQUEST, "the query of this address makes no sense")
}

fn bad_name() -> Response<Body> {
    answer::wrong(StatusCode::BAD_REQUEST, "the name in this address makes no sense")
}

async fn overview<S: Source>(State(web): Page<S>, headers: HeaderMap) -> Response<Body> {
    answer::data(&headers, web.source.overview().await)
}

async fn sweep<S: Source>(State(web): Page<S>, headers: HeaderMap, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    answer::data(&headers, web.source.sweep(&name).await)
}

#[derive(Deserialize)]
struct TableQuery {
    #[serde(default)]
    rows: String,
    #[serde(default)]
    columns: String,
    #[serde(default)]
    spread: String,
    #[serde(default)]
    bold: String,
    form: Option<String>,
}

impl TableQuery {
    /// How the table is wanted, and in which form.
    fn parts(self) -> (TableAsked, Option<String>) {
        let Self { rows, columns, spread, bold, form } = self;
        (TableAsked { rows, columns, spread, bold }, form)
    }
}

async fn table<S: Source>(
    State(web): Page<S>,
    headers: HeaderMap,
    name: Name,
    query: Result<Query<TableQuery>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(query)) = query else { return bad_query() };
    answer::data(&headers, web.source.table(&name, query.parts().0).await)
}

async fn table_text<S: Source>(
    State(web): Page<S>,
    name: Name,
    query: Result<Query<TableQuery>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(query)) = query else { return bad_query() };
    let (asked, form) = query.parts();
    let form = match form.as_deref() {
        None | Some("markdown") => TableForm::Markdown,
        Some("latex") => TableForm::Latex,
        Some("csv") => TableForm::Csv,
        Some(_) => return answer::wrong(StatusCode::BAD_REQUEST, "form is markdown, latex or csv"),
    };
    said("text/plain; charset=utf-8", web.source.table_as(&name, asked, form).await)
}

/// An answer that is no JSON.
fn said(kind: &'static str, text: Answer<String>) -> Response<Body> {
    match text {
        Ok(text) => answer::text(StatusCode::OK, kind, text),
        Err(trouble) => answer::troubled(&trouble),
    }
}

#[derive(Deserialize)]
struct FoldsQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    worker: String,
    #[serde(default)]
    trial: String,
    #[serde(default)]
    from: u64,
    limit: Option<u64>,
}

async fn folds<S: Source>(
    State(web): Page<S>,
    headers: HeaderMap,
    name: Name,
    query: Result<Query<FoldsQuery>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(FoldsQuery { state, class, worker, trial, from, limit })) = query else {
        return bad_query();
    };
    let limit = limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        let words = format!("limit is 1 to {LARGEST_PAGE}; ask for the next page with from");
        return answer::wrong(StatusCode::BAD_REQUEST, &words);
    }
    if from > LAST {
        return answer::wrong(StatusCode::BAD_REQUEST, "no sweep has so many folds");
    }
    let asked = FoldsAsked { state, class, worker, trial, from, limit };
    answer::data(&headers, web.source.folds(&name, asked).await)
}

async fn failures<S: Source>(State(web): Page<S>, headers: HeaderMap, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    answer::data(&headers, web.source.failures(&name).await)
}

async fn acts_of_sweep<S: Source>(State(web): Page<S>, headers: HeaderMap, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    answer::data(&headers, web.source.acts(Some(&name)).await)
}

async fn acts<S: Source>(State(web): Page<S>, headers: HeaderMap) -> Response<Body> {
    answer::data(&headers, web.source.acts(None).await)
}

async fn curves<S: Source>(State(web): Page<S>, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    said("image/svg+xml", web.source.figure(&name, FigureAsked::Curves).await)
}

async fn timeline<S: Source>(State(web): Page<S>, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    said("image/svg+xml", web.source.figure(&name, FigureAsked::Timeline).await)
}

#[derive(Deserialize)]
struct Along {
    x: Option<String>,
}

async fn against<S: Source>(
    State(web): Page<S>,
    name: Name,
    query: Result<Query<Along>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(Along { x })) = query else { return bad_query() };
    let asked = FigureAsked::Against { setting: x.unwrap_or_else(|| "depth".to_owned()) };
    said("image/svg+xml", web.source.figure(&name, asked).await)
}

async fn against_points<S: Source>(
    State(web): Page<S>,
    headers: HeaderMap,
    name: Name,
    query: Result<Query<Along>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(Along { x })) = query else { return bad_query() };
    let setting = x.unwrap_or_else(|| "depth".to_owned());
    answer::data(&headers, web.source.against(&name, &setting).await)
}

async fn curve_points<S: Source>(State(web): Page<S>, headers: HeaderMap, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    answer::data(&headers, web.source.curves(&name).await)
}

async fn worker<S: Source>(State(web): Page<S>, headers: HeaderMap, name: Name) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    answer::data(&headers, web.source.worker(&name).await)
}

#[derive(Deserialize)]
struct TrialsQuery {
    #[serde(default)]
    from: u64,
    limit: Option<u64>,
}

async fn trials<S: Source>(
    State(web): Page<S>,
    headers: HeaderMap,
    name: Name,
    query: Result<Query<TrialsQuery>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(TrialsQuery { from, limit })) = query else { return bad_query() };
    let limit = limit.unwrap_or(PAGE);
    if !(1..=MOST_TRIALS).contains(&limit) || from > LAST {
        let words = format!("limit is 1 to {MOST_TRIALS}; ask for the next page with from");
        return answer::wrong(StatusCode::BAD_REQUEST, &words);
    }
    answer::data(&headers, web.source.trials(&name, from, limit).await)
}

#[derive(Deserialize)]
struct Both {
    a: String,
    b: String,
}

async fn compare<S: Source>(
    State(web): Page<S>,
    headers: HeaderMap,
    name: Name,
    query: Result<Query<Both>, QueryRejection>,
) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    let Ok(Query(Both { a, b })) = query else { return bad_query() };
    answer::data(&headers, web.source.compare(&name, &a, &b).await)
}

async fn fold<S: Source>(
    State(web): Page<S>,
    headers: HeaderMap,
    parts: Result<Path<(String, u32, u64)>, PathRejection>,
) -> Response<Body> {
    let Ok(Path((trial, split, seed))) = parts else { return bad_name() };
    answer::data(&headers, web.source.fold(&format!("{trial}/{split}/{seed}")).await)
}

async fn steer_sweep<S: Source>(State(web): Page<S>, name: Name, request: Request) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    match body::<view::SweepAct>(request).await {
        Ok(act) => answer::data(&HeaderMap::new(), web.source.steer_sweep(&name, act).await),
        Err(response) => response,
    }
}

async fn steer_worker<S: Source>(State(web): Page<S>, name: Name, request: Request) -> Response<Body> {
    let Ok(Path(name)) = name else { return bad_name() };
    match body::<view::WorkerAct>(request).await {
        Ok(act) => answer::data(&HeaderMap::new(), web.source.steer_worker(&name, act).await),
        Err(response) => response,
    }
}
