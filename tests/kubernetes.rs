//! The manifests of `deploy/kubernetes` beside the programs that they start: every list of arguments goes through the real
//! parser, and ports, grace periods and users are compared with those of the programs and images. Reads the files as they lie
//! there, patches of overlays included; what they amount to when rendered is looked at by `deploy/test-kubernetes`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Every document of every manifest, with the name of its file. Patches are documents of their own.
fn documents() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    visit(&root().join("deploy/kubernetes"), &mut found);
    assert!(found.len() > 10, "the manifests are not found");
    found
}

fn visit(folder: &Path, found: &mut Vec<(String, Value)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            for text in fs::read_to_string(&path).unwrap().split("\n---\n") {
                let document: Value =
                    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
                for patch in document["patches"].as_array().into_iter().flatten() {
                    let patch = serde_yaml::from_str(patch["patch"].as_str().unwrap());
                    found.push((name.clone(), patch.unwrap_or_else(|error| panic!("{name}: {error}"))));
                }
                found.push((name.clone(), document));
            }
        }
    }
}

/// What stands under a key, be it said in place or by an operation of a patch.
fn under<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            let operation = map.get("path").and_then(Value::as_str).zip(map.get("value"));
            found.extend(
                operation.filter(|(path, _)| path.ends_with(&format!("/{key}"))).map(|(_, value)| value),
            );
            found.extend(map.get(key).filter(|_| operation.is_none()));
            map.values().for_each(|value| under(value, key, found));
        }
        Value::Array(values) => values.iter().for_each(|value| under(value, key, found)),
        _ => {}
    }
}

fn all(key: &str) -> Vec<(String, Value)> {
    let documents = documents();
    let mut all = Vec::new();
    for (name, document) in &documents {
        let mut found = Vec::new();
        under(document, key, &mut found);
        all.extend(found.into_iter().map(|value| (name.clone(), value.clone())));
    }
    all
}

fn words(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().expect("arguments are text").to_owned())
        .collect()
}

/// The arguments of all containers and probes that run a program of ours, as they would be typed after `togl`.
fn calls() -> Vec<(String, Vec<String>)> {
    let mut calls = Vec::new();
    for (file, value) in all("args") {
        let words = words(&value);
        match words[0].as_str() {
            "serve" => calls.push((file, words)),
            "join" => calls.push((file, [vec!["worker".to_owned()], words].concat())),
            script => assert!(script.contains("/state/togl"), "{file} starts what nobody knows: {script}"),
        }
    }
    for (file, value) in all("command") {
        let words = words(&value);
        match words[0].as_str() {
            "togl" => calls.push((file, words[1..].to_vec())),
            other => assert_eq!(other, "/bin/sh", "{file}"),
        }
    }
    calls
}

fn option<'a>(call: &'a [String], name: &str) -> Option<&'a str> {
    let at = call.iter().position(|word| word == name)?;
    call.get(at + 1).map(String::as_str)
}

/// What the real parser says to these arguments. A call for help at their end is only heard when all of them are known.
fn parsed(call: &[String]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
    let output = command.args(call).arg("--help").env_remove("TOGL_STORE").output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

#[test]
fn the_real_parser_takes_all_arguments_of_pods_and_probes() {
    let worker = Path::new(env!("CARGO_BIN_EXE_togl")).with_file_name("togl-worker").is_file();
    if !worker {
        eprintln!("skipped: togl-worker is not built, so the arguments of workers are not looked at");
    }
    let calls = calls();
    let count = |verb: &str| calls.iter().filter(|(_, call)| call[0] == verb).count();
    assert!(count("serve") >= 3 && count("worker") >= 3 && count("health") >= 5, "{calls:?}");
    for (file, call) in calls.iter().filter(|(_, call)| worker || call[0] != "worker") {
        let help = parsed(call).unwrap_or_else(|said| panic!("{file}: {call:?}: {said}"));
        assert!(help.contains("Usage: "), "{file}: {help}");
        let wrong = [&call[..], &["--surprise".to_owned()]].concat();
        assert!(parsed(&wrong).is_err(), "the parser takes anything: {wrong:?}");
    }
}

#[test]
fn ports_are_those_at_which_the_coordinator_listens() {
    for (file, call) in calls() {
        if call[0] == "serve" {
            assert_eq!(option(&call, "--listen"), Some("0.0.0.0:7447"), "{file}");
            // The name by which workers come must be in the certificate of who judges by names, such as KEDA.
            assert_eq!(option(&call, "--host"), Some("togl"), "{file}");
            assert!(option(&call, "--metrics").is_none_or(|at| at == "0.0.0.0:9464"), "{file}");
        } else if call[0] == "worker" {
            assert_eq!(call[2], "togl:7447", "{file}");
        }
    }
    for key in ["port", "containerPort"] {
        for (file, port) in all(key) {
            // 53 is DNS, 443 where data sets are, 5432 PostgreSQL.
            assert!([7447, 9464, 53, 443, 5432].contains(&port.as_u64().unwrap()), "{file}: {port}");
        }
    }
    let scale = all("url");
    assert_eq!(
        scale.iter().map(|(_, url)| url.as_str().unwrap()).collect::<Vec<_>>(),
        ["https://togl:9464/scale"]
    );
}

#[test]
fn pods_live_longer_than_their_workers_take_to_leave_and_a_worker_that_was_told_to_is_no_failure() {
    let periods = all("terminationGracePeriodSeconds");
    let shortest = |file: &str| {
        let its = periods.iter().filter(|(of, _)| of.ends_with(file));
        its.map(|(_, seconds)| seconds.as_u64().unwrap()).min().unwrap()
    };
    // A goodbye takes up to two seconds beside what saving takes; a coordinator gives its last calls five.
    for (file, call) in calls() {
        if let Some(grace) = option(&call, "--grace") {
            let grace: u64 = grace.parse().unwrap();
            assert!(shortest("workers.yaml") >= grace + 10, "{file}: {grace} s");
        }
    }
    assert!(shortest("coordinator.yaml") >= 10);
    let ignored: Vec<_> = all("onExitCodes").into_iter().map(|(_, codes)| codes["values"].clone()).collect();
    for (file, call) in calls() {
        if let Some(code) = option(&call, "--stopped-exit") {
            assert_eq!(code, "143", "{file}");
            assert!(ignored.contains(&serde_json::json!([143])), "{ignored:?}");
            assert!(option(&call, "--idle-exit").is_some(), "{file}: a Job that never ends");
        }
    }
}

#[test]
fn pods_run_as_the_user_of_the_images_and_nothing_blocks_a_drain() {
    let images = fs::read_to_string(root().join("deploy/Containerfile")).unwrap();
    for key in ["runAsUser", "runAsGroup", "fsGroup"] {
        let users = all(key);
        assert!(users.len() >= 2, "{users:?}");
        for (file, user) in users {
            assert!(images.contains(&format!("--uid {user} ")), "{file}: {key} {user}");
        }
    }
    for (file, kind) in all("kind") {
        assert_ne!(kind, "PodDisruptionBudget", "{file}");
    }
    for (file, mounted) in all("automountServiceAccountToken") {
        assert_eq!(mounted, false, "{file}");
    }
}
