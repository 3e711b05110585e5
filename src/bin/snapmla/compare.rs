//! How far one array is from another: the three errors that the paper reports.

use serde::Serialize;

/// Sums from which the errors follow; they can be taken apart by rows and added again.
#[derive(Default, Clone, Copy)]
pub struct Comparison {
    count: f64,
    got: f64,
    want: f64,
    product: f64,
    difference: f64,
}

#[derive(Serialize, Clone, Copy, Default)]
pub struct Errors {
    pub rmse: f64,
    pub one_minus_cosine: f64,
    pub relative_l2: f64,
}

impl Comparison {
    pub fn of(got: impl IntoIterator<Item = f64>, want: &[f64]) -> Self {
        let mut sums = Self::default();
        for (got, &want) in got.into_iter().zip(want) {
            sums.count += 1.0;
            sums.got += got * got;
            sums.want += want * want;
            sums.product += got * want;
            sums.difference += (got - want) * (got - want);
        }
        sums
    }

    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.got += other.got;
        self.want += other.want;
        self.product += other.product;
        self.difference += other.difference;
    }

    /// NaN anywhere gives NaN here, which no bound lets pass.
    pub fn errors(&self) -> Errors {
        let exact = self.difference == 0.0;
        Errors {
            rmse: (self.difference / self.count.max(1.0)).sqrt(),
            one_minus_cosine: if exact { 0.0 } else { 1.0 - self.product / (self.got * self.want).sqrt() },
            relative_l2: if exact { 0.0 } else { (self.difference / self.want).sqrt() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_known_pair() {
        let errors = Comparison::of([3.0, 4.0], &[3.0, 0.0]).errors();
        assert!((errors.rmse - 8f64.sqrt()).abs() < 1e-12);
        assert!((errors.relative_l2 - 4.0 / 3.0).abs() < 1e-12);
        assert!((errors.one_minus_cosine - 0.4).abs() < 1e-12);
    }

    #[test]
    fn equal_zeros_have_no_error() {
        assert_eq!(Comparison::of([0.0], &[0.0]).errors().relative_l2, 0.0);
    }

    #[test]
    fn nan_shows() {
        assert!(Comparison::of([f64::NAN], &[1.0]).errors().relative_l2.is_nan());
    }
}
