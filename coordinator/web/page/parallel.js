// Trials as lines through their settings, beside a list of the same: brushes, best ones, a place for "not set". Owns its
// canvas and what was chosen on it, which updates leave alone.
import { ask, counted, h, inUnit, listing, number, part } from "./dom.js";

const ROOM = { left: 46, right: 46, top: 48, bottom: 22 };
const views = new WeakMap();

/** Lines that are drawn; more cannot be told apart. */
const MOST = 5000;

/** The best trials, page by page. */
async function all(name) {
  const path = `/api/v1/sweeps/${part(name)}/trials?limit=1000`;
  const seen = await ask(path);
  const trials = [...seen.trials];
  for (let next = seen.next; next !== null && trials.length < MOST;) {
    const more = await ask(`${path}&from=${next}`);
    trials.push(...more.trials);
    next = more.next;
  }
  return { ...seen, trials: trials.slice(0, MOST) };
}

export async function parallel(view) {
  const seen = await all(view.name);
  if (seen.trials.length === 0) return [h("p", null, "No trial has a result yet.")];
  const chart = views.get(view) ?? new Chart();
  views.set(view, chart);
  chart.show(seen);
  return [h("p", { class: "dim" }, `${number.format(seen.trials.length)} of ${counted(seen.total, "trial")}. ${seen.caption}`),
    kept(chart.controls), kept(chart.picture), kept(chart.list)];
}

/** What is on the page already stays as it is: a place with its key is enough for the patcher. */
function kept(place) {
  return place.isConnected ? h("div", { "data-key": place.dataset.key, "data-keep": "" }) : place;
}

