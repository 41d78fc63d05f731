//! Which worker trained which fold when: one lane for each fold that a worker trains at the same time, one bar a fold.
//! Where it is not known of any fold when it finished, bars are put one after the other and the picture says so: it then
//! shows how much each worker did, not when. Owns lanes and bars; times come from the frame.

use std::collections::BTreeMap;

use plotters::prelude::*;

use super::axis::{digits, round_step};
use super::style::{BODY, LineStyle, Side, text_width, write};
use super::{Area, Figure, MARGIN, failed};
use crate::columns::label;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;

/// Kinds with a colour of their own; if there are more, those with the least work share grey.
const MOST_COLOURS: usize = 7;
/// More bars than this would be thinner than a pixel.
const MOST_BARS: usize = 20_000;
/// Grey of kinds without a colour of their own.
const OTHERS: RGBColor = RGBColor(170, 170, 170);
const LANE: i32 = 20;
const WIDTH: i32 = 760;
const TICKS: f64 = 8.0;

/// One fold that was trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// By whom, and on what.
    pub worker: String,
    /// What was trained: bars of one kind have one colour.
    pub kind: String,
    /// How long it took.
    pub seconds: f64,
    /// When it was done, in seconds from any fixed moment, if known.
    pub finished_at: Option<f64>,
}

impl Work {
    /// The folds of a frame, in its order; folds of unknown length are left out.
    pub fn of_frame(frame: &FoldFrame) -> Result<Vec<Self>> {
        let data = frame.data();
        let text = |name: &str, row: usize| Ok::<_, Error>(label(&data.column(name)?.get(row)?));
        let seconds = data.column("seconds")?.f64()?;
        let times = data.column("finished_at")?.u64()?;
        let mut work = Vec::new();
        for row in 0..frame.len() {
            let Some(seconds) = seconds.get(row) else { continue };
            let (worker, device) = (text("worker", row)?, text("device", row)?);
            let worker = if worker.is_empty() { "unknown".to_owned() } else { worker };
            work.push(Self {
                worker: if device.is_empty() { worker } else { format!("{worker} ({device})") },
                kind: text("method", row)?,
                seconds,
                finished_at: times.get(row).map(|milliseconds| milliseconds as f64 / 1e3),
            });
        }
        Ok(work)
    }
}

/// A bar: when it begins, how long it is, which kind.
type Bar = (f64, f64, usize);

/// The bars of one worker that never overlap.
struct Lane {
    name: String,
    bars: Vec<Bar>,
}

/// Draws what each worker did.
pub fn timeline(title: &str, work: &[Work]) -> Result<Figure> {
    if work.is_empty() {
        return Err(Error::NoValues { what: format!("the timeline of {title}"), column: "seconds" });
    }
    if work.len() > MOST_BARS {
        return Err(Error::TooManyLines { lines: work.len(), most: MOST_BARS });
    }
    let timed = work.iter().any(|fold| fold.finished_at.is_some());
    let shown: Vec<&Work> = work.iter().filter(|fold| fold.finished_at.is_some() == timed).collect();
    let kinds = Kinds::of(&shown);
    let lanes = lanes(&shown, &kinds);
    let labels = lanes.iter().map(|lane| text_width(&lane.name)).max().unwrap_or_default() + MARGIN;
    let width = labels + WIDTH + 2 * MARGIN;
    let per_line = kinds.per_line(width);
    let axis = 6 + lanes.len() as i32 * LANE;
    let height = axis + 66 + (kinds.names.len().div_ceil(per_line) as i32) * 20;
    let end = lanes.iter().flat_map(|lane| &lane.bars).map(|bar| bar.0 + bar.1).fold(1e-9, f64::max);
    let note = note(&shown, &lanes, timed, work.len());
    Figure::draw(&format!("Work of {title}"), &note, (width, height), |area| {
        let left = MARGIN + labels;
        draw_axis(area, (left, 6, axis), end, timed)?;
        for (at, lane) in lanes.iter().enumerate() {
            draw_lane(area, lane, (left, 6 + at as i32 * LANE), end)?;
        }
        for (at, kind) in kinds.names.iter().enumerate() {
            let room = (width - 2 * MARGIN) / per_line as i32;
            let place = (MARGIN + (at % per_line) as i32 * room, axis + 60 + (at / per_line) as i32 * 20);
            let swatch = [(place.0, place.1 - 6), (place.0 + 22, place.1 + 6)];
            area.draw(&Rectangle::new(swatch, colour(at).filled())).map_err(failed)?;
            write(area, kind, (place.0 + 30, place.1), BODY, &BLACK, Side::Left)?;
        }
        Ok(())
    })
}

