#[cfg(test)]
#[path = "labels/dvid_history.rs"]
mod dvid_history;
#[cfg(test)]
#[path = "labels/support.rs"]
mod support;
