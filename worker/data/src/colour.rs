//! From the numbers of an image file to colours whose distances are those people see: sRGB bytes to CIE Lab
//! under daylight (D65, two degrees). Only arithmetic that is the same on every machine.

use std::sync::LazyLock;

/// Linear light from sRGB, then the tristimulus values (IEC 61966-2-1, as rounded by the usual tools).
const XYZ_FROM_RGB: [[f64; 3]; 3] =
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]];
const WHITE: [f64; 3] = [0.95047, 1.0, 1.08883];

/// Images have 256 levels, so the power is taken once for each.
static LINEAR_LIGHT: LazyLock<[f64; 256]> =
    LazyLock::new(|| std::array::from_fn(|level| linear_light(level as u8)));

/// Lightness 0 to 100, then green to red and blue to yellow.
pub(crate) fn lab(rgb: [u8; 3]) -> [f64; 3] {
    let linear = rgb.map(|byte| LINEAR_LIGHT[usize::from(byte)]);
    let tristimulus =
        XYZ_FROM_RGB.map(|row| row.iter().zip(linear).map(|(weight, light)| weight * light).sum());
    let mut response = [0.0; 3];
    for ((response, value), white) in response.iter_mut().zip(tristimulus).zip(WHITE) {
        *response = perceived(f64::max(value, 0.0) / white);
    }
    let [x, y, z] = response;
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn linear_light(byte: u8) -> f64 {
    let value = f64::from(byte) / 255.0;
    if value > 0.04045 { libm::pow((value + 0.055) / 1.055, 2.4) } else { value / 12.92 }
}

fn perceived(relative: f64) -> f64 {
    if relative > 0.008856 { libm::cbrt(relative) } else { 7.787 * relative + 16.0 / 116.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_has_no_hue_and_the_ends_have_lightness_0_and_100() {
        assert!(lab([0, 0, 0]).iter().all(|value| value.abs() < 1e-9));
        let white = lab([255, 255, 255]);
        assert!(
            (white[0] - 100.0).abs() < 1e-3 && white[1].abs() < 0.01 && white[2].abs() < 0.02,
            "{white:?}"
        );
    }

    /// The values of scikit-image 0.26: `rgb2lab(numpy.array([[[r, g, b]]]) / 255.0)`.
    #[test]
    fn colours_agree_with_scikit_image() {
        for (rgb, expected) in GOLDEN {
            for (found, expected) in lab(rgb).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{rgb:?}: {found} is not {expected}");
            }
        }
    }

    const GOLDEN: [([u8; 3], [f64; 3]); 4] = [
        ([255, 0, 0], [53.240587943744885, 80.09230822569225, 67.20275104442868]),
        ([12, 200, 77], [70.81574459957645, -66.54354423065129, 48.87317844978325]),
        ([3, 2, 1], [0.586868916585928, 0.12242067630680031, 0.4706280574190369]),
        ([90, 100, 240], [48.97872090835344, 38.10835475591573, -71.77249871949543]),
    ];
}
