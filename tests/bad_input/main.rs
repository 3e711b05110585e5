//! Every rule on arguments, broken one at a time through the C functions: the status, the parameter's name and the
//! values in the message, and outputs left alone.

mod cache;
mod context;
mod decode;
mod fetch;
mod fixture;
mod handles;
mod k_append;
mod limits;
mod merge;
mod q_quant;
mod records_copy;
mod struct_size;
mod support;
