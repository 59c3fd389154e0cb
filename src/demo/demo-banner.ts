import type { Style } from "../app/base/style.js";
import type { EnvoyPorts } from "./demo-envoy.js";
import { jsonQuestion } from "./demo-traffic.js";
import { askedModel } from "./llm/llm-callers.js";

/** Addresses of everything that runs, for a user who wants to reach it. */
export interface Running {
  readonly grpcPort: number;
  readonly httpPort: number;
  /** Undefined: there is no console, or another program uses its port. */
  readonly consolePort: number | undefined;
  /** As a user would write it. */
  readonly policyPath: string;
  readonly envoy:
    | {
        readonly kind: "running";
        readonly ports: EnvoyPorts;
        /** `host:port`. */
        readonly adminAddress: string;
        readonly logPath: string;
      }
    /** Why there is none and how to get one, each a sentence without a full stop. */
    | { readonly kind: "missing"; readonly why: string; readonly hint: string };
}

const labelChars = 13;

/** Returns the addresses of everything that runs. */
export function renderBanner(running: Running, style: Style): string {
  const { envoy, httpPort, grpcPort, consolePort, policyPath } = running;
  const headline =
    envoy.kind === "running"
      ? "Headgate is running, and an Envoy calls it for each request."
      : "Headgate is running, without an Envoy in front of it.";
  const rows = [
    ...(envoy.kind === "running"
      ? [
          row(
            "Envoy",
            `http://127.0.0.1:${envoy.ports.envoy}/`,
            `in front of a service on ${envoy.ports.upstream}`,
          ),
        ]
      : []),
    ...(consolePort === undefined
      ? []
      : [row("Console", `http://127.0.0.1:${consolePort}/`, "all of it, in a browser")]),
    row("Headgate", `http://127.0.0.1:${httpPort}/`, "/json /readyz /metrics"),
    row("", `127.0.0.1:${grpcPort}`, "gRPC, for Envoy"),
    row("Policy", policyPath, ""),
    ...(envoy.kind === "running"
      ? [
          row("Envoy log", envoy.logPath, ""),
          row("Envoy admin", `http://${envoy.adminAddress}/`, ""),
        ]
      : []),
  ];
  const missing = envoy.kind === "missing" ? ["", ...renderMissing(envoy, style)] : [];
  return ["", style.bold(headline), "", ...rows.map((line) => `  ${line}`), ...missing].join("\n");

  function row(label: string, address: string, remark: string): string {
    const named = style.dim(label.padEnd(labelChars));
    return `${named}${address.padEnd(28)}${style.dim(remark)}`.trimEnd();
  }
}

function renderMissing(
  { why, hint }: { readonly why: string; readonly hint: string },
  style: Style,
): readonly string[] {
  return [
    `  ${style.bold("Envoy is missing:")} ${why}.`,
    `  To install it, ${hint}.`,
    "  Until then, the callers below call Headgate directly, over HTTP.",
  ];
}

/** Returns the first thing to try: sending requests as a caller. */
export function renderTry(running: Running, style: Style): string {
  const { envoy } = running;
  const command =
    envoy.kind === "running"
      ? `curl -i -H 'x-user: you' http://127.0.0.1:${envoy.ports.envoy}/`
      : jsonCommand(running);
  return [
    "",
    `  ${style.bold("Try it")}       ${style.command(command)}`,
    style.dim("               six times quickly: the sixth gets a 429. Ctrl-C ends everything."),
    "",
  ].join("\n");
}

/** Returns the first thing to try with a waiting room: entering it as a visitor. */
export function renderOpen({ envoy, policyPath }: Running, style: Style): string {
  const port = envoy.kind === "running" ? envoy.ports.envoy : 0;
  const look = [
    "You wait for less than a minute, see your place fall, and are let in. A second tab has",
    "your place too, and with scripts off the page loads itself again. Whoever has not been in",
    "the shop for a minute waits again.",
  ];
  return [
    "",
    `  ${style.bold("Open it")}      ${style.command(`http://127.0.0.1:${port}/`)}`,
    ...look.map((line) => style.dim(`               ${line}`)),
    style.dim(`               To change the room, edit ${policyPath}. Ctrl-C ends everything.`),
    "",
  ].join("\n");
}

/** Returns the first thing to try with the three layers: switching them. */
export function renderLayersPage(port: number, style: Style): string {
  const look = [
    "Raise the load, let half of the workers die, and switch each of the three layers off and on.",
    "Ctrl-C ends everything.",
  ];
  return [
    "",
    `  ${style.bold("Open it")}      ${style.command(`http://127.0.0.1:${port}/`)}`,
    ...look.map((line) => style.dim(`               ${line}`)),
    "",
  ].join("\n");
}

/** Returns the first thing to try with a model: calling it. */
export function renderCallModel(running: Running, style: Style): string {
  const { envoy, httpPort, policyPath } = running;
  const port = envoy.kind === "running" ? envoy.ports.envoy : 0;
  const call = {
    model: askedModel,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 50,
    messages: [{ role: "user", content: "Hello" }],
  };
  const lines = [
    `curl -N http://127.0.0.1:${port}/v1/chat/completions -H 'x-team: you' -H 'x-user: you' \\`,
    `  -d '${JSON.stringify(call)}'`,
  ];
  const rows = [
    ["more at once", "run it four times with & at the end: the fourth gets a 429"],
    ["use it up", 'add "max_tokens": 7000, and the minute\'s tokens do not suffice'],
    ["see the money", `curl -s http://127.0.0.1:${httpPort}/metrics | grep headgate_budget`],
    ["change a budget", `edit ${policyPath}; the change is active as soon as you save it`],
  ];
  return [
    "",
    `  ${style.bold("Try it")}`,
    ...lines.map((line) => `    ${style.command(line)}`),
    ...rows.map(([label = "", text = ""]) => `    ${style.dim(label.padEnd(17))}${text}`),
    style.dim("    Ctrl-C ends everything."),
    "",
  ].join("\n");
}

/** Returns what to do after the first 429. */
export function renderNext(running: Running, style: Style): string {
  const { httpPort } = running;
  const url = `http://127.0.0.1:${httpPort}/metrics`;
  const metrics = `curl -s ${url} | grep headgate_decisions_total`;
  const rows = [
    ["change a limit", `edit ${running.policyPath}; the change is active as soon as you save it`],
    ["see the counts", style.command(metrics)],
    ...(running.envoy.kind === "running"
      ? [["without Envoy", style.command(jsonCommand(running))]]
      : []),
  ];
  const lines = rows.map(([label = "", text = ""]) => `    ${label.padEnd(16)}${text}`);
  return [`  ${style.bold("Next")}`, ...lines, ""].join("\n");
}

function jsonCommand({ httpPort }: Running): string {
  const question = jsonQuestion({ name: "you", plan: "free" });
  return `curl -i -d '${question}' http://127.0.0.1:${httpPort}/json`;
}
