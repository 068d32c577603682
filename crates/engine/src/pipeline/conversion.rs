//! From two URLs to a plan: what every front end does before anything is written.

use std::sync::Arc;

use chunkyard_format::{CreateOptions, Format, Node, OpenOptions, Place, Sink, Source, Versions};
use chunkyard_store::{Error, Options, Result};

use super::overlap::refuse_overlap;
use super::plan::Plan;
use super::run::{Outcome, RunOptions, run};
use super::wishes::Wishes;
use super::workers::Order;
use crate::open::{format_named, format_of_target, recognise};

/// What is to be converted into what.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// URL of the source.
    pub source: String,
    /// URL of the target.
    pub target: String,
    /// How the source is opened; the target uses the store options too.
    pub open: OpenOptions,
    /// Name of the target's format, if neither existing data nor its URL tells.
    pub to: Option<String>,
    /// What the user wants.
    pub wishes: Wishes,
}

impl Request {
    /// The format of the target: the one that was named, or the one that its place tells.
    pub async fn target_format(&self, target: &Place) -> Result<&'static dyn Format> {
        match &self.to {
            Some(name) => format_named(name),
            None => format_of_target(target).await,
        }
    }
}

/// A source that is open.
pub struct Origin {
    /// Where it is.
    pub place: Place,
    /// Its format.
    pub format: &'static dyn Format,
    /// What it holds.
    pub source: Arc<dyn Source>,
}

/// A conversion that is planned but not begun.
pub struct Conversion {
    /// The source.
    pub source: Arc<dyn Source>,
    /// Format of the source.
    pub from: &'static dyn Format,
    /// Format of the target.
    pub to: &'static dyn Format,
    /// What will be done.
    pub plan: Plan,
    pub(super) request: Request,
    /// Where the source and the target are.
    pub(super) places: (Place, Place),
    /// The name of an array that had none.
    pub(super) name: String,
}

impl Conversion {
    /// Opens the source and plans. Nothing is written. It is [`Error::Invalid`] if source and
    /// target lie in each other.
    pub async fn prepare(request: Request) -> Result<Self> {
        let target = Place::new(&request.target, &request.open.store)?;
        Self::prepare_into(request, target).await
    }

    /// Like [`Conversion::prepare`], with a target that is opened in its own way.
    pub async fn prepare_into(request: Request, target: Place) -> Result<Self> {
        let place = Place::new(&request.source, &request.open.store)?;
        let format = recognise(&place).await?;
        let source = format.open(&place, &request.open).await?;
        let to = request.target_format(&target).await?;
        Self::between(request, Origin { place, format, source }, target, to).await
    }

    /// Plans a conversion of a source that is open already into a target of this format.
    pub async fn between(
        request: Request,
        origin: Origin,
        target: Place,
        to: &'static dyn Format,
    ) -> Result<Self> {
        let Origin { place, format: from, source } = origin;
        refuse_overlap(&*source, &place, target.url())?;
        let is_array = matches!(source.dataset().nodes.get("/"), Some(Node::Array(_)));
        let named = to.names_every_array() || !request.wishes.into.is_empty();
        let name = if is_array && named { stem(&request.source) } else { "" }.to_owned();
        let plan = Plan::new(&source, &request.wishes, to, &name).await?;
        plan.check_fill(&source).await?;
        Ok(Self { source, from, to, plan, request, places: (place, target), name })
    }

    /// The conversion of an order, as another process planned it. What is found must lead to the same plan.
    pub async fn of_order(order: &Order, own: &Options) -> Result<Self> {
        let store = order.store_options(own);
        let place = Place::new(&order.source.url, &store)?;
        let target = Place::new(&order.target.url, &store)?;
        let open = OpenOptions {
            store,
            allowed: order.allowed.clone(),
            version: order.version.clone(),
            skip_corrupt: false,
        };
        let from = format_named(&order.source.format)?;
        let source = from.open(&place, &open).await?;
        let to = format_named(&order.target.format)?;
        let plan = Plan::new(&source, &order.wishes, to, &order.name).await?;
        if plan.name != order.plan {
            return Err(Error::Conflict {
                message: format!(
                    "{} is not what it was when the conversion was planned, or not the same from \
                     here; it has changed, and the conversion must be begun anew",
                    order.source.url
                ),
                conflicts: Vec::new(),
            });
        }
        let request = Request {
            source: order.source.url.clone(),
            target: order.target.url.clone(),
            open,
            to: Some(order.target.format.clone()),
            wishes: order.wishes.clone(),
        };
        let name = order.name.clone();
        Ok(Self { source, from, to, plan, request, places: (place, target), name })
    }

    /// Where the target is.
    pub fn target(&self) -> &Place {
        &self.places.1
    }

    /// Refuses options that the target has no place for.
    pub fn check(&self, options: &CreateOptions) -> Result<()> {
        let commits = options.branch.is_some() || options.message.is_some();
        if commits && self.to.versions() != Versions::Commits {
            return Err(Error::invalid(format!(
                "a branch and a message are for repositories, and {} is to be {}; the format repo \
                 makes it one",
                self.request.target,
                self.to.name()
            )));
        }
        Ok(())
    }

    /// Begins to write. Only the options about how to write are used; the content is planned.
    pub async fn create(&self, options: CreateOptions) -> Result<Box<dyn Sink>> {
        self.check(&options)?;
        let store = self.request.open.store.clone();
        let options = CreateOptions { store, plan: self.plan.name.clone(), ..options };
        self.to.create(&self.places.1, self.plan.dataset.clone(), options).await
    }

    /// Does all of it in this process. After a failure, the same conversion continues where it
    /// ended.
    pub async fn run(&self, create: CreateOptions, options: &RunOptions) -> Result<Outcome> {
        self.plan.check(&options.limits)?;
        let sink = self.create(create).await?;
        self.fill(sink, options).await
    }

    /// Does all that is left of it, with a sink of [`Conversion::create`].
    pub async fn fill(&self, sink: Box<dyn Sink>, options: &RunOptions) -> Result<Outcome> {
        run(&self.source, sink, &self.plan, options).await
    }
}

/// The name of an array at the root, taken from its URL: `temperature` for
/// `s3://bucket/temperature.zarr/`.
pub fn stem(url: &str) -> &str {
    let name = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ if name.is_empty() => "array",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn an_array_at_the_root_is_named_after_its_url() {
        for (url, name) in [
            ("s3://bucket/temperature.zarr/", "temperature"),
            ("temperature", "temperature"),
            ("/data/.hidden", ".hidden"),
            ("a.b.zarr", "a.b"),
            ("memory://", "array"),
        ] {
            assert_eq!(stem(url), name);
        }
    }
}
