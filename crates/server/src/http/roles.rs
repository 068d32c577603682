//! Which role a request needs.

use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::Response;

use super::Failure;
use crate::State;
use crate::access::Role;

/// Routes that need another role than their method says: the end of the route, the method, the role.
const EXCEPTIONS: &[(&str, Method, Role)] = &[
    ("/metrics", Method::GET, Role::Admin),
    ("/export", Method::POST, Role::Admin),
    ("/export/{job}", Method::DELETE, Role::Admin),
    ("/jobs/{job}", Method::DELETE, Role::Admin),
    // The viewer tells its server what it does; nothing changes by it.
    ("/neuroglancer/state/{token}", Method::POST, Role::Read),
    ("/neuroglancer/action/{token}", Method::POST, Role::Read),
    ("/neuroglancer/credentials/{token}", Method::POST, Role::Read),
];

/// What answers without a token: whether the server lives is no secret.
const OPEN: &[&str] = &["/healthz"];

/// The role that a method needs on a route; `None` if no token is needed.
pub(super) fn role(route: Option<&str>, method: &Method) -> Option<Role> {
    let route = route.unwrap_or_default();
    if OPEN.contains(&route) {
        return None;
    }
    // What answers GET answers HEAD.
    let asked = if method == Method::HEAD { &Method::GET } else { method };
    let exception = EXCEPTIONS.iter().find(|(end, of, _)| of == asked && route.ends_with(end));
    Some(match (exception, asked) {
        (Some((_, _, role)), _) => *role,
        (None, &Method::GET) => Role::Read,
        (None, _) => Role::Write,
    })
}

/// Refuses callers whose token does not allow what they ask for.
pub(super) async fn guard(
    Shared(state): Shared<State>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if let Some(role) = role(route, request.method()) {
        let authorization = request.headers().get(header::AUTHORIZATION);
        state.access().require(role, authorization.map(|value| value.as_bytes()))?;
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_ask_for_roles_and_some_routes_for_others() {
        assert_eq!(role(Some("/healthz"), &Method::GET), None);
        assert_eq!(role(None, &Method::GET), Some(Role::Read));
        assert_eq!(role(Some("/x"), &Method::HEAD), Some(Role::Read));
        assert_eq!(role(Some("/x"), &Method::DELETE), Some(Role::Write));
        assert_eq!(role(Some("/metrics"), &Method::HEAD), Some(Role::Admin));
        let export = "/api/node/{uuid}/{data}/export";
        assert_eq!(role(Some(export), &Method::POST), Some(Role::Admin));
        assert_eq!(role(Some(export), &Method::GET), Some(Role::Read));
    }
}
