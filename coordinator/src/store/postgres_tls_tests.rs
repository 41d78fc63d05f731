//! A real PostgreSQL that speaks TLS, with the certificate of a CA made for the test, and clients that trust it, do
//! not, or expect another name.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::store::address::StoreAddress;
use crate::store::contract::{fill, sweep};
use crate::store::postgres_server::Server;
use crate::store::{ResultQuery, StoreError};

/// A CA in a file.
struct Authority {
    file: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(folder: &TempDir, name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
    Authority { file, issuer: Issuer::new(params, key) }
}

/// A server known as `localhost`, and the port it listens at.
fn server(authority: &Authority) -> Option<(Server, u16)> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    Server::encrypted(&certificate.pem(), &key.serialize_pem())
}

fn open(text: &str) -> Result<StoreAddress, StoreError> {
    let address: StoreAddress = text.parse()?;
    address.open()?.close()?;
    Ok(address)
}

#[test]
fn a_store_is_reached_by_tls_and_only_at_the_server_that_is_meant() {
    let folder = TempDir::new().unwrap();
    let (ours, other) = (authority(&folder, "ours.pem"), authority(&folder, "other.pem"));
    let Some((server, port)) = server(&ours) else { return };
    let at = |host: &str, settings: &str| format!("postgres://postgres@{host}:{port}/postgres?{settings}");
    let (right, wrong) = (ours.file.display(), other.file.display());

    let full = at("localhost", &format!("sslmode=verify-full&sslrootcert={right}"));
    let address = open(&full).unwrap();
    assert!(!address.to_string().contains("sslmode"), "what people see is short: {address}");
    let before = fill(address.open().unwrap(), 4, |store| {
        let encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()";
        let seen: i64 = server.network(port).query_one(encrypted, &[]).unwrap().get(0);
        assert_eq!(seen, 1, "the session of the store is encrypted");
        let page = store.reader().unwrap().results(&ResultQuery::accepted(sweep("s"))).unwrap();
        assert_eq!(page.rows.len(), 2, "readers come the same way");
    });
    assert_eq!(address.open().unwrap().load().unwrap(), before);

    open(&at("localhost", "sslmode=require")).unwrap();
    open(&at("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={right}"))).unwrap();
    let refused = |text: String| open(&text).map(drop).unwrap_err().to_string();
    let forged = refused(at("localhost", &format!("sslmode=verify-full&sslrootcert={wrong}")));
    assert!(forged.contains("shows a certificate that no CA in") && forged.contains("other.pem"), "{forged}");
    let misnamed = refused(at("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={right}")));
    assert!(misnamed.contains("does not name `127.0.0.1`"), "{misnamed}");
    let missing = refused(at("localhost", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem"));
    assert!(missing.contains("needs the CAs in /nowhere/ca.pem: No such file"), "{missing}");
    fs::write(folder.path().join("empty.pem"), "").unwrap();
    let empty = folder.path().join("empty.pem").display().to_string();
    let empty = refused(at("localhost", &format!("sslmode=verify-ca&sslrootcert={empty}")));
    assert!(empty.contains("it holds no certificate"), "{empty}");
    assert_eq!(address.open().unwrap().load().unwrap(), before, "who was refused has changed nothing");
}

#[test]
fn a_certificate_that_signed_itself_is_its_own_ca() {
    let folder = TempDir::new().unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let file = folder.path().join("server.pem");
    fs::write(&file, &certificate).unwrap();
    let Some((_server, port)) = Server::encrypted(&certificate, &key.serialize_pem()) else { return };
    let settings = format!("sslmode=verify-full&sslrootcert={}", file.display());
    open(&format!("postgres://postgres@localhost:{port}/postgres?{settings}")).unwrap();
}

#[test]
fn a_server_without_tls_is_not_used_without_it_when_tls_is_asked_for() {
    let Some((_server, port)) = Server::on_a_port() else { return };
    let refused = open(&format!("postgres://postgres@localhost:{port}/postgres?sslmode=require"));
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.contains("does not offer TLS; switch `ssl` on in its postgresql.conf"), "{refused}");
}
