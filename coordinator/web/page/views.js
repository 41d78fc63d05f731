// Overview, workers and one fold. Draws what it is given; every word of others becomes text.
import { ask, confirm, foldLink, h, listing, number, part, scored, svg } from "./dom.js";

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
    if (await confirm(...FOLLOWS[act](sweep))) await context.act(path, { act });
  } }, act[0].toUpperCase() + act.slice(1));
  const first = () => h("button", { "data-key": "prioritise", type: "button", onclick: async () => {
    const input = h("input", { type: "number", value: sweep.priority, id: "priority", step: 1 });
    const asked = h("p", { class: "row" }, h("label", { for: "priority" }, "Priority"), input);
    if (await confirm(`Priority of ${sweep.name}?`, "Sweeps with a higher priority get free slots first.", "Set", asked)) {
      await context.act(path, { act: "prioritise", priority: Math.trunc(Number(input.value)) || 0 });
    }
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
      const { sweeps, workers: all, disputes } = context.latest.overview ?? await ask("/api/v1/overview");
      // What people do is rare; counts come several times a second.
      if (performance.now() - known.at > 5000) [known.acts, known.at] = [(await ask("/api/v1/acts")).acts, performance.now()];
      const { acts } = known;
      const slots = all.reduce((sum, worker) => sum + worker.slots, 0);
      const busy = all.reduce((sum, worker) => sum + worker.running.length, 0);
      return [h("h1", null, "Sweeps"),
        h("p", null, h("a", { href: "/workers" }, `${all.length} ${all.length === 1 ? "worker" : "workers"}`), ` · ${busy} of ${slots} slots busy`),
        disputes.map((data) => h("p", { class: "note", "data-key": `d-${data}` }, `Results disagree about the data set ${data}; `, h("code", null, "togl disputes"), " says how.")),
        all.length === 0 && sweeps.some((sweep) => sweep.pending > 0) ? h("p", { class: "note", "data-key": "none" }, "No worker is connected, and folds wait; ", h("code", null, "togl serve"), " prints how to add one.") : null,
        sweeps.length === 0 ? h("p", { "data-key": "empty" }, "No sweep yet; ", h("code", null, "togl submit FILE"), " sends one.") : null,
        sweeps.map((sweep) => h("section", { class: "panel", "data-key": `s-${sweep.name}` },
          h("div", { class: "row spread" }, h("h2", null, h("a", { href: `/sweeps/${part(sweep.name)}` }, sweep.name)), badge(sweep.state)),
          bar(sweep), sweep.note ? h("p", { class: "note" }, sweep.note) : null,
          sweep.failed > 0 ? h("p", null, h("a", { href: `/sweeps/${part(sweep.name)}/failures` }, `${number.format(sweep.failed)} failed: why?`)) : null,
          steering(sweep, context, ["pause", "resume"]))),
        acts.length === 0 ? null : [h("h2", null, "What was done lately"), actList(acts.slice(0, 10), true)]];
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
        const asks = { drain: [`Drain ${worker.worker}?`, `It finishes ${worker.running.length} folds, gets nothing new and leaves.`, "Drain"],
          undrain: [`Let ${worker.worker} go on?`, "It gets folds again; a quarantine of its host ends.", "Go on"] }[act];
        const button = context.maySteer ? h("button", { type: "button", onclick: async () => {
          if (await confirm(...asks)) await context.act(`/api/v1/workers/${part(worker.worker)}/steer`, { act });
        } }, act === "drain" ? "Drain" : "Go on") : "";
        const devices = [...new Set(worker.devices)].join(", ");
        return [[{ class: "name" }, h("strong", null, worker.worker)], worker.host, badge(worker.state), `${worker.running.length} of ${worker.slots}`, devices,
          worker.version, [{ class: "words" }, [worker.running.slice(0, 40).map((fold) => [foldLink(fold), " "]), worker.note]], button];
      };
      return [h("h1", null, "Workers"),
        all.length === 0 ? h("p", null, "No worker is connected; ", h("code", null, "togl serve"), " prints how to add one.")
          : listing("Workers", ["Worker", "Host", "State", "Busy", "Devices", "Version", "Trains", context.maySteer ? "Steer" : ""].filter((_, at) => at < 7 || context.maySteer),
            all.map((worker) => row(worker).slice(0, context.maySteer ? 8 : 7)), all.map((worker) => worker.worker))];
    },
  };
}

