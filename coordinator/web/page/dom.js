// Elements from values: whatever others wrote becomes text and nothing else. Owns the patcher, which changes only what
// differs, so that an update moves neither scroll nor focus nor selection.

/** Where the page begins: `/`, or a path that somebody put before it. */
export const ROOT = new URL("./", import.meta.url).pathname;

/** An address of ours as the browser must know it. */
export const from = (path) => (path.startsWith("/") ? ROOT + path.slice(1) : path);

/** An element; attributes that begin with `on` are listeners, `false` and `null` leave one out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) { (element.listens ??= {})[name.slice(2)] = value; element.addEventListener(name.slice(2), dispatch); }
    else if (name === "href") element.setAttribute(name, from(String(value)));
    else if (name === "grow") element.style.flexGrow = String(value);
    else if (name === "value" && "value" in element) { element.setAttribute("value", value); element.value = value; }
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(String(child))))));
  return element;
}

// Characters that turn text around or mean something to terminals are spelt out.
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const visible = (text) => text.replace(OBEYED, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);

// Listeners are looked up when they are needed, so that the patcher can replace them.
function dispatch(event) {
  event.currentTarget.listens?.[event.type]?.(event);
}

/** Makes the children of `place` those of `wanted`, touching only what differs. */
export function patch(place, ...wanted) {
  const made = h("div", null, ...wanted);
  children(place, made);
}

function children(old, made) {
  const known = new Map();
  for (const child of old.childNodes) if (child.dataset?.key) known.set(child.dataset.key, child);
  let next = old.firstChild;
  for (const child of [...made.childNodes]) {
    const key = child.dataset?.key;
    const same = key ? known.get(key) : next && !next.dataset?.key && next.nodeName === child.nodeName ? next : null;
    if (!same) { old.insertBefore(child, next); continue; }
    if (same === next) next = next.nextSibling;
    else old.insertBefore(same, next);
    if (key) known.delete(key);
    update(same, child);
  }
  while (next) { const gone = next; next = next.nextSibling; gone.remove(); }
}

function update(old, made) {
  if (old.nodeType === Node.TEXT_NODE) { if (old.data !== made.data) old.data = made.data; return; }
  if (old.dataset?.keep !== undefined || made.dataset?.leave !== undefined) return;
  for (const { name } of [...old.attributes]) if (name !== "style" && name !== "open" && !made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== made.style.cssText) old.style.cssText = made.style.cssText;
  for (const type of Object.keys(made.listens ?? {})) if (!old.listens?.[type]) old.addEventListener(type, dispatch);
  old.listens = made.listens;
  children(old, made);
}

/** A table that can be read aloud; cells are text, nodes, or `[attributes, content]`. */
export function listing(caption, headers, rows, keys) {
  const cell = (tag) => (value) => (Array.isArray(value) ? h(tag, value[0], value[1]) : h(tag, null, value));
  const head = headers.map((value) => (Array.isArray(value) ? h("th", { scope: "col", ...value[0] }, value[1]) : h("th", { scope: "col" }, value)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("thead", null, h("tr", null, head)),
      h("tbody", null, rows.map((row, at) => h("tr", { "data-key": keys?.[at] }, row.map(cell("td")))))));
}

/** What is wrong, as the server says it. */
export class Trouble extends Error {
  constructor(status, words) { super(words); this.status = status; }
}

const tags = new Map();

/** Asks the server; who asks again for what has not changed gets what he got. */
export async function ask(path, sent) {
  const known = tags.get(path);
  const options = sent === undefined ? { headers: known ? { "If-None-Match": known.tag } : {} }
    : { method: "POST", body: JSON.stringify(sent), headers: { "Content-Type": "application/json", "X-Togl": "1" } };
  let answer;
  try { answer = await fetch(from(path), options); } catch { throw new Trouble(0, "togl web does not answer"); }
  if (answer.status === 304 && known) return known.value;
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Trouble(answer.status, value.error ?? `answer ${answer.status}`);
  if (answer.headers.get("ETag")) {
    if (tags.size > 50) tags.clear();
    tags.set(path, { tag: answer.headers.get("ETag"), value });
  }
  return value;
}

/** A name as part of an address. */
export const part = encodeURIComponent;

/** The page of a fold. */
export function foldLink(fold, text) {
  return h("a", { href: `/folds/${fold.split("/").map(part).join("/")}`, class: "id" }, text ?? short(fold));
}

/** A fold in few letters. */
export const short = (fold) => fold.replace(/^([0-9a-f]{8})[0-9a-f]{24}/, "$1");

export const number = new Intl.NumberFormat("en-GB");
/** `1 fold`, `3 folds`. */
export const counted = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;
/** A value as its score is written, such as `91.3 %`. */
export const scored = (value, score) => (value === null || value === undefined ? "–" : `${(score.factor * value).toFixed(score.decimals)} ${score.unit}`.trim());
/** A share in percent. */
export const percent = (share) => scored(share, { factor: 100, decimals: 1, unit: "%" });
/** What stands over values without their unit. */
export const inUnit = (name, score) => (score.unit ? `${name} (${score.unit})` : name);

/** `2 h 10 min`. */
export function duration(seconds) {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min` : `${Math.floor(minutes / 1440)} days`;
}

/** A range of times that are left, in words; nothing if nobody knows. */
export function left([least, most]) {
  if (!most) return "";
  const [one, other] = [duration(least), duration(most)];
  return one === other ? `about ${one} left` : `${one} to ${other} left`;
}

/** Says something for a while. */
export function toast(text) {
  const place = document.getElementById("toast");
  place.textContent = text;
  clearTimeout(place.timer);
  place.timer = setTimeout(() => { place.textContent = ""; }, 8000);
}

/** Asks before something is done; "no" comes first. Gives nothing for no, else the reason that was typed. */
export function confirm(question, follows, yes, extra) {
  const why = h("input", { id: "why", maxlength: 400, autocomplete: "off", placeholder: "kept with what you do" });
  const dialog = h("dialog", { "aria-labelledby": "asked" },
    h("h2", { id: "asked" }, question), h("p", null, follows), extra ?? null,
    h("p", { class: "row" }, h("label", { for: "why" }, "Why (optional)"), why),
    h("form", { method: "dialog", class: "row" },
      h("button", { value: "no", autofocus: true }, "No"), h("button", { value: "yes", class: "danger" }, yes)));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => {
    done(dialog.returnValue === "yes" ? { reason: why.value.trim() } : null);
    dialog.remove();
  }));
}
