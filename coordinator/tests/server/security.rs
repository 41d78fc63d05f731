//! Who may do what, and over which connections: every call with every role, TLS with a pinned CA, client
//! certificates.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};

use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use togl_coordinator::server::CALLS;
use togl_coordinator::tokens::Role;
use togl_proto::client::{self, Bearer, ClientAccess, ConnectError};
use togl_proto::token::{Pin, Token};
use togl_proto::wire;
use tonic::Code;
use tonic::client::Grpc;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::played::{World, submit};

/// The code of one call with an empty message.
async fn code(address: &str, path: &'static str, token: &str) -> Code {
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut grpc = Grpc::new(InterceptedService::new(channel, Bearer::new(token).unwrap()));
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(path);
    let codec = ProstCodec::<(), ()>::default();
    match grpc.server_streaming(tonic::Request::new(()), path, codec).await {
        Ok(response) => match response.into_inner().message().await {
            Ok(_) => Code::Ok,
            Err(status) => status.code(),
        },
        Err(status) => status.code(),
    }
}

#[tokio::test]
async fn every_call_is_open_to_exactly_the_roles_that_may_make_it() {
    let world = World::with(|settings| settings.bounds.bad_tokens = 1_000).await;
    let viewer = world.token(Role::Viewer, None).0;
    let holders = [
        (Some(Role::Operator), world.tokens.operator.as_str()),
        (Some(Role::Viewer), &viewer),
        (Some(Role::Worker), &world.tokens.worker),
        (None, "togl1.operator.0000"),
    ];
    for (path, roles, _) in CALLS {
        for (role, token) in holders {
            let code = code(&world.address, path, token).await;
            match role {
                None => assert_eq!(code, Code::Unauthenticated, "{path} for a stranger"),
                Some(role) if roles.contains(&role) => {
                    assert!(
                        !matches!(code, Code::Unauthenticated | Code::PermissionDenied),
                        "{path} for {role}: {code}"
                    );
                }
                Some(role) => assert_eq!(code, Code::PermissionDenied, "{path} for {role}"),
            }
        }
    }
    let health = code(&world.address, "/grpc.health.v1.Health/Check", "nobody").await;
    assert_eq!(health, Code::Ok, "health is for everybody");
    let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    assert_eq!(code(&world.address, reflection, "nobody").await, Code::Unauthenticated);
    assert_ne!(code(&world.address, reflection, &viewer).await, Code::PermissionDenied);
}

#[test]
fn the_table_of_calls_names_every_call_of_the_services() {
    let descriptors = prost_types::FileDescriptorSet::decode(togl_proto::DESCRIPTORS).unwrap();
    let services =
        descriptors.file.iter().flat_map(|file| file.service.iter().map(move |s| (file.package(), s)));
    let calls: BTreeSet<String> = services
        .flat_map(|(package, service)| {
            service
                .method
                .iter()
                .map(move |method| format!("/{package}.{}/{}", service.name(), method.name()))
        })
        .collect();
    assert_eq!(calls, CALLS.iter().map(|(call, ..)| (*call).to_owned()).collect());
}

fn pinned(token: &str, pin: &Pin) -> String {
    Token::parse(token).unwrap().pinned(pin.clone()).reveal()
}

#[tokio::test]
async fn a_token_with_its_ca_reaches_the_coordinator_over_tls_and_nobody_else() {
    let (world, other) = (World::new().await, World::new().await);
    submit(&world).await;
    let right = pinned(&world.tokens.operator, &world.pin);
    let mut client = client::sweeps(&world.address, &right).await.unwrap();
    let listed = client.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.sweeps.len(), 1);
    let misled = client::sweeps(&other.address, &right).await.err();
    assert!(matches!(misled, Some(ConnectError::Impostor { .. })), "{misled:?}");
    let written = std::fs::read_to_string(world.folder.path().join("worker.token")).unwrap();
    let worker = world.worker_with(&written, "w-tls", Vec::new()).await;
    drop(worker);
}

#[tokio::test]
async fn the_ca_outlives_a_restart_and_so_does_every_join_line() {
    let world = World::new().await;
    let token = pinned(&world.tokens.operator, &world.pin);
    let world = world.restart().await;
    let mut client = client::sweeps(&world.address, &token).await.unwrap();
    client.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap();
}

/// An address of this machine that others can reach; none where there is no network.
fn outside_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?; // sends nothing: it only looks up the way
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback())
}

#[tokio::test]
async fn from_outside_nothing_goes_unencrypted_unless_the_operator_said_so() {
    let Some(outside) = outside_address() else { return eprintln!("skipped: this machine has no network") };
    let strict = World::with(|settings| settings.address.set_ip([0, 0, 0, 0].into())).await;
    let port = strict.address.rsplit_once(':').unwrap().1;
    let address = format!("{outside}:{port}");
    // The token must not even be sent: the connection ends before.
    let open = async |token: &str| {
        let mut client = client::sweeps(&address, token).await.map_err(|error| error.to_string())?;
        let listed = client.list_sweeps(wire::ListSweepsRequest::default()).await;
        listed
            .map(drop)
            .map_err(|status| client::broken(&status).unwrap_or_else(|| format!("an answer: {status}")))
    };
    let refused = open(&strict.tokens.operator).await.unwrap_err();
    assert!(!refused.contains("an answer") && !refused.contains("transport error"), "{refused}");
    assert_eq!(open(&pinned(&strict.tokens.operator, &strict.pin)).await, Ok(()));

    let lenient = World::with(|settings| {
        settings.address.set_ip([0, 0, 0, 0].into());
        settings.plaintext = true;
    });
    let lenient = lenient.await;
    let address = format!("{outside}:{}", lenient.address.rsplit_once(':').unwrap().1);
    let mut client = client::sweeps(&address, &lenient.tokens.operator).await.unwrap();
    client.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap();
}

#[tokio::test]
async fn with_a_client_ca_a_token_alone_is_not_enough() {
    let folder = tempfile::tempdir().unwrap();
    let (ca_file, identity) = (folder.path().join("clients.pem"), folder.path().join("me.pem"));
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    std::fs::write(&ca_file, params.self_signed(&ca_key).unwrap().pem()).unwrap();
    let (key, issuer) = (KeyPair::generate().unwrap(), Issuer::new(params, ca_key));
    let mine = CertificateParams::new(vec!["me".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    std::fs::write(&identity, mine.pem() + &key.serialize_pem()).unwrap();

    let world = World::with(|settings| settings.client_ca = Some(ca_file.clone())).await;
    let token = pinned(&world.tokens.operator, &world.pin);
    let list = async |access: ClientAccess| {
        let mut client = access.sweeps(&world.address).await.map_err(|error| error.to_string())?;
        let listed = client.list_sweeps(wire::ListSweepsRequest::default()).await;
        listed
            .map(drop)
            .map_err(|status| client::broken(&status).unwrap_or_else(|| format!("an answer: {status}")))
    };
    assert_eq!(list(ClientAccess::new(&token, Some(&identity)).unwrap()).await, Ok(()));
    let refused = list(ClientAccess::new(&token, None).unwrap()).await.unwrap_err();
    assert!(!refused.contains("an answer") && !refused.contains("transport error"), "{refused}");
    let refused = ClientAccess::new(&token, Some(&ca_file)).err().unwrap().to_string();
    assert!(refused.contains("no private key"), "{refused}");
}
