//! Sums of squared deviations, and how far they may be off.

/// Observed deviations in units of their standard deviation.
#[derive(Default)]
pub(crate) struct Deviations {
    squares: f64,
    degrees: f64,
    count: usize,
    worst: f64,
    beyond_4_sigma: usize,
}

impl Deviations {
    /// Adds counts that should be multinomial with the given shares: their
    /// chi-square statistic has one degree of freedom less than there are.
    pub(crate) fn multinomial(&mut self, counts: &[usize], share: impl Fn(usize) -> f64) {
        self.dispersed(counts, share, 1.0);
    }

    /// Adds counts whose variance should be that of multinomial ones times
    /// `dispersion`.
    pub(crate) fn dispersed(
        &mut self,
        counts: &[usize],
        share: impl Fn(usize) -> f64,
        dispersion: f64,
    ) {
        let n: usize = counts.iter().sum();
        for (index, &count) in counts.iter().enumerate() {
            let expected = n as f64 * share(index);
            let deviation = count as f64 - expected;
            self.note(deviation / (expected * (1.0 - share(index)) * dispersion).sqrt());
            self.squares += deviation * deviation / expected / dispersion;
        }
        self.degrees += counts.len() as f64 - 1.0;
    }

    fn note(&mut self, sigmas: f64) {
        self.count += 1;
        self.worst = self.worst.max(sigmas.abs());
        self.beyond_4_sigma += usize::from(sigmas.abs() > 4.0);
    }

    /// The sum of squares is within 4 sigma of its expectation, and single
    /// deviations beyond 4 sigma are as rare as they should be.
    pub(crate) fn check(&self, what: &str) {
        let sigmas = (self.squares - self.degrees) / (2.0 * self.degrees).sqrt();
        let Self {
            count,
            worst,
            beyond_4_sigma,
            ..
        } = self;
        println!("{what}: {count} counts, spread {sigmas:+.2} sigma, worst {worst:.2} sigma");
        assert!(
            sigmas.abs() < 4.0,
            "{what}: the spread is {sigmas:+.2} sigma off"
        );
        // 0.006 % are expected.
        let allowed = 1 + count / 2000;
        assert!(
            *beyond_4_sigma <= allowed,
            "{what}: {beyond_4_sigma} of {count} beyond 4 sigma"
        );
    }
}
