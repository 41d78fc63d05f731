//! t
fn main() {
    for mirror in std::env::args().skip(1) {
    let o = togl_data::FetchOptions { data_dir: "/tmp/togl-net-check".into(), mirror: Some(mirror), ca_file: Some("/etc/ssl/certs/ca-certificates.crt".into()), ..Default::default() };
    println!("{:?}", togl_data::fetch("MUTAG", &o, &|_| ()).map_err(|e| e.to_string()));
    }
}
