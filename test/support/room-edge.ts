import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PolicyText } from "../../src/policy/parse.js";
import type { Envoy } from "./envoy.js";
import { indented, startGeneratedEnvoy } from "./generated-envoy.js";
import { HeadgateProcess, storeBudgetMs } from "./headgate-process.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import { RedisServer } from "./redis-server.js";
import { type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** What a room is, and how its Headgates run. */
export interface RoomEdgeWish {
  /** Lines of the room beside its name and service, from the margin. */
  readonly room: string;
  readonly env?: Readonly<Record<string, string>>;
  /** `admission` of the service, in braces. Default: none. */
  readonly admission?: string;
  /** Default 2. */
  readonly headgateCount?: number;
  /** HTML files beside the policy; then all Headgates read one folder. */
  readonly pages?: readonly PolicyText[];
}

/** A browser that goes to a page. */
export const navigation = { accept: "text/html", "sec-fetch-mode": "navigate" } as const;

/** The room "sale" in front of a shop: an Envoy, its Headgates, and their Redis. */
export class RoomEdge {
  readonly envoy: Envoy;
  readonly headgates: readonly HeadgateProcess[];
  readonly redis: RedisServer;
  readonly upstream: ScriptedUpstream;

  private constructor(parts: {
    readonly envoy: Envoy;
    readonly headgates: readonly HeadgateProcess[];
    readonly redis: RedisServer;
    readonly upstream: ScriptedUpstream;
  }) {
    this.envoy = parts.envoy;
    this.headgates = parts.headgates;
    this.redis = parts.redis;
    this.upstream = parts.upstream;
  }

  /** Starts one of which each part is ready; it ends with the stage. */
  static async start(stage: Stage, wish: RoomEdgeWish): Promise<RoomEdge> {
    const upstream = await startScriptedUpstream(stage);
    const redis = await RedisServer.start({ engine: "redis" });
    stage.atEnd(() => redis.stop());
    const more = roomLines(wish.room);
    const services = serviceLines(upstream.port, wish.admission);
    const text = policyText(wish.room, services);
    const policy = wish.pages ? await policyFolder(stage, text, wish.pages) : text;
    const env = { REDIS_URL: `127.0.0.1:${redis.port}`, ...wish.env };
    const headgates: HeadgateProcess[] = [];
    for (let i = 0; i < (wish.headgateCount ?? 2); i += 1) {
      headgates.push(await HeadgateProcess.start(stage, { policy, env }));
    }
    const [first, ...others] = headgates;
    if (first === undefined) throw new Error("an edge needs a Headgate");
    const { grpcPort } = first;
    const controlPort = first.portOf("control");
    const { envoy } = await startGeneratedEnvoy(stage, {
      proxies: `headgate: {address: 127.0.0.1, port: ${grpcPort}, controlPort: ${controlPort}}`,
      services,
      more: more.join("\n"),
      pages: wish.pages ?? [],
      // Envoy waits longer than decisions wait for the store, as it does where nobody changes both.
      edit: (text) =>
        withEndpoints(text, grpcPort, others).replace(
          "message_timeout: 0.2s",
          `message_timeout: ${(4 * storeBudgetMs) / 1_000}s`,
        ),
    });
    await waitFor("Envoy finds its Headgates", async () => {
      const healthy = await envoy.stat("cluster.headgate.membership_healthy");
      return healthy === headgates.length;
    });
    const edge = new RoomEdge({ envoy, headgates, redis, upstream });
    await edge.known();
    return edge;
  }

  /** Gives each Headgate another room of that name, and waits until all have read it. */
  async change(room: string): Promise<void> {
    for (const headgate of this.headgates) {
      const loads = (): Promise<number> =>
        headgate.metric("headgate_policy_loads_total", { result: "loaded" });
      const before = await loads();
      await writeFile(headgate.policyPath, policyText(room, serviceLines(this.upstream.port)));
      await waitFor("the policy is read", async () => (await loads()) > before);
    }
  }

  /** Waits until each Headgate that runs knows how the room stands. */
  async known(): Promise<void> {
    for (const headgate of this.headgates.filter(({ process }) => process.isRunning)) {
      await waitFor("the room has a leader", async () => {
        return (await headgate.metric("headgate_waiting_room_store_reachable")) === 1;
      });
    }
  }

  /** A visitor of its own. */
  visitor(stage: Stage): Visitor {
    return new Visitor(stage, this.envoy.port);
  }
}

/** A browser as far as the room sees one: it keeps the cookies that it is given. */
export class Visitor {
  readonly #http = new HttpClient();
  readonly #port: number;
  readonly cookies = new Map<string, string>();

  constructor(stage: Stage, port: number) {
    this.#port = port;
    stage.atEnd(() => this.#http.close());
  }

  async send(
    path: string,
    {
      method = "GET",
      headers = navigation,
      body,
    }: {
      readonly method?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    } = {},
  ): Promise<HttpAnswer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const sent = { ...headers, ...(cookie === "" ? {} : { cookie }) };
    const ask = { port: this.#port, path, method, headers: sent };
    const answer = await this.#http.send(body === undefined ? ask : { ...ask, body });
    for (const line of [answer.headers["set-cookie"] ?? []].flat()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }

  /** In a word: `in`, or the state of the page. */
  async go(path = "/"): Promise<string> {
    const { body } = await this.send(path);
    return /data-state="(\w+)"/.exec(body)?.[1] ?? "in";
  }

  /** What the room's endpoint says. */
  async position(): Promise<Readonly<Record<string, unknown>>> {
    const { body } = await this.send("/.waiting-room/sale/position", { headers: {} });
    return JSON.parse(body);
  }

  leave(): Promise<HttpAnswer> {
    return this.send("/.waiting-room/sale/leave", { method: "POST", headers: {} });
  }
}

function serviceLines(port: number, admission?: string): string {
  return `
    - name: shop
      upstream: {address: 127.0.0.1, port: ${port}}
      priority: {bypassPaths: [/healthz]}
      ${admission === undefined ? "" : `admission: ${admission}`}
  `;
}

function roomLines(room: string): readonly string[] {
  const common = ["name: sale", "service: shop", "cookie: {secure: false}"];
  const [first, ...others] = [...common, ...indented(room, 0)];
  return ["waitingRooms:", `  - ${first}`, ...others.map((line) => `    ${line}`)];
}

function policyText(room: string, services: string): string {
  return [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: {name: rooms}",
    "spec:",
    ...roomLines(room).map((line) => `  ${line}`),
    "  services:",
    ...indented(services, 4),
    "",
  ].join("\n");
}

async function policyFolder(
  { folder }: Stage,
  policy: string,
  pages: readonly PolicyText[],
): Promise<{ readonly path: string }> {
  const path = join(folder, "policy");
  await mkdir(path);
  for (const { file, text } of [...pages, { file: "policy.yaml", text: policy }]) {
    await writeFile(join(path, file), text);
  }
  return { path };
}

/** Each Headgate as an endpoint of the cluster, of which a policy has one. */
function withEndpoints(text: string, port: number, others: readonly HeadgateProcess[]): string {
  const found = new RegExp(`\\n( *)- endpoint:(?:\\n.*){3}\\n *port_value: ${port}\\n`).exec(
    text,
  )?.[0];
  if (found === undefined) throw new Error("no endpoint of Headgate");
  const more = others.map(({ grpcPort }) => found.replace(String(port), String(grpcPort)).slice(1));
  return text.replace(found, found + more.join(""));
}
