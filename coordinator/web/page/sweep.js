// One sweep and its views: table, running folds, list of folds, failures, figures, trials, comparison.
import { ask, counted, foldLink, h, listing, inUnit, number, part, scored, toast } from "./dom.js";
import { actList, badge, bar, steering } from "./views.js";
import { parallel } from "./parallel.js";

const TABS = [["table", "Table"], ["running", "Running"], ["folds", "Folds"], ["failures", "Failures"], ["curves", "Curves"],
  ["against", "Against"], ["trials", "Trials"], ["compare", "Compare"], ["timeline", "Timeline"], ["history", "History"]];

const base = (name) => `/api/v1/sweeps/${part(name)}`;

function left(seconds) {
  if (!seconds) return "";
  const minutes = Math.round(seconds / 60);
  return ` · about ${minutes >= 90 ? `${Math.round(minutes / 6) / 10} h` : minutes >= 2 ? `${minutes} min` : `${seconds} s`} left`;
}

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
    h("p", null, `${number.format(now.trials_finished)} of ${number.format(counts.trials)} trials whole`, left(now.eta_seconds),
      counts.priority ? ` · priority ${counts.priority}` : ""),
    counts.note ? h("p", { class: "note", "data-key": "note" }, counts.note) : null,
    now.standstill ? h("p", { class: "note", "data-key": "still" }, `Nothing runs: ${now.standstill}`) : null,
    steering(counts, context, ["pause", "resume", "retry", "prioritise", "cancel", "archive"]),
    h("nav", { class: "tabs", "aria-label": "Views of the sweep" }, TABS.map(([word, text]) =>
      h("a", { href: `/sweeps/${part(view.name)}/${word}`, "aria-current": word === view.tab ? "page" : false }, text))),
    h("div", { "data-key": `tab-${view.tab}`, "data-leave": onlyHead }, content)];
}

const BODIES = { table, running, folds, failures, curves, against, trials: (view, now) => parallel(view, now), compare, timeline, history: acts };

async function copy(name, form) {
  const answer = await fetch(`${base(name)}/table/text?form=${form}`);
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

async function table(view) {
  const seen = await ask(`${base(view.name)}/table`);
  const forms = [["markdown", "Markdown"], ["latex", "LaTeX"], ["csv", "CSV"]];
  const copies = h("div", { class: "row" }, h("span", { class: "dim" }, `made of ${counted(seen.folds, "fold")}`, seen.reading ? ", still reading …" : ""),
    forms.map(([form, text]) => h("button", { type: "button", onclick: () => copy(view.name, form) }, `Copy ${text}`)));
  if (seen.problem) return [h("p", { class: "note" }, seen.problem)];
  const corner = seen.label_headers.length;
  const cell = (value) => h("td", { class: value.best ? "number best" : "number", title: `${value.n} of ${value.planned} folds` },
    value.trials.length === 1 ? h("a", { href: `/sweeps/${part(view.name)}/folds?trial=${value.trials[0]}` }, value.number) : value.number,
    value.count ? ` ${value.count}` : "", value.marks, value.best ? h("span", { role: "img", "aria-label": "best" }, " ▲") : null);
  return [copies, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", null,
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
      [{ class: "number" }, fold.max_epochs ? `${fold.epoch}/${fold.max_epochs}` : "–"], [{ class: "number" }, scored(fold.validation_accuracy, now.score)]]),
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
    listing("Failures", ["Class", [{ class: "number" }, "Folds"], "What was said", "Who had them", "An example"], seen.groups.map((group) => [
      h("a", { href: `/sweeps/${part(view.name)}/folds?state=failed&class=${part(group.class)}` }, group.class), [{ class: "number" }, number.format(group.folds)],
      [{ class: "words" }, group.words], Object.entries(group.workers).map(([worker, count]) => `${worker} ${count}`).join(", "), foldLink(group.example)]),
      seen.groups.map((group) => `${group.class} ${group.words}`))];
}

async function acts(view) {
  const seen = await ask(`${base(view.name)}/acts`);
  return [seen.acts.length === 0 ? h("p", null, "Nobody has steered this sweep.") : actList(seen.acts, false)];
}

/** A picture of our own, made by what `togl plot` draws with; the last one stays until the next is there. */
async function picture(path, words) {
  const answer = await fetch(path);
  if (!answer.ok) return h("p", { class: "note" }, (await answer.json().catch(() => ({}))).error ?? "there is no figure now");
  const text = await answer.text();
  return h("div", { class: "figure" }, h("img", { alt: words, src: `data:image/svg+xml,${encodeURIComponent(text)}` }));
}

async function curves(view) {
  return [await picture(`${base(view.name)}/curves`, `Learning curves of ${view.name}: validation loss and value by epoch, one line a method`),
    h("p", { class: "dim" }, "The numbers of single folds are on their own pages; ", h("a", { href: `/sweeps/${part(view.name)}/folds?state=finished` }, "finished folds"), ".")];
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
    await picture(`${base(view.name)}/against?x=${part(x)}`, `Values against ${x}; the same numbers are in the table of the sweep`)];
}

async function compare(view, _, context) {
  const { trials, settings } = await ask(`${base(view.name)}/trials`);
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
  const digits = seen.score.decimals;
  return [head, h("p", { class: "note" }, seen.verdict), h("h2", null, "Settings that differ"),
    listing("Settings", ["Setting", "A", "B"], seen.settings), h("h2", null, "Folds in pairs"),
    listing("Pairs", [[{ class: "number" }, "Split"], [{ class: "number" }, "Seed"], [{ class: "number" }, inUnit("A", seen.score)], [{ class: "number" }, inUnit("B", seen.score)], [{ class: "number" }, "A − B"]],
      seen.pairs.map((pair) => [pair.split, pair.seed, pair.a.toFixed(digits), pair.b.toFixed(digits), (pair.a - pair.b).toFixed(digits)].map((value) => [{ class: "number" }, value])))];
}
