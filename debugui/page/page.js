"use strict";
// The server computes and words everything. This script asks for it, puts it into
// the page as text, and draws the charts. An element says what it shows:
//   data-f="a.b"             its text is data.a.b
//   data-b="name:a.b n2:!c"  attributes; true is an empty one, false and null are none
//   data-list="a" data-t="t" a copy of template t for each item of data.a
//   data-chart="a"           a chart of data.a
// What lies in an element with data-item belongs to that item alone.

const $ = id => document.getElementById(id);
const at = (data, path) => path.split(".").reduce((d, name) => d?.[name], data);

function fill(root, data) {
  const item = root.closest("[data-item]");
  for (const e of [root, ...root.querySelectorAll("[data-f],[data-b],[data-list],[data-chart]")]) {
    if (e.closest("[data-item]") !== item) continue;
    const { f, b, list, chart } = e.dataset;
    if (f) setText(e, String(at(data, f) ?? ""));
    if (b) b.split(" ").forEach(pair => setAttribute(e, ...pair.split(":"), data));
    if (list) setList(e, at(data, list) ?? []);
    if (chart) draw(e, at(data, chart));
  }
}

function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function setAttribute(e, name, path, data) {
  const value = path[0] === "!" ? !at(data, path.slice(1)) : at(data, path);
  if (value === false || value === null || value === undefined) e.removeAttribute(name);
  else if (e.getAttribute(name) !== String(value === true ? "" : value)) e.setAttribute(name, value === true ? "" : value);
}

// Rows stay while their item does, so that whoever is about to press one finds it.
function setList(parent, items) {
  const old = new Map([...parent.children].map(e => [e.itemKey, e]));
  const focused = document.activeElement;
  items.forEach((data, i) => {
    const key = data.id ?? data.ref ?? data.path ?? data.name ?? data.cause ?? i;
    const e = old.get(key) ?? $(parent.dataset.t).content.firstElementChild.cloneNode(true);
    old.delete(key);
    e.itemKey = key;
    if (parent.children[i] !== e) parent.insertBefore(e, parent.children[i] ?? null);
    fill(e, data);
  });
  old.forEach(e => e.remove());
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

const width = 120, height = 40; // of a chart, in its own units

// What happened between two looks is as wide as the time between them. Where nobody
// looked there is nothing, not even the line of zero.
function draw(svg, chart) {
  if (!chart) return;
  const up = chart.up.value, all = up + chart.down.value || 1;
  const x = age => width * (1 - age / chart.span), y = value => height * (up - value) / all;
  const runs = []; // of points without a gap between them
  chart.ages.forEach((_, i) => i && chart.since[i] === chart.ages[i - 1] ? runs.at(-1).push(i) : runs.push([i]));
  const steps = (run, values) => run.flatMap(i => [chart.since[i], chart.ages[i]].map(age => [x(age), y(values[i])]));
  const areas = [], zero = chart.ages.map(() => 0), levels = { admitted: zero, denied: zero };
  for (const s of chart.series) {
    for (const [kind, sign] of [["admitted", 1], ["denied", -1]]) {
      if (!s[kind]) continue;
      const from = levels[kind], to = from.map((level, i) => level + sign * s[kind][i]);
      levels[kind] = to;
      areas.push([s.path, runs.map(run => [...steps(run, to), ...steps(run, from).reverse()])]);
    }
  }
  areas.push(["zero", runs.map(run => steps(run, zero))]);
  areas.push(["line", chart.line === null ? [] : [[[0, y(chart.line)], [width, y(chart.line)]]]]);
  areas.forEach(([path, shapes], i) => {
    const e = svg.children[i] ?? svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    e.setAttribute("data-path", path);
    e.setAttribute("d", shapes.flatMap(points => points.map((p, i) => (i ? "L" : "M") + p.map(n => n.toFixed(2)).join(" "))).join(""));
  });
}

async function get(query, headers) {
  const url = location.origin + location.pathname + "?" + query; // without a user's name, which fetch refuses
  const answer = await fetch(url, { headers, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(10000) });
  const body = await answer.json().catch(() => null); // it may be a page to sign in on
  if (!answer.ok || !body) throw new Error(body?.error ?? "the answer was " + answer.status + (answer.ok ? ", and no data" : ""));
  return body;
}

let latest = { name: "", clock: "" }, timer = 0, asking = false;

async function look() {
  clearTimeout(timer);
  if (document.hidden || asking) return;
  asking = true;
  let next = 1;
  try {
    const data = await get("format=json");
    latest = data;
    next = data.next;
    show(document.body, data);
  } catch (e) {
    lost(e.message);
  }
  asking = false;
  timer = setTimeout(look, 1000 * next + 20);
}

function show(root, data) {
  document.body.classList.toggle("stale", root !== document.body);
  fill(root, data);
  const { level, word, headline } = data.verdict;
  if (document.body.dataset.told !== level) setText($("announce"), word + ": " + headline);
  document.body.dataset.told = level;
  document.title = word + " · " + data.name;
}

function lost(why) {
  const summary = latest.clock ? "What is below is of " + latest.clock + ". " : "";
  document.body.dataset.level = "bad";
  show($("verdict"), { ...latest, verdict: { level: "lost", word: "Lost", headline: "This server does not answer", advice: "", summary: summary + "It is down, or you are signed out (" + why + ")." } });
}

let asked = null, again = 0;

async function tell(question) {
  clearTimeout(again);
  asked = question;
  try {
    const story = await get(question.query, question.headers);
    if (asked === question) fill($("telling"), { ...story, told: true });
  } catch (e) {
    if (asked === question) fill($("telling"), { error: e.message, told: true, known: true });
  }
  if (asked === question) again = setTimeout(() => document.hidden || tell(question), 2000);
}

$("ask").addEventListener("submit", event => {
  event.preventDefault();
  try {
    tell({ query: "format=json&limiter=" + $("limiter").value, headers: { "Hybrid-Key": encodeURIComponent($("key").value) } });
  } catch {
    fill($("telling"), { error: "The key is no text.", told: true, known: true });
  }
});

document.addEventListener("click", event => {
  const id = event.target.closest("button[data-id]")?.dataset.id;
  if (!id) return;
  tell({ query: "format=json", headers: { "Hybrid-Key-Id": id } });
  $("telling").focus();
});

document.addEventListener("visibilitychange", () => {
  look();
  if (asked && !document.hidden) tell(asked);
});
look();
