//! Superpixels by simple linear iterative clustering, with the conventions of scikit-image: seeds on a
//! regular grid with colour zero, ten rounds, no smoothing, and a pass that gives every segment one piece.
//! The size limits of that pass follow the number of segments that was asked for, not the number of seeds:
//! so did the versions that made the published data, and only so are the published node counts met.
//! What the segments are used for is not decided here.

use std::ops::Range;

const ROUNDS: usize = 10;
/// A piece smaller than this share of the mean segment joins a neighbour.
const SMALLEST_SHARE: f64 = 0.5;
/// A piece larger than this many mean segments is cut.
const LARGEST_SHARE: f64 = 3.0;

/// An image, row by row, one value per channel.
pub(crate) struct Raster<const CHANNELS: usize> {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) pixels: Vec<[f64; CHANNELS]>,
}

/// One segment number per pixel, counted from 0 without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superpixels {
    pub(crate) of_pixel: Vec<u32>,
    pub(crate) count: usize,
}

/// Where seeds lie in both directions: `first`, `first + step`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeedGrid {
    first: usize,
    step: usize,
}

struct Cluster<const CHANNELS: usize> {
    row: f64,
    column: f64,
    colour: [f64; CHANNELS],
}

/// Segments the image into at most `most` superpixels: asks for `wanted`, then for fewer and fewer.
/// `compactness` weighs distance in the image against distance in colour.
pub(crate) fn segment_at_most<const CHANNELS: usize>(
    image: &Raster<CHANNELS>,
    compactness: f64,
    wanted: usize,
    most: usize,
) -> Superpixels {
    // The clusters depend on the grid only, which is the same for many numbers of segments.
    let mut clustered: Option<(SeedGrid, Vec<u32>)> = None;
    let mut asked = wanted.max(1);
    loop {
        let grid = SeedGrid::for_segments(image.height, image.width, asked);
        let clusters = match clustered.take() {
            Some((known, clusters)) if known == grid => clusters,
            _ => cluster(image, compactness, grid),
        };
        let segments = join_pieces(&clusters, image.height, image.width, asked);
        if segments.count <= most || asked == 1 {
            return segments;
        }
        clustered = Some((grid, clusters));
        asked -= 1;
    }
}

impl SeedGrid {
    fn for_segments(height: usize, width: usize, segments: usize) -> SeedGrid {
        let pixels = height * width;
        if pixels <= segments {
            return SeedGrid { first: 0, step: 1 };
        }
        let spacing = (pixels as f64 / segments as f64).sqrt();
        SeedGrid {
            first: (spacing / 2.0).floor() as usize,
            step: (spacing.round_ties_even() as usize).max(1),
        }
    }

    fn positions(self, side: usize) -> impl Iterator<Item = usize> + Clone {
        (self.first.min(side.saturating_sub(1))..side).step_by(self.step)
    }
}

/// The nearest cluster of each pixel after the last round.
fn cluster<const CHANNELS: usize>(image: &Raster<CHANNELS>, compactness: f64, grid: SeedGrid) -> Vec<u32> {
    let colours: Vec<[f64; CHANNELS]> =
        image.pixels.iter().map(|pixel| pixel.map(|value| value * (1.0 / compactness))).collect();
    let columns = grid.positions(image.width);
    let mut clusters: Vec<Cluster<CHANNELS>> = grid
        .positions(image.height)
        .flat_map(|row| columns.clone().map(move |column| (row as f64, column as f64)))
        .map(|(row, column)| Cluster { row, column, colour: [0.0; CHANNELS] })
        .collect();
    // The search window follows the number of seeds that the grid really has.
    let reach = 2 * SeedGrid::for_segments(image.height, image.width, clusters.len()).step;
    let weight = 1.0 / (grid.step * grid.step) as f64;
    let mut assignment =
        Assignment { nearest: vec![0; colours.len()], distances: vec![f64::MAX; colours.len()] };
    for _ in 0..ROUNDS {
        assignment.distances.fill(f64::MAX);
        for (cluster, number) in clusters.iter().zip(0..).filter(|(cluster, _)| !cluster.row.is_nan()) {
            let rows = window(cluster.row, reach, image.height);
            let columns = window(cluster.column, reach, image.width);
            for row in rows {
                let pixels = row * image.width + columns.start..row * image.width + columns.end;
                assignment.claim(pixels, (row, columns.start), &colours, cluster, number, weight);
            }
        }
        move_to_means(&mut clusters, &assignment.nearest, &colours, image.width);
    }
    assignment.nearest
}

/// Which cluster is nearest to each pixel, and how near.
struct Assignment {
    nearest: Vec<u32>,
    distances: Vec<f64>,
}

