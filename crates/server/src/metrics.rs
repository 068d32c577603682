//! Counts of what the server does, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the classes of request times, in seconds; above them all is one class.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Something that is open for a time, and counted while it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gauge {
    /// Connections of HTTP.
    Http,
    /// Connections of Arrow Flight.
    Flight,
    /// Requests whose answer has not ended.
    Requests,
    /// Bytes of whole answers that wait for their clients.
    Waiting,
}

/// The name of each gauge, its label, and what it is.
const GAUGES: [(Gauge, &str, &str, &str); 4] = [
    (Gauge::Http, "chunkyard_connections", "{listener=\"http\"}", "Open connections."),
    (Gauge::Flight, "chunkyard_connections", "{listener=\"flight\"}", "Open connections."),
    (
        Gauge::Requests,
        "chunkyard_http_requests_in_flight",
        "",
        "Requests whose answer has not ended.",
    ),
    (
        Gauge::Waiting,
        "chunkyard_http_waiting_bytes",
        "",
        "Bytes of whole answers that wait for their clients.",
    ),
];

/// Counts; a cheap clone of the same counts.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    gauges: [AtomicU64; GAUGES.len()],
    routes: Mutex<BTreeMap<Route, Served>>,
}

/// A method and a route of the router: their number is bounded, whatever clients ask for.
type Route = (&'static str, String);

/// What became of the requests of a route.
#[derive(Debug, Default)]
struct Served {
    statuses: BTreeMap<u16, u64>,
    classes: [u64; BOUNDS.len()],
    count: u64,
    time: Duration,
    bytes: u64,
}

/// Something counted in a gauge until it is dropped.
#[derive(Debug)]
pub struct Open {
    counts: Arc<Counts>,
    gauge: Gauge,
    amount: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counts.gauge(self.gauge).fetch_sub(self.amount, Ordering::Relaxed);
    }
}

impl Counts {
    fn gauge(&self, gauge: Gauge) -> &AtomicU64 {
        let [http, flight, requests, waiting] = &self.gauges;
        match gauge {
            Gauge::Http => http,
            Gauge::Flight => flight,
            Gauge::Requests => requests,
            Gauge::Waiting => waiting,
        }
    }
}

impl Metrics {
    /// Counts something until the answer is dropped.
    pub fn open(&self, gauge: Gauge, amount: u64) -> Open {
        self.counts.gauge(gauge).fetch_add(amount, Ordering::Relaxed);
        Open { counts: self.counts.clone(), gauge, amount }
    }

    /// How much of something there is now.
    pub fn now(&self, gauge: Gauge) -> u64 {
        self.counts.gauge(gauge).load(Ordering::Relaxed)
    }

    /// Counts a request that has ended.
    pub(crate) fn served(
        &self,
        method: &'static str,
        route: &str,
        status: u16,
        time: Duration,
        bytes: u64,
    ) {
        let mut routes = self.counts.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let served = routes.entry((method, route.to_owned())).or_default();
        *served.statuses.entry(status).or_default() += 1;
        let seconds = time.as_secs_f64();
        for (class, bound) in served.classes.iter_mut().zip(BOUNDS) {
            *class += u64::from(seconds <= bound);
        }
        served.count += 1;
        served.time += time;
        served.bytes += bytes;
    }

    /// All counts in Prometheus' text format, version 0.0.4, and those of others: name, what it is, how much.
    pub(crate) fn text(&self, others: &[(&str, &str, u64)]) -> String {
        let mut text = String::new();
        let mut before = "";
        for (gauge, name, label, help) in GAUGES {
            if name != before {
                head(&mut text, name, "gauge", help);
                before = name;
            }
            line(&mut text, &format!("{name}{label}"), self.now(gauge));
        }
        for (name, help, now) in others {
            head(&mut text, name, "gauge", help);
            line(&mut text, name, now);
        }
        let routes = self.counts.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let name = "chunkyard_http_requests_total";
        head(&mut text, name, "counter", "Requests that have ended.");
        for ((method, route), served) in &*routes {
            for (status, count) in &served.statuses {
                let labels = labels(method, route);
                line(&mut text, &format!("{name}{{{labels},status=\"{status}\"}}"), count);
            }
        }
        let name = "chunkyard_http_answer_bytes_total";
        head(&mut text, name, "counter", "Bytes of the bodies of answers.");
        for ((method, route), served) in &*routes {
            line(&mut text, &format!("{name}{{{}}}", labels(method, route)), served.bytes);
        }
        let name = "chunkyard_http_request_seconds";
        head(
            &mut text,
            name,
            "histogram",
            "Time from the head of a request to the end of its answer.",
        );
        for ((method, route), served) in &*routes {
            let labels = labels(method, route);
            for (bound, count) in BOUNDS.iter().zip(served.classes) {
                line(&mut text, &format!("{name}_bucket{{{labels},le=\"{bound}\"}}"), count);
            }
            line(&mut text, &format!("{name}_bucket{{{labels},le=\"+Inf\"}}"), served.count);
            line(&mut text, &format!("{name}_sum{{{labels}}}"), served.time.as_secs_f64());
            line(&mut text, &format!("{name}_count{{{labels}}}"), served.count);
        }
        text
    }
}

fn labels(method: &str, route: &str) -> String {
    // A route is ours and has neither quotes nor backslashes.
    format!("method=\"{method}\",route=\"{route}\"")
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _: std::fmt::Result = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, series: &str, value: impl std::fmt::Display) {
    let _: std::fmt::Result = writeln!(text, "{series} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        let open = metrics.open(Gauge::Waiting, 7);
        assert!(metrics.text(&[]).contains("\nchunkyard_http_waiting_bytes 7\n"));
        drop(open);
        assert_eq!(metrics.now(Gauge::Waiting), 0);
        metrics.served("GET", "/healthz", 200, Duration::from_millis(2), 3);
        metrics.served("GET", "/healthz", 200, Duration::from_secs(20), 3);
        let text = metrics.text(&[("chunkyard_flight_streams", "Streams.", 2)]);
        for line in [
            "chunkyard_connections{listener=\"flight\"} 0",
            "chunkyard_flight_streams 2",
            "chunkyard_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 2",
            "chunkyard_http_answer_bytes_total{method=\"GET\",route=\"/healthz\"} 6",
            "chunkyard_http_request_seconds_bucket{method=\"GET\",route=\"/healthz\",le=\"0.001\"} 0",
            "chunkyard_http_request_seconds_bucket{method=\"GET\",route=\"/healthz\",le=\"0.0025\"} 1",
            "chunkyard_http_request_seconds_bucket{method=\"GET\",route=\"/healthz\",le=\"+Inf\"} 2",
            "chunkyard_http_request_seconds_sum{method=\"GET\",route=\"/healthz\"} 20.002",
            "# TYPE chunkyard_http_request_seconds histogram",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert_eq!(text.matches("# TYPE chunkyard_connections").count(), 1);
    }
}
