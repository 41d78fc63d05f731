//! `hypot` of our own, in the place of the C library's: glibc 2.35 gave its one a new version, and because of these two
//! symbols alone the program would not start on systems with 2.34. Owns nothing else.

// SAFETY: the same arguments and meaning as in C, which any caller of this name expects.
#[unsafe(no_mangle)]
extern "C" fn hypot(x: f64, y: f64) -> f64 {
    libm::hypot(x, y)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn hypotf(x: f32, y: f32) -> f32 {
    libm::hypotf(x, y)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lengths_are_what_they_were() {
        assert_eq!((3f64.hypot(4.0), 5f32.hypot(12.0)), (5.0, 13.0));
        assert_eq!(f64::MAX.hypot(f64::MAX), f64::INFINITY);
        assert_eq!(1e300f64.hypot(1e300), 1e300 * std::f64::consts::SQRT_2);
    }
}
