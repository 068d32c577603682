//! When a request is sent again, and when it is given up.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::{Error, Result};

/// The pause before the second attempt; it doubles with each one after.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A server that has never answered is not there after this many attempts.
const FIRST_CONTACTS_MAX: usize = 3;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server was not reached, was silent, broke off or said that it cannot now: the same request may succeed later.
    Lost {
        /// What happened.
        error: Error,
        /// Whether the server has never answered anything yet.
        unknown: bool,
        /// Whether that was silence, which is not worth a second wait from a server that has never answered.
        silent: bool,
    },
    /// The answer would be the same again.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// How long to go on, for one request and its repetitions.
#[derive(Debug)]
pub(super) struct Patience {
    retries: usize,
    within: Duration,
    left: usize,
    attempts: usize,
    pause: Duration,
    until: Instant,
}

impl Patience {
    pub(super) fn new(retries: usize, within: Duration) -> Self {
        let (left, until) = (retries, Instant::now() + within);
        Self { retries, within, left, attempts: 0, pause: PAUSE, until }
    }

    /// Something new arrived: the server works, so the count begins anew.
    pub(super) fn progress(&mut self) {
        *self = Self { attempts: self.attempts, ..Self::new(self.retries, self.within) };
    }

    /// Waits before the next attempt; the error is given back if there should be none.
    pub(super) async fn after(&mut self, failure: Failure) -> Result<()> {
        let (error, unknown, silent) = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Lost { error, unknown, silent } => (error, unknown, silent),
        };
        self.attempts += 1;
        let hopeless = unknown && (silent || self.attempts >= FIRST_CONTACTS_MAX);
        if hopeless || self.left == 0 || Instant::now() + self.pause > self.until {
            return Err(error);
        }
        self.left -= 1;
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(unknown: bool, silent: bool) -> Failure {
        let error = Error::store("read", "x", "lost");
        Failure::Lost { error, unknown, silent }
    }

    #[tokio::test]
    async fn attempts_are_counted_and_progress_begins_anew() {
        let mut patience = Patience::new(1, Duration::from_secs(100));
        patience.after(lost(false, false)).await.unwrap();
        patience.progress();
        patience.after(lost(false, true)).await.unwrap();
        patience.after(lost(false, false)).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_server_that_never_answered_is_given_up_soon() {
        let mut patience = Patience::new(100, Duration::from_secs(100));
        patience.after(lost(true, false)).await.unwrap();
        patience.after(lost(true, false)).await.unwrap();
        patience.after(lost(true, false)).await.unwrap_err();
        let mut patience = Patience::new(100, Duration::from_secs(100));
        patience.after(lost(true, true)).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_final_failure_and_the_end_of_the_time_are_not_waited_for() {
        let mut patience = Patience::new(100, Duration::from_secs(100));
        patience.after(Failure::Final(Error::invalid("no"))).await.unwrap_err();
        let mut patience = Patience::new(100, Duration::ZERO);
        patience.after(lost(false, false)).await.unwrap_err();
    }
}
