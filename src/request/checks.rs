//! Rules that several requests share, each with its one error text.
