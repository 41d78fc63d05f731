//! The table of everything that can be asked of the page: from it come the router and the OpenAPI document, so that neither
//! can say what the other does not. Forms of answers are written beside it in few words; a test holds real answers
//! against them.

use serde_json::{Map, Value, json};

/// Something that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Trades a code for a session.
    SignIn,
    /// Who one is.
    Me,
    /// This document.
    Document,
    /// Events of one tab.
    Events,
    /// All sweeps and workers.
    Overview,
    /// One sweep.
    Sweep,
    /// Its table.
    Table,
    /// The same as text.
    TableText,
    /// Its folds.
    Folds,
    /// Its failures.
    Failures,
    /// Learning curves as SVG.
    Curves,
    /// The same as numbers.
    CurvePoints,
    /// What each worker trained, as SVG.
    Timeline,
    /// Accuracy against a setting as SVG.
    Against,
    /// The same as numbers.
    AgainstPoints,
    /// Its trials.
    Trials,
    /// Two of them.
    Compare,
    /// What people did to it.
    ActsOfSweep,
    /// What people did.
    Acts,
    /// One fold.
    Fold,
    /// One worker.
    Worker,
    /// Does something with a sweep.
    SteerSweep,
    /// Does something with a worker.
    SteerWorker,
}

/// What goes in and out of a call.
pub struct Route {
    /// Which one.
    pub call: Call,
    /// Where, as OpenAPI and axum write it.
    pub path: &'static str,
    /// In a few words.
    pub summary: &'static str,
    /// Parameters in the query: name, form, what it means.
    pub query: &'static [(&'static str, &'static str, &'static str)],
    /// Form of the body, for calls that change something.
    pub body: Option<&'static str>,
    /// Kind of the answer, and its form if it is JSON.
    pub answer: (&'static str, &'static str),
}

const JSON: &str = "application/json";
const SVG: &str = "image/svg+xml";

const fn get(call: Call, path: &'static str, summary: &'static str, form: &'static str) -> Route {
    Route { call, path, summary, query: &[], body: None, answer: (JSON, form) }
}

const FOLDS: &[(&str, &str, &str)] = &[
    ("state", "state", "only folds in this state"),
    ("class", "s", "only folds that failed like this"),
    ("worker", "s", "only folds that this worker has or had last"),
    ("trial", "s", "only folds of trials whose id begins like this"),
    ("from", "u", "leave out so many before the first"),
    ("limit", "limit", "so many at the most; 200 unless told otherwise"),
];

const TABLE: &[(&str, &str, &str)] = &[
    (
        "rows",
        "s",
        "settings that make rows, with commas between; as the sweep file says unless given, as the next three",
    ),
    ("columns", "s", "the setting that makes columns"),
    ("spread", "spread", "what ± means"),
    ("bold", "bold", "what stands out"),
];

