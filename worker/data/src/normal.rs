//! The quantile function of the standard normal distribution: Wichura's algorithm AS 241 (PPND16), relative
//! accuracy about 1e-16. It owns the step from a uniform to a normal variate and nothing else; the only
//! transcendental function in it comes from a pure-Rust library, so its bits are the same on every machine.

/// Numerator and denominator, highest power first, for `|p - 1/2| <= 0.425`.
const CENTRE: ([f64; 8], [f64; 8]) = (
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
);

/// The same for the tails up to `sqrt(-ln p) = 5`.
const TAIL: ([f64; 8], [f64; 8]) = (
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);

/// The same beyond it.
const FAR_TAIL: ([f64; 8], [f64; 8]) = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
);

/// The value below which a standard normal variate falls with probability `p`, for `0 < p < 1`.
pub(crate) fn standard_normal_quantile(p: f64) -> f64 {
    let offset = p - 0.5;
    if offset.abs() <= 0.425 {
        return offset * ratio(&CENTRE, 0.180_625 - offset * offset);
    }
    let tail_mass = if offset < 0.0 { p } else { 1.0 - p };
    let depth = (-libm::log(tail_mass)).sqrt();
    let magnitude = if depth <= 5.0 { ratio(&TAIL, depth - 1.6) } else { ratio(&FAR_TAIL, depth - 5.0) };
    magnitude.copysign(offset)
}

/// Horner's rule on both polynomials: plain multiplications and additions, never fused.
fn ratio((numerator, denominator): &([f64; 8], [f64; 8]), x: f64) -> f64 {
    let horner = |coefficients: &[f64; 8]| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    horner(numerator) / horner(denominator)
}

#[cfg(test)]
mod tests {
    use super::standard_normal_quantile;

    /// Reference: Python 3's `statistics.NormalDist().inv_cdf(p)`.
    #[test]
    fn agrees_with_an_outside_reference_in_centre_and_tails() {
        for (p, expected) in [
            (0.5, 0.0),
            (0.6, 0.253_347_103_135_799_7),
            (0.925, 1.439_531_470_938_456),
            (0.975, 1.959_963_984_540_053_8),
            (0.01, -2.326_347_874_040_841),
            (1e-9, -5.997_807_015_007_686),
            (1e-15, -7.941_345_326_170_997),
        ] {
            let found = standard_normal_quantile(p);
            assert!(
                (found - expected).abs() < 1e-14 * (1.0 + expected.abs()),
                "p {p}: {found} for {expected}"
            );
        }
    }

    #[test]
    fn is_odd_around_one_half() {
        for p in [0.5f64.powi(3), 0.5f64.powi(9), 0.5f64.powi(40)] {
            assert_eq!(standard_normal_quantile(p).to_bits(), (-standard_normal_quantile(1.0 - p)).to_bits());
        }
    }
}
