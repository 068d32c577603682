//! What happens to which request.

use std::time::Duration;

/// How long clients of a harmful proxy should wait for a reply.
pub(crate) const TIMEOUT: &str = "400ms";
/// How long a request or a reply is held back: longer than any client waits.
pub(crate) const STALL: Duration = Duration::from_millis(700);

/// What can happen to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It never arrives.
    LoseRequest,
    /// It is done; the client hears nothing and its connection breaks.
    LoseReply,
    /// It is done; the client has given up when the reply comes.
    HoldReply,
    /// The request arrives this late, when the client has given up, and then it is done.
    DelayRequest(Duration),
    /// The service refuses.
    Answer(u16),
    /// The service says it failed although it did not.
    ForwardAndAnswer(u16),
    /// The reply ends in the middle.
    CutReply,
}

impl Harm {
    pub(crate) const ALL: [Self; 9] = [
        Self::LoseRequest,
        Self::LoseReply,
        Self::HoldReply,
        Self::DelayRequest(STALL),
        Self::Answer(429),
        Self::Answer(500),
        Self::Answer(503),
        Self::ForwardAndAnswer(500),
        Self::CutReply,
    ];
}

/// Decides, request by request.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    /// Everything passes.
    Calm,
    /// One request in `one_in` comes to harm. The same seed decides the same for the n-th request.
    Random { random: Random, one_in: u64, kinds: Vec<Harm> },
    /// All swaps of the state file come to harm.
    Swaps(Harm),
}

impl Plan {
    /// One request in `one_in` comes to harm, in any of the given ways.
    pub(crate) fn random(seed: u64, one_in: u64, kinds: &[Harm]) -> Self {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self::Random { random, one_in, kinds: kinds.to_vec() }
    }

    /// What happens to a request, given as `METHOD path`.
    pub(super) fn next(&mut self, line: &str) -> Option<Harm> {
        match self {
            Self::Calm => None,
            Self::Random { random, one_in, kinds } => {
                let harmful = random.next().is_multiple_of(*one_in);
                harmful.then(|| kinds[random.next() as usize % kinds.len()])
            }
            Self::Swaps(harm) => {
                let swap = line.starts_with("PUT ") && line.ends_with("/state.json");
                swap.then_some(*harm)
            }
        }
    }
}

/// Numbers that look random and are the same every time.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 20
    }
}
