//! The configuration that the documentation shows.

use chunkyard_server::Config;
use chunkyard_server::access::Role;
use chunkyard_server::config::Limits;

#[test]
fn the_example_of_the_documentation_is_a_configuration_with_the_defaults() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/server.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let shown = Config::parse(example).unwrap();
    let usual = Config::default();
    assert_eq!((shown.http, shown.flight), (usual.http, usual.flight));
    assert_eq!(shown.origins, usual.origins);
    let roles: Vec<Role> = shown.tokens.iter().map(|token| token.role).collect();
    assert_eq!(roles, [Role::Read, Role::Admin]);
    assert_eq!(format!("{:?}", shown.limits), format!("{:?}", Limits::default()));
    // No limit is left out.
    let (_, limits) = example.split_once("[limits]\n").unwrap();
    let shown: Vec<&str> = limits.lines().filter_map(|line| line.split(" = ").next()).collect();
    let all = format!("{:?}", Limits::default());
    assert_eq!(shown.len(), all.matches(": ").count(), "{all}");
}
