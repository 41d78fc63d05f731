//! Outlines as a PDF of one page: paths with fill, stroke, dashes and opacity, which is all that our figures have. Text
//! is drawn as shapes, so no font has to be embedded and every reader shows the same. Gradients, images and clips are
//! refused rather than left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use resvg::tiny_skia::{PathSegment, Point, Transform};
use resvg::usvg::{Fill, FillRule, Group, LineCap, LineJoin, Node, Paint, Path, Stroke, Tree};

use super::failed;
use crate::error::Result;

/// Points of a PDF in a unit of the drawing: 72 and 96 to the inch.
const POINTS: f32 = 0.75;

/// The bytes of a PDF file.
pub fn of(tree: &Tree, title: &str) -> Result<Vec<u8>> {
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    // A page of PDF begins at its lower left corner.
    let to_page = Transform::from_row(POINTS, 0.0, 0.0, -POINTS, 0.0, height);
    let mut page = PdfPage { content: String::new(), opacities: BTreeMap::new(), to_page };
    page.group(tree.root(), 1.0)?;
    let states: String = page
        .opacities
        .iter()
        .map(|(thousandths, name)| {
            let share = f64::from(*thousandths) / 1000.0;
            format!("/{name} << /ca {share} /CA {share} >> ")
        })
        .collect();
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(page.content.as_bytes()).map_err(failed)?;
    let packed = packed.finish().map_err(failed)?;
    let mut stream = format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", packed.len()).into_bytes();
    stream.extend_from_slice(&packed);
    stream.extend_from_slice(b"\nendstream");
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R \
         /Group << /S /Transparency /CS /DeviceRGB >> /Resources << /ExtGState << {states}>> >> >>"
    );
    Ok(file(&[
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        page.into_bytes(),
        stream,
        format!("<< /Title {} /Producer (togl) >>", text(title)).into_bytes(),
    ]))
}

/// Numbered objects with the table that says where each begins; the first is the catalogue, the last the document's
/// description.
fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend_from_slice(format!("{} 0 obj\n", at + 1).as_bytes());
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    let count = objects.len();
    let end = bytes.len();
    bytes.extend_from_slice(table.as_bytes());
    bytes.extend_from_slice(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R /Info {count} 0 R >>\nstartxref\n{end}\n%%EOF\n",
            count + 1
        )
        .as_bytes(),
    );
    bytes
}

/// A text of any letters, in the form that PDF has for them.
fn text(text: &str) -> String {
    let digits: String = text.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
    format!("<FEFF{digits}>")
}

struct PdfPage {
    content: String,
    /// Names of opacities, by thousandths.
    opacities: BTreeMap<u16, String>,
    to_page: Transform,
}

