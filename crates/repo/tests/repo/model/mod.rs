//! Random work against the repository and against a naive model of it, compared after each step.
//!
//! The model keeps every version as plain vectors and knows nothing about files, runs or packs. It
//! does not predict conflicts: if the repository refuses, nothing may have changed; if it accepts,
//! the result must match the model.

mod naive;
mod steps;

use proptest::prelude::*;

use self::steps::{Runner, Step};
use super::support::{Place, repetitions};
use chunkyard_test_support::cases;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small = 0usize..6;
    let step = prop_oneof![
        4 => (small.clone(), 0usize..3).prop_map(|(who, branch)| Step::Open { who, branch }),
        4 => (small.clone(), 0usize..8, 1u64..20)
            .prop_map(|(who, path, shape)| Step::CreateArray { who, path, shape }),
        1 => (small.clone(), 0usize..8).prop_map(|(who, path)| Step::CreateGroup { who, path }),
        8 => (small.clone(), 0usize..8, 0u64..20, 1u64..12, any::<u8>()).prop_map(
            |(who, array, start, length, value)| Step::Write { who, array, start, length, value }
        ),
        1 => (small.clone(), 0usize..8, 0u64..20, 1u64..12, any::<u8>()).prop_map(
            |(who, array, start, length, value)| Step::ForkWrite { who, array, start, length, value }
        ),
        2 => (small.clone(), 0usize..8, 0u64..7)
            .prop_map(|(who, array, chunk)| Step::Erase { who, array, chunk }),
        2 => (small.clone(), 0usize..8, 1u64..20)
            .prop_map(|(who, array, shape)| Step::Resize { who, array, shape }),
        2 => (small.clone(), 0usize..8, any::<bool>(), 0u8..4).prop_map(
            |(who, node, large, value)| Step::Attributes { who, node, large, value }
        ),
        1 => (small.clone(), 0usize..8).prop_map(|(who, node)| Step::Delete { who, node }),
        1 => (small.clone(), 0usize..8, 0usize..8)
            .prop_map(|(who, node, path)| Step::Move { who, node, path }),
        8 => (small.clone(), any::<bool>()).prop_map(|(who, rebase)| Step::Commit { who, rebase }),
        1 => small.clone().prop_map(|who| Step::Amend { who }),
        1 => small.clone().prop_map(|who| Step::Detach { who }),
        1 => (0usize..3, 0usize..20).prop_map(|(name, at)| Step::Branch { name, at }),
        1 => (0usize..3, 0usize..20).prop_map(|(name, at)| Step::Reset { name, at }),
        1 => (0usize..3).prop_map(|name| Step::DeleteBranch { name }),
        1 => (0usize..4, 0usize..20).prop_map(|(name, at)| Step::Tag { name, at }),
        1 => (0usize..4).prop_map(|name| Step::DeleteTag { name }),
        1 => (0usize..4).prop_map(|keep| Step::Expire { keep }),
        2 => Just(Step::Collect),
        1 => (0usize..3).prop_map(|branch| Step::Optimise { branch }),
        1 => (0usize..3).prop_map(|branch| Step::Repack { branch }),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

fn run(place: Place, steps: &[Step]) {
    if !place.is_wanted() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut runner = Runner::new(place).await;
        for step in steps {
            runner.take(step).await;
        }
        runner.finish().await;
    });
}

proptest! {
    #![proptest_config(cases(repetitions(200, 25)))]

    #[test]
    fn a_repository_does_what_a_naive_model_does(steps in steps()) {
        run(Place::Memory, &steps);
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_repository_in_a_directory_does_what_a_naive_model_does(steps in steps()) {
        run(Place::Local, &steps);
    }
}
