//! Every future can be awaited on any thread: otherwise this does not compile.

use std::sync::LazyLock;

use chunkyard_format::container::{CompactOptions, Container};

static COMPACT: LazyLock<CompactOptions> = LazyLock::new(CompactOptions::default);

#[test]
fn changes_can_be_waited_for_on_any_thread() {
    fn send<F: Future + Send>(_: impl FnOnce(&'static Container) -> F) {}
    send(|container| container.flush());
    send(|container| container.compact(&COMPACT));
    send(|container| container.refresh());
    send(|container| container.resize("a", &[1]));
    send(|container| container.statistics("a"));
    send(|container| container.layers());
}