impl Assignment {
    /// Takes those pixels of one row for a cluster that are nearer to it than to all before it.
    fn claim<const CHANNELS: usize>(
        &mut self,
        pixels: Range<usize>,
        (row, first_column): (usize, usize),
        colours: &[[f64; CHANNELS]],
        cluster: &Cluster<CHANNELS>,
        number: u32,
        weight: f64,
    ) {
        let down = cluster.row - row as f64;
        let known = self.distances[pixels.clone()].iter_mut().zip(&mut self.nearest[pixels.clone()]);
        for ((column, colour), (nearest_distance, nearest)) in
            (first_column..).zip(&colours[pixels]).zip(known)
        {
            let across = cluster.column - column as f64;
            let in_image = (down * down + across * across) * weight;
            let distance = in_image + squared_difference(colour, &cluster.colour);
            if *nearest_distance > distance {
                *nearest_distance = distance;
                *nearest = number;
            }
        }
    }
}

fn window(centre: f64, reach: usize, side: usize) -> Range<usize> {
    let reach = reach as f64;
    (centre - reach).max(0.0) as usize..(centre + reach + 1.0).min(side as f64) as usize
}

fn squared_difference<const CHANNELS: usize>(left: &[f64; CHANNELS], right: &[f64; CHANNELS]) -> f64 {
    let mut sum = 0.0;
    for (a, b) in left.iter().zip(right) {
        sum += (a - b) * (a - b);
    }
    sum
}

/// A cluster without pixels has no mean (not a number) and is gone for good.
fn move_to_means<const CHANNELS: usize>(
    clusters: &mut [Cluster<CHANNELS>],
    nearest: &[u32],
    colours: &[[f64; CHANNELS]],
    width: usize,
) {
    let mut sums = vec![(0.0, 0.0, 0.0, [0.0; CHANNELS]); clusters.len()];
    for (position, (number, colour)) in nearest.iter().zip(colours).enumerate() {
        let (members, rows, columns, colour_sum) = &mut sums[*number as usize];
        *members += 1.0;
        *rows += (position / width) as f64;
        *columns += (position % width) as f64;
        colour_sum.iter_mut().zip(colour).for_each(|(sum, value)| *sum += value);
    }
    for (cluster, (members, rows, columns, colour)) in clusters.iter_mut().zip(sums) {
        *cluster = Cluster {
            row: rows / members,
            column: columns / members,
            colour: colour.map(|sum| sum / members),
        };
    }
}

/// Numbers the pieces of all clusters in reading order; too small ones take the number of a neighbour.
fn join_pieces(clusters: &[u32], height: usize, width: usize, asked: usize) -> Superpixels {
    let mean = (height * width) as f64 / asked as f64;
    let smallest = (SMALLEST_SHARE * mean) as usize;
    let largest = ((LARGEST_SHARE * mean) as usize).max(1);
    let mut pieces = Pieces { clusters, height, width, of_pixel: vec![NO_PIECE; clusters.len()] };
    let mut count = 0;
    let mut members = Vec::with_capacity(largest.min(clusters.len()));
    for start in 0..clusters.len() {
        if pieces.of_pixel[start] != NO_PIECE {
            continue;
        }
        let neighbour = pieces.grow(start, count, largest, &mut members);
        if members.len() < smallest {
            members.iter().for_each(|position| pieces.of_pixel[*position] = neighbour);
        } else {
            count += 1;
        }
    }
    Superpixels { of_pixel: pieces.of_pixel, count: count.max(1) as usize }
}

const NO_PIECE: u32 = u32::MAX;

struct Pieces<'a> {
    clusters: &'a [u32],
    height: usize,
    width: usize,
    of_pixel: Vec<u32>,
}

impl Pieces<'_> {
    /// Collects, breadth first, up to `largest` pixels of one cluster that hang together, and numbers them.
    /// Returns the piece that was met last at their border, 0 where none was.
    fn grow(&mut self, start: usize, number: u32, largest: usize, members: &mut Vec<usize>) -> u32 {
        members.clear();
        members.push(start);
        self.of_pixel[start] = number;
        let (mut visited, mut neighbour) = (0, 0);
        while visited < members.len() && members.len() < largest {
            for next in neighbours(members[visited], self.height, self.width).into_iter().flatten() {
                let piece = self.of_pixel[next];
                if piece == NO_PIECE && self.clusters[next] == self.clusters[start] {
                    self.of_pixel[next] = number;
                    members.push(next);
                    if members.len() >= largest {
                        break;
                    }
                } else if piece != NO_PIECE && piece != number {
                    neighbour = piece;
                }
            }
            visited += 1;
        }
        neighbour
    }
}