/// Everything that can be asked.
pub const ROUTES: &[Route] = &[
    Route {
        body: Some("SignIn"),
        ..get(Call::SignIn, "/api/v1/session", "Trade the code of a link for a session", "Me")
    },
    get(Call::Me, "/api/v1/me", "What one is connected to and what one may do", "Me"),
    get(Call::Document, "/api/v1/openapi.json", "This document", "Any"),
    Route {
        query: &[("sweep", "s", "tell of this sweep; otherwise of all in short")],
        answer: ("text/event-stream", ""),
        ..get(Call::Events, "/api/v1/events", "What changes, as server-sent events", "")
    },
    get(Call::Overview, "/api/v1/overview", "All sweeps and workers", "Overview"),
    get(Call::Sweep, "/api/v1/sweeps/{name}", "One sweep as it is now", "SweepNow"),
    Route {
        query: TABLE,
        ..get(Call::Table, "/api/v1/sweeps/{name}/table", "Its table as far as it is", "Table")
    },
    Route {
        query: &[
            TABLE[0],
            TABLE[1],
            TABLE[2],
            TABLE[3],
            ("form", "form", "how it is written; Markdown unless told otherwise"),
        ],
        answer: ("text/plain", ""),
        ..get(Call::TableText, "/api/v1/sweeps/{name}/table/text", "The same as `togl table` prints it", "")
    },
    Route {
        query: FOLDS,
        ..get(Call::Folds, "/api/v1/sweeps/{name}/folds", "Its folds, a page at a time", "Folds")
    },
    get(Call::Failures, "/api/v1/sweeps/{name}/failures", "Why folds failed, grouped", "Failures"),
    Route { answer: (SVG, ""), ..get(Call::Curves, "/api/v1/sweeps/{name}/curves", "Learning curves", "") },
    Route {
        answer: (SVG, ""),
        ..get(Call::Timeline, "/api/v1/sweeps/{name}/timeline", "What each worker trained when", "")
    },
    Route {
        query: &[("x", "s", "the setting along the axis; depth unless told otherwise")],
        answer: (SVG, ""),
        ..get(Call::Against, "/api/v1/sweeps/{name}/against", "Values against a setting", "")
    },
    get(
        Call::CurvePoints,
        "/api/v1/sweeps/{name}/curves/points",
        "The same as numbers, with folds in training",
        "CurvesNow",
    ),
    Route {
        query: &[("x", "s", "the setting along the axis; depth unless told otherwise")],
        ..get(Call::AgainstPoints, "/api/v1/sweeps/{name}/against/points", "The same as numbers", "Against")
    },
    Route {
        query: &[
            ("from", "u", "leave out so many before the first"),
            ("limit", "trials", "so many at the most; 200 unless told otherwise"),
        ],
        ..get(Call::Trials, "/api/v1/sweeps/{name}/trials", "Its trials, from best to worst", "Trials")
    },
    Route {
        query: &[("a", "s", "id of a trial, or its beginning"), ("b", "s", "of the other")],
        ..get(Call::Compare, "/api/v1/sweeps/{name}/compare", "Two trials beside each other", "Comparison")
    },
    get(Call::ActsOfSweep, "/api/v1/sweeps/{name}/acts", "Who did what to it, and why", "Acts"),
    get(Call::Acts, "/api/v1/acts", "Who did what, and why", "Acts"),
    get(Call::Fold, "/api/v1/folds/{trial}/{split}/{seed}", "One fold with its log and curve", "Fold"),
    get(Call::Worker, "/api/v1/workers/{name}", "One worker with what it did lately", "WorkerNow"),
    Route {
        body: Some("SweepAct"),
        ..get(Call::SteerSweep, "/api/v1/sweeps/{name}/steer", "Do something with a sweep", "Done")
    },
    Route {
        body: Some("WorkerAct"),
        ..get(Call::SteerWorker, "/api/v1/workers/{name}/steer", "Do something with a worker", "Done")
    },
];

/// What ± may mean, in the words of `togl table`.
pub const SPREADS: [&str; 9] =
    ["", "std", "population-std", "standard-error", "ci90", "ci95", "ci99", "repeat-std", "iqr"];

/// What may stand out, in the words of `togl table`.
pub const BOLD: [&str; 3] = ["", "best", "not-significantly-worse"];

