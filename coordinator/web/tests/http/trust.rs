//! Who is let in, and what a page that may only look can bring about: nothing.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use http_body_util::BodyExt;
use togl_web::CODE_LIFE;
use togl_web::api::ROUTES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{World, pass};

/// An address of a route that the played source knows.
pub(crate) fn address(path: &str) -> String {
    let name = if path.starts_with("/api/v1/workers/") { "w" } else { "played" };
    let named = path.replace("{name}", name).replace("{trial}", &"0".repeat(32));
    let named = named.replace("{split}", "0").replace("{seed}", "0");
    if named.ends_with("/compare") { format!("{named}?a=0&b=1") } else { named }
}

#[tokio::test]
async fn nothing_is_told_to_who_has_not_signed_in_but_the_page_itself_and_the_document() {
    let world = World::new(true);
    for route in ROUTES.iter().filter(|route| route.body.is_none()) {
        let seen = world.get(&address(route.path)).await;
        let open = route.path.ends_with("openapi.json");
        let expected = if open { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        assert_eq!(seen.status, expected, "{}", route.path);
        assert!(open || !seen.text().contains("played"), "{}", seen.text());
    }
    for path in ["/", "/sweeps/x/table", "/app.js", "/style.css"] {
        assert_eq!(world.get(path).await.status, StatusCode::OK, "{path}");
    }
    for path in ["/etc/passwd", "/../Cargo.toml", "/page/app.js", "/api/v2/me", "/api/v1/nothing"] {
        let status = world.get(path).await.status;
        assert!(matches!(status, StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED), "{path}: {status}");
    }
}

#[tokio::test]
async fn a_link_opens_the_page_once_and_within_ten_minutes() {
    let mut world = World::new(true);
    let (code, late) = (world.code(), world.code());
    let seen = world.sign_in(&code).await;
    assert_eq!(seen.status, StatusCode::OK);
    let cookie = seen.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.starts_with("togl-7448=") && cookie.contains("HttpOnly; SameSite=Strict; Path=/"),
        "{cookie}"
    );
    assert_eq!(world.get("/api/v1/overview").await.status, StatusCode::OK);
    assert_eq!(world.sign_in(&code).await.status, StatusCode::UNAUTHORIZED);
    pass(CODE_LIFE);
    assert_eq!(world.sign_in(&late).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.get("/api/v1/overview").await.status, StatusCode::OK, "the session goes on");
    pass(Duration::from_secs(12 * 3600));
    assert_eq!(
        world.get("/api/v1/overview").await.status,
        StatusCode::UNAUTHORIZED,
        "and ends in the evening"
    );
}

