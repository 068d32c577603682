#[cfg(test)]
#[path = "dvid/mod.rs"]
mod dvid;
