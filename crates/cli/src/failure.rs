//! How a command fails: what is printed, what to do next, and the exit code.

use std::env;
use std::fmt;
use std::io;
use std::process::ExitCode;

use chunkyard_engine::format::Versions;
use chunkyard_engine::store::is_refusal;
use chunkyard_engine::{Error, ErrorKind, Noun};

use crate::context::Context;
use crate::output::{paint_stderr, talk};
use crate::printable::{cut, line};

/// The exit code of a command that Ctrl-C ended: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

/// The user pressed Ctrl-C.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// The fault lies in the user's file, not in the repository.
#[derive(Debug)]
pub(crate) struct Input;

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot use the input")
    }
}

/// The fault lies in the place that the command writes to.
#[derive(Debug)]
pub(crate) struct Target;

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot write the target")
    }
}

/// A verification found damage; its report has been printed.
#[derive(Debug)]
pub(crate) struct Unsound {
    /// How many errors the report lists.
    pub(crate) errors: usize,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.errors == 1 { "" } else { "s" };
        write!(f, "the data is damaged: {} error{s}", self.errors)
    }
}

impl std::error::Error for Unsound {}

/// Prints an error with its hint, and gives the exit code.
pub(crate) fn report(error: &anyhow::Error, context: &Context) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader of our output has seen enough.
        return ExitCode::SUCCESS;
    }
    talk(format_args!("{} {}", paint_stderr("1;31", "error:"), message(error)));
    let going_on = going_on(error, context.is_resumable()).map(Into::into);
    for hint in hint(error, context).into_iter().chain(going_on) {
        talk(format_args!("{} {}", paint_stderr("1", "hint:"), line(&hint)));
    }
    ExitCode::from(exit_code(error))
}

/// The error and its causes, like `{:#}`, without causes that the text before them already quotes.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let chars_max = if is_of_a_store(error) { SERVICE_CHARS_MAX } else { MESSAGE_CHARS_MAX };
    cut(&text, chars_max).unwrap_or(text)
}

/// Services answer with whole documents; the beginning says what is wrong.
const SERVICE_CHARS_MAX: usize = 600;
/// Names in files may have any length, and our own messages may be lists.
const MESSAGE_CHARS_MAX: usize = 4000;

fn is_of_a_store(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(Error::Store { .. })))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    // Only our own output counts: a store's broken connection is a failure.
    match error.downcast_ref::<Error>() {
        Some(Error::Store { path, source, .. }) if path == "-" => {
            source.downcast_ref::<io::Error>().is_some_and(broken)
        }
        _ => error.downcast_ref::<io::Error>().is_some_and(broken),
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(code_of_kind(ErrorKind::Store))
}

/// The exit code of a command that ends with this kind of error.
fn code_of_kind(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Store => 1,
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Conflict => 4,
        ErrorKind::Corrupt => 5,
        ErrorKind::Unsupported => 6,
    }
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<Error>() {
        return Some(code_of_kind(error.kind()));
    }
    if let Some(error) = cause.downcast_ref::<chunkyard_array::Error>() {
        return Some(match error {
            chunkyard_array::Error::Corrupt { .. } => code_of_kind(ErrorKind::Corrupt),
            chunkyard_array::Error::Unsupported { .. } => code_of_kind(ErrorKind::Unsupported),
            chunkyard_array::Error::OutOfMemory { .. } => code_of_kind(ErrorKind::Store),
            _ => code_of_kind(ErrorKind::Invalid),
        });
    }
    if cause.is::<Unsound>() {
        return Some(code_of_kind(ErrorKind::Corrupt));
    }
    cause.is::<Interrupted>().then_some(INTERRUPTED)
}

/// Where S3's credentials are looked for first.
const KEY: &str = "AWS_ACCESS_KEY_ID";

