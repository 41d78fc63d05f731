// Overview, workers and one fold. Draws what it is given; every word of others becomes text.
import { ask, confirm, duration, foldLink, h, left, listing, number, part, scored, svg } from "./dom.js";
import { Figure, numbers } from "./figure.js";

/** Finished, running, failed and waiting folds, drawn and in words. */
export function bar(sweep) {
  const kinds = ["finished", "running", "failed", "pending"];
  const words = kinds.map((kind) => `${number.format(sweep[kind])} ${kind}`).join(", ");
  return [h("div", { class: "bar", role: "img", "aria-label": words }, kinds.map((kind) => h("i", { class: kind, grow: sweep[kind] }))),
    h("p", { class: "dim" }, `${number.format(sweep.finished)} of ${number.format(sweep.folds)} folds finished`,
      sweep.folds ? ` (${Math.floor((100 * sweep.finished) / sweep.folds)} %)` : "", ` · ${number.format(sweep.running)} running · `,
      `${number.format(sweep.failed)} failed · ${number.format(sweep.pending)} waiting · ${number.format(sweep.trials)} trials`)];
}

export const badge = (state) => h("span", { class: `badge ${state}` }, state);

const FOLLOWS = {
  pause: (sweep) => [`Pause ${sweep.name}?`, `No more folds are handed out; the ${sweep.running} that run go on.`, "Pause"],
  resume: (sweep) => [`Resume ${sweep.name}?`, `${number.format(sweep.pending)} waiting folds are handed out again.`, "Resume"],
  retry: (sweep) => [`Retry failed folds of ${sweep.name}?`, `${number.format(sweep.failed)} failed folds are tried again, with a clean slate.`, "Retry"],
  cancel: (sweep) => [`Cancel ${sweep.name}?`, `Stops ${sweep.running} running folds; ${number.format(sweep.finished)} results are kept.`, "Cancel the sweep"],
  archive: (sweep) => [`Archive ${sweep.name}?`, `Stops ${sweep.running} running folds and takes it out of the lists; results are kept.`, "Archive"],
};

/** Buttons for those who may steer. */
export function steering(sweep, context, acts) {
  if (!context.maySteer) return null;
  const does = { pause: sweep.state === "active", resume: sweep.state === "paused", retry: sweep.failed > 0,
    cancel: sweep.state === "active" || sweep.state === "paused", archive: true };
  const path = `/api/v1/sweeps/${part(sweep.name)}/steer`;
  const button = (act) => h("button", { "data-key": act, type: "button", onclick: async () => {
    const agreed = await confirm(...FOLLOWS[act](sweep));
    if (agreed) await context.act(path, { act, ...agreed });
  } }, act[0].toUpperCase() + act.slice(1));
  const first = () => h("button", { "data-key": "prioritise", type: "button", onclick: async () => {
    const input = h("input", { type: "number", value: sweep.priority, id: "priority", step: 1 });
    const asked = h("p", { class: "row" }, h("label", { for: "priority" }, "Priority"), input);
    const agreed = await confirm(`Priority of ${sweep.name}?`, "Sweeps with a higher priority get free slots first.", "Set", asked);
    if (agreed) await context.act(path, { act: "prioritise", priority: Math.trunc(Number(input.value)) || 0, ...agreed });
  } }, "Priority");
  return h("div", { class: "row" }, acts.filter((act) => does[act] ?? true).map((act) => (act === "prioritise" ? first() : button(act))));
}

/** Who did what, the newest first. */
export function actList(acts, withAbout) {
  const row = (line) => [when(line.at), [{ class: "name" }, line.by], line.act, ...(withAbout ? [[{ class: "name" }, line.about]] : []),
    [{ class: "words" }, [line.detail, line.detail && line.reason ? ": " : "", line.reason]]];
  return listing("Who did what", ["When (UTC)", "Who", "Did", ...(withAbout ? ["To"] : []), "What came of it, and why"], acts.map(row));
}