/** Two lines by epoch. */
export function chart(title, points, lines) {
  const [width, height, left, bottom] = [640, 240, 52, 30];
  const values = points.flatMap((point) => lines.map(([, name]) => point[name]));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span = high - low || 1;
  const last = points[points.length - 1].epoch || 1;
  const x = (epoch) => left + (epoch / last) * (width - left - 12);
  const y = (value) => height - bottom - ((value - low) / span) * (height - bottom - 30);
  const path = (name) => points.map((point, at) => `${at ? "L" : "M"}${x(point.epoch).toFixed(1)} ${y(point[name]).toFixed(1)}`).join("");
  const words = lines.map(([label, name]) => `${label} ends at ${points[points.length - 1][name].toPrecision(3)}`).join(", ");
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${words}` },
    svg("path", { class: "axis", d: `M${left} 20V${height - bottom}H${width - 8}` }),
    svg("text", { x: left - 6, y: y(high) + 4, "text-anchor": "end" }, high.toPrecision(3)),
    svg("text", { x: left - 6, y: y(low) + 4, "text-anchor": "end" }, low.toPrecision(3)),
    svg("text", { x: left, y: height - 10 }, "0"), svg("text", { x: width - 12, y: height - 10, "text-anchor": "end" }, `epoch ${last}`),
    svg("text", { x: left + 6, y: 14 }, `${title}: ${lines.map(([label, , style]) => `${label} (${style})`).join(", ")}`),
    lines.map(([, name], at) => [svg("path", { class: at ? "two" : "one", d: path(name) }),
      points.length === 1 ? svg("circle", { class: at ? "two" : "one", cx: x(points[0].epoch), cy: y(points[0][name]), r: at ? 5 : 3 }) : null]));
}

const when = (at) => (at ? new Date(at).toISOString().replace("T", " ").slice(0, 19) : "");

export function fold(key) {
  return {
    kind: "fold", title: `Fold ${key.slice(0, 8)}`, tells: "",
    async draw() {
      const seen = await ask(`/api/v1/folds/${key.split("/").map(part).join("/")}`);
      const { result } = seen;
      return [h("h1", null, seen.title), h("p", { class: "id" }, seen.fold), h("p", { class: "note" }, seen.reason),
        h("p", null, "In ", seen.sweeps.map((name) => [h("a", { href: `/sweeps/${part(name)}` }, name), " "])),
        result ? outcome(result) : null,
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
}

function outcome(result) {
  const facts = [["score", result.score.name], ["test", scored(result.test, result.score)], ["validation", scored(result.validation, result.score)], ["training", scored(result.train, result.score)],
    ["epochs", `${result.epochs} (best ${result.best_epoch})`], ["seconds", result.seconds.toFixed(1)], ["parameters", number.format(result.parameters)], ...result.provenance];
  return [h("h2", null, "Result"), listing("Result", ["What", "Value"], facts),
    result.curve.length > 0 ? [h("h2", null, "Learning curve"),
      chart(result.score.name, result.curve, [["training", "train", "line"], ["validation", "validation", "dashes"]]),
      chart("Loss", result.curve, [["training", "train_loss", "line"], ["validation", "validation_loss", "dashes"]])] : null,
    result.confusion.length > 0 ? [h("h2", null, "Confusion (rows are true classes)"),
      listing("Confusion", ["", ...result.confusion.map((_, at) => [{ class: "number" }, `→ ${at}`])],
        result.confusion.map((row, at) => [`true ${at}`, ...row.map((count) => [{ class: "number" }, count])]))] : null];
}
