/**
 * Runs the demo for some seconds, and draws what it printed as docs/images/demo.svg.
 *
 * Usage: npm run demo-image [-- SECONDS]
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const charWidthPx = 7.8;
const lineHeightPx = 18;
const paddingPx = 20;
const barHeightPx = 34;
/** How many lines are drawn; the first ones have all that there is to see. */
const linesMax = 32;
const columnsMax = 100;

/** A code of color or weight (SGR). */
const sgrPattern = new RegExp(`${String.fromCharCode(27)}\\[([0-9;]*)m`);

/** Colors of a dark terminal, by the codes that the demo writes: it is dark on every page. */
const colorOf = new Map([
  ["2", "#9198a1"],
  ["31", "#ff7b72"],
  ["32", "#56d364"],
  ["36", "#79c0ff"],
]);

/** Draws text with SGR codes as a terminal, as an SVG document. */
export function drawTerminal(output: string): string {
  const lines = output
    .replaceAll("\r", "")
    .replace(/^\n+|\s+$/g, "")
    .split("\n")
    .slice(0, linesMax);
  const widthPx = Math.ceil(columnsMax * charWidthPx) + 2 * paddingPx;
  const heightPx = lines.length * lineHeightPx + 2 * paddingPx + barHeightPx;
  const rows = lines.map((line, i) => {
    const y = barHeightPx + paddingPx + (i + 0.7) * lineHeightPx;
    return `<text x="${paddingPx}" y="${y.toFixed(1)}" xml:space="preserve">${spans(line)}</text>`;
  });
  const lights = ["#ff5f57", "#febc2e", "#28c840"].map(
    (color, i) => `<circle cx="${22 + i * 20}" cy="17" r="6" fill="${color}"/>`,
  );
  const box = `0 0 ${widthPx} ${heightPx}`;
  const font = "13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" role="img">
<title>What the demo prints: requests allowed and denied, for three callers</title>
<style>text { font: ${font}; fill: #f0f6fc }</style>
<rect width="${widthPx}" height="${heightPx}" rx="10" fill="#0d1117"/>
${lights.join("\n")}
<text x="${widthPx / 2}" y="22" text-anchor="middle" fill="#9198a1">npm start</text>
${rows.join("\n")}
</svg>
`;
}

/** A line's parts, each in the style that holds there. */
function spans(line: string): string {
  let style = "";
  let columns = 0;
  return line
    .split(sgrPattern)
    .map((part, i) => {
      if (i % 2 === 1) {
        style = part === "1" ? ' font-weight="bold"' : colored(part);
        return "";
      }
      const text = part.slice(0, columnsMax - columns);
      columns += text.length;
      return text === "" ? "" : `<tspan${style}>${escapeXml(text)}</tspan>`;
    })
    .join("");
}

function colored(code: string): string {
  const color = colorOf.get(code);
  return color === undefined ? "" : ` fill="${color}"`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** What the demo prints in some seconds, with colors, without the path of a machine. */
function runDemo(seconds: number): string {
  const { stdout } = spawnSync(process.execPath, ["dist/cli/main.js", "demo", "--no-install"], {
    env: { ...process.env, FORCE_COLOR: "1" },
    encoding: "utf8",
    timeout: seconds * 1000,
    killSignal: "SIGINT",
  });
  return stdout.replace(/\n.*Envoy log.*\n/, "\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const output = runDemo(Number(process.argv[2] ?? 9));
  if (!output.includes("429")) throw new Error(`the demo showed no 429:\n${output}`);
  writeFileSync("docs/images/demo.svg", drawTerminal(output));
}
