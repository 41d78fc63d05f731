//! Requirements of figures: what must be said in them, files of the promised kind, and text in every PNG.

use togl_sweeps::TrialConfig;
use togl_sweeps::result::{EpochRecord, Metrics};
use togl_sweeps::spec::{Metric, TableSpec};
use togl_sweeps::trial::Backbone;

use super::*;
use crate::curves::{CurveGroup, CurveGroups};
use crate::frame::{FoldFrame, FoldRow};
use crate::plan::Plan;
use crate::spread::Spread;
use crate::table::{Table, TableRow};
use crate::test_folds::{fold, folds, frame, trial};

fn depths() -> FoldFrame {
    let mut rows: Vec<FoldRow> = Vec::new();
    for (at, (dataset, depth)) in
        [("DD", 1), ("DD", 3), ("ENZYMES", 1), ("ENZYMES", 3)].into_iter().enumerate()
    {
        let gcn = trial(dataset, Backbone::Gcn, depth);
        let togl = TrialConfig { togl: true, ..gcn.clone() };
        rows.extend(folds(2 * at as u64, &gcn, &[0.5, 0.52, 0.6]));
        rows.extend(folds(2 * at as u64 + 1, &togl, &[0.7, 0.72, 0.74]));
    }
    frame(rows)
}

fn families(frame: &FoldFrame, setting: &str) -> Result<Table> {
    family_table(frame, &Plan::of_frame("figure", frame).unwrap(), setting, Metric::TestAccuracy)
}

