//! Two writers that overlap: each falls asleep at one of its operations.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::Fault;

/// How long one writer is left alone while the other sleeps. Only a writer that waits for the
/// sleeper needs that long.
const PATIENCE: Duration = Duration::from_millis(200);

/// Which operation of the first writer and which of the second go together: all pairs, or `most` of
/// them, spread evenly. The second number may be one too large: then the second writer does not
/// sleep.
pub fn pairs(first: usize, second: usize, most: usize) -> Vec<(usize, usize)> {
    let all: Vec<_> = (0..first).flat_map(|one| (0..=second).map(move |two| (one, two))).collect();
    let step = all.len().div_ceil(most.max(1)).max(1);
    // Not a multiple of the row length, or the second would always sleep at the same operation.
    let step = if step > 1 && step.is_multiple_of(second + 1) { step + 1 } else { step };
    all.into_iter().step_by(step).collect()
}

/// Runs two writers whose stores [sleep](super::Mode::Sleep) at one operation each: the first until
/// it sleeps, the second until it sleeps too, the first to its end, the second to its end.
///
/// A writer that waits for the sleeping one wakes it up, after a while.
pub async fn overlap<A, B>(
    first: (&Fault, impl Future<Output = A>),
    second: (&Fault, impl Future<Output = B>),
) -> (A, B) {
    let ((early, one), (late, other)) = (first, second);
    let (begin, one_over, other_over) = (Notify::new(), Notify::new(), Notify::new());
    let one = async {
        let done = one.await;
        one_over.notify_one();
        done
    };
    let other = async {
        begin.notified().await;
        let done = other.await;
        other_over.notify_one();
        done
    };
    let order = async {
        let over = tokio::select! {
            () = early.falls_asleep() => false,
            () = one_over.notified() => true,
        };
        begin.notify_one();
        tokio::select! {
            () = late.falls_asleep() => {}
            () = other_over.notified() => {}
            () = sleep(PATIENCE) => {}
        }
        early.wake();
        if !over {
            tokio::select! {
                () = one_over.notified() => {}
                () = sleep(PATIENCE) => {}
            }
        }
        late.wake();
    };
    let (one, other, ()) = tokio::join!(one, other, order);
    (one, other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Mode, Plan};
    use crate::{Options, Store};

    #[test]
    fn pairs_are_spread_over_both_writers() {
        assert_eq!(pairs(2, 1, usize::MAX), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(pairs(0, 3, 10), []);
        let some = pairs(30, 5, 30);
        assert!(some.len() > 20 && some.len() <= 30, "{some:?}");
        for second in 0..=5 {
            assert!(some.iter().any(|pair| pair.1 == second), "{second}: {some:?}");
        }
    }

    async fn write(store: &Store, name: &str) {
        for number in 0..3 {
            store.put(&format!("{name}{number}"), vec!["x".into()]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn writers_overlap_where_they_sleep() {
        let store = Store::open("memory://overlap", &Options::default()).unwrap();
        let (all, log) = Fault::wrap(&store, Plan::never());
        for (first, second, expected) in [
            (1, 1, ["a0", "b0", "a1", "a2", "b1", "b2"]),
            (0, 3, ["b0", "b1", "b2", "a0", "a1", "a2"]),
            (3, 0, ["a0", "a1", "a2", "b0", "b1", "b2"]),
        ] {
            let before = log.ops();
            let (early, one) = Fault::wrap(&all, Plan::new(first, Mode::Sleep));
            let (late, other) = Fault::wrap(&all, Plan::new(second, Mode::Sleep));
            overlap((&one, write(&early, "a")), (&other, write(&late, "b"))).await;
            let expected = expected.map(|name| format!("put {name}"));
            assert_eq!(log.log()[before..], expected, "{first} {second}");
        }
    }
}