export class Chart {
  constructor() {
    this.brushes = new Map();
    this.logs = new Set();
    this.best = 100;
    this.shown = null;
    this.here = 0;
    this.canvas = h("canvas", { role: "img", tabindex: "0", onkeydown: (event) => this.key(event), onpointermove: (event) => this.point(event), onpointerleave: () => this.light(null), "aria-label": "Trials as lines through their settings; the list below has the same numbers" });
    this.slider = h("input", { type: "range", min: 1, max: 100, value: 100, oninput: (event) => { this.best = Number(event.target.value); this.draw(); } });
    this.said = h("span");
    this.told = h("p", { role: "status", class: "dim" });
    const clear = h("button", { type: "button", onclick: () => { this.brushes.clear(); this.logs.clear(); this.best = 100; this.slider.value = 100; this.draw(); } }, "Clear");
    this.controls = h("div", { class: "row", "data-key": "best", "data-keep": "" }, h("label", null, "Only the best", this.slider), this.said, clear);
    this.picture = h("div", { "data-key": "canvas", "data-keep": "" }, this.canvas,
      h("p", { class: "dim" }, "Drag along an axis to choose a part of it. A click on the head of an axis switches it to a logarithm. ",
        "With the keyboard: left and right choose an axis, up and down move the upper end of what is chosen on it and with Shift the lower one, l switches to a logarithm, Delete clears."),
      this.told);
    this.list = h("div", { "data-key": "list", "data-keep": "" });
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  show(seen) {
    this.seen = seen;
    const names = [...seen.settings, "validation", "test"];
    const value = (trial, at) => (at < seen.settings.length ? trial.values[at] ?? "" : String(trial[names[at]] ?? ""));
    this.axes = names.map((name, at) => new Axis(name, seen.trials.map((trial) => value(trial, at))));
    this.rows = seen.trials.map((trial, row) => this.axes.map((axis) => axis.values[row]));
    this.draw();
  }

  /** Whether a trial is within what was chosen. */
  fits(row) {
    if (row >= Math.ceil((this.rows.length * this.best) / 100)) return false;
    return [...this.brushes].every(([at, [low, high]]) => {
      const place = this.axes[at]?.place(this.rows[row][at], this.logs.has(this.axes[at].name)) ?? 0;
      return place >= low && place <= high;
    });
  }

  x(at) { return ROOM.left + (at * (this.width - ROOM.left - ROOM.right)) / Math.max(1, this.axes.length - 1); }
  y(place) { return this.height - ROOM.bottom - place * (this.height - ROOM.top - ROOM.bottom); }

  draw(listed = true) {
    if (!this.seen) return;
    const fit = this.rows.map((_, row) => this.fits(row));
    const rows = fit.flatMap((is, row) => (is ? [row] : []));
    this.said.textContent = `${this.best} %: ${counted(rows.length, "trial")} chosen`;
    this.chosen = rows;
    if (listed) this.table(rows);
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const scale = devicePixelRatio || 1;
    [this.width, this.height] = [box.width, box.height];
    [this.canvas.width, this.canvas.height] = [box.width * scale, box.height * scale];
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const line = (row) => {
      pen.beginPath();
      this.axes.forEach((axis, at) => pen[at ? "lineTo" : "moveTo"](this.x(at), this.y(axis.place(this.rows[row][at], this.logs.has(axis.name)))));
      pen.stroke();
    };
    pen.globalAlpha = 0.25;
    pen.strokeStyle = colour("--wait");
    fit.forEach((is, row) => { if (!is) line(row); });
    pen.globalAlpha = Math.max(0.03, Math.min(0.8, 60 / Math.max(1, rows.length)));
    pen.strokeStyle = colour("--run");
    pen.lineWidth = rows.length > 500 ? 1 : 1.5;
    rows.forEach(line);
    pen.globalAlpha = 1;
    if (this.shown !== null) {
      pen.strokeStyle = colour("--bad");
      pen.lineWidth = 3;
      line(this.shown);
    }
    this.drawAxes(pen, colour);
  }

  drawAxes(pen, colour) {
    pen.font = "12px system-ui, sans-serif";
    this.axes.forEach((axis, at) => {
      const log = this.logs.has(axis.name);
      pen.textAlign = at === 0 ? "left" : at === this.axes.length - 1 ? "right" : "center";
      const label = this.x(at) + (at === 0 ? -ROOM.left + 6 : at === this.axes.length - 1 ? ROOM.right - 6 : 0);
      pen.strokeStyle = colour("--text");
      pen.fillStyle = colour("--text");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(this.x(at), this.y(0));
      pen.lineTo(this.x(at), this.y(1));
      pen.stroke();
      pen.fillText(axis.name + (log ? " (log)" : ""), label, at % 2 ? 32 : 16);
      pen.textAlign = "left";
      for (const [place, text] of axis.ticks(log)) {
        const wide = pen.measureText(text).width;
        const x = at === this.axes.length - 1 ? this.x(at) - wide - 5 : this.x(at) + 5;
        pen.fillStyle = colour("--panel");
        pen.fillRect(x - 1, this.y(place) - 8, wide + 2, 14);
        pen.fillStyle = colour("--text");
        pen.fillText(text, x, this.y(place) + 4);
      }
      const brush = this.brushes.get(at);
      if (!brush) return;
      pen.lineWidth = 2;
      pen.strokeRect(this.x(at) - 7, this.y(brush[1]), 14, Math.max(4, this.y(brush[0]) - this.y(brush[1])));
    });
  }

  /** The same trial in the picture and in the list. */
  light(row) {
    if (row === this.shown) return;
    this.shown = row;
    for (const line of this.list.querySelectorAll("tbody tr")) line.classList.toggle("lit", line.dataset.key === String(row));
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.draw(false); });
  }

  /** The chosen line that is nearest to the pointer. */
  point(event) {
    if (event.buttons || !this.chosen) return;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const step = (this.width - ROOM.left - ROOM.right) / Math.max(1, this.axes.length - 1);
    const at = Math.min(this.axes.length - 2, Math.max(0, Math.floor((x - ROOM.left) / step)));
    const share = (x - this.x(at)) / step;
    let best = [12, null];
    for (const row of this.chosen) {
      const place = (at) => this.y(this.axes[at].place(this.rows[row][at], this.logs.has(this.axes[at].name)));
      const far = Math.abs(place(at) * (1 - share) + place(Math.min(at + 1, this.axes.length - 1)) * share - y);
      if (far < best[0]) best = [far, row];
    }
    this.light(best[1]);
  }

  /** Brushes by keyboard. */
  key(event) {
    const axis = this.axes[this.here];
    const [low, high] = this.brushes.get(this.here) ?? [0, 1];
    const step = 0.05;
    const set = (low, high) => this.brushes.set(this.here, [Math.max(-0.01, Math.min(low, high)), Math.min(1.01, Math.max(low, high))]);
    const act = {
      ArrowLeft: () => { this.here = Math.max(0, this.here - 1); },
      ArrowRight: () => { this.here = Math.min(this.axes.length - 1, this.here + 1); },
      ArrowUp: () => (event.shiftKey ? set(low + step, high) : set(low, high + step)),
      ArrowDown: () => (event.shiftKey ? set(low - step, high) : set(low, high - step)),
      l: () => { if (axis.positive && !this.logs.delete(axis.name)) this.logs.add(axis.name); },
      Delete: () => this.brushes.delete(this.here),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    this.draw();
    const brush = this.brushes.get(this.here);
    this.told.textContent = `${this.axes[this.here].name}${this.logs.has(this.axes[this.here].name) ? " (log)" : ""}: ${brush ? `from ${Math.round(100 * Math.max(0, brush[0]))} to ${Math.round(100 * Math.min(1, brush[1]))} % of the axis` : "nothing left out"}; ${counted(this.chosen.length, "trial")} chosen`;
  }

  begin(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const at = this.axes.map((_, at) => at).reduce((best, at) => (Math.abs(this.x(at) - x) < Math.abs(this.x(best) - x) ? at : best), 0);
    if (Math.abs(this.x(at) - x) > 30) return;
    if (y < ROOM.top - 4) {
      const { name, positive } = this.axes[at];
      if (positive && !this.logs.delete(name)) this.logs.add(name);
      this.brushes.delete(at);
      return this.draw();
    }
    const place = (event) => Math.min(1, Math.max(0, (this.height - ROOM.bottom - (event.clientY - box.top)) / (this.height - ROOM.top - ROOM.bottom)));
    const start = place(event);
    const move = (event) => { const end = place(event); this.brushes.set(at, [Math.min(start, end) - 0.01, Math.max(start, end) + 0.01]); this.draw(); };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.onpointermove = move;
    this.canvas.onpointerup = () => { this.canvas.onpointermove = null; this.canvas.onpointerup = null; };
    move(event);
  }

  table(rows) {
    const shown = rows.slice(0, 100);
    const value = (number) => (number === null || number === undefined ? "–" : number.toFixed(this.seen.score.decimals));
    this.list.replaceChildren(listing("Trials", ["Method", ...this.seen.settings, ...[inUnit("Validation", this.seen.score), inUnit("Test", this.seen.score), "± ", "n"].map((text) => [{ class: "number" }, text])],
      shown.map((row) => {
        const trial = this.seen.trials[row];
        return [trial.method, ...trial.values, ...[value(trial.validation), value(trial.test), value(trial.test_std), trial.n < trial.planned ? `${trial.n}/${trial.planned}` : trial.n].map((text) => [{ class: "number" }, text])];
      }), shown), h("p", { class: "dim" }, rows.length > shown.length ? `the best ${shown.length} of ${number.format(rows.length)}` : ""));
    for (const line of this.list.querySelectorAll("tbody tr")) {
      line.addEventListener("pointerenter", () => this.light(Number(line.dataset.key)));
      line.addEventListener("pointerleave", () => this.light(null));
    }
  }
}