/// Forms: name, fields. `s` text, `u` whole from 0, `i` whole, `n` number, `b` yes or no, `?` may be null, `[]` list, `{}`
/// values by name, a capital a form of this list.
const FORMS: &[(&str, &str)] = &[
    ("SignIn", "code:s"),
    ("Me", "about:About may_steer:b"),
    ("About", "version:s coordinator:s away_since:s"),
    (
        "Overview",
        "sweeps:[]Sweep sweeps_total:u workers:[]Worker worker_states:{}u slots:u busy:u disputes:[]s",
    ),
    (
        "Sweep",
        "name:s state:s trials:u folds:u pending:u running:u finished:u failed:u priority:i note:s folds_an_hour:?u",
    ),
    ("Worker", "worker:s host:s state:s slots:u devices:[]s busy:u running:[]s version:s note:s"),
    (
        "SweepNow",
        "sweep:Sweep trials_finished:u eta_seconds:u left:[]u standstill:s failed_by_class:{}u in_training:[]InTraining \
         varying:[]s score:ShownScore",
    ),
    ("ShownScore", "name:s factor:n unit:s decimals:u"),
    (
        "InTraining",
        "fold:s title:s attempt:u worker:s epoch:u max_epochs:u validation_accuracy:?n score:ShownScore",
    ),
    (
        "Table",
        "version:u folds:u reading:b problem:s label_headers:[]s above:[][]Span headers:[]s rows:[]Row total:u \
         below:[]s",
    ),
    ("Span", "text:s columns:u"),
    ("Row", "labels:[]s cells:[]Cell"),
    ("Cell", "number:s count:s marks:s best:b n:u planned:u trials:[]s"),
    ("Folds", "total:u from:u next:?u folds:[]FoldLine"),
    (
        "FoldLine",
        "fold:s method:s dataset:s settings:{}s state:s attempts:u worker:s value:?n seconds:?n class:s message:s",
    ),
    ("Failures", "total:u looked_at:u groups:[]FailureGroup"),
    ("FailureGroup", "class:s words:s folds:u example:s message:s workers:{}u hosts:{}u rule:s"),
    (
        "WorkerNow",
        "worker:Worker in_training:[]InTraining looked_at:u finished:u last_hour:u seconds_a_fold:?n failed_by_class:{}u \
         lately:[]Stretch at:u",
    ),
    ("Stretch", "fold:s title:s from:u until:u"),
    ("CurvesNow", "total:u drawn:u score:ShownScore groups:[]CurveLine running:[]ThinCurve"),
    ("CurveLine", "dataset:s label:s mean:[][]n folds:[][][]n"),
    ("ThinCurve", "fold:s title:s points:[][]n"),
    ("Against", "setting:s caption:s score:ShownScore panels:[]AgainstPanel"),
    ("AgainstPanel", "title:s lines:[]AgainstLine"),
    ("AgainstLine", "label:s points:[]AgainstPoint"),
    ("AgainstPoint", "x:s y:n spread:?n n:u planned:u"),
    ("Acts", "acts:[]ActLine"),
    ("ActLine", "at:i by:s act:s about:s detail:s reason:s"),
    ("Trials", "total:u from:u next:?u caption:s score:ShownScore settings:[]s trials:[]Trial"),
    ("Trial", "trial:s method:s values:[]s validation:?n test:?n test_std:?n n:u planned:u"),
    (
        "Comparison",
        "names:[]s settings:[][]s pairs:[]Pair verdict:s score:ShownScore difference:?MeanDifference",
    ),
    ("MeanDifference", "mean:n low:n high:n level:u"),
    ("Pair", "split:u seed:u a:n b:n"),
    (
        "Fold",
        "fold:s title:s reason:s score:ShownScore sweeps:[]s attempts:[]Attempt history:[]Happened log:[]Log settings:{}s \
         result:?Outcome growing:[][]n replicates:[]Again",
    ),
    ("Again", "attempt:u worker:s kind:s test:?n differs:[]s"),
    ("Attempt", "attempt:u worker:s ending:s"),
    ("Happened", "at:i event:s attempt:u worker:s detail:s"),
    ("Log", "attempt:u text:s"),
    (
        "Outcome",
        "score:ShownScore test:n validation:n train:n best_epoch:u epochs:u seconds:n parameters:u confusion:[][]u \
         provenance:[][]s curve:[]CurvePoint",
    ),
    ("CurvePoint", "epoch:u train_loss:n validation_loss:n train:n validation:n"),
    ("Done", "said:s"),
    ("Trouble", "error:s"),
];

