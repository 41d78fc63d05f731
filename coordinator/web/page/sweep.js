// One sweep and its views: table, running folds, list of folds, failures, figures, trials, comparison.
import { ask, counted, foldLink, from, h, inUnit, left, listing, number, part, scored, toast } from "./dom.js";
import { Figure, numbers } from "./figure.js";
import { actList, badge, bar, steering } from "./views.js";
import { parallel } from "./parallel.js";

const TABS = [["table", "Table"], ["running", "Running"], ["folds", "Folds"], ["failures", "Failures"], ["curves", "Curves"],
  ["against", "Against"], ["trials", "Trials"], ["compare", "Compare"], ["timeline", "Timeline"], ["history", "History"]];

const base = (name) => `/api/v1/sweeps/${part(name)}`;

export function sweep(name, tab) {
  const known = TABS.some(([word]) => word === tab) ? tab : "table";
  const view = { kind: `sweep-${name}-${known}`, title: name, tells: name, name, tab: known, wait: 0, due: false, drawn: false, head: false };
  view.told = (what, _, context) => {
    if (what === "trouble") return void context.redraw();
    if (what === "sweep") { view.head = known !== "running"; context.redraw(); }
    // Figures and lists of a large sweep cost something, so they follow more slowly than counts and table.
    if ((what === "table" || (what === "sweep" && known !== "table" && known !== "running")) && !view.due) {
      view.due = true;
      const pause = { table: 100, running: 100 }[known] ?? 3000;
      setTimeout(() => { view.due = false; context.redraw(); }, Math.max(0, view.wait + pause - performance.now()));
    }
  };
  view.draw = (context) => draw(view, context);
  return view;
}

async function draw(view, context) {
  if (context.latest.trouble) throw new Error(context.latest.trouble.error);
  const onlyHead = view.head && view.drawn;
  view.head = false;
  const now = context.latest.sweep ?? await ask(base(view.name));
  const content = onlyHead ? null : await BODIES[view.tab](view, now, context);
  if (!onlyHead) [view.wait, view.drawn] = [performance.now(), true];
  const { sweep: counts } = now;
  return [h("div", { class: "row spread" }, h("h1", null, view.name), badge(counts.state)),
    bar(counts),
    h("p", null, `${number.format(now.trials_finished)} of ${number.format(counts.trials)} trials whole`, left(now.left) ? ` · ${left(now.left)}` : "",
      counts.folds_an_hour === null ? "" : ` · ${number.format(counts.folds_an_hour)} folds an hour`,
      counts.priority ? ` · priority ${counts.priority}` : ""),
    counts.note ? h("p", { class: "note", "data-key": "note" }, counts.note) : null,
    now.standstill ? h("p", { class: "note", "data-key": "still" }, `Nothing runs: ${now.standstill}`) : null,
    steering(counts, context, ["pause", "resume", "retry", "prioritise", "cancel", "archive"]),
    h("nav", { class: "tabs", "aria-label": "Views of the sweep" }, TABS.map(([word, text]) =>
      h("a", { href: `/sweeps/${part(view.name)}/${word}`, "aria-current": word === view.tab ? "page" : false }, text))),
    h("div", { "data-key": `tab-${view.tab}`, "data-leave": onlyHead }, content)];
}

const BODIES = { table, running, folds, failures, curves, against, trials: (view, now) => parallel(view, now), compare, timeline, history: acts };

async function copy(name, form, asked) {
  const answer = await fetch(from(`${base(name)}/table/text?${new URLSearchParams({ ...asked, form })}`));
  if (!answer.ok) return toast("the table cannot be copied now");
  const text = await answer.text();
  try { await navigator.clipboard.writeText(text); toast(`copied as ${form}`); }
  catch {
    const area = h("textarea", { rows: 12, cols: 60, readonly: true, "aria-label": "The table" });
    area.value = text;
    const dialog = h("dialog", null, h("p", null, "Copy with Ctrl-C:"), area, h("form", { method: "dialog" }, h("button", null, "Close")));
    document.body.append(dialog);
    dialog.showModal();
    area.select();
    dialog.addEventListener("close", () => dialog.remove());
  }
}

