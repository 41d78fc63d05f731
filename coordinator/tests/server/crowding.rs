//! What one token may have under way at once: streams, reads and single calls alike. Whoever asks for more is refused, and
//! others do not notice.

use prost::Message;
use togl_coordinator::tokens::Role;
use togl_proto::client::{self, Bearer};
use togl_proto::wire;
use tonic::client::Grpc;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::played::{SWEEP, World, read, status};

/// A client that takes in little before somebody reads, so that answers are under way for as long as it likes.
struct Slow(Grpc<InterceptedService<Channel, Bearer>>);

impl Slow {
    async fn new(world: &World, token: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{}", world.address)).unwrap();
        let channel = endpoint.initial_stream_window_size(1_024).connect().await.unwrap();
        Self(Grpc::new(InterceptedService::new(channel, Bearer::new(token).unwrap())))
    }

    /// Begins a call of which nothing is read.
    async fn begin<M: Message + 'static>(
        &mut self,
        path: &'static str,
        message: M,
    ) -> Result<Streaming<wire::Fact>, Status> {
        self.0.ready().await.unwrap();
        let (path, codec) = (http::uri::PathAndQuery::from_static(path), ProstCodec::default());
        let begun = self.0.server_streaming(tonic::Request::new(message), path, codec).await?;
        Ok(begun.into_inner())
    }

    /// Begins calls until one is refused: those that are under way, and what was said.
    async fn crowd<M: Message + Clone + 'static>(
        &mut self,
        path: &'static str,
        message: M,
    ) -> (Vec<Streaming<wire::Fact>>, Status) {
        let mut under_way = Vec::new();
        loop {
            match self.begin(path, message.clone()).await {
                Ok(stream) => under_way.push(stream),
                Err(status) => return (under_way, status),
            }
            assert!(under_way.len() < 250, "there is no bound");
        }
    }

    /// Tries until a call is let in again.
    async fn until_let_in<M: Message + Clone + 'static>(&mut self, path: &'static str, message: M) {
        let mut tries = 0;
        while let Err(status) = self.begin(path, message.clone()).await {
            assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
            tries += 1;
            assert!(tries < 1_000, "the seats of calls that ended are free again");
            tokio::task::yield_now().await;
        }
    }
}

/// A sweep whose text fills more than a window.
async fn submit_much(world: &World) -> wire::StatusRequest {
    let yaml = format!("{SWEEP}# {}\n", "x".repeat(100_000));
    let request = wire::SubmitRequest { yaml, ..Default::default() };
    world.operator().await.submit(request).await.unwrap();
    wire::StatusRequest { sweep: "played".to_owned() }
}

fn whole_sweep() -> wire::ReadRequest {
    wire::ReadRequest { sweep: "played".to_owned(), ..Default::default() }
}

fn refused(status: &Status, what: &str) {
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().starts_with(&format!("this token has {what} under way already")), "{status}");
    assert!(status.message().contains("\n\nhint: ") && status.message().contains("`togl token create`"));
}

#[tokio::test]
async fn one_token_has_so_many_single_calls_at_once_and_others_still_get_answers() {
    let world = World::new().await;
    let request = submit_much(&world).await;
    let (token, _) = world.token(Role::Viewer, None);
    let mut slow = Slow::new(&world, &token).await;
    let (under_way, no) = slow.crowd("/togl.v1.Sweeps/Status", request.clone()).await;
    assert_eq!(under_way.len(), 64);
    refused(&no, "64 calls");
    let mut same = client::sweeps(&world.address, &token).await.unwrap();
    let list = same.list_workers(wire::ListWorkersRequest {}).await;
    refused(&list.unwrap_err(), "64 calls");
    assert_eq!(read(&mut same, whole_sweep()).await.len(), 2, "reads are another matter");
    assert_eq!(status(&world).await.pending, 4, "another token");
    drop(under_way);
    slow.until_let_in("/togl.v1.Sweeps/Status", request).await;
}

#[tokio::test]
async fn one_token_never_takes_all_places_for_reads() {
    let world = World::new().await;
    submit_much(&world).await;
    let (token, _) = world.token(Role::Viewer, None);
    let mut slow = Slow::new(&world, &token).await;
    let (under_way, no) = slow.crowd("/togl.v1.Sweeps/Read", whole_sweep()).await;
    assert_eq!(under_way.len(), 6);
    refused(&no, "6 reads of the store");
    let mut same = client::sweeps(&world.address, &token).await.unwrap();
    let log = same.log(wire::LogRequest { fold: "0/0/0".to_owned() }).await;
    refused(&log.unwrap_err(), "6 reads of the store");
    let mut other = world.viewer().await;
    let log = other.log(wire::LogRequest { fold: "0/0/0".to_owned() }).await;
    assert_eq!(log.unwrap_err().code(), Code::NotFound, "another token is heard");
    assert_eq!(read(&mut other, whole_sweep()).await.len(), 2);
    drop((under_way, slow)); // the client is gone, without a word
    Slow::new(&world, &token).await.until_let_in("/togl.v1.Sweeps/Read", whole_sweep()).await;
}

#[tokio::test]
async fn one_token_may_watch_only_so_often_at_once() {
    let world = World::new().await;
    let request = submit_much(&world).await;
    let (token, _) = world.token(Role::Viewer, None);
    let mut slow = Slow::new(&world, &token).await;
    let (under_way, no) = slow.crowd("/togl.v1.Sweeps/Watch", request.clone()).await;
    assert_eq!(under_way.len(), 128);
    refused(&no, "128 streams of `togl watch` and the like");
    let follow = wire::FollowRequest { sweep: "played".to_owned(), cursor: None };
    let no = slow.begin("/togl.v1.Sweeps/Follow", follow).await.unwrap_err();
    refused(&no, "128 streams of `togl watch` and the like");
    let mut watched = world.viewer().await.watch(request.clone()).await.unwrap().into_inner();
    watched.message().await.unwrap().unwrap();
    drop(under_way);
    slow.until_let_in("/togl.v1.Sweeps/Watch", request).await;
}

#[tokio::test]
async fn sessions_of_workers_are_not_bounded_by_their_token() {
    let world = World::new().await;
    let mut here = Vec::new();
    for number in 0..130 {
        here.push(world.worker(&format!("w{number}"), Vec::new()).await);
    }
    let listed = world.viewer().await.list_workers(wire::ListWorkersRequest {}).await.unwrap().into_inner();
    assert_eq!((listed.workers.len(), here.len()), (130, 130));
}
