// Lines with error bars that can be looked at closely: the pointer or arrow keys tell values, dragging or + and - choose a part
// of the axis, and an update moves neither. Owns its picture, which the patcher leaves alone; the numbers come from elsewhere.
import { h, listing, svg } from "./dom.js";

const HEIGHT = 300;
const ROOM = { left: 56, right: 14, top: 12, bottom: 36 };
const STYLES = 8;

/** Places of an axis: numbers as they are, words one after the other. */
export function places(values) {
  const distinct = [...new Set(values)];
  const numbers = distinct.map(Number);
  if (distinct.every((value) => value !== "") && numbers.every(Number.isFinite)) return new Map(distinct.map((value, at) => [value, numbers[at]]));
  return new Map(distinct.map((value, at) => [value, at]));
}

/** Round steps between two values, a few of them. */
export function ticks(low, high, most = 6) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

export class Figure {
  /** `key` tells it from others on the same page. */
  constructor(key) {
    this.part = null;
    this.width = 704;
    this.at = null;
    this.said = h("span", { role: "status", class: "dim" });
    this.place = h("div", { class: "lines" });
    this.legend = h("ul", { class: "legend" });
    const whole = h("button", { type: "button", onclick: () => this.zoom(null) }, "Whole");
    const closer = h("button", { type: "button", onclick: () => this.closer(0.5), "aria-label": "Closer" }, "+");
    const wider = h("button", { type: "button", onclick: () => this.closer(2), "aria-label": "Wider" }, "−");
    new ResizeObserver(() => { const wide = Math.round(this.place.clientWidth); if (wide > 0 && Math.abs(wide - this.width) > 1) { this.width = wide; if (this.all) this.draw(); } }).observe(this.place);
    this.element = h("div", { "data-key": key, "data-keep": "" }, this.place,
      h("div", { class: "row" }, closer, wider, whole, this.said), this.legend);
  }

  /** What stands on the page already stays: a place with its key is enough for the patcher. */
  get kept() {
    return this.element.isConnected ? h("div", { "data-key": this.element.dataset.key, "data-keep": "" }) : this.element;
  }

  /** `lines`: label, points of x, y and perhaps spread, and whether it is thin; `names`: of the axes. */
  show(lines, names, words) {
    const text = JSON.stringify([lines, names, words]);
    if (text === this.known) return;
    [this.known, this.lines, this.names, this.words] = [text, lines, names, words];
    const xs = places(lines.flatMap((line) => line.points.map((point) => String(point.x))));
    this.worded = [...xs].some(([value, at]) => String(at) !== value && Number(value) !== at) ? [...xs] : null;
    this.all = lines.map((line) => ({ ...line, points: line.points.map((point) => ({ ...point, at: xs.get(String(point.x)) }))
      .sort((one, other) => one.at - other.at) }));
    this.draw();
  }

  bounds() {
    const points = this.all.flatMap((line) => line.points);
    const xs = points.map((point) => point.at);
    const whole = [xs.reduce((low, x) => Math.min(low, x), Infinity), xs.reduce((high, x) => Math.max(high, x), -Infinity)];
    // Error bars at the ends would lie on the axis.
    const beside = points.some((point) => point.spread) ? 0.04 * (whole[1] - whole[0]) : 0;
    const x = this.part ?? (whole[0] === whole[1] ? [whole[0] - 1, whole[1] + 1] : [whole[0] - beside, whole[1] + beside]);
    const seen = points.filter((point) => point.at >= x[0] && point.at <= x[1]);
    const low = seen.reduce((low, point) => Math.min(low, point.y - (point.spread ?? 0)), Infinity);
    const high = seen.reduce((high, point) => Math.max(high, point.y + (point.spread ?? 0)), -Infinity);
    const air = high > low ? (high - low) * 0.05 : 0.5;
    return { whole, x, y: Number.isFinite(low) ? [low - air, high + air] : [0, 1] };
  }

  /** Where numbers stand along the axis: at the values themselves where these are few. */
  marks([low, high]) {
    const values = [...new Set(this.all.flatMap((line) => line.points.map((point) => point.at)))];
    return values.length <= 12 ? values.filter((at) => at >= low && at <= high) : ticks(low, high);
  }