/// How the user continues a long command.
fn going_on(error: &anyhow::Error, resumable: bool) -> Option<&'static str> {
    let kind = match engine_error(error) {
        Some(Error::AlreadyExists { .. }) => return None,
        Some(error) => Some(error.kind()),
        None => None,
    };
    resumable.then_some(match kind {
        Some(ErrorKind::Invalid | ErrorKind::Unsupported) => {
            "to try other options, begin anew with --restart"
        }
        // The reason may pass.
        _ => {
            "finished work is kept: run the same command again to continue, or add --restart to \
             begin anew"
        }
    })
}

fn engine_error(error: &anyhow::Error) -> Option<&Error> {
    error.chain().find_map(|cause| cause.downcast_ref::<Error>())
}

/// The next step, if there is one.
fn hint(error: &anyhow::Error, context: &Context) -> Option<String> {
    if error.is::<Input>() {
        return None;
    }
    let converting = context.is_resumable() || error.is::<Target>();
    let error = engine_error(error)?;
    let place = context.place()?;
    match error {
        Error::NotFound { what: Noun::Dataset, .. } => Some("is that the right place?".into()),
        Error::AlreadyExists { what: Noun::UnfinishedConversion, .. } => {
            Some("finish the old one with its own options, or begin anew with --restart".into())
        }
        Error::AlreadyExists { what: Noun::Array | Noun::Group | Noun::Occupant, .. }
            if converting =>
        {
            Some("nothing was changed; --overwrite replaces it, another name keeps both".into())
        }
        Error::AlreadyExists { .. } if converting => {
            Some("nothing was changed; choose another name, or remove it first".into())
        }
        Error::Conflict { .. } if converting => None,
        Error::NotFound { what: Noun::Branch, .. } if converting => {
            Some("`chunkyard repo branch` creates one".into())
        }
        Error::NotFound { what: Noun::Repository, .. } => {
            Some(format!("is that the right place? `chunkyard repo init {place}` creates one"))
        }
        Error::NotFound { what: Noun::Node | Noun::Array, .. } => {
            Some(format!("`chunkyard ls {place}` lists arrays and groups"))
        }
        Error::NotFound {
            what: Noun::Branch | Noun::Tag | Noun::Snapshot | Noun::Version, ..
        } => Some(format!("`chunkyard repo log {place} --all` lists branches, tags and snapshots")),
        Error::NotFound { what: Noun::Container, .. } => {
            Some(format!("is that the right place? `chunkyard af create {place}` creates one"))
        }
        Error::NotFound { what: Noun::Layer, .. } => {
            Some(format!("`chunkyard af layers {place}` lists them"))
        }
        Error::AlreadyExists { what: Noun::ContainerFile, .. } => {
            Some(format!("nothing was changed; `chunkyard af layers {place}` lists its layers"))
        }
        Error::AlreadyExists { what: Noun::TornLayer, .. } => {
            Some("nothing was changed; it is from an earlier repair: move it away".into())
        }
        Error::AlreadyExists { what: Noun::Repository, .. } => {
            Some(format!("nothing was changed; `chunkyard info {place}` describes it"))
        }
        Error::Conflict { .. } if !context.is_repo() => {
            Some("nothing was changed; run the command again to change the new state".into())
        }
        Error::Conflict { conflicts, .. } if context.does_settle() && !conflicts.is_empty() => {
            Some("nothing was committed; --ours BODY or --theirs BODY says whose edits stay".into())
        }
        Error::Conflict { conflicts, .. } if conflicts.is_empty() => {
            let advice = "nothing was changed; try again; a commit goes on top by itself with \
                          --rebase, where the changes do not collide";
            Some(advice.into())
        }
        Error::Conflict { .. } => Some(
            "nothing was committed; read the new tip, decide whose values are right, and set them \
             again"
                .into(),
        ),
        Error::Corrupt { .. } if !context.is_repo() => {
            Some(format!("`chunkyard verify {place}` lists all damage"))
        }
        Error::Corrupt { file, .. } if file == "state.json" || file.starts_with("g/") => Some(
            format!("`chunkyard repo repair {place} republish` restores the newest sound state"),
        ),
        Error::Corrupt { .. } => {
            Some(format!("`chunkyard verify {place} --level bytes` lists all damage"))
        }
        error if is_refusal(error) && matches!(error, Error::Store { .. }) => {
            Some("the service does not accept these credentials, or they do not allow this".into())
        }
        Error::Store { .. } if place.starts_with("s3://") && env::var_os(KEY).is_none() => {
            Some(format!("{KEY} is not set, so the credentials of this machine's role were used"))
        }
        Error::OutcomeUnknown { .. } => {
            let (target, versions) = context.target()?;
            let look = match versions {
                Versions::Commits => "repo log",
                Versions::Layers => "af layers",
                Versions::One => "info",
            };
            Some(format!(
                "look at `chunkyard {look} {target}` before trying again: it may have happened"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use chunkyard_engine::format::Format;
    use chunkyard_engine::format::container::ContainerFormat;
    use chunkyard_engine::format::superchunk::BlzFormat;
    use chunkyard_engine::repo::RepoFormat;

    use super::*;
    use crate::args::Global;

    fn new_context() -> Context {
        Context::new(&Global { json: false, quiet: false, storage: vec![], allow: vec![] })
    }

    #[test]
    fn the_engine_error_gives_the_exit_code_wherever_it_is_in_the_chain() {
        let error = anyhow::Error::from(Error::invalid("no")).context("while trying");
        assert_eq!(exit_code(&error), 2);
        let array = anyhow::Error::from(chunkyard_array::Error::unsupported("that"));
        assert_eq!(exit_code(&array), 6);
        assert_eq!(exit_code(&Interrupted.into()), 130);
        assert_eq!(exit_code(&Unsound { errors: 1 }.into()), 5);
        assert_eq!(exit_code(&io::Error::other("disk").into()), 1);
    }

    #[test]
    fn a_quoted_cause_is_not_repeated() {
        let error = anyhow::anyhow!("refused").context("connect: refused").context("read x");
        assert_eq!(message(&error), "read x: connect: refused");
    }

    #[test]
    fn after_an_unknown_outcome_the_hint_names_the_command_that_shows_the_target() {
        let unknown = || Error::OutcomeUnknown { what: "commit".into(), source: "lost".into() };
        let hinted = |context: &Context| hint(&unknown().into(), context).unwrap();
        let formats: [(&dyn Format, &str); 3] = [
            (&RepoFormat, "`chunkyard repo log x`"),
            (&ContainerFormat, "`chunkyard af layers x`"),
            (&BlzFormat, "`chunkyard info x`"),
        ];
        for (format, command) in formats {
            let context = new_context();
            context.about_format("x", format);
            assert!(hinted(&context).contains(command), "{command}");

            let converting = new_context();
            converting.about_format("source", &BlzFormat);
            converting.writes_to("x", format);
            assert!(hinted(&converting).contains(command), "{command}");
        }
        let context = new_context();
        context.about("x");
        assert!(hinted(&context).contains("`chunkyard repo log x`"));
    }

    #[test]
    fn a_document_of_a_service_is_cut() {
        let error = Error::store("read", "x", "ä".repeat(10_000));
        let text = message(&error.into());
        let end = "ä… (10015 characters)";
        assert!(text.starts_with("cannot read x: ä") && text.ends_with(end), "{text}");
        assert_eq!(text.chars().count(), SERVICE_CHARS_MAX + end.chars().count() - 1);
    }

    #[test]
    fn only_a_pipe_of_our_own_output_counts_as_broken() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&pipe().into()));
        assert!(is_broken_pipe(&Err::<(), _>(pipe()).context("stdout").unwrap_err()));
        assert!(!is_broken_pipe(&Error::store("put", "x", pipe()).into()));
    }
}