const SPREADS = ["std", "population-std", "standard-error", "ci90", "ci95", "ci99", "repeat-std", "iqr"];
const CHOICES = ["rows", "columns", "spread", "bold"];

/** What the table shows: in the address, so that it can be kept and sent. */
function choices(asked, now, context) {
  const open = (name, value) => {
    const next = new URLSearchParams(location.search);
    if (value) next.set(name, value); else next.delete(name);
    history.replaceState(null, "", `?${next}`);
    context.redraw();
  };
  const words = ["method", "dataset", ...now.varying.filter((word) => word !== "dataset" && word !== "method")];
  const choice = (name, label, all) => h("label", null, label, h("select", { onchange: (event) => open(name, event.target.value) },
    ["", ...all].map((word) => h("option", { value: word, selected: (asked[name] ?? "") === word }, word || "as the file says"))));
  return h("div", { class: "row", "data-key": "choices" },
    h("label", null, "Rows", h("input", { value: asked.rows ?? "", size: 18, list: "settings", placeholder: "as the file says", onchange: (event) => open("rows", event.target.value.trim()) })),
    h("datalist", { id: "settings" }, words.map((word) => h("option", { value: word }))),
    choice("columns", "Columns", words), choice("spread", "±", SPREADS), choice("bold", "Bold", ["best", "not-significantly-worse"]));
}

async function table(view, now, context) {
  const query = new URLSearchParams(location.search);
  const asked = Object.fromEntries(CHOICES.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  let seen;
  try { seen = await ask(`${base(view.name)}/table?${new URLSearchParams(asked)}`); }
  catch (trouble) {
    if (trouble.status !== 400) throw trouble;
    return [choices(asked, now, context), h("p", { class: "note", "data-key": "wrong" }, trouble.message)];
  }
  const forms = [["markdown", "Markdown"], ["latex", "LaTeX"], ["csv", "CSV"]];
  const copies = h("div", { class: "row" }, h("span", { class: "dim" }, `made of ${counted(seen.folds, "fold")}`, seen.reading ? ", still reading …" : ""),
    forms.map(([form, text]) => h("button", { type: "button", onclick: () => copy(view.name, form, asked) }, `Copy ${text}`)));
  if (seen.problem) return [choices(asked, now, context), h("p", { class: "note" }, seen.problem)];
  const corner = seen.label_headers.length;
  const cell = (value) => h("td", { class: value.best ? "number best" : "number", title: `${value.n} of ${value.planned} folds` },
    value.trials.length === 1 ? h("a", { href: `/sweeps/${part(view.name)}/folds?trial=${value.trials[0]}` }, value.number) : value.number,
    value.count ? ` ${value.count}` : "", value.marks, value.best ? h("span", { role: "img", "aria-label": "best" }, " ▲") : null,
    value.trials.length < 2 ? null : h("details", { class: "behind" }, h("summary", { "aria-label": `${value.trials.length} trials behind it` }, `${value.trials.length} trials`),
      value.trials.map((trial, at) => h("a", { class: "id", href: `/sweeps/${part(view.name)}/folds?trial=${trial}` }, `trial ${at + 1} `))));
  return [choices(asked, now, context), copies, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", null,
    h("thead", null, seen.above.map((line) => h("tr", null, h("td", { colspan: corner }), line.map((span) => h("th", { class: "span", colspan: span.columns, scope: "colgroup" }, span.text)))),
      h("tr", null, seen.label_headers.map((text) => (text ? h("th", { scope: "col" }, text) : h("td", null))), seen.headers.map((text) => h("th", { class: "number", scope: "col" }, text)))),
    h("tbody", null, seen.rows.map((row) => h("tr", { "data-key": row.labels.join("\u0000") },
      row.labels.map((text) => h("th", { scope: "row" }, text)), row.cells.map(cell)))))),
    seen.total > seen.rows.length ? h("p", { class: "note", "data-key": "more" }, `The first ${number.format(seen.rows.length)} of ${number.format(seen.total)} rows; copies have all of them. `,
      "Fewer settings in ", h("code", null, "table: rows"), " of the sweep file make a shorter table.") : null,
    seen.below.map((line) => h("p", { class: "below" }, line))];
}

