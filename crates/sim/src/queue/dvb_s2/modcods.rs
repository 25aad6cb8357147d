//! Tables of MODCODs: spectral efficiency in bits per symbol, and the minimum Es/N0 in dB for a
//! quasi-error-free channel with ideal demodulation over AWGN. Quasi-error-free is a packet error
//! rate of 10^-7 for S2, and a FECFRAME error rate of 10^-5 for S2X.
//!
//! All rows of S2 agree with OpenSAND (`opensand-deploy/src/backend/backend.py`, efficiencies to
//! 0.001), and those of S2X with saleos (`inputs.py`) and pylink
//! (`pylink/tributaries/modulation.py`, which lacks QPSK 2/9). The efficiencies of pylink are those
//! of EN 302 307-2 V1.1.1, which differ from V1.3.1 for 32APSK 2/3-L (3.289502) and 64APSK 5/6
//! (4.933701). This table uses V1.3.1. The efficiencies also follow from the frame lengths, as a
//! test verifies.

/// A MODCOD: a modulation with a code rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modcod {
    /// Spectral efficiency, bits per symbol.
    pub efficiency: f64,
    /// Minimum Es/N0, dB.
    pub least: f64,
}

/// Rows of a table: efficiency in bits per symbol, and minimum Es/N0 in dB.
type Rows = &'static [(f64, f64)];

/// DVB-S2, normal FECFRAMEs without pilots (EN 302 307-1 table 13): QPSK 1/4 to 9/10, 8PSK 3/5 to
/// 9/10, 16APSK 2/3 to 9/10, 32APSK 3/4 to 9/10.
pub(super) const S2: Rows = &[
    (0.490243, -2.35),
    (0.656448, -1.24),
    (0.789412, -0.30),
    (0.988858, 1.00),
    (1.188304, 2.23),
    (1.322253, 3.10),
    (1.487473, 4.03),
    (1.587196, 4.68),
    (1.654663, 5.18),
    (1.766451, 6.20),
    (1.788612, 6.42),
    (1.779991, 5.50),
    (1.980636, 6.62),
    (2.228124, 7.91),
    (2.478562, 9.35),
    (2.646012, 10.69),
    (2.679207, 10.98),
    (2.637201, 8.97),
    (2.966728, 10.21),
    (3.165623, 11.03),
    (3.300184, 11.61),
    (3.523143, 12.89),
    (3.567342, 13.13),
    (3.703295, 12.73),
    (3.951571, 13.64),
    (4.119540, 14.28),
    (4.397854, 15.69),
    (4.453027, 16.05),
];

/// DVB-S2X, normal FECFRAMEs without pilots (EN 302 307-2 V1.3.1 table 20a): QPSK 2/9 to 11/20,
/// 8APSK, 8PSK, 16APSK, 32APSK, 64APSK, 128APSK, 256APSK.
pub(super) const S2X: Rows = &[
    (0.434841, -2.85),
    (0.567805, -2.03),
    (0.889135, 0.22),
    (1.088581, 1.45),
    (1.647211, 4.73),
    (1.713601, 5.13),
    (1.896173, 6.12),
    (2.062148, 7.02),
    (2.145136, 7.49),
    (1.972253, 5.97),
    (2.104850, 6.55),
    (2.193247, 6.84),
    (2.281645, 7.51),
    (2.370043, 7.80),
    (2.370043, 7.41),
    (2.458441, 8.10),
    (2.524739, 8.38),
    (2.635236, 8.43),
    (2.745734, 9.27),
    (2.856231, 9.71),
    (3.077225, 10.65),
    (3.386618, 11.99),
    (3.291954, 11.10),
    (3.510192, 11.75),
    (3.620536, 12.17),
    (3.841226, 13.05),
    (4.206428, 13.98),
    (4.338659, 14.81),
    (4.603122, 15.47),
    (4.735354, 15.87),
    (4.936639, 16.55),
    (5.163248, 17.73),
    (5.355556, 18.53),
    (5.065690, 16.98),
    (5.241514, 17.24),
    (5.417338, 18.10),
    (5.593162, 18.59),
    (5.768987, 18.84),
    (5.900855, 19.57),
];

/// The MODCODs of `tables`, from the most robust to the fastest. A MODCOD is omitted if another
/// MODCOD with the same or a lower minimum Es/N0 is faster.
pub(super) fn fastest(tables: &[Rows]) -> Vec<Modcod> {
    let rows = tables.iter().copied().flatten();
    let mut all: Vec<Modcod> = rows
        .map(|&(efficiency, least)| Modcod { efficiency, least })
        .collect();
    all.sort_by(|a, b| {
        let faster_first = b.efficiency.total_cmp(&a.efficiency);
        a.least.total_cmp(&b.least).then(faster_first)
    });
    let mut best = 0.0;
    all.retain(|modcod| {
        let faster = modcod.efficiency > best;
        best = modcod.efficiency.max(best);
        faster
    });
    all
}