  zoom(part) {
    const { whole } = this.bounds();
    const fits = part && [Math.max(whole[0], part[0]), Math.min(whole[1], part[1])];
    this.part = fits && fits[1] - fits[0] > 1e-9 && fits[1] - fits[0] < whole[1] - whole[0] ? fits : null;
    this.draw();
  }

  closer(times) {
    const { x } = this.bounds();
    const middle = this.at ? this.at.point.at : (x[0] + x[1]) / 2;
    const half = ((x[1] - x[0]) * times) / 2;
    this.zoom([middle - half, middle + half]);
  }

  draw() {
    const { x, y } = this.bounds();
    const across = (value) => ROOM.left + ((value - x[0]) / (x[1] - x[0])) * (this.width - ROOM.left - ROOM.right);
    const up = (value) => HEIGHT - ROOM.bottom - ((value - y[0]) / (y[1] - y[0])) * (HEIGHT - ROOM.top - ROOM.bottom);
    [this.across, this.back] = [across, (left) => x[0] + ((left - ROOM.left) / (this.width - ROOM.left - ROOM.right)) * (x[1] - x[0])];
    this.up = up;
    const inside = (point) => point.at >= x[0] - 1e-9 && point.at <= x[1] + 1e-9;
    const style = (line, at) => (line.thin ? `thin l${(line.style ?? at) % STYLES}` : `l${(line.style ?? at) % STYLES}`);
    const drawn = this.all.map((line, at) => {
      const points = line.points.filter(inside);
      const path = points.map((point, n) => `${n ? "L" : "M"}${across(point.at).toFixed(1)} ${up(point.y).toFixed(1)}`).join("");
      const bars = points.filter((point) => point.spread).map((point) => `M${across(point.at).toFixed(1)} ${up(point.y - point.spread).toFixed(1)}V${up(point.y + point.spread).toFixed(1)}`).join("");
      return [svg("path", { class: style(line, at), d: path || "M0 0" }), bars ? svg("path", { class: `bars ${style(line, at)}`, d: bars }) : null];
    });
    const marksX = (this.worded ? this.worded.filter(([, at]) => at >= x[0] && at <= x[1]).slice(0, 12).map(([word, at]) => [at, word]) : this.marks(x).map((at) => [at, String(at)]));
    const picture = svg("svg", { class: "chart", viewBox: `0 0 ${this.width} ${HEIGHT}`, role: "img", tabindex: "0", "aria-label": this.words,
      onpointermove: (event) => this.hover(event), onpointerleave: () => this.tell(null), onpointerdown: (event) => this.begin(event),
      ondblclick: () => this.zoom(null), onkeydown: (event) => this.key(event) },
    svg("path", { class: "axis", d: `M${ROOM.left} ${ROOM.top}V${HEIGHT - ROOM.bottom}H${this.width - ROOM.right}` }),
    ticks(y[0], y[1]).map((at) => [svg("path", { class: "tick", d: `M${ROOM.left} ${up(at).toFixed(1)}H${this.width - ROOM.right}` }), svg("text", { x: ROOM.left - 6, y: up(at) + 4, "text-anchor": "end" }, String(at))]),
    marksX.map(([at, word]) => svg("text", { x: across(at), y: HEIGHT - ROOM.bottom + 16, "text-anchor": "middle" }, word)),
    svg("text", { x: this.width - ROOM.right, y: HEIGHT - 5, "text-anchor": "end" }, this.names[0]),
    svg("text", { x: ROOM.left + 6, y: ROOM.top + 6 }, this.names[1]), drawn);
    this.mark = svg("circle", { class: "mark", r: 5, visibility: "hidden" });
    this.span = svg("rect", { class: "span", y: ROOM.top, height: HEIGHT - ROOM.top - ROOM.bottom, width: 0, visibility: "hidden" });
    picture.append(this.span, this.mark);
    const focused = this.place.contains(document.activeElement);
    this.place.replaceChildren(picture);
    if (focused) picture.focus({ preventScroll: true });
    this.legend.replaceChildren(...this.all.filter((line) => !line.thin).map((line) => h("li", null,
      svg("svg", { viewBox: "0 0 36 10", class: "sample", "aria-hidden": "true" }, svg("path", { class: style(line, this.all.indexOf(line)), d: "M0 5H36" })), line.label)));
    if (this.at) this.tell(this.at);
  }