export function overview() {
  const known = { acts: [], at: -Infinity };
  return {
    kind: "overview", title: "Sweeps", tells: "",
    told: (name, _, context) => { if (name === "overview") context.redraw(); },
    async draw(context) {
      const { sweeps, sweeps_total: total, worker_states: states, slots, busy, disputes } = context.latest.overview ?? await ask("/api/v1/overview");
      // What people do is rare; counts come several times a second.
      if (performance.now() - known.at > 5000) [known.acts, known.at] = [(await ask("/api/v1/acts")).acts, performance.now()];
      const { acts } = known;
      const count = Object.values(states).reduce((sum, workers) => sum + workers, 0);
      const hourly = sweeps.filter((sweep) => sweep.folds_an_hour !== null).reduce((sum, sweep) => (sum ?? 0) + sweep.folds_an_hour, null);
      const pace = (sweep) => [sweep.folds_an_hour === null ? null : `${number.format(sweep.folds_an_hour)} folds an hour`,
        sweep.folds_an_hour && sweep.running ? left([1, 1].map(() => Math.round((3600 * (sweep.pending + sweep.running)) / sweep.folds_an_hour))) : null].filter(Boolean).join(" · ");
      return [h("h1", null, "Sweeps"),
        h("p", null, h("a", { href: "/workers" }, `${number.format(count)} ${count === 1 ? "worker" : "workers"}`),
          count ? ` (${Object.entries(states).map(([state, workers]) => `${workers} ${state}`).join(", ")})` : "", ` · ${number.format(busy)} of ${number.format(slots)} slots busy`,
          hourly === null ? "" : ` · ${number.format(hourly)} folds an hour`),
        total > sweeps.length ? h("p", { class: "dim", "data-key": "more" }, `The last ${sweeps.length} of ${number.format(total)} sweeps; `, h("code", null, "togl archive"), " takes old ones out of the list.") : null,
        disputes.map((data) => h("p", { class: "note", "data-key": `d-${data}` }, `Results disagree about the data set ${data}; `, h("code", null, "togl disputes"), " says how.")),
        count === 0 && sweeps.some((sweep) => sweep.pending > 0) ? h("p", { class: "note", "data-key": "none" }, "No worker is connected, and folds wait; ", h("code", null, "togl serve"), " prints how to add one.") : null,
        sweeps.length === 0 ? h("p", { "data-key": "empty" }, "No sweep yet; ", h("code", null, "togl submit FILE"), " sends one.") : null,
        sweeps.map((sweep) => h("section", { class: "panel", "data-key": `s-${sweep.name}` },
          h("div", { class: "row spread" }, h("h2", null, h("a", { href: `/sweeps/${part(sweep.name)}` }, sweep.name)), badge(sweep.state)),
          bar(sweep), pace(sweep) ? h("p", { class: "dim" }, pace(sweep)) : null, sweep.note ? h("p", { class: "note" }, sweep.note) : null,
          sweep.failed > 0 ? h("p", null, h("a", { href: `/sweeps/${part(sweep.name)}/failures` }, `${number.format(sweep.failed)} failed: why?`)) : null,
          steering(sweep, context, ["pause", "resume"]))),
        acts.length === 0 ? null : [h("h2", null, "What was done lately"), actList(acts.slice(0, known.all ? 200 : 10), true),
          acts.length > 10 ? h("button", { type: "button", onclick: () => { known.all = !known.all; context.redraw(); } }, known.all ? "Fewer" : `All ${acts.length}`) : null]];
    },
  };
}

export function workers() {
  return {
    kind: "workers", title: "Workers", tells: "",
    told: (name, _, context) => { if (name === "overview") context.redraw(); },
    async draw(context) {
      const { workers: all } = context.latest.overview ?? await ask("/api/v1/overview");
      const row = (worker) => {
        const act = worker.state === "draining" || worker.state === "quarantined" ? "undrain" : "drain";
        const asks = { drain: [`Drain ${worker.worker}?`, `It finishes ${worker.busy} folds, gets nothing new and leaves.`, "Drain"],
          undrain: [`Let ${worker.worker} go on?`, "It gets folds again; a quarantine of its host ends.", "Go on"] }[act];
        const button = context.maySteer ? h("button", { type: "button", onclick: async () => {
          const agreed = await confirm(...asks);
          if (agreed) await context.act(`/api/v1/workers/${part(worker.worker)}/steer`, { act, ...agreed });
        } }, act === "drain" ? "Drain" : "Go on") : "";
        const devices = [...new Set(worker.devices)].join(", ");
        return [[{ class: "name" }, h("a", { href: `/workers/${part(worker.worker)}` }, worker.worker)], [{ class: "name" }, worker.host], badge(worker.state), `${worker.busy} of ${worker.slots}`, devices,
          worker.version, [{ class: "words" }, [worker.running.slice(0, 40).map((fold) => [foldLink(fold), " "]), worker.note]], button];
      };
      return [h("h1", null, "Workers"),
        all.length === 0 ? h("p", null, "No worker is connected; ", h("code", null, "togl serve"), " prints how to add one.")
          : listing("Workers", ["Worker", "Host", "State", "Busy", "Devices", "Version", "Trains", context.maySteer ? "Steer" : ""].filter((_, at) => at < 7 || context.maySteer),
            all.map((worker) => row(worker).slice(0, context.maySteer ? 8 : 7)), all.map((worker) => worker.worker))];
    },
  };
}

