// Tests of the page's own functions. The browser run gives the text of this file to the browser, which asks the page for its
// modules; the answer is what was looked at and what is wrong.
async () => {
  const [{ h, patch, percent, left, duration, short }, { Axis, Chart }, { Figure, numbers, places, ticks }] = await Promise.all(
    ["./dom.js", "./parallel.js", "./figure.js"].map((name) => import(new URL(name, document.querySelector("script[src]").src))));
  const wrong = [];
  let looked = 0;
  const same = (what, found, expected) => {
    looked += 1;
    if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  };
  const near = (what, found, expected) => same(what, Math.abs(found - expected) < 1e-9, true);

  // Words of others are text, and what turns text around is spelt out.
  const hostile = h("p", null, "<b>x</b>\u202e\u0000");
  same("markup stays text", [hostile.children.length, hostile.textContent], [0, "<b>x</b>\\u{202e}\\u{0}"]);

  // The patcher touches only what differs.
  const place = document.createElement("div");
  const draw = (...names) => patch(place, names.map((name) => h("p", { "data-key": name }, h("input", { value: name }), name)));
  draw("a", "b", "c");
  const [a, b, c] = place.children;
  b.firstChild.value = "typed";
  draw("c", "b", "d");
  same("elements with a key move with it", [place.children[0] === c, place.children[1] === b, place.contains(a)], [true, true, false]);
  same("what was typed stays", b.firstChild.value, "typed");
  patch(place, h("div", { "data-key": "k", "data-keep": "" }, "mine"));
  patch(place, h("div", { "data-key": "k", "data-keep": "" }));
  same("what is kept is not emptied", place.textContent, "mine");
  let heard = "";
  patch(place, h("button", { onclick: () => { heard += "1"; } }, "x"));
  patch(place, h("button", { onclick: () => { heard += "2"; } }, "x"));
  place.querySelector("button").click();
  same("only the newest listener hears", heard, "2");

  // Words of numbers.
  same("durations", [5, 61, 3_600, 7_800, 900_000].map(duration), ["5 s", "1 min", "1 h 00 min", "2 h 10 min", "10 days"]);
  same("time left", [left([0, 0]), left([60, 60]), left([7_800, 9_600])], ["", "about 1 min left", "2 h 10 min to 2 h 40 min left"]);
  same("folds in short", short(`${"0".repeat(31)}1/2/3`), "00000000/2/3");

  // Axes of parallel coordinates.
  const axis = new Axis("lr", ["0.0001", "0.01", "", "0.001"]);
  same("what is not set has its place", axis.place("", false), 0);
  near("a logarithm puts the middle in the middle", axis.place("0.001", true), 0.1 + 0.9 / 2);
  near("the largest is on top", axis.place("0.01", false), 1);
  same("words in order", new Axis("model", ["b", "a"]).ticks(false).map(([, word]) => word), ["a", "b"]);
  same("no logarithm of nothing", new Axis("x", ["0", "1"]).positive, false);

  // Brushes, slider and log axis of the chart, by keyboard and by pointer.
  const seen = { score: { name: "accuracy", factor: 100, unit: "%", decimals: 1 }, settings: ["depth", "lr"], trials: Array.from({ length: 100 }, (_, at) => ({ trial: String(at), method: "GCN", values: [String(at % 10), String(10 ** -(1 + (at % 4)))], validation: 100 - at, test: 90 - at, test_std: 1, n: 1, planned: 1 })) };
  const chart = new Chart();
  document.body.append(chart.picture);
  chart.show(seen);
  same("all are chosen at first", chart.chosen.length, 100);
  chart.slider.value = "10";
  chart.slider.dispatchEvent(new Event("input"));
  same("the slider keeps the best", chart.chosen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  chart.slider.value = "100";
  chart.slider.dispatchEvent(new Event("input"));
  const press = (key, shiftKey = false) => chart.canvas.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, cancelable: true }));
  for (let step = 0; step < 10; step += 1) press("ArrowDown");
  same("a brush by keyboard leaves the upper half out", chart.chosen.every((row) => row % 10 <= 5), true);
  press("ArrowRight");
  press("l");
  same("a logarithm by keyboard", [...chart.logs], ["lr"]);
  press("ArrowLeft");
  press("Delete");
  same("the brush is gone", chart.chosen.length, 100);
  const box = chart.canvas.getBoundingClientRect();
  const at = (type, x, y) => chart.canvas.dispatchEvent(new PointerEvent(type, { clientX: box.left + x, clientY: box.top + y, pointerId: 1, button: 0, buttons: type === "pointerup" ? 0 : 1, bubbles: true }));
  chart.canvas.setPointerCapture = () => {};
  at("pointerdown", chart.x(0), chart.y(0.5));
  at("pointermove", chart.x(0), chart.y(1));
  at("pointerup", chart.x(0), chart.y(1));
  same("a brush by pointer", chart.chosen.length > 0 && chart.chosen.every((row) => row % 10 >= 5), true);
  chart.light(7);
  same("the line and its row are one", [...chart.list.querySelectorAll("tr.lit")].map((line) => line.dataset.key), chart.chosen.includes(7) ? ["7"] : []);
  chart.picture.remove();

  // Figures: an update moves no zoom.
  same("round steps", ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  same("places of numbers and of words", [[...places(["2", "10"])], [...places(["last", "2"])]], [[["2", 2], ["10", 10]], [["last", 0], ["2", 1]]]);
  const figure = new Figure("test");
  document.body.append(figure.element);
  const lines = (last) => [{ label: "one", points: [0, 10, 20, 30].map((x) => ({ x, y: x === 30 ? last : x / 10, spread: 0.5, n: 3 })) }, { label: "two", points: [0, 10, 20, 30].map((x) => ({ x, y: 1 })) }];
  figure.show(lines(3), ["epoch", "accuracy"], "words");
  figure.zoom([5, 25]);
  same("few values stand where they are", figure.marks([5, 25]), [10, 20]);
  same("a part is shown", figure.bounds().x, [5, 25]);
  figure.show(lines(4), ["epoch", "accuracy"], "words");
  same("an update leaves the part", figure.bounds().x, [5, 25]);
  const type = (key) => figure.place.firstChild.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
  type("Escape");
  same("Escape shows the whole, with room for the bars at its ends", figure.bounds().x, [-1.2, 31.2]);
  type("ArrowRight");
  type("ArrowRight");
  same("arrow keys tell values", figure.said.textContent, "one: epoch 10, accuracy 1 ± 0.500, n=3");
  type("ArrowDown");
  same("and lines", figure.said.textContent, "two: epoch 10, accuracy 1");
  same("the table has all of it", numbers(lines(3), ["epoch", "accuracy"]).querySelectorAll("tbody tr").length, 8);
  figure.element.remove();
  return { looked, wrong };
}
