//! Requests whose answers make one stream, and how it goes on after a broken answer.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use url::Url;

use super::client::{Answer, DvidClient, shown};
use super::patience::{Failure, Patience};
use crate::error::{Error, Result};

/// What arrives, piece by piece. After an error nothing follows.
pub type Stream<T> = BoxStream<'static, Result<T>>;

/// A series of requests, and how the bytes of their answers are taken apart.
pub trait Course: Send + 'static {
    /// One thing of the stream.
    type Item: Send + 'static;

    /// The next request and its body; `None` when all answers are complete.
    fn request(&mut self, client: &DvidClient) -> Option<(Url, Option<Bytes>)>;

    /// Takes the next bytes of the answer, and gives what they complete.
    fn take(&mut self, bytes: &[u8], items: &mut VecDeque<Self::Item>) -> Result<()>;

    /// The answer is complete: nothing of it may be left over or missing. Gives what only the end completes.
    fn end(&mut self, items: &mut VecDeque<Self::Item>) -> Result<()>;

    /// The answer broke off: forgets what is incomplete. Whether the next request can go on from there.
    fn broken(&mut self) -> bool;
}

/// A course on its way.
struct Journey<C: Course> {
    client: DvidClient,
    course: C,
    items: VecDeque<C::Item>,
    /// The answer that is arriving, and where from.
    answer: Option<(Answer, Url)>,
    patience: Patience,
}

impl DvidClient {
    /// Sends the requests of a course one after the other, and gives what their answers hold.
    pub fn follow<C: Course>(&self, course: C) -> Stream<C::Item> {
        let client = self.clone();
        let (items, patience) = (VecDeque::new(), self.patience());
        let journey = Journey { client, course, items, answer: None, patience };
        stream::try_unfold(journey, |mut journey| async move {
            Ok(journey.next().await?.map(|item| (item, journey)))
        })
        .boxed()
    }
}

impl<C: Course> Journey<C> {
    async fn next(&mut self) -> Result<Option<C::Item>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            let failure = match &mut self.answer {
                None => {
                    let Some((url, body)) = self.course.request(&self.client) else {
                        return Ok(None);
                    };
                    match self.client.send(&url, body).await {
                        Ok(answer) => {
                            self.answer = Some((answer, url));
                            continue;
                        }
                        Err(failure) => failure,
                    }
                }
                Some((answer, url)) => match answer.next().await {
                    Ok(Some(bytes)) => {
                        let taken = self.course.take(&bytes, &mut self.items);
                        taken.map_err(|error| at(url, error))?;
                        if !self.items.is_empty() {
                            self.patience.progress();
                        }
                        continue;
                    }
                    Ok(None) => {
                        let ended = self.course.end(&mut self.items);
                        ended.map_err(|error| at(url, error))?;
                        self.answer = None;
                        self.patience = self.client.patience();
                        continue;
                    }
                    Err(failure) => failure,
                },
            };
            self.answer = None;
            if self.course.broken() {
                self.patience.after(failure).await?;
            } else {
                let (Failure::Lost { error, .. } | Failure::Final(error)) = failure;
                return Err(error);
            }
        }
    }
}

/// Says which request had a wrong answer.
fn at(url: &Url, error: Error) -> Error {
    match error {
        Error::Corrupt { what, expected, found, .. } => {
            Error::Corrupt { file: shown(url), what, expected, found }
        }
        other => other,
    }
}
