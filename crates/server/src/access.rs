//! Who may do what: bearer tokens and roles.

use serde::Deserialize;
use subtle::ConstantTimeEq;

/// What a caller may do. Each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Look at what is served.
    Read,
    /// Change it, and take part in exports.
    Write,
    /// Start and cancel exports, and see the metrics.
    Admin,
}

/// A secret and what it allows.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The secret.
    pub token: String,
    /// What it allows.
    pub role: Role,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("role", &self.role).finish_non_exhaustive()
    }
}

/// Why a caller is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It did not say who it is, or nothing that is known: 401, `UNAUTHENTICATED`.
    Unknown,
    /// It is known and may not: 403, `PERMISSION_DENIED`.
    Forbidden,
}

/// The tokens of a server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: Vec<Token>,
}

impl Access {
    /// Access by these tokens; without any, every caller may do everything.
    pub fn new(tokens: Vec<Token>) -> Self {
        Self { tokens }
    }

    /// Whether callers need a token.
    pub fn is_closed(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The role of a caller, by the value of its `authorization` header.
    pub fn role(&self, authorization: Option<&[u8]>) -> Result<Role, Refusal> {
        if self.tokens.is_empty() {
            return Ok(Role::Admin);
        }
        let given = authorization.and_then(bearer).ok_or(Refusal::Unknown)?;
        // All are compared, in a time that does not depend on where they differ.
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.token.as_bytes().ct_eq(given)) {
                found = found.max(Some(token.role));
            }
        }
        found.ok_or(Refusal::Unknown)
    }

    /// Refuses a caller without a role.
    pub fn require(&self, role: Role, authorization: Option<&[u8]>) -> Result<(), Refusal> {
        match self.role(authorization)? >= role {
            true => Ok(()),
            false => Err(Refusal::Forbidden),
        }
    }
}

/// The token of `Bearer TOKEN`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_may_do_what_those_before_it_may() {
        let token = |token: &str, role| Token { token: token.to_owned(), role };
        let access = Access::new(vec![token("r", Role::Read), token("w", Role::Write)]);
        assert_eq!(access.require(Role::Read, Some(b"Bearer w")), Ok(()));
        assert_eq!(access.require(Role::Write, Some(b"bearer r")), Err(Refusal::Forbidden));
        assert_eq!(access.require(Role::Read, Some(b"Bearer x")), Err(Refusal::Unknown));
        assert_eq!(access.require(Role::Read, Some(b"Basic r")), Err(Refusal::Unknown));
        assert_eq!(access.require(Role::Read, None), Err(Refusal::Unknown));
        assert_eq!(Access::default().require(Role::Admin, None), Ok(()));
    }
}