async function running(view, now) {
  if (now.in_training.length === 0) return [h("p", null, "Nothing is in training.")];
  const more = now.sweep.running - now.in_training.length;
  return [listing("Folds in training", ["Fold", "What", "Worker", [{ class: "number" }, "Attempt"], [{ class: "number" }, "Epoch"], [{ class: "number" }, "Validation"]],
    now.in_training.map((fold) => [foldLink(fold.fold), [{ class: "name" }, fold.title], fold.worker, [{ class: "number" }, fold.attempt],
      [{ class: "number" }, fold.max_epochs ? `${fold.epoch}/${fold.max_epochs}` : "–"], [{ class: "number" }, scored(fold.validation_accuracy, fold.score)]]),
    now.in_training.map((fold) => fold.fold)), more > 0 ? h("p", { class: "dim" }, `and ${number.format(more)} more`) : null];
}

async function folds(view, now, context) {
  const asked = new URLSearchParams(location.search);
  const seen = await ask(`${base(view.name)}/folds?${asked}`);
  const open = (changes) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) if (value) next.set(name, value); else next.delete(name);
    history.replaceState(null, "", `?${next}`);
    context.redraw();
  };
  const choice = (name, label, words) => h("label", null, label, h("select", { onchange: (event) => open({ [name]: event.target.value, from: "" }) },
    ["", ...words].map((word) => h("option", { value: word, selected: (asked.get(name) ?? "") === word }, word || "any"))));
  const typed = (name, label) => h("label", null, label, h("input", { value: asked.get(name) ?? "", size: 14, onchange: (event) => open({ [name]: event.target.value.trim(), from: "" }) }));
  const at = seen.from;
  const pages = h("div", { class: "row", "data-key": "pages" },
    h("span", null, seen.total === 0 ? "no fold is like that" : `${number.format(Math.min(at + 1, seen.total))} to ${number.format(at + seen.folds.length)} of ${number.format(seen.total)}`),
    h("button", { type: "button", disabled: at === 0, onclick: () => open({ from: String(Math.max(0, at - 200)) }) }, "Earlier"),
    h("button", { type: "button", disabled: seen.next === null, onclick: () => open({ from: String(seen.next ?? at) }) }, "Later"),
    h("label", null, "to", h("input", { type: "number", min: 1, max: Math.max(1, seen.total), value: at + 1, onchange: (event) => open({ from: String(Math.max(0, Number(event.target.value) - 1)) }) })));
  const settings = now.varying.filter((word) => word !== "dataset" && word !== "method");
  return [h("div", { class: "row", "data-key": "filters" }, choice("state", "State", ["pending", "running", "finished", "failed"]),
    choice("class", "Failure", Object.keys(now.failed_by_class)), typed("worker", "Worker"), typed("trial", "Trial")), pages,
    seen.folds.length === 0 ? null : listing("Folds", ["Fold", "Method", "Data set", ...settings, "State", [{ class: "number" }, "Value"], [{ class: "number" }, "Seconds"], "Worker", [{ class: "number" }, "Attempts"], "Failure"],
      seen.folds.map((fold) => [foldLink(fold.fold), [{ class: "name" }, fold.method], fold.dataset, ...settings.map((word) => fold.settings[word] ?? ""), badge(fold.state),
        [{ class: "number" }, scored(fold.value, now.score)], [{ class: "number" }, fold.seconds === null ? "" : fold.seconds.toFixed(1)], fold.worker,
        [{ class: "number" }, fold.attempts], [{ class: fold.class ? "words" : "" }, fold.class ? `${fold.class}: ${fold.message}` : ""]]), seen.folds.map((fold) => fold.fold))];
}

