//! Hostile peers: strangers without a token, and holders of one who send too much. Each is refused, is in the log once,
//! leaves the coordinator as it was, and makes it no larger.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use togl_coordinator::tokens::Role;
use togl_proto::client;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::played::{World, submit};

/// Everything that is logged in this process. Every test runs in a process of its own.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn start(level: &str) -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_env_filter(level).with_ansi(false);
        subscriber.with_writer(move || writer.clone()).init();
        log
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    pub(crate) fn count(&self, words: &str) -> usize {
        self.text().lines().filter(|line| line.contains(words)).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Resident memory of this process in MiB; the coordinator runs inside it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Waits until the coordinator has closed the connection.
async fn closed(stream: &mut TcpStream) {
    let mut sink = [0; 4096];
    while !matches!(stream.read(&mut sink).await, Ok(0) | Err(_)) {}
}

/// A world whose strangers have little time, so that nobody has to wait for it.
async fn hasty(strangers: usize) -> World {
    World::with(|settings| {
        settings.bounds.time_to_prove = Duration::from_millis(300);
        settings.bounds.strangers = strangers;
    })
    .await
}

async fn still_works(world: &World) {
    let mut worker = world.worker("honest", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    assert!(worker.report(&lease, result::example(0.5).into()).await.accepted);
}

#[tokio::test]
async fn wrong_revoked_and_expired_tokens_are_refused_and_logged_once() {
    let log = Log::start("warn");
    let world = World::new().await;
    let (revoked, entry) = world.token(Role::Operator, None);
    world.revoke(&entry);
    let expired = world.token(Role::Operator, Some(1)).0;
    for token in ["togl1.operator.0000", &revoked, &expired, "x"] {
        let mut client = client::sweeps(&world.address, token).await.unwrap();
        let refused = client.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert_eq!(refused.message(), "the token is unknown, revoked or expired", "all in the same words");
    }
    assert_eq!(log.count("refused a token"), 1, "{}", log.text());
    assert!(!log.text().contains(&revoked[14..]), "no secret in the log");
}

#[tokio::test]
async fn guessing_tokens_is_cut_short_and_honest_callers_do_not_notice() {
    let log = Log::start("warn");
    let world = World::new().await;
    submit(&world).await;
    let mut cut = 0;
    for guess in 0..60 {
        let token = format!("togl1.operator.{guess:04}");
        let mut client = client::sweeps(&world.address, &token).await.unwrap();
        let refused = client.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap_err();
        cut += usize::from(refused.message() != "the token is unknown, revoked or expired");
    }
    assert_eq!(cut, 40, "twenty were answered politely");
    assert_eq!((log.count("refused a token"), log.count("too many bad tokens")), (1, 1));
    still_works(&world).await;
}

#[tokio::test]
async fn a_message_of_100_megabytes_is_refused_and_costs_nothing() {
    let log = Log::start("warn");
    let world = World::new().await;
    submit(&world).await;
    let before = resident();
    for _ in 0..3 {
        let mut worker = world.worker("loud", Vec::new()).await;
        let text = "x".repeat(100 << 20);
        let lines = wire::LogLines { fold: None, attempt: 1, text };
        let _ =
            worker.outgoing.send(wire::WorkerMessage { kind: Some(worker_message::Kind::Log(lines)) }).await;
        let ended = worker.incoming.message().await.unwrap_err();
        assert_eq!(ended.code(), Code::OutOfRange, "{ended}");
    }
    let yaml = "#".repeat(100 << 20);
    let mut operator = world.operator().await.max_encoding_message_size(usize::MAX);
    let refused = operator.submit(wire::SubmitRequest { yaml, ..Default::default() }).await.unwrap_err();
    assert!(matches!(refused.code(), Code::OutOfRange | Code::Unknown | Code::Internal), "{refused}");
    drop(operator);
    let after = resident();
    assert!(after < before + 48, "from {before} to {after} MiB");
    assert_eq!(log.count("bad message"), 1, "{}", log.text());
    still_works(&world).await;
}

#[tokio::test]
async fn a_stranger_with_a_large_message_is_refused_before_it_is_read() {
    let world = World::new().await;
    let before = resident();
    let mut stranger = client::sweeps(&world.address, "togl1.operator.00").await.unwrap();
    stranger = stranger.max_encoding_message_size(usize::MAX);
    let refused = stranger
        .submit(wire::SubmitRequest { yaml: "#".repeat(100 << 20), ..Default::default() })
        .await
        .unwrap_err();
    assert!(matches!(refused.code(), Code::Unauthenticated | Code::Unknown | Code::Unavailable), "{refused}");
    drop(stranger);
    let after = resident();
    assert!(after < before + 48, "from {before} to {after} MiB");
}

#[tokio::test]
async fn garbage_on_the_port_is_cut_off_at_once_and_logged_once() {
    let log = Log::start("warn");
    let world = World::new().await;
    submit(&world).await;
    for seed in 0..200u32 {
        let mut stream = TcpStream::connect(&world.address).await.unwrap();
        let noise: Vec<u8> =
            (0..512u32).map(|n| (seed.wrapping_mul(31) ^ n.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
        let first = if seed % 2 == 0 { b'Q' } else { 0 };
        let _ = stream.write_all(&[&[first], noise.as_slice()].concat()).await;
        closed(&mut stream).await;
    }
    assert_eq!(log.count("neither TLS nor HTTP/2"), 1, "{}", log.text());
    // Something that begins like TLS, or like HTTP/2, and is neither.
    for opening in [
        &b"\x16\x03\x01\xff\xff garbage"[..],
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n garbage",
        b"POST / HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&world.address).await.unwrap();
        stream.write_all(opening).await.unwrap();
        stream.shutdown().await.unwrap();
        closed(&mut stream).await;
    }
    still_works(&world).await;
}

#[tokio::test]
async fn half_open_and_slow_connections_are_closed_in_time_and_memory_does_not_grow() {
    let log = Log::start("warn");
    let world = hasty(300).await;
    submit(&world).await;
    let before = resident();
    for round in 0..3 {
        let mut streams = Vec::new();
        for number in 0..250usize {
            let mut stream = TcpStream::connect(&world.address).await.unwrap();
            // Some say nothing, some the first letter, some a preface and a header that never ends.
            let opening: &[u8] = match number % 4 {
                0 => b"",
                1 => b"P",
                2 => b"\x16\x03\x01\x02",
                _ => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
            };
            stream.write_all(opening).await.unwrap();
            streams.push(stream);
        }
        for stream in &mut streams {
            closed(stream).await;
        }
        assert!(round == 2 || log.count("no good token in time") >= 1);
    }
    let after = resident();
    assert!(after < before + 32, "from {before} to {after} MiB");
    assert_eq!(log.count("no good token in time"), 1, "{}", log.text());
    still_works(&world).await;
}

#[tokio::test]
async fn a_crowd_of_strangers_is_turned_away_and_members_stay() {
    let log = Log::start("warn");
    let world = World::with(|settings| settings.bounds.strangers = 8).await;
    submit(&world).await;
    let mut member = world.worker("member", Vec::new()).await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(TcpStream::connect(&world.address).await.unwrap());
    }
    // Whoever had to make room hears nothing but the end.
    for stream in crowd.iter_mut().take(92) {
        closed(stream).await;
    }
    assert_eq!(log.count("too many"), 1, "{}", log.text());
    assert_eq!(member.lease(1).await.len(), 1);
    drop(crowd);
}

/// As many connections as strangers may have, and more, none of which says a word or is ever closed by its time.
async fn silent_crowd(address: &str) -> Vec<TcpStream> {
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(TcpStream::connect(address).await.unwrap());
    }
    crowd
}

#[tokio::test]
async fn silent_connections_keep_nobody_out_of_either_port() {
    let world = World::with(|settings| {
        settings.bounds.strangers = 8;
        settings.bounds.time_to_prove = Duration::from_secs(3_600);
        settings.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    submit(&world).await;
    let metrics = world.metrics.unwrap().to_string();
    for port in [&world.address, &metrics] {
        let crowd = silent_crowd(port).await;
        let mut honest = world.worker("honest", Vec::new()).await;
        assert_eq!(honest.lease(1).await.len(), 1, "among silent connections to {port}");
        let page = crate::observed::page(world.metrics.unwrap(), "/metrics").await;
        assert!(page.starts_with("HTTP/1.1 200"), "among silent connections to {port}: {page}");
        drop(crowd);
    }
}

#[tokio::test]
async fn who_read_the_metrics_without_a_token_does_not_stay() {
    let world = World::with(|settings| {
        settings.bounds.time_to_prove = Duration::from_secs(3_600);
        settings.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    let mut stream = TcpStream::connect(world.metrics.unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap(); // ends only if the other side closes
    assert!(page.contains("togl_strangers 1\n"), "who showed no token is a stranger: {page}");
}

#[tokio::test]
async fn endless_headers_end_the_call_and_not_the_coordinator() {
    let world = World::new().await;
    submit(&world).await;
    let long = "a".repeat(400);
    let mut client = client::sweeps(&world.address, &format!("{long}.{long}")[..500]).await.unwrap();
    let mut request = tonic::Request::new(wire::ListSweepsRequest::default());
    for number in 0..100 {
        let name: tonic::metadata::MetadataKey<_> = format!("x-{number}").parse().unwrap();
        request.metadata_mut().insert(name, long.parse().unwrap());
    }
    client.list_sweeps(request).await.unwrap_err();
    still_works(&world).await;
}

#[tokio::test]
async fn no_secret_reaches_the_log_even_at_its_loudest() {
    let log = Log::start("trace");
    let world = World::new().await;
    submit(&world).await;
    let pinned = std::fs::read_to_string(world.folder.path().join("worker.token")).unwrap();
    let mut worker = world.worker_with(&pinned, "w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    assert!(worker.report(&lease, result::example(0.5).into()).await.accepted);
    let (other, _) = world.token(Role::Viewer, None);
    let mut viewer = client::sweeps(&world.address, &other).await.unwrap();
    viewer.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap();
    viewer.submit(wire::SubmitRequest { yaml: String::new(), ..Default::default() }).await.unwrap_err();
    let wrong = "togl1.operator.feedfacefeedfacefeedface";
    let mut stranger = client::sweeps(&world.address, wrong).await.unwrap();
    stranger.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap_err();
    let world = world.restart().await;
    let text = log.text();
    assert!(text.len() > 10_000, "the log was on");
    let secrets = [&world.tokens.operator, &world.tokens.worker, &other, &wrong.to_owned()];
    for secret in secrets {
        let digits = secret.rsplit('.').next().unwrap();
        let found = text.lines().find(|line| line.contains(digits));
        assert!(found.is_none(), "{found:?}");
    }
    let key = std::fs::read_to_string(world.folder.path().join("ca.key")).unwrap();
    let line = key.lines().nth(1).unwrap();
    assert!(!text.contains(line));
}

#[tokio::test]
async fn health_needs_no_token_and_says_only_that() {
    let world = World::new().await;
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", world.address)).unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.connect().await.unwrap());
    let request = tonic_health::pb::HealthCheckRequest { service: "togl.v1.Sweeps".to_owned() };
    assert_eq!(health.check(request).await.unwrap().into_inner().status, 1);
    let mut member = world.worker("w", Vec::new()).await;
    submit(&world).await;
    member.say(worker_message::Kind::Ask(wire::LeaseRequest { count: 1 })).await;
    assert!(matches!(member.hear().await, coordinator_message::Kind::Leases(_)));
}
