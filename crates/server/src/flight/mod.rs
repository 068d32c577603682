//! Arrow Flight.
