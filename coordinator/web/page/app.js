// The frame of the page: signing in, addresses, events, theme and keys. What a view shows is in views.js and sweep.js.
import { ROOT, ask, from, h, part, patch, toast } from "./dom.js";
import { overview, fold, worker, workers } from "./views.js";
import { sweep } from "./sweep.js";

const main = document.getElementById("main");
const state = { me: null, view: null, events: null, polling: 0, latest: {} };

/** The view of an address: what it needs told, and how it is drawn. */
function route(path) {
  const parts = path.slice(ROOT.length).split("/").filter((word) => word !== "").map(decodeURIComponent);
  if (parts[0] === "sweeps" && parts[1]) return sweep(parts[1], parts[2] ?? "table");
  if (parts[0] === "folds" && parts.length === 4) return fold(parts.slice(1).join("/"));
  if (parts[0] === "workers") return parts[1] ? worker(parts[1]) : workers();
  return overview();
}

async function signIn() {
  const code = location.hash.slice(1);
  if (/^[A-Za-z0-9]{16,}$/.test(code)) {
    history.replaceState(null, "", location.pathname + location.search);
    try { state.me = await ask("/api/v1/session", { code }); return; }
    catch (trouble) { refused(trouble.message); return; }
  }
  try { state.me = await ask("/api/v1/me"); }
  catch (trouble) { refused(trouble.message); }
}

function refused(words) {
  state.me = null;
  hangUp();
  document.title = "togl";
  patch(main, h("h1", null, "Not signed in"), h("p", { role: "alert" }, words),
    h("p", null, "Each link opens the page once, within ten minutes. ",
      "On the coordinator's machine, ", h("code", null, "togl web"), " prints a new one."));
}

const context = {
  get maySteer() { return state.me?.may_steer ?? false; },
  get latest() { return state.latest; },
  redraw,
  async act(path, body) {
    try { toast((await ask(path, body)).said); } catch (trouble) { toast(trouble.message); }
  },
};

/** Shows the view of the address. */
export async function go(path, push) {
  if (push) history.pushState(null, "", path);
  const before = state.view;
  state.view?.leave?.();
  state.view = route(location.pathname);
  if (before?.tells !== state.view.tells) state.latest = {};
  document.title = `${state.view.title} – togl`;
  for (const link of document.querySelectorAll("header nav a")) {
    const here = link.pathname === (location.pathname.startsWith(from("/workers")) ? from("/workers") : ROOT);
    if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (before?.kind !== state.view.kind) patch(main, h("p", null, "Loading …"));
  listen(before);
  await redraw();
}

/** Draws the view again; what has not changed is not touched. */
async function redraw() {
  const view = state.view;
  try {
    const drawn = await view.draw(context);
    if (view === state.view && drawn) patch(main, ...drawn);
  } catch (trouble) {
    if (view !== state.view) return;
    if (trouble.status === 401) refused(trouble.message);
    else if (trouble.status === 503 && main.querySelector("h1")) away(trouble.message);
    else patch(main, h("h1", null, view.title), h("p", { role: "alert", class: "note" }, trouble.message));
  }
}

function away(words) {
  const line = document.getElementById("away");
  line.hidden = words === "";
  line.textContent = words;
  main.classList.toggle("stale", words !== "");
}

function about(value) {
  document.getElementById("about").textContent = `${value.coordinator}${context.maySteer ? "" : " · looking only"}`;
  away(value.away_since ? `The coordinator is away since ${value.away_since}; this is the last picture. Trying again …` : "");
}

function hangUp() {
  state.events?.close();
  state.events = null;
  clearInterval(state.polling);
}

/** Listens to what the view needs; goes on with the same stream if it can. */
function listen(before) {
  if (before && before.tells === state.view.tells && (state.events || state.polling)) return;
  hangUp();
  if (document.hidden) return;
  const tells = state.view.tells;
  const events = new EventSource(`${from("/api/v1/events")}${tells ? `?sweep=${part(tells)}` : ""}`);
  state.events = events;
  const told = (name) => events.addEventListener(name, (event) => {
    if (events !== state.events) return;
    const value = JSON.parse(event.data);
    if (name === "about") return about(value);
    state.latest[name] = value;
    state.view.told?.(name, value, context);
  });
  ["about", "overview", "sweep", "table", "trouble"].forEach(told);
  events.onerror = () => {
    if (events !== state.events) return;
    if (events.readyState !== EventSource.CLOSED) return void away("togl web does not answer; trying again …");
    // No stream for this tab: it asks for itself. Whether it still may is found out by asking.
    events.close();
    state.events = null;
    state.polling = setInterval(async () => {
      try { about((await ask("/api/v1/me")).about); state.latest = {}; await redraw(); }
      catch (trouble) { if (trouble.status === 401) refused(trouble.message); else away(trouble.message); }
    }, 1000);
  };
}

let hidden = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(hangUp, 10_000);
  else if (!state.events && state.me) { listen(null); redraw(); }
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || link.origin !== location.origin || !link.pathname.startsWith(ROOT) || link.getAttribute("href").startsWith("#") || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || link.hasAttribute("download")) return;
  event.preventDefault();
  const other = link.pathname !== location.pathname;
  go(link.pathname + link.search, true).then(() => { if (other && !link.closest(".tabs")) { scrollTo(0, 0); main.focus({ preventScroll: true }); } });
});
addEventListener("popstate", () => { if (state.me) go(location.pathname + location.search, false); });
addEventListener("hashchange", () => { if (location.hash.length > 16) start(); });

function theme(next) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const now = document.documentElement.dataset.theme ?? dark;
  const wanted = next ?? (now === "dark" ? "light" : "dark");
  document.documentElement.dataset.theme = wanted;
  try { localStorage.setItem("togl-theme", wanted); } catch { /* then it is asked again */ }
}
try { const kept = localStorage.getItem("togl-theme"); if (kept === "dark" || kept === "light") theme(kept); } catch { /* as the system has it */ }
document.getElementById("theme").addEventListener("click", () => theme());

const KEYS = [["o", "all sweeps"], ["w", "workers"], ["1 … 9", "views of a sweep"], ["/", "to the filter"], ["t", "light or dark"], ["?", "these keys"]];
function help() {
  const dialog = h("dialog", { "aria-labelledby": "keys" }, h("h2", { id: "keys" }, "Keys"),
    h("dl", null, KEYS.map(([key, does]) => [h("dt", null, h("kbd", null, key)), h("dd", null, does)])),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
  dialog.addEventListener("close", () => dialog.remove());
}
document.getElementById("help").addEventListener("click", help);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea, dialog")) return;
  const tab = /^[1-9]$/.test(event.key) ? document.querySelectorAll(".tabs a")[Number(event.key) - 1] : null;
  const act = { o: () => go(ROOT, true), w: () => go(from("/workers"), true), t: () => theme(), "?": help,
    "/": () => { event.preventDefault(); document.querySelector("main input, main select")?.focus(); } }[event.key];
  if (tab) tab.click(); else act?.();
});

async function start() {
  await signIn();
  if (!state.me) return;
  about(state.me.about);
  await go(location.pathname + location.search, false);
}
start();