pub(super) fn texts(figure: &Figure) -> String {
    let svg = figure.svg();
    let lines = svg.lines().filter(|line| !line.trim_start().starts_with('<'));
    lines.map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn accuracy_against_depth_has_title_axes_units_legend_and_the_meaning_of_bars() {
    let table = families(&depths(), "depth").unwrap();
    let figure = against(&table.with_spread(Spread::StandardError), "depth").unwrap();
    let texts = texts(&figure);
    for wanted in [
        "Test accuracy against depth",
        "depth (graph layers)",
        "Test accuracy (%)",
        "bars: ± standard error of the mean",
        "DD",
        "ENZYMES",
        "GCN",
        "GCN-TOGL",
    ] {
        assert!(texts.contains(wanted), "{wanted} is not in\n{texts}");
    }
    assert!(figure.svg().contains("<title>Test accuracy against depth</title>"));
}

#[test]
fn points_of_incomplete_cells_are_counted_below_the_title() {
    let (shallow, deep) = (trial("DD", Backbone::Gcn, 2), trial("DD", Backbone::Gcn, 3));
    let frame = frame(folds(0, &shallow, &[0.5, 0.6]).into_iter().chain(folds(1, &deep, &[0.5])));
    let plan = crate::test_folds::plan(&[(&shallow, 2), (&deep, 2)]);
    let table = family_table(&frame, &plan, "depth", Metric::TestAccuracy).unwrap();
    let texts = texts(&against(&table, "depth").unwrap());
    assert!(texts.replace('\n', " ").contains("1 point rests on fewer folds than planned."), "{texts}");
}

#[test]
fn a_setting_that_the_table_does_not_have_is_refused() {
    let table = families(&depths(), "depth").unwrap();
    let error = against(&table, "hidden_dim").unwrap_err();
    insta::assert_snapshot!(error, @"no setting `hidden_dim`; the table's rows or columns must have it; they have dataset, depth, method");
}

#[test]
fn the_place_of_togl_is_drawn_on_an_axis_of_layers() {
    let at = |place: u32| TrialConfig {
        togl: true,
        togl_position: togl_sweeps::trial::Position::After(place),
        ..trial("DD", Backbone::Gcn, 4)
    };
    let rows = (1..=4).flat_map(|place| folds(u64::from(place), &at(place), &[0.5, 0.6]));
    let table = families(&frame(rows), "togl_position").unwrap();
    let texts = texts(&against(&table, "togl_position").unwrap());
    assert!(texts.contains("graph layers before TOGL") && texts.contains("GCN-TOGL"), "{texts}");
}

#[test]
fn fractions_and_learning_rates_have_a_tick_at_every_value() {
    let of = |setting: &str, trials: Vec<TrialConfig>| {
        let rows = (0..).zip(&trials).flat_map(|(position, trial)| folds(position, trial, &[0.5, 0.6]));
        texts(&against(&families(&frame(rows), setting).unwrap(), setting).unwrap())
    };
    let base = trial("DD", Backbone::Gcn, 4);
    let dropout = |dropout_p| TrialConfig { dropout_p, ..base.clone() };
    let drawn = of("dropout_p", [0.0, 0.1, 0.5].map(dropout).to_vec());
    for tick in ["0.0", "0.1", "0.5"] {
        assert!(drawn.lines().any(|line| line == tick), "{tick}: {drawn}");
    }
    let rate = |lr| TrialConfig { lr, ..base.clone() };
    let drawn = of("lr", [0.0001, 0.001, 0.1].map(rate).to_vec());
    for text in ["0.0001", "0.001", "0.1", "lr (logarithmic)"] {
        assert!(drawn.lines().any(|line| line == text), "{text}: {drawn}");
    }
}

#[test]
fn an_axis_along_which_nothing_changes_is_refused_or_says_so() {
    let base = trial("DD", Backbone::Gcn, 4);
    let rates = [0.1, 0.01].map(|lr| TrialConfig { lr, ..base.clone() });
    let rows = (0..).zip(&rates).flat_map(|(position, trial)| folds(position, trial, &[0.5, 0.6]));
    let frame = frame(rows);
    let error = against(&families(&frame, "depth").unwrap(), "depth").unwrap_err();
    insta::assert_snapshot!(error, @"`depth` is 4 in all of these trials, so there is nothing to draw against it; what changes is `lr`");
    let block = togl_sweeps::spec::FigureSpec {
        title: String::new(),
        x: "depth".to_owned(),
        metric: Metric::TestAccuracy,
        lines: vec!["lr".to_owned()],
        panels: None,
    };
    let plan = Plan::of_frame("figure", &frame).unwrap();
    let words = texts(&of_block(&frame, &plan, &block, None).unwrap()).replace('\n', " ");
    assert!(
        words.contains("All of these trials have depth 4."),
        "a sweep file may still ask for it: {words}"
    );
}

#[test]
fn a_point_of_one_fold_says_why_it_has_no_bar() {
    let rows = [(0, 2, 0.5), (1, 3, 0.6)]
        .map(|(at, depth, value)| fold(at, &trial("DD", Backbone::Gcn, depth), 0, value));
    let drawn = texts(&against(&families(&frame(rows), "depth").unwrap(), "depth").unwrap());
    assert!(drawn.replace('\n', " ").contains("2 points are one fold each and have no bar."), "{drawn}");
}

#[test]
fn a_figure_without_values_names_what_is_missing() {
    insta::assert_snapshot!(timeline("saved folds", &[]).unwrap_err(), @"the timeline of saved folds has nothing to show: no fold has a value of `seconds`");
}

#[test]
fn a_figure_of_too_many_lines_is_refused() {
    let trials = (1..=22).map(|width| TrialConfig { hidden_dim: width, ..trial("DD", Backbone::Gcn, 4) });
    let rows = (0..).zip(trials).map(|(position, trial)| fold(position, &trial, 0, 0.5));
    let deeper = fold(99, &trial("DD", Backbone::Gcn, 5), 0, 0.5);
    let table = families(&frame(rows.chain([deeper])), "depth").unwrap();
    let error = against(&table, "depth").unwrap_err();
    insta::assert_snapshot!(error, @"the figure would have 23 lines, but at most 21 can be told apart; choose fewer rows, or a layout");
}

#[test]
fn learning_curves_show_training_and_validation_of_every_fold() {
    let epoch = |epoch: u32, by: f64| {
        let metrics = Metrics { loss: by / f64::from(epoch + 1), accuracy: 0.5 };
        EpochRecord { epoch, lr: 1e-3, train: metrics, validation: metrics }
    };
    let curve = |by: f64, epochs: u32| Curve {
        label: "split 0".to_owned(),
        history: (0..epochs).map(|at| epoch(at, by)).collect(),
        scale: togl_sweeps::Scale::SHARE,
    };
    let figure = learning_curves("GCN-4 on DD", &[curve(1.0, 5), curve(1.2, 8)]).unwrap();
    let texts = texts(&figure);
    assert!(
        ["epoch", "training", "validation", "Loss", "accuracy (%)"].iter().all(|text| texts.contains(text))
    );
    assert!(matches!(learning_curves("x", &[]).unwrap_err(), Error::Empty { .. }));
}

#[test]
fn the_heat_map_has_a_square_per_split_and_leaves_unfinished_ones_empty() {
    let gcn = trial("DD", Backbone::Gcn, 4);
    let frame = frame([fold(0, &gcn, 0, 0.5), fold(0, &gcn, 2, 0.75)]);
    let plan = crate::test_folds::plan(&[(&gcn, 3)]);
    let table = Table::make(&frame, &TableSpec::default(), &plan).unwrap();
    let texts = texts(&fold_heat_maps(&table).unwrap()[0]);
    assert!(texts.contains("GCN-4 · DD") && texts.contains("75.0") && texts.contains("split 0"), "{texts}");
}

#[test]
fn the_scale_of_a_narrow_heat_map_with_long_names_is_inside_the_picture() {
    let long = TrialConfig { hidden_dim: 123, ..trial(&"D".repeat(60), Backbone::Gcn, 4) };
    let table = families(&frame(folds(0, &long, &[0.5])), "hidden_dim").unwrap();
    let svg = fold_heat_maps(&table).unwrap()[0].svg().to_owned();
    let number = |text: &str, key: &str| -> f64 {
        text.split(key).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let width = number(&svg, "<svg width=\"");
    let last = svg.split("<text ").filter(|text| text.contains('+')).last().unwrap();
    assert!(number(last, "x=\"") + 40.0 <= width, "{last} in a picture of width {width}");
}

#[test]
fn a_heat_map_of_many_lines_is_several_figures_with_one_scale() {
    let trials = (1..=130).map(|width| TrialConfig { hidden_dim: width, ..trial("DD", Backbone::Gcn, 4) });
    let rows = (0..).zip(trials).flat_map(|(position, trial)| folds(position, &trial, &[0.5, 0.6]));
    let table = families(&frame(rows), "hidden_dim").unwrap();
    let maps = fold_heat_maps(&table).unwrap();
    let titles: Vec<&str> = maps.iter().map(Figure::title).collect();
    assert_eq!(titles, ["Folds of figure (1 of 3)", "Folds of figure (2 of 3)", "Folds of figure (3 of 3)"]);
    let lines = |map: &Figure| texts(map).lines().filter(|line| line.contains(" · ")).count();
    assert_eq!(maps.iter().map(lines).collect::<Vec<_>>(), [60, 60, 10]);
    assert!(maps.iter().all(|map| texts(map).contains("+5.0")));
}

#[test]
fn a_ranking_needs_complete_data_sets_and_says_which_were_left_out() {
    let mut rows = Vec::new();
    let models = [(Backbone::Gcn, 0.5), (Backbone::Gin, 0.6), (Backbone::Gat, 0.7)];
    for (at, dataset) in ["A", "B", "C", "D"].into_iter().enumerate() {
        for (place, (model, accuracy)) in models.into_iter().enumerate() {
            let missing = dataset == "D" && model == Backbone::Gat;
            let position = (place * 4 + at) as u64;
            rows.extend((!missing).then(|| fold(position, &trial(dataset, model, 4), 0, accuracy)));
        }
    }
    let frame = frame(rows);
    let table =
        Table::make(&frame, &TableSpec::default(), &Plan::of_frame("ranks", &frame).unwrap()).unwrap();
    let ranking = ranking(&table).unwrap();
    assert_eq!(
        (ranking.friedman.ranks.clone(), ranking.left_out.clone()),
        (vec![3.0, 2.0, 1.0], vec!["D".to_owned()])
    );
    let texts = texts(&critical_difference(&ranking, 0.05).unwrap());
    assert!(texts.contains("GAT-4  (1.00)") && texts.contains("CD = 1.91"), "{texts}");
    let one = Table {
        columns: table.columns[3..].to_vec(),
        rows: table
            .rows
            .iter()
            .map(|row| TableRow { cells: row.cells[3..].to_vec(), ..row.clone() })
            .collect(),
        ..table.clone()
    };
    let said = super::ranking(&one).unwrap_err().to_string();
    assert!(said.contains("not everything has finished there: D; finish these"), "{said}");
    let few = Table { rows: table.rows[..2].to_vec(), ..table };
    assert!(matches!(super::ranking(&few).unwrap_err(), Error::Refused(_)));
}

#[test]
fn a_png_has_the_size_of_the_drawing_and_ink_where_the_title_is() {
    let with_title = |title: &str| {
        let figure = Figure::draw(title, "", (200, 50), |area| {
            write(area, title, (10, 25), HEADING, &BLACK, Side::Left)
        });
        figure.unwrap().without_heading().png().unwrap()
    };
    let png = with_title("Accuracy");
    assert_eq!(&png[..4], b"\x89PNG");
    assert_eq!(&png[16..24], &[0, 0, 1, 144, 0, 0, 0, 100], "twice 200 × 50");
    assert_ne!(png, with_title(" "), "text needs no font of the machine");
}

#[test]
fn a_picture_is_written_as_its_name_promises() {
    let folder = tempfile::tempdir().unwrap();
    let figure = Figure::draw("x", "", (20, 20), |_| Ok(())).unwrap();
    let svg = figure.write(&folder.path().join("x.svg")).unwrap();
    assert_eq!(std::fs::read_to_string(svg).unwrap(), figure.svg());
    assert!(
        std::fs::read(figure.write(&folder.path().join("x.PNG")).unwrap()).unwrap().starts_with(b"\x89PNG")
    );
    let pdf = std::fs::read(figure.write(&folder.path().join("x.pdf")).unwrap()).unwrap();
    assert!(pdf.starts_with(b"%PDF-1.4") && pdf.ends_with(b"%%EOF\n"));
    let kinds = String::from_utf8_lossy(&pdf);
    for kind in ["/Type /Catalog ", "/Type /Pages ", "/Type /Page "] {
        assert!(kinds.contains(kind), "readers look for {kind}");
    }
    let error = figure.write(&folder.path().join("x.jpg")).unwrap_err();
    assert!(error.to_string().ends_with("x.jpg`; use .svg, .png or .pdf"), "{error}");
}

#[test]
fn a_figure_can_do_without_its_heading_which_is_then_the_caption_of_a_paper() {
    let table = families(&depths(), "depth").unwrap();
    let figure = against(&table, "depth").unwrap();
    let bare = figure.clone().without_heading();
    assert!(
        !texts(&bare).contains("Test accuracy against depth")
            && texts(&bare).contains("depth (graph layers)")
    );
    assert!(!texts(&bare).contains("sample standard deviation"));
    let caption = bare.caption();
    assert!(
        caption.starts_with("Test accuracy against depth. Test accuracy of the best checkpoint: mean"),
        "{caption}"
    );
    let height = |figure: &Figure| u32::from_be_bytes(figure.png().unwrap()[20..24].try_into().unwrap());
    assert!(height(&bare) < height(&figure));
}

#[test]
fn a_figure_block_says_what_is_along_the_axis_what_makes_a_line_and_what_a_panel() {
    let spec = togl_sweeps::spec::FigureSpec {
        title: "Deeper is not better".to_owned(),
        x: "depth".to_owned(),
        metric: Metric::ValidationAccuracy,
        lines: vec!["togl".to_owned()],
        panels: Some("dataset".to_owned()),
    };
    let frame = depths();
    let plan = Plan::of_frame("figure", &frame).unwrap();
    let texts = texts(&of_block(&frame, &plan, &spec, None).unwrap());
    for wanted in ["Deeper is not better", "togl true", "togl false", "ENZYMES", "Validation accuracy (%)"] {
        assert!(texts.contains(wanted), "{wanted} is not in\n{texts}");
    }
    let by_word = togl_sweeps::spec::FigureSpec {
        x: "dataset".to_owned(),
        panels: Some("depth".to_owned()),
        lines: vec!["method".to_owned()],
        ..spec
    };
    let texts = self::texts(&of_block(&frame, &plan, &by_word, None).unwrap());
    for wanted in ["depth 1", "depth 3", "DD", "ENZYMES", "GCN-TOGL"] {
        assert!(texts.contains(wanted), "{wanted} is not in\n{texts}");
    }
}

#[test]
fn curves_of_several_trials_have_a_line_each_with_a_band() {
    let history = |at: f64| {
        let metrics = Metrics { loss: at, accuracy: at };
        let epoch = |epoch| EpochRecord { epoch, lr: 1e-3, train: metrics, validation: metrics };
        vec![epoch(0), epoch(1)]
    };
    let group = |dataset: &str, label: &str, at: f64| CurveGroup {
        dataset: dataset.to_owned(),
        label: label.to_owned(),
        histories: vec![history(at), history(at + 0.1)],
        scale: togl_sweeps::Scale::SHARE,
    };
    let groups = vec![group("DD", "GCN-4", 0.2), group("DD", "GIN-4", 0.5), group("MNIST", "GCN-4", 0.3)];
    let mixed = CurveGroups { groups: groups.clone(), mixed: vec!["lr".to_owned()] };
    let figure = method_curves("three cells", &CurveGroups { groups, mixed: Vec::new() }).unwrap();
    let words = texts(&figure).replace('\n', " ");
    for wanted in [
        "DD: validation loss",
        "DD: validation accuracy",
        "MNIST: validation loss",
        "GCN-4",
        "GIN-4",
        "one trial",
    ] {
        assert!(words.contains(wanted), "{wanted} is not in\n{words}");
    }
    assert_eq!(figure.svg().matches("<polygon").count(), 6, "a band for each line of each panel");
    let words = texts(&method_curves("three cells", &mixed).unwrap()).replace('\n', " ");
    assert!(words.contains("all trials of a method, which differ in lr"), "{words}");
    let none = CurveGroups { groups: Vec::new(), mixed: Vec::new() };
    assert!(matches!(method_curves("x", &none).unwrap_err(), Error::Empty { .. }));
}
