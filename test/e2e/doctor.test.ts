import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/program.js";
import { markedBlock } from "../support/docs.js";
import type { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import { type ProxyPorts, startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

const limits = `
  rateLimits:
    - domain: shop
      descriptors:
        - key: plan
          value: free
          descriptors:
            - {key: user, rate_limit: {unit: second, requests_per_unit: 1000}}
`;

interface Pair {
  readonly headgate: HostedHeadgate;
  readonly envoy: Envoy;
  readonly ports: ProxyPorts;
}

/** A generated proxy and the Headgate of the same policy; `edit` changes the proxy's text. */
async function startPair(edit: (text: string) => string = (text) => text): Promise<Pair> {
  const upstream = await startScriptedUpstream(stage);
  const controlPort = await freePort();
  const env = {
    HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}`,
    HEADGATE_DRAIN_DELAY_MS: "0",
  };
  const headgate = await HostedHeadgate.prepare(stage, { policy: "", env });
  // Headgate first, so that the proxy finds it: its policy is known once the proxy is made.
  const place = `{address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: ${controlPort}`;
  const { envoy, policy, ports } = await startGeneratedEnvoy(stage, {
    proxies: `headgate: ${place}, rateLimitTimeout: 1s}`,
    more: limits,
    services: `
      - name: orders
        upstream: {address: 127.0.0.1, port: ${upstream.port}}
        circuitBreakers: {maxRequests: 100}
        rateLimit:
          domain: shop
          descriptors: [[{value: free, as: plan}, {header: x-user, as: user}]]
        concurrency: {law: vegas, limits: {min: 5, max: 40}, feedback: [circuitBreakers]}
        admission: {maxInFlight: 50, queue: {maxWait: 500ms, size: 20}}
    `,
    edit,
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  return { headgate, envoy, ports };
}

interface Report {
  readonly code: number;
  readonly ids: readonly string[];
  readonly text: string;
}

async function examine({ headgate, ports }: Pair, ...more: readonly string[]): Promise<Report> {
  let text = "";
  const take = (said: string): void => {
    text += said;
  };
  const words = ["doctor", "-o", "json", "--policy", headgate.policyPath];
  words.push("--envoy", `http://127.0.0.1:${ports.adminPort}`);
  words.push("--headgate", `http://127.0.0.1:${headgate.httpPort}`, ...more);
  const code = await runCli(words, { out: take, err: take });
  if (code > 1) return { code, ids: [], text };
  const { looks } = JSON.parse(text) as {
    readonly looks: readonly { readonly id: string; readonly kind: string }[];
  };
  const found = looks.filter(({ kind }) => kind === "finding").map(({ id }) => id);
  return { code, ids: [...new Set(found)], text };
}

async function send({ envoy }: Pair, count: number): Promise<void> {
  const http = new HttpClient();
  for (let i = 0; i < count; i += 1) {
    await http.send({ port: envoy.port, headers: { "x-user": "ann" } });
  }
  http.close();
}

/** Runs the lines that the documentation shows, at this pair; answers their exit codes. */
async function runDocumentedLines({ headgate, ports }: Pair): Promise<readonly number[]> {
  const http = new HttpClient();
  const files = { "dump.json": "/config_dump?include_eds", "stats.json": "/stats?format=json" };
  for (const [name, path] of Object.entries(files)) {
    const { body } = await http.send({ port: ports.adminPort, path });
    await writeFile(join(stage.folder, name), body);
  }
  http.close();
  const codes: number[] = [];
  for (const line of markedBlock("doctor").split("\n")) {
    const words = line
      .replace(/^\$ headgate /, "")
      .replace("9901", String(ports.adminPort))
      .replace("8080", String(headgate.httpPort))
      .replace("policy.yaml", headgate.policyPath)
      .replace(/\b(dump|stats)\.json/g, (name) => join(stage.folder, name));
    codes.push(await runCli(words.split(" "), { out: () => {}, err: () => {} }));
  }
  return codes;
}

/** The layer is there, and Headgate's health is known: nothing of the start is left. */
async function settle(pair: Pair): Promise<void> {
  const settled = async (): Promise<boolean> =>
    (await pair.envoy.stat("runtime.update_time")) > 0 &&
    (await pair.envoy.stat("cluster.headgate.membership_healthy")) === 1;
  await waitFor("the pair has settled", settled, { withinMs: 30_000 });
}

/** Replaces a text that must be there, once or wherever it is. */
function swap(from: string | RegExp, to: string): (text: string) => string {
  return (text) => {
    const changed = text.replace(from, to);
    if (changed === text) throw new Error(`nothing to change: ${from}`);
    return changed;
  };
}

/** What is broken in the proxy's configuration, and all that is found. */
const broken: readonly {
  readonly what: string;
  readonly edit: (text: string) => string;
  readonly ids: readonly string[];
  readonly code: number;
}[] = [
  { what: "domain", edit: swap(/domain: shop\b/g, "domain: shopp"), ids: ["HG506"], code: 1 },
  {
    what: "descriptor",
    edit: swap("descriptor_key: user", "descriptor_key: caller"),
    ids: ["HG507", "HG509"],
    code: 1,
  },
  {
    what: "timeout",
    edit: swap(/(?<before>stat_prefix: headgate\n(?:\s*#.*\n)*\s*timeout: )1s/, "$<before>0.002s"),
    ids: ["HG523"],
    code: 0,
  },
  { what: "queue", edit: swap("max_message_timeout: 0.7s", ""), ids: ["HG524"], code: 1 },
  {
    what: "guard",
    edit: swap("ext_proc_graceful_grpc_close: true", "ext_proc_graceful_grpc_close: false"),
    ids: ["HG525"],
    code: 0,
  },
  {
    what: "trailers",
    edit: swap("response_trailer_mode: SEND", "response_trailer_mode: SKIP"),
    ids: ["HG526"],
    code: 0,
  },
  {
    what: "breaker",
    edit: swap(/max_requests: 100000/, "max_requests: 1024"),
    ids: ["HG527"],
    code: 0,
  },
  {
    what: "matcher",
    edit: swap(/upstream_rq_\(time\|active\|/, "upstream_rq_(time|"),
    ids: ["HG544"],
    code: 1,
  },
  { what: "cap", edit: swap("max_ejection_percent: 50", ""), ids: ["HG552"], code: 0 },
];

/**
 * A machine that is busy with other work may delay an answer of admission by 200 ms; Envoy counts
 * that, and then it is to be told.
 */
async function lateIds({ envoy }: Pair): Promise<readonly string[]> {
  const lateCount = await envoy.stat("http.ingress.ext_proc.headgate.message_timeouts");
  return lateCount > 0 ? ["HG521"] : [];
}

describe.concurrent("headgate doctor", () => {
  it("finds nothing wrong with a generated proxy, and what goes wrong with it", async () => {
    const pair = await startPair();
    await settle(pair);
    await send(pair, 20);
    const healthy = await examine(pair, "--watch", "1s");
    expect(healthy.ids, healthy.text).toEqual(await lateIds(pair));
    expect(healthy.code).toBe(0);

    expect(await runDocumentedLines(pair)).toEqual([0, 0, 0]);

    await pair.envoy.setRuntime({ "ratelimit.http_filter_enforcing": "10" });
    const partly = await examine(pair);
    expect(partly).toMatchObject({ code: 0, ids: ["HG510", ...(await lateIds(pair))] });
    await pair.envoy.setRuntime({ "ratelimit.http_filter_enforcing": "" });

    const policy = pair.headgate.policyPath;
    const other = `${policy}.other.yaml`;
    await writeFile(other, "domain: other\ndescriptors: []\n");
    const compared = await examine(pair, "--policy", other);
    expect(compared.ids).toEqual(["HG511", ...(await lateIds(pair))]);

    await pair.headgate.terminate();
    await send(pair, 20);
    await waitFor("its health is known", async () => {
      return (await pair.envoy.stat("cluster.headgate.membership_healthy")) === 0;
    });
    const alone = await examine(pair);
    expect(alone.code).toBe(1);
    expect(alone.ids).toEqual(expect.arrayContaining(["HG504", "HG505", "HG520", "HG541"]));
    await pair.envoy.kill();
    const gone = await examine(pair);
    expect(gone.code).toBe(5);
    expect(gone.text).toContain("nothing listens there");
  });

  it.each(broken)("finds the wrong $what, and nothing else", async ({ edit, ids, code }) => {
    const pair = await startPair(edit);
    await settle(pair);
    const report = await examine(pair);
    expect(report.ids, report.text).toEqual(ids);
    expect(report.code).toBe(code);
    await pair.envoy.kill();
    await pair.headgate.terminate();
  });
});
