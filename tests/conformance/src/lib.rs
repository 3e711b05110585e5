//! One suite that holds every backend to the contract (DESIGN, sections 3, 4, 5 and 8), through the public C functions.
//!
//! [`groups`] says what is tried; [`case`] turns a described decode call into buffers; [`reference`] and [`record`]
//! answer what should come out, with code of their own; [`check`] compares; [`report`] tells.

pub mod backend;
pub mod bits;
pub mod case;
pub mod check;
pub mod data;
pub mod device;
pub mod groups;
pub mod memory;
pub mod prng;
pub mod record;
pub mod reference;
pub mod report;
pub mod strides;
pub mod tolerance;