impl PdfPage {
    fn group(&mut self, group: &Group, opacity: f32) -> Result<()> {
        if group.clip_path().is_some() || group.mask().is_some() || !group.filters().is_empty() {
            return Err(failed("a figure has a clip, a mask or a filter, which a PDF of ours cannot have"));
        }
        // An element with an opacity is a group of one, so that shares simply multiply.
        let opacity = opacity * group.opacity().get();
        for node in group.children() {
            match node {
                Node::Group(inner) => self.group(inner, opacity)?,
                Node::Path(path) => self.path(path, opacity)?,
                Node::Text(text) => self.group(text.flattened(), opacity)?,
                Node::Image(_) => {
                    return Err(failed("a figure has a picture inside, which a PDF of ours cannot have"));
                }
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, opacity: f32) -> Result<()> {
        if !path.is_visible() {
            return Ok(());
        }
        let place = self.to_page.pre_concat(path.abs_transform());
        let outline = outline(path, place);
        if let Some(fill) = path.fill() {
            self.fill(fill, &outline, opacity)?;
        }
        if let Some(stroke) = path.stroke() {
            self.stroke(stroke, &outline, opacity, place.get_scale().0)?;
        }
        Ok(())
    }

    fn fill(&mut self, fill: &Fill, outline: &str, opacity: f32) -> Result<()> {
        let (colour, state) = (colour(fill.paint())?, self.state(opacity * fill.opacity().get()));
        let rule = match fill.rule() {
            FillRule::NonZero => "f",
            FillRule::EvenOdd => "f*",
        };
        self.content.push_str(&format!("/{state} gs {colour} rg\n{outline}{rule}\n"));
        Ok(())
    }

    fn stroke(&mut self, stroke: &Stroke, outline: &str, opacity: f32, scale: f32) -> Result<()> {
        let (colour, state) = (colour(stroke.paint())?, self.state(opacity * stroke.opacity().get()));
        let cap = match stroke.linecap() {
            LineCap::Butt => 0,
            LineCap::Round => 1,
            LineCap::Square => 2,
        };
        let join = match stroke.linejoin() {
            LineJoin::Miter | LineJoin::MiterClip => 0,
            LineJoin::Round => 1,
            LineJoin::Bevel => 2,
        };
        let dashes: Vec<String> =
            stroke.dasharray().unwrap_or_default().iter().map(|dash| short(dash * scale)).collect();
        let (width, limit) = (short(stroke.width().get() * scale), stroke.miterlimit().get());
        self.content.push_str(&format!(
            "/{state} gs {colour} RG {width} w {cap} J {join} j {limit} M [{}] {} d\n{outline}S\n",
            dashes.join(" "),
            short(stroke.dashoffset() * scale)
        ));
        Ok(())
    }

    /// The name of a graphics state with this opacity.
    fn state(&mut self, opacity: f32) -> String {
        let thousandths = (opacity.clamp(0.0, 1.0) * 1000.0).round() as u16;
        self.opacities.entry(thousandths).or_insert_with(|| format!("o{thousandths}")).clone()
    }
}

fn colour(paint: &Paint) -> Result<String> {
    match paint {
        Paint::Color(colour) => {
            let share = |part: u8| short(f32::from(part) / 255.0);
            Ok(format!("{} {} {}", share(colour.red), share(colour.green), share(colour.blue)))
        }
        Paint::LinearGradient(_) | Paint::RadialGradient(_) | Paint::Pattern(_) => {
            Err(failed("a figure has a gradient or a pattern, which a PDF of ours cannot have"))
        }
    }
}

/// The path in the operators of PDF, which has cubic curves only.
fn outline(path: &Path, place: Transform) -> String {
    let at = |mut point: Point| {
        place.map_point(&mut point);
        point
    };
    let (mut text, mut last) = (String::new(), Point::zero());
    let pair = |point: Point| format!("{} {}", short(point.x), short(point.y));
    for segment in path.data().segments() {
        // Writing to a text cannot fail.
        let _ = match segment {
            PathSegment::MoveTo(to) => {
                last = at(to);
                writeln!(text, "{} m", pair(last))
            }
            PathSegment::LineTo(to) => {
                last = at(to);
                writeln!(text, "{} l", pair(last))
            }
            PathSegment::QuadTo(control, to) => {
                let (control, end) = (at(control), at(to));
                let towards = |from: Point| {
                    Point::from_xy(
                        from.x + (control.x - from.x) * 2.0 / 3.0,
                        from.y + (control.y - from.y) * 2.0 / 3.0,
                    )
                };
                let (first, second) = (towards(last), towards(end));
                last = end;
                writeln!(text, "{} {} {} c", pair(first), pair(second), pair(end))
            }
            PathSegment::CubicTo(first, second, to) => {
                last = at(to);
                writeln!(text, "{} {} {} c", pair(at(first)), pair(at(second)), pair(last))
            }
            PathSegment::Close => writeln!(text, "h"),
        };
    }
    text
}

/// Hundredths of a point are finer than any printer.
fn short(number: f32) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use plotters::prelude::*;

    use resvg::tiny_skia::Pixmap;

    use super::super::style::{BODY, Side, write};
    use super::super::{Figure, failed, outlines};

    /// The objects of a PDF as its own table finds them, the content unpacked.
    fn objects(pdf: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(pdf);
        let start: usize =
            text.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
        let table = String::from_utf8_lossy(&pdf[start..]).into_owned();
        let places = table
            .lines()
            .filter(|line| line.ends_with(" n "))
            .map(|line| line[..10].parse::<usize>().unwrap());
        let object = |(at, place): (usize, usize)| {
            let bytes = &pdf[place..];
            assert!(bytes.starts_with(format!("{} 0 obj\n", at + 1).as_bytes()), "object {}", at + 1);
            let find = |wanted: &[u8]| bytes.windows(wanted.len()).position(|window| window == wanted);
            match (find(b"stream\n"), find(b"\nendobj")) {
                (Some(from), Some(end)) if from < end => {
                    let mut content = String::new();
                    let packed = &bytes[from + 7..end - 10];
                    std::io::Read::read_to_string(&mut flate2::read::ZlibDecoder::new(packed), &mut content)
                        .unwrap();
                    content
                }
                (_, end) => String::from_utf8_lossy(&bytes[..end.unwrap()]).into_owned(),
            }
        };
        places.enumerate().map(object).collect()
    }

    #[test]
    fn a_pdf_has_the_lines_the_text_and_the_bands_of_the_drawing_as_shapes() {
        let figure = Figure::draw("Größe", "", (200, 100), |area| {
            let line = PathElement::new([(0, 0), (200, 100)], RGBColor(255, 0, 0).mix(0.5).stroke_width(2));
            area.draw(&line).map_err(failed)?;
            write(area, "O", (100, 50), BODY, &BLACK, Side::Left)
        });
        let objects = objects(&figure.unwrap().without_heading().pdf().unwrap());
        assert_eq!(objects.len(), 5);
        assert!(
            objects[2].contains("/MediaBox [0 0 150 75]")
                && objects[2].contains("/o500 << /ca 0.5 /CA 0.5 >>")
        );
        let content = &objects[3];
        assert!(content.contains("/o500 gs 1 0 0 RG 1.5 w"), "{content}");
        assert!(content.contains("0 75 m\n150 0 l\nS\n"), "y grows upwards in PDF: {content}");
        assert!(
            content.lines().filter(|line| line.ends_with(" c")).count() >= 8,
            "a letter is curves: {content}"
        );
        assert!(objects[4].contains("<FEFF0047007200F600DF0065>"), "{}", objects[4]);
    }

    /// The content of a page drawn again, as a reader of PDF would.
    fn drawn_again(content: &str, (width, height): (u32, u32)) -> String {
        let (mut shapes, mut path, mut style) = (String::new(), String::new(), String::new());
        for line in content.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let share = |at: usize| (words[at].parse::<f64>().unwrap() * 255.0).round();
            match words[words.len() - 1] {
                "m" => path += &format!("M {} {} ", words[0], words[1]),
                "l" => path += &format!("L {} {} ", words[0], words[1]),
                "c" => path += &format!("C {} ", words[..6].join(" ")),
                "h" => path += "Z ",
                kind @ ("rg" | "d") => {
                    let opacity = words[0].trim_start_matches("/o").parse::<f64>().unwrap() / 1000.0;
                    let colour = format!("rgb({}, {}, {})", share(2), share(3), share(4));
                    let paint = match kind {
                        "rg" => format!("fill=\"{colour}\""),
                        _ => format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"", words[6]),
                    };
                    style = format!("{paint} opacity=\"{opacity}\"");
                }
                "f" | "S" => {
                    shapes += &format!("<path d=\"{path}\" {style}/>");
                    path.clear();
                }
                other => panic!("`{other}` in {line}"),
            }
        }
        let (w, h) = (f64::from(width) * 0.75, f64::from(height) * 0.75);
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {w} {h}\" xmlns=\"http://www.w3.org/2000/svg\">\
             <g transform=\"matrix(1 0 0 -1 0 {h})\">{shapes}</g></svg>"
        )
    }

    #[test]
    fn a_page_looks_as_the_picture_does() {
        let figure = Figure::draw("Axis", "", (160, 60), |area| {
            area.draw(&Circle::new((30, 30), 20, RGBColor(0, 114, 178).mix(0.4).filled())).map_err(failed)?;
            area.draw(&Rectangle::new([(60, 10), (90, 50)], BLACK.stroke_width(3))).map_err(failed)?;
            write(area, "0.05 ±", (96, 30), BODY, &BLACK, Side::Left)
        });
        let figure = figure.unwrap().without_heading();
        let again = drawn_again(&objects(&figure.pdf().unwrap())[3], (160, 60));
        let pixels = |svg: &str| Pixmap::decode_png(&outlines::png(svg, 2.0).unwrap()).unwrap();
        let (picture, page) = (pixels(&figure.svg()), pixels(&again));
        let differ = picture.data().iter().zip(page.data()).filter(|(a, b)| a.abs_diff(**b) > 40).count();
        let ink = picture.data().iter().filter(|value| **value < 200).count();
        assert!(ink > 1000 && differ * 50 < ink, "{differ} of {ink}");
    }
}
