//! The door: every call must carry a token of the right role. Says no in the same words whatever was wrong.

use std::sync::Arc;

use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::tokens::{Role, Tokens};

/// Lets only calls with a token of one role pass.
#[derive(Clone)]
pub(super) struct Door {
    tokens: Arc<Tokens>,
    role: Role,
}

impl Door {
    pub(super) fn new(tokens: Arc<Tokens>, role: Role) -> Self {
        Self { tokens, role }
    }
}

impl Interceptor for Door {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let presented = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if self.tokens.allow(self.role, presented) {
            return Ok(request);
        }
        let needed = match self.role {
            Role::Operator => "an operator token",
            Role::Worker => "a worker token",
        };
        Err(Status::unauthenticated(format!("this call needs {needed}")))
    }
}