fn form(word: &str) -> Value {
    if let Some(inner) = word.strip_prefix("[]") {
        return json!({ "type": "array", "items": form(inner) });
    }
    if let Some(inner) = word.strip_prefix("{}") {
        return json!({ "type": "object", "additionalProperties": form(inner) });
    }
    if let Some(inner) = word.strip_prefix('?') {
        return json!({ "anyOf": [form(inner), { "type": "null" }] });
    }
    match word {
        "s" => json!({ "type": "string" }),
        "u" => json!({ "type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64 }),
        "i" => json!({ "type": "integer" }),
        "n" => json!({ "type": "number" }),
        "b" => json!({ "type": "boolean" }),
        "state" => json!({ "type": "string", "enum": ["pending", "running", "finished", "failed"] }),
        "form" => json!({ "type": "string", "enum": ["markdown", "latex", "csv"] }),
        "spread" => json!({ "type": "string", "enum": SPREADS }),
        "bold" => json!({ "type": "string", "enum": BOLD }),
        "trials" => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 500 }),
        "Any" => json!({ "type": "object" }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

fn object(fields: &str) -> Value {
    let pairs = || fields.split_whitespace().filter_map(|field| field.split_once(':'));
    let properties: Map<String, Value> = pairs().map(|(name, of)| (name.to_owned(), form(of))).collect();
    let required: Vec<&str> = pairs().map(|(name, _)| name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What can be done, each with what it needs.
fn acts(acts: &[(&str, Option<&str>)]) -> Value {
    let act = |(name, more): &(&str, Option<&str>)| {
        let mut fields = object(&format!("act:s {}", more.unwrap_or_default()));
        fields["properties"]["act"] = json!({ "const": name });
        fields["properties"]["reason"] = json!({ "type": "string", "maxLength": 500 });
        if more.is_some() {
            fields["properties"]["priority"] =
                json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX });
        }
        fields
    };
    json!({ "oneOf": acts.iter().map(act).collect::<Vec<_>>() })
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |place: &str, name: &str, required: bool, schema: Value, about: &str| json!({ "name": name, "in": place, "required": required, "schema": schema, "description": about });
    let whole = |name: &str| if matches!(name, "split" | "seed") { form("u") } else { form("s") };
    let mut parameters: Vec<Value> =
        in_path.map(|name| parameter("path", name, true, whole(name), "as other answers spell it")).collect();
    let needed = |name: &str| matches!(name, "a" | "b");
    parameters.extend(
        route.query.iter().map(|(name, of, about)| parameter("query", name, needed(name), form(of), about)),
    );
    let (kind, of) = route.answer;
    let good = if of.is_empty() { form("s") } else { form(of) };
    let mut responses =
        json!({ "200": { "description": "as asked", "content": { kind: { "schema": good } } } });
    let trouble = json!({ "schema": form("Trouble") });
    let troubles = [
        ("304", "nothing is new"),
        ("204", "no more streams for this session"),
        ("400", "the request makes no sense"),
        ("401", "not signed in"),
        ("403", "not from this page"),
        ("404", "there is no such thing"),
        ("405", "who signed in may only look, or the method is not understood"),
        ("409", "cannot be done now"),
        ("413", "the body is too long"),
        ("415", "not JSON"),
        ("421", "not served under this name"),
        ("429", "too many wrong codes"),
        ("503", "the coordinator is away"),
    ];
    for (status, about) in troubles {
        responses[status] = match status {
            "304" | "204" => json!({ "description": about }),
            _ => json!({ "description": about, "content": { JSON: trouble.clone() } }),
        };
    }
    let mut operation = json!({ "summary": route.summary, "parameters": parameters, "responses": responses });
    if let Some(body) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": { JSON: { "schema": form(body) } } });
    }
    operation
}

/// The OpenAPI document.
pub fn document() -> String {
    let mut paths = Map::new();
    for route in ROUTES {
        let method = if route.body.is_some() { "post" } else { "get" };
        paths.insert(route.path.to_owned(), json!({ method: operation(route) }));
    }
    let mut forms: Map<String, Value> =
        FORMS.iter().map(|(name, fields)| ((*name).to_owned(), object(fields))).collect();
    let sweep = [
        ("pause", None),
        ("resume", None),
        ("retry", None),
        ("cancel", None),
        ("archive", None),
        ("prioritise", Some("priority:i")),
    ];
    forms.insert("SweepAct".to_owned(), acts(&sweep));
    forms.insert("WorkerAct".to_owned(), acts(&[("drain", None), ("undrain", None)]));
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "togl",
            "version": "1",
            "description": "What the page of `togl web` is made of. Every call but the sign-in and this document needs the \
                            cookie of a session; calls that change something also need `Origin` and `X-Togl: 1`, and are \
                            not understood where the token may only look. Lists have `total`, and `next` where there is more."
        },
        "paths": paths,
        "components": { "schemas": forms }
    });
    format!("{document:#}\n")
}
