//! A container changed by paths.

use chunkyard_array::{ArraySpec, Attributes};
use chunkyard_format::Node;
use chunkyard_format::container::ContainerEditor;
use chunkyard_store::ErrorKind;
use serde_json::{Value, json};

use super::support::{create, memory, open};

fn attributes(json: Value) -> Attributes {
    json.as_object().unwrap().clone()
}

fn spec() -> ArraySpec {
    ArraySpec::builder(&[4], &[2], "int32").build().unwrap()
}

async fn paths(editor: &ContainerEditor) -> Vec<String> {
    editor.container().dataset().await.unwrap().nodes.keys().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_arrays_are_made_found_and_deleted_by_path() {
    let store = memory();
    let editor = ContainerEditor::new(create(&store).await);
    assert_eq!(paths(&editor).await, ["/"]);
    editor.create_array("/a/b/c", &spec()).await.unwrap();
    editor.create_array("a/bc", &spec()).await.unwrap();
    editor.create_group("/a/empty", attributes(json!({"title": "x"}))).await.unwrap();
    for editor in [editor.clone(), {
        editor.container().flush().await.unwrap();
        ContainerEditor::new(open(&store).await)
    }] {
        assert_eq!(paths(&editor).await, ["/", "/a", "/a/b", "/a/b/c", "/a/bc", "/a/empty"]);
        for (path, is_array) in [("/", false), ("/a", false), ("/a/b", false), ("/a/b/c", true)] {
            let node = editor.node(path).await.unwrap().unwrap();
            assert_eq!(matches!(node, Node::Array(_)), is_array, "{path}");
        }
        assert!(editor.node("/a/b/none").await.unwrap().is_none());
        assert_eq!(editor.attributes("/a/empty").await.unwrap()["title"], "x");
    }
    editor.delete("/a/b").await.unwrap();
    assert_eq!(paths(&editor).await, ["/", "/a", "/a/bc", "/a/empty"]);
    let refused = editor.delete("/").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_clash_are_refused() {
    let editor = ContainerEditor::new(create(&memory()).await);
    editor.create_array("/a/b", &spec()).await.unwrap();
    for (path, kind) in [
        ("/a", ErrorKind::Conflict),
        ("/a/b", ErrorKind::Conflict),
        ("/a/b/c", ErrorKind::Invalid),
        ("/a/../c", ErrorKind::Invalid),
    ] {
        let array = editor.create_array(path, &spec()).await.unwrap_err();
        let group = editor.create_group(path, Attributes::new()).await.unwrap_err();
        assert_eq!((array.kind(), group.kind()), (kind, kind), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_replaced_whatever_their_values_are() {
    let store = memory();
    let editor = ContainerEditor::new(create(&store).await);
    editor.create_array("/g/a", &spec()).await.unwrap();
    // A list is kept under another key than a number: setting one must remove the other.
    for value in [json!([1, 2]), json!(3), json!({"x": null}), json!("text")] {
        for path in ["/g/a", "/g", "/"] {
            let wanted = attributes(json!({"k": value, "other": true}));
            editor.set_attributes(path, wanted.clone()).await.unwrap();
            assert_eq!(editor.attributes(path).await.unwrap(), wanted, "{path}");
        }
    }
    editor.container().flush().await.unwrap();
    let again = ContainerEditor::new(open(&store).await);
    for path in ["/g/a", "/g", "/"] {
        assert_eq!(again.attributes(path).await.unwrap()["k"], "text");
        again.set_attributes(path, Attributes::new()).await.unwrap();
        assert!(again.attributes(path).await.unwrap().is_empty());
    }
}
