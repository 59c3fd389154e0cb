import { layersLoadMax, meanWorkMs, workerCount } from "./layers-settings.js";

/** Page on which users change the example and see the effects. */
export const layersPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Three layers</title>
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
<main>
  <h1>Three layers of protection</h1>
  <p>A caller sends requests through Envoy to a service of ${workerCount} workers, each of which
  needs ${meanWorkMs} ms for a request. Critical requests are a fifth of what they can serve, at any
  load. Switch layers off, and see what becomes of the requests.</p>
  <form>
    <fieldset>
      <legend>Trouble</legend>
      <label for="load">Load <output id="loadText" for="load"></output></label>
      <input id="load" type="range" min="0" max="${layersLoadMax}" step="0.2">
      <div class="buttons">
        <button type="button" id="half" aria-pressed="false">Half of the workers die</button>
        <button type="button" id="stop">All workers stop for 3 s</button>
      </div>
    </fieldset>
    <fieldset>
      <legend>Layers</legend>
      <label><input type="checkbox" role="switch" id="client">
        In the caller: <code>headgate/client</code></label>
      <label><input type="checkbox" role="switch" id="proxy">
        In the proxy: Envoy and Headgate</label>
      <label><input type="checkbox" role="switch" id="server">
        In the service: <code>headgate/server</code></label>
    </fieldset>
  </form>
  <dl>
    <div><dt>Goodput</dt><dd id="goodput">-</dd>
      <dd class="note">work that was answered in time, of what was possible</dd></div>
    <div><dt>Critical served</dt><dd id="critical">-</dd>
      <dd class="note">critical requests that were answered in time</dd></div>
    <div><dt>Attempts per request</dt><dd id="attempts">-</dd>
      <dd class="note">what the caller sent for each of its requests</dd></div>
    <div><dt>Wasted work</dt><dd id="wasted">-</dd>
      <dd class="note">work for callers that had left, of all work</dd></div>
  </dl>
  <figure>
    <svg id="plot" viewBox="0 0 640 220" role="img" aria-labelledby="plotTitle">
      <title id="plotTitle">Goodput, critical served and wasted work in the last minute</title>
    </svg>
    <figcaption>The last minute, in percent:
      <span class="goodput">goodput</span>
      <span class="critical">critical served</span>
      <span class="wasted">wasted work</span>
    </figcaption>
  </figure>
  <p id="state"></p>
</main>
`;

/** Styles of the page, in light and dark. */
export const layersStyle = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif;
  --goodput: light-dark(#1b6b35, #6fd08c); --critical: light-dark(#1f5fa8, #8ab8f2);
  --wasted: light-dark(#b3261e, #f2938c); --line: light-dark(#c8c8c8, #4a4a4a); }
main { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
form { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
fieldset { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem 1rem; }
fieldset label { display: block; padding: .3rem 0; }
input[type=range] { width: 100%; }
input[type=checkbox] { width: 1.2rem; height: 1.2rem; vertical-align: -.2rem; margin-right: .5rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .5rem; }
button { font: inherit; padding: .4rem .8rem; }
button[aria-pressed=true] { outline: 2px solid var(--wasted); }
:focus-visible { outline: 3px solid var(--critical); outline-offset: 2px; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: 1rem; }
dl div { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; font-size: 1.7rem; font-variant-numeric: tabular-nums; }
dd { white-space: nowrap; }
dd.note { font-size: .85rem; white-space: normal; }
figure { margin: 0; }
#plot { width: 100%; height: auto; }
#plot line { stroke: var(--line); }
#plot text { fill: currentColor; font-size: 11px; }
#plot polyline { fill: none; stroke-width: 2; }
polyline.goodput { stroke: var(--goodput); }
polyline.critical { stroke: var(--critical); stroke-dasharray: 7 3; }
polyline.wasted { stroke: var(--wasted); stroke-dasharray: 2 3; }
span.goodput, span.critical, span.wasted { margin-left: 1rem; padding-left: .4rem; }
span.goodput { border-left: 1rem solid var(--goodput); }
span.critical { border-left: 1rem dashed var(--critical); }
span.wasted { border-left: 1rem dotted var(--wasted); }
`;