/// What the legend explains: the kinds of work, the last of them perhaps all that have no colour of their own.
struct Kinds<'a> {
    names: Vec<String>,
    place: BTreeMap<&'a str, usize>,
}

impl<'a> Kinds<'a> {
    fn of(work: &[&'a Work]) -> Self {
        let mut seconds: Vec<(&str, f64)> = Vec::new();
        for fold in work {
            match seconds.iter_mut().find(|(kind, _)| *kind == fold.kind) {
                Some((_, sum)) => *sum += fold.seconds,
                None => seconds.push((&fold.kind, fold.seconds)),
            }
        }
        let others = seconds.len().saturating_sub(MOST_COLOURS);
        if others > 0 {
            seconds.sort_by(|a, b| b.1.total_cmp(&a.1));
        }
        let mut names: Vec<String> =
            seconds.iter().take(MOST_COLOURS).map(|(kind, _)| (*kind).to_owned()).collect();
        names.extend((others > 0).then(|| format!("{others} more methods")));
        let place = seconds.iter().enumerate().map(|(at, (kind, _))| (*kind, at.min(MOST_COLOURS))).collect();
        Self { names, place }
    }

    fn per_line(&self, width: i32) -> usize {
        let widest = self.names.iter().map(|kind| text_width(kind)).max().unwrap_or_default() + 60;
        ((width - 2 * MARGIN) / widest).max(1) as usize
    }
}

fn colour(kind: usize) -> RGBColor {
    if kind < MOST_COLOURS { LineStyle::of(kind).colour() } else { OTHERS }
}

/// Lanes worker by worker; what overlaps is put into different lanes.
fn lanes(work: &[&Work], kinds: &Kinds<'_>) -> Vec<Lane> {
    let starts = work.iter().filter_map(|fold| Some(fold.finished_at? - fold.seconds));
    let first = starts.fold(f64::INFINITY, f64::min);
    let mut by_worker: BTreeMap<&str, Vec<Bar>> = BTreeMap::new();
    for fold in work {
        let kind = kinds.place.get(fold.kind.as_str()).copied().unwrap_or_default();
        let bars = by_worker.entry(&fold.worker).or_default();
        let after = bars.last().map_or(0.0, |bar| bar.0 + bar.1);
        let start = fold.finished_at.map_or(after, |end| end - fold.seconds - first);
        bars.push((start, fold.seconds, kind));
    }
    let mut lanes = Vec::new();
    for (worker, mut bars) in by_worker {
        bars.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut own: Vec<Vec<Bar>> = Vec::new();
        for bar in bars {
            let ends = |lane: &Vec<Bar>| lane.last().map_or(0.0, |bar| bar.0 + bar.1);
            match own.iter_mut().find(|lane| ends(lane) <= bar.0 + 1e-6) {
                Some(lane) => lane.push(bar),
                None => own.push(vec![bar]),
            }
        }
        let name = |at: usize| if at == 0 { worker.to_owned() } else { String::new() };
        lanes.extend(own.into_iter().enumerate().map(|(at, bars)| Lane { name: name(at), bars }));
    }
    lanes
}

fn note(work: &[&Work], lanes: &[Lane], timed: bool, all: usize) -> String {
    let hours: f64 = work.iter().map(|fold| fold.seconds).sum::<f64>() / 3600.0;
    let folds = work.len();
    if !timed {
        return format!(
            "{folds} folds, {hours:.2} device-hours. When folds finished is not known: bars stand one after the other in \
             the order of the sweep, so lengths are true and gaps are not shown."
        );
    }
    let end = lanes.iter().flat_map(|lane| &lane.bars).map(|bar| bar.0 + bar.1).fold(0.0, f64::max);
    let busy = 100.0 * hours * 3600.0 / (end * lanes.len() as f64).max(1e-9);
    let left_out = match all - folds {
        0 => String::new(),
        more => format!(" Of {more} more folds it is not known when they finished; they are not shown."),
    };
    format!(
        "{folds} folds, {hours:.2} device-hours; lanes are busy {busy:.0}% of the time from first start to last \
         end.{left_out}"
    )
}

fn draw_lane(area: &Area<'_>, lane: &Lane, at: (i32, i32), end: f64) -> Result<()> {
    write(area, &lane.name, (at.0 - 8, at.1 + LANE / 2), BODY, &BLACK, Side::Right)?;
    let x = |time: f64| at.0 + (time / end * f64::from(WIDTH)).round() as i32;
    for (start, length, kind) in &lane.bars {
        let colour = colour(*kind);
        let place = [(x(*start), at.1 + 3), (x(start + length).max(x(*start) + 1), at.1 + LANE - 3)];
        area.draw(&Rectangle::new(place, colour.mix(0.85).filled())).map_err(failed)?;
        // A rim would hide a narrow bar and look like a gap.
        if place[1].0 - place[0].0 > 4 {
            area.draw(&Rectangle::new(place, WHITE.stroke_width(1))).map_err(failed)?;
        }
    }
    Ok(())
}

/// Ticks at round times below the lanes.
fn draw_axis(area: &Area<'_>, (left, top, bottom): (i32, i32, i32), end: f64, timed: bool) -> Result<()> {
    let (unit, name) = match end {
        end if end >= 2.0 * 3600.0 => (3600.0, "hours"),
        end if end >= 120.0 => (60.0, "minutes"),
        _ => (1.0, "seconds"),
    };
    let step = round_step(end / unit / TICKS);
    let digits = digits(step).min(2);
    let mut tick = 0.0;
    while tick * unit <= end {
        let x = left + (tick * unit / end * f64::from(WIDTH)).round() as i32;
        let line = PathElement::new([(x, top), (x, bottom + 5)], BLACK.mix(0.15));
        area.draw(&line).map_err(failed)?;
        write(area, &format!("{tick:.digits$}"), (x, bottom + 15), BODY, &BLACK, Side::Centre)?;
        tick += step;
    }
    let from = if timed { " since the first start" } else { " of training" };
    write(area, &format!("{name}{from}"), (left + WIDTH / 2, bottom + 36), BODY, &BLACK, Side::Centre)
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::figure::tests::texts;
    use crate::test_folds::{folds, frame, trial};

    #[test]
    fn a_timeline_without_times_says_so_and_with_times_shows_overlaps_in_lanes_of_their_own() {
        let mut rows = folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5, 0.6, 0.7]);
        rows.iter_mut().for_each(|row| row.result.seconds = 10.0);
        let work = Work::of_frame(&frame(rows.clone())).unwrap();
        let words = texts(&timeline("sweep", &work).unwrap()).replace('\n', " ");
        assert!(words.contains("When folds finished is not known") && words.contains("w1 (cpu)"), "{words}");
        for (row, end) in rows.iter_mut().zip([110, 110, 120]) {
            row.result.finished_at = Some(1000 * end);
        }
        let work = Work::of_frame(&frame(rows.clone())).unwrap();
        let words = texts(&timeline("sweep", &work).unwrap()).replace('\n', " ");
        assert!(words.contains("busy 75% of the time"), "two lanes, 20 s, 30 s of work: {words}");
        rows[2].result.finished_at = None;
        let work = Work::of_frame(&frame(rows)).unwrap();
        let words = texts(&timeline("sweep", &work).unwrap()).replace('\n', " ");
        assert!(words.contains("2 folds") && words.contains("Of 1 more folds it is not known"), "{words}");
    }

    #[test]
    fn a_timeline_of_many_methods_still_says_which_colour_is_which() {
        let work = |at: usize| Work {
            worker: "w1".to_owned(),
            kind: format!("GCN-{at}"),
            seconds: 10.0 + at as f64,
            finished_at: None,
        };
        let work: Vec<Work> = (1..=9).map(work).collect();
        let words = texts(&timeline("sweep", &work).unwrap());
        for wanted in ["GCN-9", "GCN-3", "2 more methods"] {
            assert!(words.lines().any(|line| line == wanted), "{wanted}: {words}");
        }
        assert!(
            !words.lines().any(|line| line == "GCN-2"),
            "those with the least work share a colour: {words}"
        );
    }
}
