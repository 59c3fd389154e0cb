import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PolicyText } from "../../src/policy/parse.js";
import type { Envoy } from "./envoy.js";
import { indented, startGeneratedEnvoy } from "./generated-envoy.js";
import {
  type HeadgateOptions,
  HeadgateProcess,
  type RunningHeadgate,
  storeBudgetMs,
} from "./headgate-process.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import { RedisServer } from "./redis-server.js";
import { type ScriptedUpstream, startScriptedUpstream } from "./scripted-upstream.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** A room in front of a service of its own. */
interface RoomWish {
  /** Lines of the room beside its name and service, from the margin. */
  readonly room: string;
  /** `admission` of the service, in braces. Default: none. */
  readonly admission?: string;
}

/** What the rooms are, and how their Headgates run. */
export interface RoomEdgeWish {
  /** By their names. Of several, each has a host of its own, which its visitors ask. */
  readonly rooms: Readonly<Record<string, RoomWish>>;
  readonly env?: Readonly<Record<string, string>>;
  /** HTML files beside the policy. */
  readonly pages?: readonly PolicyText[];
}

/** A browser that goes to a page. */
export const navigation = { accept: "text/html", "sec-fetch-mode": "navigate" } as const;

/** A room, its service, and the upstream of that. */
interface GuardedService extends RoomWish {
  readonly name: string;
  readonly host?: string;
  readonly upstream: ScriptedUpstream;
}

const headgateCount = 2;

/** Rooms in front of their services: an Envoy, its two Headgates, and their Redis. */
export class RoomEdge<Headgate extends RunningHeadgate = RunningHeadgate> {
  readonly envoy: Envoy;
  readonly headgates: readonly Headgate[];
  readonly redis: RedisServer;
  readonly #services: Map<string, GuardedService>;
  readonly #policyFolder: string;

  private constructor(parts: {
    readonly envoy: Envoy;
    readonly headgates: readonly Headgate[];
    readonly redis: RedisServer;
    readonly services: Map<string, GuardedService>;
    readonly policyFolder: string;
  }) {
    this.envoy = parts.envoy;
    this.headgates = parts.headgates;
    this.redis = parts.redis;
    this.#services = parts.services;
    this.#policyFolder = parts.policyFolder;
  }

  /** Starts one of which each part is ready; it ends with the stage. */
  static start(stage: Stage, wish: RoomEdgeWish): Promise<RoomEdge> {
    return RoomEdge.#start(stage, wish, (options) => HostedHeadgate.start(stage, options));
  }

  /** As `start`, with Headgates that can be killed. */
  static startProcesses(stage: Stage, wish: RoomEdgeWish): Promise<RoomEdge<HeadgateProcess>> {
    return RoomEdge.#start(stage, wish, (options) => HeadgateProcess.start(stage, options));
  }