/** The values of one setting along a line; what is not set has its own place at the bottom. */
export class Axis {
  constructor(name, values) {
    this.name = name;
    this.values = values;
    const set = values.filter((value) => value !== "");
    this.gap = set.length < values.length ? 0.1 : 0;
    const numbers = set.map(Number);
    this.numeric = numbers.length > 0 && numbers.every(Number.isFinite);
    this.words = this.numeric ? [] : [...new Set(set)].sort();
    this.low = numbers.reduce((low, value) => Math.min(low, value), Infinity);
    this.high = numbers.reduce((high, value) => Math.max(high, value), -Infinity);
    this.positive = this.numeric && this.low > 0;
  }

  place(value, log) {
    if (value === "") return 0;
    const share = this.numeric ? this.share(Number(value), log) : this.words.length < 2 ? 0.5 : this.words.indexOf(value) / (this.words.length - 1);
    return this.gap + share * (1 - this.gap);
  }

  share(value, log) {
    const bend = log && this.positive ? Math.log : (number) => number;
    return this.high === this.low ? 0.5 : (bend(value) - bend(this.low)) / (bend(this.high) - bend(this.low));
  }

  ticks(log) {
    const words = this.numeric ? [...new Set([this.low, this.high])].map((value) => [this.place(String(value), log), Number(value.toPrecision(4)).toString()])
      : this.words.slice(0, 20).map((word) => [this.place(word), word]);
    return this.gap ? [[0, "not set"], ...words] : words;
  }
}
