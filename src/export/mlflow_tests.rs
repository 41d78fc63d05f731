//! Requirements of the export to MLflow, on a server that is played: it keeps MLflow's limits and its rule that metrics are
//! appended, and can go away at any call.

use std::collections::BTreeMap;

use togl_sweeps::{FoldKey, TrialConfig};

use super::super::tests::row;
use super::*;

/// A server in memory.
#[derive(Default)]
struct Played {
    experiments: Vec<String>,
    runs: BTreeMap<String, Value>,
    /// Calls until it is away.
    until_away: Option<usize>,
}

impl Played {
    fn run(&mut self, body: &Value) -> &mut Value {
        self.runs.get_mut(body["run_id"].as_str().expect("an id")).expect("a known run")
    }

    fn log(&mut self, body: &Value) {
        let list = |name: &str| body[name].as_array().expect("a list").clone();
        let (metrics, parameters, tags) = (list("metrics"), list("params"), list("tags"));
        assert!(metrics.len() <= 1_000 && parameters.len() <= 100 && tags.len() <= 100, "over the limit");
        assert!(metrics.len() + parameters.len() + tags.len() <= 1_000, "over the limit of all together");
        let data = &mut self.run(body)["data"];
        for (name, items) in [("metrics", metrics), ("params", parameters), ("tags", tags)] {
            let known = data[name].as_array_mut().expect("a list");
            for item in items {
                known.retain(|old| name == "metrics" || old["key"] != item["key"]);
                known.push(item);
            }
        }
    }

    /// The finished runs, by fold or trial: all that is said of them but ids.
    fn said(&self) -> BTreeMap<String, Value> {
        let runs = self.runs.values().filter(|run| run["info"]["status"] == "FINISHED");
        let folds = runs.filter_map(|run| {
            let mut data = run["data"].clone();
            let tags = data["tags"].as_array_mut()?;
            tags.retain(|tag| tag["key"] != "mlflow.parentRunId");
            let find = |name: &str| tags.iter().find(|tag| tag["key"] == name);
            let of = find("togl.fold").or(find("togl.trial"))?["value"].as_str()?.to_owned();
            Some((of, data))
        });
        folds.collect()
    }
}

impl Tracking for Played {
    #[expect(clippy::too_many_lines, reason = "a dispatcher: a few lines a call")]
    fn post(&mut self, call: &'static str, body: &Value) -> Result<Value, ServerError> {
        if let Some(left) = &mut self.until_away {
            if *left == 0 {
                return Err(ServerError::Unreachable { url: "played".to_owned(), reason: "away".to_owned() });
            }
            *left -= 1;
        }
        Ok(match call {
            "experiments/search" => match self.experiments.first() {
                Some(_) => json!({"experiments": [{"experiment_id": "0"}]}),
                None => json!({}),
            },
            "experiments/create" => {
                self.experiments.push(said(&body["name"]));
                json!({"experiment_id": "0"})
            }
            "runs/search" => {
                let page: usize = said(&body["page_token"]).parse().unwrap_or(0);
                let runs: Vec<_> = self.runs.values().skip(page * 3).take(3).cloned().collect();
                let more = self.runs.len() > (page + 1) * 3;
                json!({"runs": runs, "next_page_token": if more { (page + 1).to_string() } else { String::new() }})
            }
            "runs/create" => {
                let id = format!("run-{:04}", self.runs.len() + 1);
                let info = json!({"run_id": id, "status": "RUNNING"});
                let data = json!({"metrics": [], "params": [], "tags": body["tags"]});
                self.runs.insert(id, json!({"info": info, "data": data}));
                json!({"run": {"info": info}})
            }
            "runs/log-batch" => {
                self.log(body);
                json!({})
            }
            "runs/update" => {
                self.run(body)["info"]["status"] = body["status"].clone();
                json!({})
            }
            "runs/delete" => {
                self.runs.remove(body["run_id"].as_str().expect("an id"));
                json!({})
            }
            other => panic!("no such call: {other}"),
        })
    }
}

