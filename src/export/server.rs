//! An MLflow server over its REST interface: one call, its answer or why there is none. Owns addresses, credentials and what
//! errors of servers mean; knows no runs.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use ureq::Agent;
use ureq::http::StatusCode;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an answer that are read: a page of a thousand runs with all they hold.
const MOST_BYTES: u64 = 64 << 20;
/// Of an answer that is no MLflow's, so much is shown.
const SHOWN: usize = 80;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("`{url}` is no address of a server")]
    NoAddress { url: String },
    #[error("no MLflow server answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} answers, but not as an MLflow server: {status} {words}")]
    NotMlflow { url: String, status: u16, words: String },
    #[error("the MLflow server at {url} does not let us in ({status})")]
    Unauthorised { url: String, status: u16 },
    #[error("the MLflow server refused {call}: {code}: {message}")]
    Refused { call: &'static str, code: String, message: String },
}

impl ServerError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoAddress { .. } => "write the one that browsers open, such as http://127.0.0.1:5000",
            Self::Unreachable { .. } => {
                "start one with `mlflow server`, or name another with --to; what was exported stays, run it again to go on"
            }
            Self::NotMlflow { .. } => "give the address that browsers open, without what follows `#`",
            Self::Unauthorised { .. } => {
                "set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
            }
            Self::Refused { .. } => "what was exported stays; run it again to go on once that is mended",
        }
    }
}

/// Something that answers calls of MLflow's interface, version 2.0.
pub trait Tracking {
    /// Asks for something such as `runs/create`.
    fn post(&mut self, call: &'static str, body: &Value) -> Result<Value, ServerError>;
}

/// A server and how to be let in.
pub struct MlflowServer {
    agent: Agent,
    url: String,
    authorisation: Option<String>,
}

/// Who asks.
#[derive(Debug, Default)]
pub struct Credentials {
    /// A token, or
    pub token: Option<String>,
    /// a name with
    pub user: Option<String>,
    /// its password.
    pub password: Option<String>,
}

impl MlflowServer {
    /// The server at an address.
    pub fn at(url: &str, who: &Credentials) -> Result<Self, ServerError> {
        let url = url.trim_end_matches('/').to_owned();
        let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let Some(host) = host.filter(|host| !host.is_empty() && !host.contains(['#', '?', ' '])) else {
            return Err(ServerError::NoAddress { url });
        };
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT));
        // A proxy of the environment is for the world outside.
        if ["127.0.0.1", "localhost", "[::1]"].iter().any(|local| host.starts_with(local)) {
            config = config.proxy(None);
        }
        let basic = |user: &String| {
            let password = who.password.as_deref().unwrap_or_default();
            format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
        };
        let token = who.token.as_ref().map(|token| format!("Bearer {token}"));
        let authorisation = who.user.as_ref().map(basic).or(token);
        Ok(Self { agent: config.build().into(), url, authorisation })
    }

    fn not_mlflow(&self, status: StatusCode, text: &str) -> ServerError {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words.chars().take(SHOWN).collect();
        ServerError::NotMlflow { url: self.url.clone(), status: status.as_u16(), words }
    }
}

impl Tracking for MlflowServer {
    fn post(&mut self, call: &'static str, body: &Value) -> Result<Value, ServerError> {
        let unreachable = |error: ureq::Error| ServerError::Unreachable {
            url: self.url.clone(),
            reason: error.to_string(),
        };
        let mut request = self.agent.post(format!("{}/api/2.0/mlflow/{call}", self.url));
        if let Some(authorisation) = &self.authorisation {
            request = request.header("Authorization", authorisation);
        }
        let answer = request.content_type("application/json").send(body.to_string()).map_err(unreachable)?;
        let status = answer.status();
        let text = answer.into_body().into_with_config().limit(MOST_BYTES).read_to_string();
        let text = text.map_err(unreachable)?;
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(ServerError::Unauthorised { url: self.url.clone(), status: status.as_u16() });
        }
        let said: Value = serde_json::from_str(&text).map_err(|_| self.not_mlflow(status, &text))?;
        match (status.is_success(), said["error_code"].as_str()) {
            (true, None) if said.is_object() => Ok(said),
            (_, Some(code)) => {
                let message = said["message"].as_str().unwrap_or_default();
                Err(ServerError::Refused { call, code: code.to_owned(), message: message.to_owned() })
            }
            (_, None) => Err(self.not_mlflow(status, &text)),
        }
    }
}
