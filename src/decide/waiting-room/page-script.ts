/**
 * Improves the page if scripts run: it asks for the place without reloading the page, shows it in
 * all elements with `data-field`, and continues when the visitor is let in. A worker keeps the
 * time, because browsers slow the timers of hidden tabs down to one per minute, and a place that is
 * not asked for is lost.
 *
 * It runs in a `<script>` with the attributes `data-endpoint`, `data-refresh` in seconds, and
 * `data-unsafe` if the page answers a request that must not be sent again. It cancels the page's
 * own `Refresh`, which is for browsers without scripts.
 */
export const pageScript = `(() => {
const { endpoint, refresh, unsafe } = document.currentScript.dataset;
const interval = refresh * 1000;
let delay = interval, asked = Date.now(), opens, timer, worker;
try {
  const timer = "let t;onmessage=e=>{clearTimeout(t);t=setTimeout(()=>postMessage(0),e.data)}";
  worker = new Worker(URL.createObjectURL(new Blob([timer])));
  worker.onmessage = ask;
} catch {}
const later = () => {
  const ms = delay * (0.9 + 0.2 * Math.random());
  if (worker) worker.postMessage(ms);
  else { clearTimeout(timer); timer = setTimeout(ask, ms); }
};
const show = (page) => {
  for (const name in page) {
    for (const element of document.querySelectorAll('[data-field="' + name + '"]')) {
      if (element.localName === "progress") element.value = page[name];
      else if (element.textContent !== page[name]) element.textContent = page[name];
    }
  }
  document.documentElement.dataset.state = page.state;
  document.title = (page.ahead ? "(" + page.ahead + ") " : "") + page.title;
};
async function ask() {
  asked = Date.now();
  try {
    const headers = { accept: "application/json" };
    const answer = await fetch(endpoint + "/position?page", { headers, cache: "no-store" });
    const { page, state, opensInSeconds, refreshIntervalSeconds } = await answer.json();
    const isOver = !["waiting", "preQueue", "paused", "unavailable"].includes(state);
    if (isOver && !unsafe) return location.reload();
    show(page);
    if (isOver) return;
    delay = refreshIntervalSeconds * 1000;
    opens = opensInSeconds && Date.now() + opensInSeconds * 1000;
  } catch {
    delay = Math.min(2 * delay, 4 * interval);
  }
  later();
}
setInterval(() => {
  if (opens && opens <= Date.now()) { opens = 0; ask(); }
}, 1000);
addEventListener("visibilitychange", () => {
  if (!document.hidden && Date.now() - asked > interval / 2) ask();
});
addEventListener("load", () => setTimeout(() => stop()));
later();
})();`;
