//! A coordinator on a loopback port, callers and a worker that are played by hand. What every story needs.

use togl_coordinator::service::{Coordinator, ServiceSettings};
use togl_coordinator::tokens::{self, Role, Tokens};
use togl_proto::client::{self, AuthorisedChannel};
use togl_proto::token::Pin;
use togl_proto::wire::fact::Kind;
use togl_proto::wire::sweeps_client::SweepsClient;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::trial;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

pub const SWEEP: &str = "\
version: 1
name: played
base: {dataset: necklaces, depth: 2}
grid: {togl: [false, true]}
splits: [42, 43]
";

/// A coordinator in a folder of its own; stops when dropped, and the same folder can be started again.
pub struct World {
    pub folder: tempfile::TempDir,
    pub address: String,
    pub tokens: Tokens,
    pub pin: Pin,
    pub metrics: Option<std::net::SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<()>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A coordinator with other settings than the usual ones.
    pub async fn with(edit: impl FnOnce(&mut ServiceSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Self::settings(&folder);
        edit(&mut settings);
        Self::start(folder, settings).await
    }

    fn settings(folder: &tempfile::TempDir) -> ServiceSettings {
        let (store, tokens) = (folder.path().join("store.sqlite"), folder.path().join("tokens.json"));
        ServiceSettings::new(&store, &tokens, ([127, 0, 0, 1], 0).into())
    }

    #[expect(clippy::disallowed_methods, reason = "a test may spawn")]
    async fn start(folder: tempfile::TempDir, settings: ServiceSettings) -> Self {
        let coordinator = Coordinator::start_with(settings).await.unwrap();
        let (address, tokens) = (coordinator.address().to_string(), coordinator.tokens().clone());
        let (pin, metrics) = (coordinator.pin().clone(), coordinator.metrics_address());
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(async move {
            coordinator.run(async move { drop(stopped.await) }).await.unwrap();
        });
        Self { folder, address, tokens, pin, metrics, stop: Some(stop), ended }
    }

    /// A further token, as `togl token create` makes it.
    pub fn token(&self, role: Role, expires: Option<u64>) -> (String, tokens::Entry) {
        let list = self.folder.path().join("tokens.json");
        let (token, entry) = tokens::create(&list, role, "played", expires, 0).unwrap();
        (token.reveal(), entry)
    }

    pub fn revoke(&self, entry: &tokens::Entry) {
        tokens::revoke(&self.folder.path().join("tokens.json"), &entry.id.to_string()).unwrap();
    }

    pub async fn restart(mut self) -> Self {
        drop(self.stop.take());
        self.ended.await.unwrap();
        let settings = Self::settings(&self.folder);
        Self::start(self.folder, settings).await
    }

    pub async fn operator(&self) -> SweepsClient<AuthorisedChannel> {
        client::sweeps(&self.address, &self.tokens.operator).await.unwrap()
    }

    /// The results of a sweep.
    pub async fn results(&self, sweep: &str) -> Vec<wire::ResultRow> {
        let request = wire::ReadRequest { sweep: sweep.to_owned(), results: true, ..Default::default() };
        let facts = read(&mut self.viewer().await, request).await;
        facts
            .into_iter()
            .filter_map(|kind| if let Kind::Result(row) = kind { Some(row) } else { None })
            .collect()
    }

    pub async fn viewer(&self) -> SweepsClient<AuthorisedChannel> {
        client::sweeps(&self.address, &self.token(Role::Viewer, None).0).await.unwrap()
    }

    pub async fn worker(&self, name: &str, running: Vec<wire::Running>) -> PlayedWorker {
        self.worker_with(&self.tokens.worker, name, running).await
    }

    pub async fn worker_with(&self, token: &str, name: &str, running: Vec<wire::Running>) -> PlayedWorker {
        let mut played = PlayedWorker::connect(&self.address, token).await;
        let hello = wire::Hello {
            worker: name.to_owned(),
            host: "played-host".to_owned(),
            slots: 2,
            devices: vec!["cpu".to_owned(); 2],
            code_version: "test".to_owned(),
            numerics: trial::NUMERICS,
            running,
            memories: Vec::new(),
            ..Default::default()
        };
        played.say(worker_message::Kind::Hello(hello)).await;
        let coordinator_message::Kind::Welcome(welcome) = played.hear().await else { panic!("no welcome") };
        assert!(!welcome.incarnation.is_empty());
        played
    }
}

pub struct PlayedWorker {
    pub outgoing: mpsc::Sender<wire::WorkerMessage>,
    pub incoming: Streaming<wire::CoordinatorMessage>,
}

impl PlayedWorker {
    pub async fn connect(address: &str, token: &str) -> Self {
        let (outgoing, messages) = mpsc::channel(16);
        // Without the client's own limit: it is not what protects the coordinator.
        let mut client = client::workers(address, token).await.unwrap().max_encoding_message_size(usize::MAX);
        let incoming = client.session(ReceiverStream::new(messages)).await.unwrap().into_inner();
        Self { outgoing, incoming }
    }

    pub async fn say(&self, kind: worker_message::Kind) {
        self.outgoing.send(wire::WorkerMessage { kind: Some(kind) }).await.unwrap();
    }

    pub async fn hear(&mut self) -> coordinator_message::Kind {
        self.incoming.message().await.unwrap().unwrap().kind.unwrap()
    }

    pub async fn lease(&mut self, count: u32) -> Vec<wire::Lease> {
        self.say(worker_message::Kind::Ask(wire::LeaseRequest { count })).await;
        let coordinator_message::Kind::Leases(leases) = self.hear().await else { panic!("no leases") };
        leases.leases
    }

    pub async fn report(&mut self, lease: &wire::Lease, result: wire::FoldResult) -> wire::Acknowledgement {
        let report =
            wire::ResultReport { fold: lease.fold.clone(), attempt: lease.attempt, result: Some(result) };
        let reports = wire::Reports { results: vec![report], failures: Vec::new() };
        self.say(worker_message::Kind::Reports(reports)).await;
        let coordinator_message::Kind::Acknowledgements(mut acks) = self.hear().await else {
            panic!("no answer")
        };
        acks.acknowledgements.remove(0)
    }
}

pub async fn submit(world: &World) -> wire::SubmitReply {
    let request = wire::SubmitRequest { yaml: SWEEP.to_owned(), ..Default::default() };
    world.operator().await.submit(request).await.unwrap().into_inner()
}

pub async fn status(world: &World) -> wire::SweepSummary {
    let request = wire::StatusRequest { sweep: "played".to_owned() };
    world.operator().await.status(request).await.unwrap().into_inner().summary.unwrap()
}

/// Everything that one read says.
pub async fn read(client: &mut SweepsClient<AuthorisedChannel>, request: wire::ReadRequest) -> Vec<Kind> {
    let mut stream = client.read(request).await.unwrap().into_inner();
    let mut facts = Vec::new();
    while let Some(fact) = stream.message().await.unwrap() {
        facts.push(fact.kind.unwrap());
    }
    facts
}