  left(event) {
    const box = this.place.firstChild.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width, ((event.clientY - box.top) / box.height) * HEIGHT];
  }

  hover(event) {
    const [left, top] = this.left(event);
    let best = null;
    for (const line of this.all) for (const point of line.points) {
      const far = Math.hypot(this.across(point.at) - left, this.up(point.y) - top) * (line.thin ? 1.5 : 1);
      if (far < (best?.far ?? 40)) best = { far, line, point };
    }
    this.tell(best);
  }

  tell(found) {
    this.at = found;
    this.mark.setAttribute("visibility", found ? "visible" : "hidden");
    if (!found) { this.said.textContent = ""; return; }
    const { line, point } = found;
    this.mark.setAttribute("cx", this.across(point.at));
    this.mark.setAttribute("cy", this.up(point.y));
    const spread = point.spread ? ` ± ${point.spread.toPrecision(3)}` : "";
    this.said.textContent = `${line.label}: ${this.names[0]} ${point.x}, ${this.names[1]} ${Number(point.y.toPrecision(4))}${spread}${point.n ? `, n=${point.n}` : ""}`;
  }

  begin(event) {
    if (event.button !== 0) return;
    const picture = this.place.firstChild;
    const [start] = this.left(event);
    picture.setPointerCapture(event.pointerId);
    const ends = (event) => { const [here] = this.left(event); return [Math.min(start, here), Math.max(start, here)]; };
    picture.onpointermove = (event) => {
      const [from, to] = ends(event);
      this.span.setAttribute("visibility", "visible");
      this.span.setAttribute("x", from);
      this.span.setAttribute("width", to - from);
    };
    picture.onpointerup = (event) => {
      picture.onpointermove = picture.onpointerup = null;
      this.span.setAttribute("visibility", "hidden");
      const [from, to] = ends(event);
      if (to - from > 8) this.zoom([this.back(from), this.back(to)]);
    };
  }

  key(event) {
    const thick = this.all.filter((line) => !line.thin && line.points.length > 0);
    if (thick.length === 0) return;
    const line = this.at && thick.includes(this.at.line) ? this.at.line : thick[0];
    const near = this.at ? line.points.reduce((best, point, n) => (Math.abs(point.at - this.at.point.at) < Math.abs(line.points[best].at - this.at.point.at) ? n : best), 0) : -1;
    const along = (line, n) => this.tell({ line, point: line.points[Math.min(line.points.length - 1, Math.max(0, n))] });
    const beside = (by) => { const next = thick[(thick.indexOf(line) + by + thick.length) % thick.length]; along(next, Math.max(0, near)); };
    const act = { ArrowLeft: () => along(line, near - 1), ArrowRight: () => along(line, near + 1), ArrowUp: () => beside(-1), ArrowDown: () => beside(1),
      "+": () => this.closer(0.5), "-": () => this.closer(2), Escape: () => this.zoom(null) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

/** The numbers of a figure, to be read and copied. */
export function numbers(lines, names) {
  const rows = lines.filter((line) => !line.thin).flatMap((line) => line.points.map((point) => [[{ class: "name" }, line.label], String(point.x),
    ...[point.y.toPrecision(4), point.spread ? point.spread.toPrecision(3) : "", point.n ?? ""].map((text) => [{ class: "number" }, text])]));
  const shown = rows.slice(0, 300);
  return h("details", { "data-key": `numbers-${names.join("-")}` }, h("summary", null, "The same as a table"),
    listing("Numbers of the figure", ["Line", names[0], ...[names[1], "±", "n"].map((text) => [{ class: "number" }, text])], shown),
    rows.length > shown.length ? h("p", { class: "dim" }, `the first ${shown.length} of ${rows.length}`) : null);
}