  static async #start<Headgate extends RunningHeadgate>(
    stage: Stage,
    { rooms, env, pages = [] }: RoomEdgeWish,
    startOne: (options: HeadgateOptions) => Promise<Headgate>,
  ): Promise<RoomEdge<Headgate>> {
    const services = new Map<string, GuardedService>();
    const names = Object.keys(rooms);
    for (const [name, wish] of Object.entries(rooms)) {
      const host = names.length === 1 ? {} : { host: `${name}.example` };
      services.set(name, { ...wish, name, ...host, upstream: await startScriptedUpstream(stage) });
    }
    const redis = await RedisServer.start({ engine: "redis" });
    stage.atEnd(() => redis.stop());
    const policyFolder = join(stage.folder, "policy");
    await mkdir(policyFolder);
    for (const { file, text } of pages) await writeFile(join(policyFolder, file), text);
    await writeFile(join(policyFolder, policyFile), policyText(services));
    const options = {
      policy: { path: policyFolder },
      env: { REDIS_URL: `127.0.0.1:${redis.port}`, ...env },
    };
    const headgates = await Promise.all(
      Array.from({ length: headgateCount }, () => startOne(options)),
    );
    const [first, ...others] = headgates;
    if (first === undefined) throw new Error("an edge needs a Headgate");
    const { grpcPort } = first;
    const controlPort = first.portOf("control");
    const { envoy } = await startGeneratedEnvoy(stage, {
      proxies: `headgate: {address: 127.0.0.1, port: ${grpcPort}, controlPort: ${controlPort}}`,
      services: serviceLines(services).join("\n"),
      more: roomLines(services).join("\n"),
      pages,
      // Envoy waits longer than decisions wait for the store, as it does where nobody changes both.
      edit: (text) =>
        withEndpoints(text, grpcPort, others).replace(
          /\bmessage_timeout: [\d.]+s/,
          `message_timeout: ${(4 * storeBudgetMs) / 1_000}s`,
        ),
    });
    await waitFor("Envoy finds its Headgates", async () => {
      const healthy = await envoy.stat("cluster.headgate.membership_healthy");
      return healthy === headgates.length;
    });
    const edge = new RoomEdge({ envoy, headgates, redis, services, policyFolder });
    await edge.known();
    return edge;
  }

  /** Changes a room, and waits until all Headgates have read it. */
  async change(name: string, room: string): Promise<void> {
    this.#services.set(name, { ...this.#serviceOf(name), room });
    const loads = (headgate: Headgate): Promise<number> =>
      headgate.metric("headgate_policy_loads_total", { result: "loaded" });
    const before = await Promise.all(this.headgates.map(loads));
    await this.write(policyFile, policyText(this.#services));
    for (const [i, headgate] of this.headgates.entries()) {
      await waitFor("the policy is read", async () => (await loads(headgate)) > (before[i] ?? 0));
    }
  }

  /** Writes a file into the folder of the policy. */
  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.#policyFolder, file), text);
  }

  /** Waits until each Headgate that runs knows how all rooms stand. */
  async known(): Promise<void> {
    for (const headgate of this.headgates.filter(({ isRunning }) => isRunning)) {
      await waitFor("the rooms have leaders", async () => {
        const count = await headgate.metric("headgate_waiting_room_store_reachable");
        return count === this.#services.size;
      });
      // What a leader publishes reaches the other one with its next beat.
      for (const room of this.#services.keys()) {
        await waitFor(`${room} is known`, async () => {
          const { body } = await headgate.get("/metrics");
          return body.includes(`\nheadgate_waiting_room_waiting{room="${room}"} `);
        });
      }
    }
  }

  /** The service behind a room. */
  upstream(room = "sale"): ScriptedUpstream {
    return this.#serviceOf(room).upstream;
  }

  /** A visitor of its own. */
  visitor(stage: Stage, room = "sale"): Visitor {
    const { name, host } = this.#serviceOf(room);
    return new Visitor(stage, { port: this.envoy.port, room: name, host });
  }

  #serviceOf(room: string): GuardedService {
    const service = this.#services.get(room);
    if (service === undefined) throw new Error(`there is no room ${room}`);
    return service;
  }
}

/** Where a room is. */
interface RoomPlace {
  readonly port: number;
  readonly room: string;
  readonly host: string | undefined;
}

/** A browser as far as the room sees one: it keeps the cookies that it is given. */
export class Visitor {
  readonly #http = new HttpClient();
  readonly #place: RoomPlace;
  readonly cookies = new Map<string, string>();

  constructor(stage: Stage, place: RoomPlace) {
    this.#place = place;
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
    const { port, host } = this.#place;
    const named = host === undefined ? headers : { host, ...headers };
    const sent = { ...named, ...(cookie === "" ? {} : { cookie }) };
    const ask = { port, path, method, headers: sent };
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
    const { body } = await this.send(`/.waiting-room/${this.#place.room}/position`, {
      headers: {},
    });
    return JSON.parse(body);
  }

  leave(): Promise<HttpAnswer> {
    return this.send(`/.waiting-room/${this.#place.room}/leave`, { method: "POST", headers: {} });
  }
}

const policyFile = "policy.yaml";

type Services = ReadonlyMap<string, GuardedService>;

function serviceLines(services: Services): readonly string[] {
  return [...services.values()].flatMap(({ name, host, upstream, admission }) => [
    `- name: ${name}`,
    ...(host === undefined ? [] : [`  hosts: [${host}]`]),
    `  upstream: {address: 127.0.0.1, port: ${upstream.port}}`,
    "  priority: {bypassPaths: [/healthz]}",
    ...(admission === undefined ? [] : [`  admission: ${admission}`]),
  ]);
}

function roomLines(services: Services): readonly string[] {
  const rooms = [...services.values()].flatMap(({ name, room }) => [
    `  - name: ${name}`,
    `    service: ${name}`,
    "    cookie: {secure: false}",
    ...indented(room, 4),
  ]);
  return ["waitingRooms:", ...rooms];
}

function policyText(services: Services): string {
  return [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: {name: rooms}",
    "spec:",
    ...indented(roomLines(services).join("\n"), 2),
    "  services:",
    ...indented(serviceLines(services).join("\n"), 4),
    "",
  ].join("\n");
}

/** Each Headgate as an endpoint of the cluster, of which a policy has one. */
function withEndpoints(text: string, port: number, others: readonly RunningHeadgate[]): string {
  const found = new RegExp(`\\n( *)- endpoint:(?:\\n.*){3}\\n *port_value: ${port}\\n`).exec(
    text,
  )?.[0];
  if (found === undefined) throw new Error("no endpoint of Headgate");
  const more = others.map(({ grpcPort }) => found.replace(String(port), String(grpcPort)).slice(1));
  return text.replace(found, found + more.join(""));
}