/// Two trials with three folds each, with long curves.
fn rows() -> Vec<FoldRow> {
    let trial = |depth| TrialConfig { depth, ..row().config };
    let fold = |depth: u32, split: u32| {
        let config = trial(depth);
        let mut fold = row();
        fold.fold = FoldKey { trial: config.id(), split, seed: 0 };
        (fold.position, fold.config) = (depth.into(), config);
        fold.result.epochs = 300;
        let line = fold.result.history[0];
        fold.result.history =
            (0..300).map(|epoch| togl_sweeps::result::EpochRecord { epoch, ..line }).collect();
        fold.result.test.accuracy = 0.5 + f64::from(split) / 8.0;
        fold
    };
    (2..4).flat_map(|depth| (0..3).map(move |split| (depth, split))).map(|(d, s)| fold(d, s)).collect()
}

#[test]
fn a_second_export_says_nothing_twice() {
    let mut server = Played::default();
    let sent = export(&mut server, "e", "s", &rows()).expect("exported");
    assert_eq!(sent, Sent { made: 6, ..Sent::default() });
    assert_eq!(server.runs.len(), 8, "six folds and two trials");
    let before = (server.runs.clone(), server.said());
    assert_eq!(export(&mut server, "e", "s", &rows()).expect("again"), Sent { kept: 6, ..Sent::default() });
    assert!(before == (server.runs.clone(), server.said()), "nothing was appended");
    let fold = &server.said()[&rows()[1].fold.to_string()];
    assert_eq!(fold["metrics"].as_array().expect("metrics").len(), 5 * 300 + numbers(&rows()[1]).len());
}

#[test]
fn an_export_that_was_cut_off_at_any_call_is_ended_by_the_next_one() {
    let mut whole = Played::default();
    export(&mut whole, "e", "s", &rows()).expect("exported");
    for calls in 0.. {
        let mut server = Played { until_away: Some(calls), ..Played::default() };
        if export(&mut server, "e", "s", &rows()).is_ok() {
            assert!(calls > 20, "it never went away in the middle");
            return;
        }
        server.until_away = None;
        export(&mut server, "e", "s", &rows()).expect("went on");
        assert!(server.said() == whole.said(), "cut off at call {calls}");
        assert!(
            server.runs.values().all(|run| run["info"]["status"] == "FINISHED"),
            "cut off at call {calls}"
        );
        assert_eq!(server.runs.len(), whole.runs.len(), "cut off at call {calls}");
    }
}

#[test]
fn a_fold_with_another_result_is_made_again_and_one_without_is_left() {
    let mut server = Played::default();
    let mut rows = rows();
    export(&mut server, "e", "s", &rows).expect("exported");
    rows[0].result.test.loss = 0.125;
    rows.pop();
    let sent = export(&mut server, "e", "s", &rows).expect("again");
    assert_eq!(sent, Sent { made: 1, kept: 4, redone: 1, left: 1 });
}

#[test]
fn batches_keep_all_limits_and_lose_nothing() {
    let item = |at: usize| json!({"key": at.to_string()});
    let said = Said {
        metrics: (0..2_345).map(item).collect(),
        parameters: (0..250).map(item).collect(),
        tags: (0..101).map(item).collect(),
    };
    let mut counts = [0; 3];
    for batch in batches(said) {
        let lengths = ["metrics", "params", "tags"].map(|name| batch[name].as_array().expect("a list").len());
        assert!(lengths[0] <= 1_000 && lengths[1] <= 100 && lengths[2] <= 100, "{lengths:?}");
        assert!(lengths.iter().sum::<usize>() <= 1_000, "{lengths:?}");
        counts = std::array::from_fn(|at| counts[at] + lengths[at]);
    }
    assert_eq!(counts, [2_345, 250, 101]);
}
