//! The guide to the offline queue, run as it is written.