async function failures(view, now, context) {
  const seen = await ask(`${base(view.name)}/failures`);
  if (seen.total === 0) return [h("p", null, "No fold failed.")];
  return [seen.looked_at < seen.total ? h("p", { class: "dim" }, `${number.format(seen.looked_at)} of ${number.format(seen.total)} were looked at`) : null,
    steering(now.sweep, context, ["retry"]),
    listing("Failures", ["Class", [{ class: "number" }, "Folds"], "What was said", "Hosts", "What the rules did", "An example"], seen.groups.map((group) => [
      h("a", { href: `/sweeps/${part(view.name)}/folds?state=failed&class=${part(group.class)}` }, group.class), [{ class: "number" }, number.format(group.folds)],
      [{ class: "words" }, [group.words, example(group)]], [{ class: "words" }, Object.entries(group.hosts).map(([host, count]) => `${host} ${count}`).join(", ")],
      [{ class: "words" }, `${group.rule}; a retry begins with a clean slate`], foldLink(group.example)]),
      seen.groups.map((group) => `${group.class} ${group.words}`))];
}

/** One of them: all of what it said and the end of its log, which is asked for when somebody opens it. */
function example(group) {
  const log = h("div", { "data-key": "log", "data-keep": "" });
  return h("details", { "data-key": "example", ontoggle: async (event) => {
    const place = event.target.querySelector("[data-key=log]");
    if (!event.target.open || place.childNodes.length > 0) return;
    try {
      const seen = await ask(`/api/v1/folds/${group.example.split("/").map(part).join("/")}`);
      place.replaceChildren(...(seen.log.length === 0 ? [h("p", null, "Its trainers wrote nothing.")] : seen.log.slice(0, 1).map((one) => h("pre", { tabindex: "0" }, one.text.slice(-4000)))));
    } catch (trouble) { place.replaceChildren(h("p", null, trouble.message)); }
  } }, h("summary", null, "message and log of an example"), h("p", null, group.message), log);
}

async function acts(view) {
  const seen = await ask(`${base(view.name)}/acts`);
  return [seen.acts.length === 0 ? h("p", null, "Nobody has steered this sweep.") : actList(seen.acts, false)];
}

/** A picture of our own, made by what `togl plot` draws with; the last one stays until the next is there. */
async function picture(path, words) {
  const answer = await fetch(from(path));
  if (!answer.ok) return h("p", { class: "note" }, (await answer.json().catch(() => ({}))).error ?? "there is no figure now");
  const text = await answer.text();
  return h("div", { class: "figure" }, h("img", { alt: words, src: `data:image/svg+xml,${encodeURIComponent(text)}` }));
}

const points = (curve) => curve.map(([x, y]) => ({ x, y }));

async function curves(view) {
  const seen = await ask(`${base(view.name)}/curves/points`);
  const names = ["epoch", `validation ${seen.score.name}`];
  const sets = [...new Set(seen.groups.map((group) => group.dataset))];
  const drawn = sets.slice(0, 12).map((dataset) => {
    const groups = seen.groups.filter((group) => group.dataset === dataset);
    // Means lie above the folds that they are of.
    const lines = [...groups.flatMap((group, style) => group.folds.map((fold) => ({ label: `a fold of ${group.label}`, points: points(fold), thin: true, style }))),
      ...groups.map((group, style) => ({ label: group.label, points: points(group.mean), style }))];
    const figure = ((view.figures ??= {})[dataset] ??= new Figure(`curves-${dataset}`));
    figure.show(lines, names, `Learning curves on ${dataset}: ${names[1]} by epoch, the mean of each method thick, single folds thin`);
    return [h("h2", { "data-key": `set-${dataset}` }, dataset), figure.kept, numbers(lines, names)];
  });
  const growing = seen.running.map((fold) => ({ label: fold.title || fold.fold, points: points(fold.points) }));
  view.growing ??= new Figure("growing");
  if (growing.length > 0) view.growing.show(growing.slice(0, 8), names, `Folds in training: ${names[1]} so far`);
  return [h("p", { class: "dim" }, `${number.format(seen.drawn)} of ${counted(seen.total, "finished fold")} drawn, taken evenly; means are over those that are drawn. `,
    h("a", { href: `${base(view.name)}/curves`, download: `${view.name}-curves.svg` }, "The figure for printing")),
    growing.length > 0 ? [h("h2", { "data-key": "set-growing" }, `In training (${Math.min(8, growing.length)} of ${growing.length})`), view.growing.kept, numbers(growing, names)] : null,
    drawn.length > 0 ? drawn : h("p", null, "No finished fold has a learning curve yet.")];
}