#[tokio::test]
async fn who_guesses_is_held_off_after_ten_codes() {
    let mut world = World::new(true);
    let good = world.code();
    for _ in 0..10 {
        assert_eq!(world.sign_in("0123456789abcdef").await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(world.sign_in(&good).await.status, StatusCode::TOO_MANY_REQUESTS);
    pass(Duration::from_secs(60));
    assert_eq!(world.sign_in(&good).await.status, StatusCode::OK);
}

#[tokio::test]
async fn every_answer_says_what_a_page_may_do_whoever_asks() {
    let world = World::signed_in(true).await;
    for path in ["/", "/app.js", "/nothing", "/api/v1/overview", "/api/v1/nothing", "/api/v1/sweeps/other"] {
        let seen = world.get(path).await;
        let policy = seen.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
            "{policy}"
        );
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(seen.headers[name], value, "{path}");
        }
        assert!(!seen.headers.contains_key("access-control-allow-origin"));
    }
    assert_eq!(world.get("/api/v1/overview").await.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn another_name_for_this_machine_is_not_listened_to() {
    let world = World::signed_in(true).await;
    for path in ["/", "/api/v1/overview", "/api/v1/me"] {
        let request = world.request(Method::GET, path);
        let mut request = request.body(Body::empty()).unwrap();
        request.headers_mut().insert("host", "rebound.example:7448".parse().unwrap());
        assert_eq!(world.send(request).await.status, StatusCode::MISDIRECTED_REQUEST, "{path}");
    }
}

#[tokio::test]
async fn another_site_brings_nothing_about_even_with_the_cookie() {
    let world = World::signed_in(true).await;
    let path = "/api/v1/sweeps/played/steer";
    let body = r#"{"act":"cancel"}"#;
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "http://127.0.0.1:9999"),
        ("x-togl", "no"),
        ("content-type", "text/plain"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let mut request = world.post(path, body);
        request.headers_mut().insert(name, value.parse().unwrap());
        let status = world.send(request).await.status;
        assert!(status.is_client_error(), "{name}: {value}: {status}");
    }
    let mut read = world.request(Method::GET, "/api/v1/overview").body(Body::empty()).unwrap();
    read.headers_mut().insert("sec-fetch-site", "same-site".parse().unwrap());
    assert_eq!(world.send(read).await.status, StatusCode::FORBIDDEN);
    assert!(world.source.acts.lock().unwrap().is_empty());
    assert_eq!(world.send(world.post(path, body)).await.status, StatusCode::OK);
    assert_eq!(*world.source.acts.lock().unwrap(), ["played Cancel"]);
}

#[tokio::test]
async fn who_may_only_look_changes_nothing_by_any_request() {
    let world = World::signed_in(false).await;
    let bodies = ["{}", r#"{"act":"pause"}"#, r#"{"act":"cancel"}"#, r#"{"act":"drain"}"#, r#"{"code":"x"}"#];
    for route in ROUTES {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            for body in bodies {
                let mut request = world.post(&address(route.path), body);
                *request.method_mut() = method.clone();
                let status = world.send(request).await.status;
                assert!(status.is_client_error(), "{method} {}: {status}", route.path);
            }
        }
    }
    assert!(world.source.acts.lock().unwrap().is_empty());
    assert_eq!(world.get("/api/v1/me").await.json()["may_steer"], false);
}

#[tokio::test]
async fn bad_requests_are_answered_in_one_line() {
    let world = World::signed_in(true).await;
    for path in [
        "/api/v1/sweeps/played/folds?limit=501",
        "/api/v1/sweeps/played/folds?limit=0",
        "/api/v1/sweeps/played/folds?from=-1",
        "/api/v1/sweeps/played/folds?from=x",
        "/api/v1/sweeps/played/folds?from=9007199254740992",
        "/api/v1/sweeps/played/table/text?form=pdf",
        "/api/v1/sweeps/played/compare?a=1",
        "/api/v1/sweeps/%ff/table",
        "/api/v1/folds/x/y/z",
    ] {
        let seen = world.get(path).await;
        assert_eq!(seen.status, StatusCode::BAD_REQUEST, "{path}");
        let said = seen.json()["error"].as_str().unwrap().to_owned();
        assert!(!said.is_empty() && !said.contains('\n'), "{said}");
    }
    assert_eq!(world.get("/api/v1/sweeps/other").await.status, StatusCode::NOT_FOUND);
    let path = "/api/v1/sweeps/played/steer";
    for body in ["", "[]", r#"{"act":"explode"}"#, r#"{"act":"pause","more":1}"#, r#"{"act":"prioritise"}"#] {
        assert_eq!(world.send(world.post(path, body)).await.status, StatusCode::BAD_REQUEST, "{body}");
    }
    let long = format!(r#"{{"act":"pause","more":"{}"}}"#, "x".repeat(10_000));
    assert_eq!(world.send(world.post(path, &long)).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(world.source.acts.lock().unwrap().is_empty());
}

/// The next words of a stream.
async fn hear(body: &mut Body) -> String {
    let frame = body.frame().await.unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_tab_is_told_what_changed_and_nothing_else_and_the_fifth_asks_for_itself() {
    let world = World::signed_in(true).await;
    let open = || world.request(Method::GET, "/api/v1/events?sweep=played").body(Body::empty()).unwrap();
    let mut first = world.answer(open()).await.into_body();
    let told = [hear(&mut first).await, hear(&mut first).await, hear(&mut first).await].concat();
    for event in ["event: about", "event: sweep", "event: table"] {
        assert!(told.contains(event), "{told}");
    }
    for finished in 1..=1_000_u64 {
        world.source.finished.store(finished, std::sync::atomic::Ordering::SeqCst);
    }
    let told = hear(&mut first).await;
    assert!(
        told.contains("event: sweep") && told.contains("\"finished\":1000"),
        "a thousand changes, one picture: {told}"
    );
    world.source.version.store(9, std::sync::atomic::Ordering::SeqCst);
    assert!(hear(&mut first).await.contains("event: table\ndata: 9"));
    *world.source.away.lock().unwrap() = true;
    let told = hear(&mut first).await;
    assert!(told.contains("event: about") && told.contains("12:00:00"), "the last picture stays: {told}");
    let others: Vec<_> = futures::future::join_all((0..3).map(|_| world.answer(open()))).await;
    assert!(others.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(world.answer(open()).await.status(), StatusCode::NO_CONTENT);
    drop(others);
    assert_eq!(world.answer(open()).await.status(), StatusCode::OK, "a place that was given back");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_session() {
    let world = World::signed_in(true).await;
    let request = world.request(Method::GET, "/api/v1/events").body(Body::empty()).unwrap();
    let mut body = world.answer(request).await.into_body();
    assert!(hear(&mut body).await.contains("event: about"));
    assert!(hear(&mut body).await.contains("event: overview"));
    pass(Duration::from_secs(13 * 3600));
    assert!(body.frame().await.is_none());
}

/// What a raw connection sends.
async fn asked(address: std::net::SocketAddr, cookie: &str, path: &str) -> tokio::net::TcpStream {
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}

#[tokio::test]
async fn who_reads_slowly_over_http_holds_nobody_up_and_gets_the_latest_picture() {
    let world = World::signed_in(true).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cookie = world.cookie.clone().unwrap();
    let web = world.web.clone();
    let mut served = tokio::task::JoinSet::new();
    served.spawn(async move { web.serve(listener).await });
    let mut slow = asked(address, &cookie, "/api/v1/events?sweep=played").await;
    for finished in 1..=200_u64 {
        world.source.finished.store(finished, std::sync::atomic::Ordering::SeqCst);
        let mut answer = String::new();
        asked(address, &cookie, "/api/v1/me").await.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let mut heard = String::new();
    let mut piece = [0; 4096];
    while !heard.contains("\"finished\":200,") {
        let bytes = slow.read(&mut piece).await.unwrap();
        assert!(bytes > 0, "{heard}");
        heard += &String::from_utf8_lossy(&piece[..bytes]);
    }
    assert!(heard.matches("event: sweep").count() < 100, "a picture for each change would be a queue");
    served.abort_all();
}
