//! What flights there are, reading without claims, roles, limits.

use arrow_flight::{CancelFlightInfoRequest, CancelStatus, Criteria, Empty, FlightDescriptor};
use chunkyard_server::access::{Role, Token};
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use serde_json::{Value, json};
use tonic::Code;

use super::support::{Server, Sink, brain, labelmap, request, ticket};

#[tokio::test]
async fn parts_of_a_job_are_read_without_claims() {
    let place = tempfile::tempdir().unwrap();
    brain(&place.path().join("brain")).await;
    let server = Server::start(&place.path().join("brain"), &place.path().join("jobs"));
    let mut client = server.client().await;
    let started = client.tell("export.start", request("a")).await;
    let command = json!({ "job": started["job"], "workers": 3 }).to_string();
    let descriptor = FlightDescriptor::new_cmd(command);
    let info = client.inner.get_flight_info(descriptor.clone()).await.unwrap().into_inner();
    let (mut sink, mut shards) = (Sink::default(), 0);
    assert_eq!(info.endpoint.len(), 3);
    for (number, endpoint) in info.endpoint.iter().enumerate() {
        assert!(endpoint.location.is_empty());
        let about: Value = serde_json::from_slice(&endpoint.app_metadata).unwrap();
        assert_eq!((&about["worker"], &about["workers"]), (&json!(number), &json!(3)));
        let ticket = endpoint.ticket.clone().unwrap().ticket.to_vec();
        let fetched = client.get(ticket).await.unwrap();
        assert_eq!(json!(fetched.markers.len()), about["shards"]);
        shards += fetched.markers.len();
        for (place, row) in fetched.blocks() {
            assert_eq!(sink.blocks.insert(place, row), None);
        }
    }
    assert_eq!(json!(shards), started["shards"]);
    sink.check(&labelmap(&place.path().join("brain"), None).await).await;
    // Nothing was acknowledged by that.
    let told = client.tell("export.status", json!({ "job": started["job"] })).await;
    assert_eq!(told["free"], started["tasks"]);
    let schema = client.inner.get_schema(descriptor.clone()).await.unwrap().into_inner();
    assert_eq!(schema.schema, info.schema);
    let flights = client.inner.list_flights(Criteria::default()).await.unwrap().into_inner();
    let flights: Vec<_> = flights.try_collect().await.unwrap();
    // The job, and the two scales.
    assert_eq!(flights.len(), 3);
    let actions = client.inner.list_actions(Empty {}).await.unwrap().into_inner();
    let actions: Vec<_> = actions.map(|action| action.unwrap().r#type).collect().await;
    assert!(actions.contains(&"export.claim".to_owned()), "{actions:?}");
    let cancel = CancelFlightInfoRequest { info: Some(info) }.encode_to_vec();
    let action = arrow_flight::Action { r#type: "CancelFlightInfo".into(), body: cancel.into() };
    let answer = client.inner.do_action(action).await.unwrap().into_inner();
    let answer: Vec<_> = answer.try_collect().await.unwrap();
    let answer = arrow_flight::CancelFlightInfoResult::decode(answer[0].body.clone()).unwrap();
    assert_eq!(answer.status(), CancelStatus::Cancelled);
    let told = client.tell("export.status", json!({ "job": started["job"] })).await;
    assert_eq!(told["state"], "cancelled");
}

#[tokio::test]
async fn commands_that_make_no_sense_are_refused() {
    let place = tempfile::tempdir().unwrap();
    brain(&place.path().join("brain")).await;
    let server = Server::start(&place.path().join("brain"), &place.path().join("jobs"));
    let mut client = server.client().await;
    let zeros = "0".repeat(32);
    for (command, code) in [
        (json!({}), Code::InvalidArgument),
        (json!({ "job": "../x" }), Code::InvalidArgument),
        (json!({ "job": zeros, "workers": 5000 }), Code::InvalidArgument),
        (json!({ "job": zeros }), Code::NotFound),
        (json!({ "array": { "source": "none" } }), Code::NotFound),
    ] {
        let descriptor = FlightDescriptor::new_cmd(command.to_string());
        let status = client.inner.get_flight_info(descriptor.clone()).await.unwrap_err();
        assert_eq!(status.code(), code, "{command}");
        assert_eq!(client.inner.get_schema(descriptor).await.unwrap_err().code(), code);
    }
    let path = FlightDescriptor::new_path(vec!["brain".to_owned()]);
    let status = client.inner.get_flight_info(path).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn each_call_needs_its_role() {
    let place = tempfile::tempdir().unwrap();
    brain(&place.path().join("brain")).await;
    let token = |token: &str, role| Token { token: token.to_owned(), role };
    let server = Server::with(&place.path().join("brain"), &place.path().join("jobs"), |config| {
        config.tokens = vec![
            token("reads", Role::Read),
            token("writes", Role::Write),
            token("admin", Role::Admin),
        ];
    });
    let client = server.client().await;
    let with = |token: &str| {
        let mut client = client.clone();
        client.token = Some(token.to_owned());
        client
    };
    let (mut none, mut wrong) = (client.clone(), with("wrong"));
    let (mut reads, mut writes, mut admin) = (with("reads"), with("writes"), with("admin"));
    for (name, body) in
        [("export.list", json!({})), ("export.start", json!({})), ("no.such", json!({}))]
    {
        assert_eq!(none.refused(name, body.clone()).await.0, Code::Unauthenticated);
        assert_eq!(wrong.refused(name, body).await.0, Code::Unauthenticated);
    }
    assert_eq!(reads.refused("export.start", request("a")).await.0, Code::PermissionDenied);
    assert_eq!(writes.refused("export.start", request("a")).await.0, Code::PermissionDenied);
    let started = admin.tell("export.start", request("a")).await;
    let named = json!({ "worker": "w", "job": started["job"] });
    assert_eq!(reads.refused("export.claim", named.clone()).await.0, Code::PermissionDenied);
    let claim = writes.claim("w", &started["job"]).await;
    let job = json!({ "job": started["job"] });
    assert_eq!(writes.refused("export.cancel", job.clone()).await.0, Code::PermissionDenied);
    assert_eq!(reads.fetch(&claim).await.err().unwrap().code(), Code::PermissionDenied);
    assert_eq!(none.get(ticket(&claim)).await.err().unwrap().code(), Code::Unauthenticated);
    writes.fetch(&claim).await.unwrap().check();
    assert_eq!(reads.tell("export.status", job).await["claimed"], 1);
    let list = none.inner.list_flights(Criteria::default()).await.err().unwrap();
    assert_eq!(list.code(), Code::Unauthenticated);
}