/** Script of the page: sends changed settings, and shows the last minute once per second. */
export const layersScript = `"use strict";
const layerNames = ["client", "proxy", "server"];
const part = (id) => document.getElementById(id);
const percent = (ratio) => (100 * ratio).toFixed(1) + " %";
let settings;
let sending = Promise.resolve();

function send(change) {
  settings = { ...settings, ...change };
  showSettings();
  const body = JSON.stringify(settings);
  const headers = { "content-type": "application/json" };
  const post = () => fetch("settings", { method: "POST", headers, body });
  sending = sending.then(post).catch(() => {});
}

function showSettings() {
  part("load").value = settings.loadRatio;
  const loadText = settings.loadRatio.toFixed(1) + " times the capacity of all workers";
  part("loadText").textContent = loadText;
  part("load").setAttribute("aria-valuetext", loadText);
  part("half").setAttribute("aria-pressed", String(settings.workersRatio === 0.5));
  part("stop").disabled = settings.workersRatio === 0;
  for (const name of layerNames) part(name).checked = settings.layers[name];
}

function svg(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const [left, right, top_, bottom, secondsMax] = [40, 630, 10, 190, 60];
const xOf = (age) => right - (age / secondsMax) * (right - left);
const yOf = (ratio) => bottom - Math.min(1, ratio) * (bottom - top_);

function drawAxes() {
  for (const ratio of [0, 0.25, 0.5, 0.75, 1]) {
    const y = yOf(ratio);
    part("plot").append(
      svg("line", { x1: left, x2: right, y1: y, y2: y }),
      svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, String(100 * ratio)));
  }
  for (const age of [0, 20, 40, 60]) {
    const text = age === 0 ? "now" : "-" + age + " s";
    part("plot").append(svg("text", { x: xOf(age), y: 208, "text-anchor": "end" }, text));
  }
  for (const name of ["goodput", "critical", "wasted"]) {
    part("plot").append(svg("polyline", { class: name, id: name + "Line" }));
  }
}

function showFigures(figures) {
  for (const name of ["goodput", "critical", "wasted"]) {
    const points = figures.flatMap((one, place) => {
      if (one.requests === 0) return [];
      return [xOf(figures.length - 1 - place) + "," + yOf(one[name + "Ratio"])];
    });
    part(name + "Line").setAttribute("points", points.join(" "));
  }
  const last = figures.at(-1);
  if (last === undefined) return;
  const isIdle = last.requests === 0;
  for (const name of ["goodput", "critical", "wasted"]) {
    part(name).textContent = isIdle ? "-" : percent(Math.min(1, last[name + "Ratio"]));
  }
  part("attempts").textContent = isIdle ? "-" : last.attemptsPerRequest.toFixed(2);
  part("state").textContent = "In the last second: " + last.requests + " requests, " + last.served +
    " served in time, " + last.refused + " refused, " + last.late + " without an answer in time.";
}

async function refresh() {
  try {
    const response = await fetch("state");
    const state = await response.json();
    if (settings === undefined) {
      settings = state.settings;
      showSettings();
    }
    showFigures(state.figures);
  } catch {
    part("state").textContent = "The example does not run any more.";
  }
  setTimeout(refresh, 1000);
}

part("load").addEventListener("input", () => send({ loadRatio: Number(part("load").value) }));
part("half").addEventListener("click", () => {
  send({ workersRatio: settings.workersRatio === 0.5 ? 1 : 0.5 });
});
part("stop").addEventListener("click", () => {
  const { workersRatio } = settings;
  send({ workersRatio: 0 });
  setTimeout(() => send({ workersRatio }), 3000);
});
for (const name of layerNames) {
  part(name).addEventListener("change", () => {
    send({ layers: { ...settings.layers, [name]: part(name).checked } });
  });
}
drawAxes();
refresh();
`;
