//! Which version and which data a path names, and what is told about repositories.

use serde_json::{Value, json};

use super::support::{ask, four_bodies, get, get_json, repository};
use crate::harness::Server;

fn reason(bytes: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(bytes).unwrap();
    answer["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_version_is_a_snapshot_a_branch_or_a_tag() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let id = repo.state().await.unwrap().tip("main").unwrap().snapshot_id.clone();
    let main = chunkyard_engine::repo::Version::branch("main");
    repo.create_tag("v1", &main, false).await.unwrap();
    repo.create_branch("side/one", &main).await.unwrap();
    let server = Server::start(&[("brain", directory.path())]);
    let named = [&id[..], &id[..6], "main", "v1", "side%2Fone", "brain:main", "brain:v1"];
    let within = [format!("{}:main", &id[..8]), format!("{}:master", &id[..8])];
    for version in named.iter().copied().chain(within.iter().map(String::as_str)) {
        for data in ["seg", "brain", "%2Fseg"] {
            let path = format!("/api/node/{version}/{data}/label/20_0_0");
            assert_eq!(get(&server, &path, "").await, b"{\"Label\": 2}", "{path}");
        }
    }
    for version in
        [&id[..3], "nothing", "other:main", "brain:nothing", "nothing:main", "..", "%2E%2E%2Fx"]
    {
        let (status, text) =
            ask(&server, "GET", &format!("/api/node/{version}/seg/info"), "").await;
        assert_eq!(status, 404, "{version}: {}", String::from_utf8_lossy(&text));
    }
    let (status, text) = ask(&server, "GET", "/api/node/main/other/info", "").await;
    assert_eq!(status, 404);
    assert!(reason(&text).contains("seg of brain"), "{}", reason(&text));
}

#[tokio::test]
async fn places_with_branches_of_one_name_are_told_apart() {
    let (first, repo) = repository().await;
    four_bodies(&repo).await;
    let (second, other) = repository().await;
    four_bodies(&other).await;
    let server = Server::start(&[("a", first.path()), ("b", second.path())]);
    let (status, text) = ask(&server, "GET", "/api/node/main/seg/info", "").await;
    assert_eq!(status, 400);
    assert!(reason(&text).contains("a:main"), "{}", reason(&text));
    for node in ["a:main/seg", "b:main/seg", "main/a", "main/b"] {
        get(&server, &format!("/api/node/{node}/info"), "").await;
    }
    let repos = get_json(&server, "/api/repos/info", String::new()).await;
    assert_eq!(repos.as_object().unwrap().len(), 2);
}

/// Neuroglancer looks a version up in this answer, by what its key begins with.
#[tokio::test]
async fn repositories_are_told_as_dvid_does() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let main = chunkyard_engine::repo::Version::branch("main");
    repo.create_tag("v1", &main, false).await.unwrap();
    let id = repo.state().await.unwrap().tip("main").unwrap().snapshot_id.clone();
    let server = Server::start(&[("brain", directory.path())]);
    let repos = get_json(&server, "/api/repos/info", String::new()).await;
    let (root, about) = repos.as_object().unwrap().iter().next().unwrap();
    assert_eq!(about["Alias"], "brain");
    let nodes = about["DAG"]["Nodes"].as_object().unwrap();
    assert_eq!(nodes[&id]["Locked"], true);
    assert_eq!(nodes["main"]["Locked"], false);
    assert_eq!(nodes["main"]["Parents"][0], nodes[&id]["VersionID"]);
    assert_eq!(nodes["v1"]["Locked"], true);
    assert!(nodes[&id]["Children"].as_array().unwrap().contains(&nodes["main"]["VersionID"]));
    assert_eq!(nodes[root]["Parents"], json!([]));
    let data = &about["DataInstances"]["seg"];
    assert_eq!(data["Base"]["TypeName"], "labelmap");
    assert_eq!(data["Extended"]["MaxPoint"], json!([63, 15, 15]));
    assert_eq!(data["Extended"]["BlockSize"], json!([16, 16, 16]));
    assert_eq!(data["Extended"]["MaxDownresLevel"], 2);
    let one = get_json(&server, &format!("/api/repo/{}/info", &id[..8]), String::new()).await;
    assert_eq!(&one, about);
    let line = get_json(&server, "/api/repo/main/branch-versions/master", String::new()).await;
    assert_eq!(line[0], "main");
    assert_eq!(line[1], json!(id));
    assert_eq!(get(&server, "/api/node/main/commit", "").await, b"{\"Locked\":false}");
    assert_eq!(get(&server, &format!("/api/node/{id}/status"), "").await, b"{\"Locked\":true}");
    let note = get_json(&server, &format!("/api/node/{id}/note"), String::new()).await;
    assert_eq!(note["note"], "import");
    get(&server, "/api/server/info", "").await;
}

/// A place that has gone away does not take the others with it.
#[tokio::test]
async fn a_place_that_cannot_be_opened_hides_no_other() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let nowhere = directory.path().join("nothing/here");
    let server = Server::start(&[("brain", directory.path()), ("gone", &nowhere)]);
    get(&server, "/api/node/main/seg/info", "").await;
    let repos = get_json(&server, "/api/repos/info", String::new()).await;
    assert_eq!(repos.as_object().unwrap().len(), 1);
}