/** The last hour of a worker: a bar for each fold, lane by lane, and in words for who does not see it. */
function stretches(seen) {
  const [width, lane, hour] = [720, 16, 3_600_000];
  const ends = [];
  const placed = seen.lately.map((stretch) => {
    const free = ends.findIndex((end) => end <= stretch.from);
    const at = free < 0 ? ends.length : free;
    ends[at] = stretch.until;
    return { ...stretch, at };
  });
  const lanes = Math.min(32, Math.max(1, ends.length));
  const x = (time) => Math.max(0, width - ((seen.at - time) / hour) * width);
  return h("div", null, svg("svg", { class: "chart hour", preserveAspectRatio: "none", viewBox: `0 0 ${width} ${lanes * lane}`, height: lanes * lane, role: "img", "aria-label": `${seen.last_hour} folds finished in the last hour, ${lanes} at a time` },
    placed.filter((stretch) => stretch.at < lanes).map((stretch) => svg("rect", { class: "stretch", x: x(stretch.from).toFixed(1), y: stretch.at * lane + 2, height: lane - 4, width: Math.max(1, x(stretch.until) - x(stretch.from)).toFixed(1) },
      svg("title", null, `${stretch.title}, ${duration(Math.round((stretch.until - stretch.from) / 1000))}, until ${when(stretch.until)}`))),
  ), h("p", { class: "row spread dim" }, h("span", null, "an hour ago"), h("span", null, "now")));
}

export function worker(name) {
  const known = { at: -Infinity };
  return {
    kind: `worker-${name}`, title: name, tells: "",
    told: (what, _, context) => { if (what === "overview" && performance.now() - known.at > 5000) context.redraw(); },
    async draw(context) {
      const seen = await ask(`/api/v1/workers/${part(name)}`);
      known.at = performance.now();
      const { worker: here } = seen;
      const facts = [["host", here.host], ["version", here.version], ["slots", `${here.busy} of ${here.slots} busy`], ["devices", here.devices.join(", ")],
        ["folds finished", `${number.format(seen.finished)} of ${number.format(seen.looked_at)} that it had and that were looked at`],
        ["in the last hour", `${number.format(seen.last_hour)} folds`], ["seconds a fold", seen.seconds_a_fold === null ? "–" : seen.seconds_a_fold.toFixed(1)]];
      const failed = Object.entries(seen.failed_by_class);
      return [h("div", { class: "row spread" }, h("h1", null, here.worker), badge(here.state)),
        here.note ? h("p", { class: "note" }, `Kept out: ${here.note}`) : null,
        listing("About it", ["What", "Value"], facts.map(([what, value]) => [what, [{ class: "words" }, value]])),
        h("h2", null, "Trains now"), seen.in_training.length === 0 ? h("p", null, "Nothing.") : listing("Folds in training", ["Fold", "What", [{ class: "number" }, "Attempt"], [{ class: "number" }, "Epoch"], [{ class: "number" }, "Validation"]],
          seen.in_training.map((fold) => [foldLink(fold.fold), [{ class: "name" }, fold.title], [{ class: "number" }, fold.attempt], [{ class: "number" }, fold.max_epochs ? `${fold.epoch}/${fold.max_epochs}` : "–"], [{ class: "number" }, scored(fold.validation_accuracy, fold.score)]])),
        h("h2", null, "The last hour"), seen.lately.length === 0 ? h("p", null, "No fold finished.") : [stretches(seen),
          h("details", { "data-key": "lately" }, h("summary", null, "The same as a table"), listing("Folds of the last hour", ["Fold", "What", "Until (UTC)", [{ class: "number" }, "Seconds"]],
            seen.lately.slice(-100).reverse().map((one) => [foldLink(one.fold), [{ class: "name" }, one.title], when(one.until), [{ class: "number" }, ((one.until - one.from) / 1000).toFixed(1)]])))],
        h("h2", null, "Folds that failed here last"), failed.length === 0 ? h("p", null, "None.") : listing("Failures by class", ["Class", [{ class: "number" }, "Folds"]], failed.map(([word, folds]) => [word, [{ class: "number" }, number.format(folds)]]))];
    },
  };
}

