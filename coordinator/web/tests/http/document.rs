//! The API is what its document says: the committed file is the one that is made, and every answer has the form that stands
//! in it.

use serde_json::Value;
use togl_web::api::{self, ROUTES};

use crate::World;
use crate::trust::address;

#[test]
fn the_committed_document_is_the_one_of_this_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, api::document()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == api::document(), "renew {path} with UPDATE_DOCS=1");
}

/// What is wrong with a value; as much of JSON Schema as the document uses.
fn complaint(value: &Value, schema: &Value, forms: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let form = &forms[name.rsplit('/').next().unwrap()];
        return match form.is_null() {
            true => Some(format!("{at}: there is no form {name}")),
            false => complaint(value, form, forms, at),
        };
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let none_fits = choices.iter().all(|choice| complaint(value, choice, forms, at).is_some());
        return none_fits.then(|| format!("{at}: {value} fits nothing of {schema}"));
    }
    let fits = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("array") => {
            let items = value.as_array().into_iter().flatten();
            let wrong = items
                .enumerate()
                .find_map(|(n, item)| complaint(item, &schema["items"], forms, &format!("{at}/{n}")));
            return if value.is_array() { wrong } else { Some(format!("{at}: {value} is no list")) };
        }
        Some("object") => return object_complaint(value, schema, forms, at),
        other => panic!("{at}: the document has a type {other:?}"),
    };
    let too_small = schema["minimum"].as_i64().is_some_and(|least| value.as_i64().is_some_and(|v| v < least));
    (!fits || too_small).then(|| format!("{at}: {value} is not {schema}"))
}

fn object_complaint(value: &Value, schema: &Value, forms: &Value, at: &str) -> Option<String> {
    let Some(fields) = value.as_object() else { return Some(format!("{at}: {value} is no object")) };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Some(format!("{at}: {missing} is missing"));
    }
    fields.iter().find_map(|(name, field)| {
        let at = format!("{at}/{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => Some(format!("{at}: the document does not know it")),
            (Value::Null, Value::Null) => None,
            (Value::Null, other) => complaint(field, other, forms, &at),
            (known, _) => complaint(field, known, forms, &at),
        }
    })
}

#[tokio::test]
async fn every_answer_has_the_form_that_the_document_gives_it() {
    let world = World::signed_in(true).await;
    let document: Value = serde_json::from_str(&api::document()).unwrap();
    let forms = &document["components"]["schemas"];
    let mut looked_at = 0;
    for route in ROUTES.iter().filter(|route| route.body.is_none() && route.answer.0 != "text/event-stream") {
        let seen = world.get(&address(route.path)).await;
        assert_eq!(seen.status, 200, "{}: {}", route.path, seen.text());
        let kind = seen.headers["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with(route.answer.0), "{}: {kind}", route.path);
        if kind == "application/json" {
            let good = &document["paths"][route.path]["get"]["responses"]["200"]["content"][&kind]["schema"];
            assert_eq!(complaint(&seen.json(), good, forms, route.path), None);
            looked_at += 1;
        }
    }
    assert!(looked_at >= 10, "{looked_at}");
    let done = world.send(world.post("/api/v1/workers/w/steer", r#"{"act":"drain"}"#)).await;
    assert_eq!(complaint(&done.json(), &forms["Done"], forms, "done"), None);
    let wrong = world.get("/api/v1/sweeps/other").await;
    assert_eq!(complaint(&wrong.json(), &forms["Trouble"], forms, "trouble"), None);
}

#[tokio::test]
async fn who_has_an_answer_already_is_not_sent_it_again() {
    let world = World::signed_in(true).await;
    let first = world.get("/api/v1/sweeps/played/table").await;
    let tag = first.headers["etag"].clone();
    let again = |tag: &axum::http::HeaderValue| {
        let request = world.request(axum::http::Method::GET, "/api/v1/sweeps/played/table");
        request.header("If-None-Match", tag).body(axum::body::Body::empty()).unwrap()
    };
    assert_eq!(world.send(again(&tag)).await.status, 304);
    world.source.version.store(1, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(world.send(again(&tag)).await.status, 200);
}

#[tokio::test]
async fn no_answer_grows_with_the_number_of_folds() {
    let world = World::signed_in(true).await;
    let page = world.get("/api/v1/sweeps/played/folds?from=99900&limit=500").await;
    assert_eq!(page.json()["folds"].as_array().unwrap().len(), 100);
    assert_eq!(page.json()["next"], Value::Null);
    let page = world.get("/api/v1/sweeps/played/folds?limit=500").await;
    assert_eq!(page.json()["next"], 500);
    let trials = world.get("/api/v1/sweeps/played/trials?limit=1000&from=4500").await.json();
    assert_eq!((trials["trials"].as_array().unwrap().len(), &trials["next"]), (500, &Value::Null));
    for path in
        ["trials?limit=0", "trials?limit=1001", "folds?limit=501", "trials?from=-1", "table?columns=nonsense"]
    {
        assert_eq!(world.get(&format!("/api/v1/sweeps/played/{path}")).await.status, 400, "{path}");
    }
    for route in ROUTES.iter().filter(|route| route.body.is_none() && route.answer.0 != "text/event-stream") {
        let bytes = world.get(&address(route.path)).await.body.len();
        assert!(bytes <= 256 * 1024, "{}: {bytes}", route.path);
    }
    assert!(page.body.len() <= 256 * 1024, "{}", page.body.len());
}