async function timeline(view) {
  return [await picture(`${base(view.name)}/timeline`, `What each worker trained of ${view.name}, and when`)];
}

async function against(view, now, context) {
  const words = now.varying.filter((word) => word !== "dataset" && word !== "model");
  if (words.length === 0) return [h("p", null, "No setting varies in this sweep.")];
  const x = new URLSearchParams(location.search).get("x") ?? (words.includes("depth") ? "depth" : words[0]);
  const choose = (event) => { history.replaceState(null, "", `?x=${part(event.target.value)}`); context.redraw(); };
  return [h("div", { class: "row" }, h("label", null, "Along", h("select", { onchange: choose }, words.map((word) => h("option", { value: word, selected: word === x }, word))))),
    ...await panels(view, x)];
}

async function panels(view, x) {
  const seen = await ask(`${base(view.name)}/against/points?x=${part(x)}`);
  const names = [x, inUnit(seen.score.name, seen.score)];
  return [h("p", { class: "dim" }, seen.caption, " ", h("a", { href: `${base(view.name)}/against?x=${part(x)}`, download: `${view.name}-${x}.svg` }, "The figure for printing")),
    seen.panels.slice(0, 12).map((panel) => {
      const lines = panel.lines.map((line) => ({ label: line.label, points: line.points.map((bar) => ({ x: bar.x, y: bar.y, spread: bar.spread, n: bar.n < bar.planned ? `${bar.n}/${bar.planned}` : bar.n })) }));
      const key = `against-${x}-${panel.title}`;
      const figure = ((view.figures ??= {})[key] ??= new Figure(key));
      figure.show(lines, names, `${seen.score.name} against ${x} on ${panel.title}, one line a method, with error bars`);
      return [h("h2", { "data-key": `panel-${panel.title}` }, panel.title), figure.kept, numbers(lines, names)];
    })];
}

async function compare(view, _, context) {
  const { trials, settings } = await ask(`${base(view.name)}/trials?limit=500`);
  if (trials.length < 2) return [h("p", null, "There are no two trials with results yet.")];
  const asked = new URLSearchParams(location.search);
  const chosen = { a: asked.get("a") ?? trials[0].trial, b: asked.get("b") ?? trials[1].trial };
  const name = (trial) => [trial.method, ...trial.values.map((value, at) => `${settings[at]} ${value || "not set"}`)].join(", ");
  const choice = (which) => h("label", null, which.toUpperCase(), h("select", { onchange: (event) => {
    history.replaceState(null, "", `?${new URLSearchParams({ ...chosen, [which]: event.target.value })}`);
    context.redraw();
  } }, trials.slice(0, 500).map((trial) => h("option", { value: trial.trial, selected: trial.trial.startsWith(chosen[which]) }, name(trial)))));
  const head = h("div", { class: "row", "data-key": "choose" }, choice("a"), choice("b"));
  const seen = await ask(`${base(view.name)}/compare?a=${part(chosen.a)}&b=${part(chosen.b)}`);
  const { difference } = seen;
  const digits = seen.score.decimals;
  return [head, h("p", { class: "note" }, seen.verdict),
    difference === null ? null : h("p", { "data-key": "interval" }, `A less B: ${difference.mean.toFixed(digits + 1)}${seen.score.unit ? " percentage points" : ""}; ${difference.level} % interval ${difference.low.toFixed(digits + 1)} to ${difference.high.toFixed(digits + 1)}`), h("h2", null, "Settings that differ"),
    listing("Settings", ["Setting", "A", "B"], seen.settings), h("h2", null, "Folds in pairs"),
    listing("Pairs", [[{ class: "number" }, "Split"], [{ class: "number" }, "Seed"], [{ class: "number" }, inUnit("A", seen.score)], [{ class: "number" }, inUnit("B", seen.score)], [{ class: "number" }, "A − B"]],
      seen.pairs.map((pair) => [pair.split, pair.seed, pair.a.toFixed(digits), pair.b.toFixed(digits), (pair.a - pair.b).toFixed(digits)].map((value) => [{ class: "number" }, value])))];
}