/// Right, left, below, above.
fn neighbours(position: usize, height: usize, width: usize) -> [Option<usize>; 4] {
    let (row, column) = (position / width, position % width);
    [
        (column + 1 < width).then(|| position + 1),
        (column > 0).then(|| position - 1),
        (row + 1 < height).then(|| position + width),
        (row > 0).then(|| position - width),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two flat halves, black and white.
    fn halves(side: usize) -> Raster<1> {
        let pixels = (0..side * side).map(|position| [f64::from(u8::from(position % side >= side / 2))]);
        Raster { height: side, width: side, pixels: pixels.collect() }
    }

    /// Segment numbers as digits and letters. From scikit-image 0.26, with the sizes of the last pass taken
    /// from the number of segments asked for (all names are scikit-image's own):
    ///
    /// ```text
    /// level = lambda r, c: (3 * r * r + 17 * c + (200 if (r - 5)**2 + (c - 7)**2 < 12 else 0)) % 256
    /// g = [[level(r, c) for c in range(12)] for r in range(12)] / 255
    /// colour = stack([g, g[::-1], g.T], axis=-1), compactness 10, rgb2lab; grey: compactness 0.25
    /// centroids, steps = _get_grid_centroids(image, 20); colours of the centroids 0
    /// labels = _slic_cython(image / compactness, None, segments, max(steps), 10, ones(3), False, start_label=0)
    /// _enforce_label_connectivity_cython(labels, int(0.5 * 144 / 20), int(3 * 144 / 20), start_label=0)
    /// ```
    const GREY: &str = "000111222333000111222333000111122333004555566677444555566677444855666779\
                        4488888aaa79bbbbb8aaaa99bbbbccaaadddbccccceddddd\
                        ccceeeefffffeeeeeffffggg";
    const COLOUR: &str = "011111111111000022211111344444411555333344661577333333689977\
                          aaa333889977aa33bbb99777ccddeeeee777ccddefeeeg77chhfffeeeggi\
                          hhhhfffeeggihhhhhjjjjggi";

    fn level(row: usize, column: usize) -> u8 {
        let near = row.abs_diff(5).pow(2) + column.abs_diff(7).pow(2) < 12;
        ((3 * row * row + 17 * column + if near { 200 } else { 0 }) % 256) as u8
    }

    fn as_digits(clusters: Vec<u32>) -> String {
        let segments = join_pieces(&clusters, 12, 12, 20);
        let digit = |number: &u32| char::from_digit(*number, 36).unwrap_or('?');
        segments.of_pixel.iter().map(digit).collect()
    }

    #[test]
    fn segments_are_those_of_scikit_image_pixel_by_pixel() {
        let places = || (0..144).map(|position| (position / 12, position % 12));
        let grid = SeedGrid::for_segments(12, 12, 20);
        let pixels = places().map(|(r, c)| [f64::from(level(r, c)) / 255.0]).collect();
        let grey = Raster { height: 12, width: 12, pixels };
        assert_eq!(as_digits(cluster(&grey, 0.25, grid)), GREY);
        let rgb = |(r, c)| [level(r, c), level(11 - r, c), level(c, r)];
        let pixels = places().map(|place| crate::colour::lab(rgb(place))).collect();
        let colour = Raster { height: 12, width: 12, pixels };
        assert_eq!(as_digits(cluster(&colour, 10.0, grid)), COLOUR);
    }

    #[test]
    fn no_segment_crosses_a_sharp_border() {
        let image = halves(24);
        let segments = segment_at_most(&image, 0.25, 40, 40);
        assert!(segments.count > 10 && segments.count <= 40, "{}", segments.count);
        for number in 0..segments.count as u32 {
            let mut shades = image.pixels.iter().zip(&segments.of_pixel).filter(|(_, of)| **of == number);
            let first = shades.next().expect("numbers have no gaps").0;
            assert!(shades.all(|(shade, _)| shade == first), "segment {number}");
        }
    }

    #[test]
    fn every_segment_is_one_piece() {
        let segments = segment_at_most(&halves(24), 0.25, 40, 40);
        let mut seen = vec![false; segments.of_pixel.len()];
        let mut pieces = 0;
        for start in 0..seen.len() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            pieces += 1;
            let mut stack = vec![start];
            while let Some(position) = stack.pop() {
                for next in neighbours(position, 24, 24).into_iter().flatten() {
                    if !seen[next] && segments.of_pixel[next] == segments.of_pixel[start] {
                        seen[next] = true;
                        stack.push(next);
                    }
                }
            }
        }
        assert_eq!(pieces, segments.count);
    }

    #[test]
    fn images_of_any_size_and_any_number_of_segments_are_segmented() {
        for (height, width) in [(1, 1), (1, 7), (5, 2), (9, 9)] {
            let pixels = (0..height * width).map(|position| [(position % 3) as f64, 0.5, 0.0]).collect();
            let image = Raster { height, width, pixels };
            for wanted in [1, 2, 8, 200] {
                let segments = segment_at_most(&image, 10.0, wanted, wanted);
                assert!(segments.count >= 1, "{height} x {width}, {wanted} wanted");
                assert!(height != width || segments.count <= wanted, "{height} x {width}, {wanted} wanted");
                let largest = segments.of_pixel.iter().max().map(|most| *most as usize + 1);
                assert_eq!(largest, Some(segments.count));
            }
        }
    }
}