const when = (at) => (at ? new Date(at).toISOString().replace("T", " ").slice(0, 19) : "");

export function fold(key) {
  const view = {
    kind: `fold-${key}`, title: `Fold ${key.slice(0, 8)}`, tells: "", leave: () => clearTimeout(view.timer),
    async draw(context) {
      const seen = await ask(`/api/v1/folds/${key.split("/").map(part).join("/")}`);
      const { result } = seen;
      clearTimeout(view.timer);
      // What is not finished is looked at again; an answer that is the same costs nothing on the way.
      if (!result) view.timer = setTimeout(() => context.redraw(), 2000);
      const growing = [{ label: "validation accuracy", points: seen.growing.map(([x, y]) => ({ x, y })) }];
      view.figure ??= new Figure("growing");
      if (seen.growing.length > 0) view.figure.show(growing, ["epoch", `validation ${seen.score.name}`], `Validation ${seen.score.name} so far, ${seen.growing.length} points`);
      return [h("h1", null, seen.title), h("p", { class: "id" }, seen.fold), h("p", { class: "note" }, seen.reason),
        h("p", null, "In ", seen.sweeps.map((name) => [h("a", { href: `/sweeps/${part(name)}` }, name), " "])),
        result ? outcome(result, view) : null,
        seen.growing.length > 0 ? [h("h2", null, "In training"), view.figure.kept, numbers(growing, ["epoch", `validation ${seen.score.name}`])] : null,
        seen.replicates.length === 0 ? null : [h("h2", null, "Further results"), listing("Further results", [[{ class: "number" }, "Attempt"], "Worker", "Kind", [{ class: "number" }, "Test"], "What differs"],
          seen.replicates.map((one) => [[{ class: "number" }, one.attempt], one.worker, one.kind, [{ class: "number" }, scored(one.test, seen.score)], [{ class: "words" }, one.differs.join("; ") || "nothing"]]))],
        h("h2", null, "Attempts"),
        listing("Attempts", [[{ class: "number" }, "Attempt"], "Worker", "Ended"], seen.attempts.map((line) => [[{ class: "number" }, line.attempt], line.worker, line.ending || "–"])),
        h("h2", null, "What its trainers wrote last"),
        seen.log.length === 0 ? h("p", null, "Nothing.") : seen.log.map((log) => [h("p", { class: "dim" }, `Attempt ${log.attempt}`), h("pre", { tabindex: "0" }, log.text)]),
        h("h2", null, "History"),
        listing("History", ["When (UTC)", "What", [{ class: "number" }, "Attempt"], "Worker", "Detail"], seen.history.map((line) => [when(line.at), line.event, [{ class: "number" }, line.attempt || ""], line.worker, [{ class: "words" }, line.detail]])),
        h("h2", null, "Settings"),
        listing("Settings", ["Setting", "Value"], Object.entries(seen.settings))];
    },
  };
  return view;
}

function outcome(result, view) {
  const facts = [["score", result.score.name], ["test", scored(result.test, result.score)], ["validation", scored(result.validation, result.score)], ["training", scored(result.train, result.score)],
    ["epochs", `${result.epochs} (best ${result.best_epoch})`], ["seconds", result.seconds.toFixed(1)], ["parameters", number.format(result.parameters)], ...result.provenance];
  return [h("h2", null, "Result"), listing("Result", ["What", "Value"], facts),
    result.curve.length > 0 ? [h("h2", null, "Learning curve"),
      ...[[result.score.name, "train", "validation"], ["loss", "train_loss", "validation_loss"]].flatMap(([what, ...names]) => {
        const lines = names.map((name, at) => ({ label: at ? "validation" : "training", points: result.curve.map((point) => ({ x: point.epoch, y: point[name] })) }));
        const figure = ((view.figures ??= {})[what] ??= new Figure(`curve-${what}`));
        figure.show(lines, ["epoch", what], `Learning curve: ${what} of training and validation by epoch`);
        return [figure.kept, numbers(lines, ["epoch", what])];
      })] : null,
    result.confusion.length > 0 ? [h("h2", null, "Confusion (rows are true classes)"),
      listing("Confusion", ["", ...result.confusion.map((_, at) => [{ class: "number" }, `→ ${at}`])],
        result.confusion.map((row, at) => [`true ${at}`, ...row.map((count) => [{ class: "number" }, count])]))] : null];
}
