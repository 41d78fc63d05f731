//! Answers: JSON with an ETag, text, and troubles in the form that the page and its users know. Everything that goes out
//! passes through here.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::source::{Answer, Trouble};

/// An answer with a body.
pub(crate) fn text(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// An answer that says what is wrong.
pub(crate) fn wrong(status: StatusCode, words: &str) -> Response<Body> {
    text(status, "application/json", json!({ "error": words }).to_string())
}

/// What a source said, as JSON. Who has the same already is told so.
pub(crate) fn data<T: Serialize>(asked: &HeaderMap, said: Answer<T>) -> Response<Body> {
    match said {
        Ok(value) => match serde_json::to_vec(&value) {
            Ok(body) => tagged(asked, body),
            Err(error) => wrong(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        },
        Err(trouble) => troubled(&trouble),
    }
}

/// The answer to a trouble.
pub(crate) fn troubled(trouble: &Trouble) -> Response<Body> {
    let status = match trouble {
        Trouble::Unknown(_) => StatusCode::NOT_FOUND,
        Trouble::Bad(_) => StatusCode::BAD_REQUEST,
        Trouble::Refused(_) => StatusCode::CONFLICT,
        Trouble::Away(_) => StatusCode::SERVICE_UNAVAILABLE,
        Trouble::Ours(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    wrong(status, trouble.words())
}

fn tagged(asked: &HeaderMap, body: Vec<u8>) -> Response<Body> {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let known = asked.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => {
            let mut empty = Response::new(Body::empty());
            *empty.status_mut() = StatusCode::NOT_MODIFIED;
            empty
        }
        false => text(StatusCode::OK, "application/json", body),
    };
    if let Ok(tag) = header::HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
