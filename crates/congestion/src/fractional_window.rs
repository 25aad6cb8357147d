//! Fractional window growth, which is accumulated because windows are whole bytes.

/// Accumulated growth that has not been applied yet, bytes; below 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FractionalWindow(f64);

impl FractionalWindow {
    /// Adds `bytes`, which must not be negative. Returns the number of whole bytes by which the
    /// window should grow.
    pub(crate) fn earn(&mut self, bytes: f64) -> f64 {
        let earned = self.0 + bytes;
        self.0 = earned.fract();
        earned.trunc()
    }

    /// Resets the accumulated growth.
    pub(crate) fn clear(&mut self) {
        self.0 = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_byte_add_up() {
        let mut fraction = FractionalWindow::default();
        let given: Vec<f64> = [0.5, 0.75, 2.5, 0.25].map(|it| fraction.earn(it)).to_vec();
        assert_eq!(given, [0.0, 1.0, 2.0, 1.0]);
        fraction.earn(0.75);
        fraction.clear();
        assert_eq!(fraction.earn(0.75), 0.0);
    }
}
