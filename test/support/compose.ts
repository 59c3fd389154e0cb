import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { freePort } from "./free-port.js";
import { HeadgateProcess } from "./headgate-process.js";
import { HttpClient } from "./http-client.js";
import { requireProgram } from "./programs.js";
import { startRedis } from "./redis.js";
import type { Stage } from "./stage.js";
import { startUpstream } from "./upstream.js";
import { waitFor } from "./wait.js";

const service = z.looseObject({
  image: z.string(),
  build: z.string().optional(),
  environment: z.record(z.string(), z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  ports: z.array(z.string()).optional(),
  command: z.array(z.string()).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).optional(),
  networks: z
    .union([
      z.record(z.string(), z.object({ aliases: z.array(z.string()).default([]) })),
      z.array(z.string()).transform((names) => {
        return Object.fromEntries(names.map((name) => [name, { aliases: [] as string[] }]));
      }),
    ])
    .optional(),
  stop_grace_period: z.string().optional(),
});

const composeFile = z.looseObject({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.object({ internal: z.boolean().default(false) })),
});

/** One service of a compose file. */
export type ComposeService = z.infer<typeof service>;

/** docker-compose.yml as Docker Compose reads it, with its merge keys. */
export function readComposeFile(): unknown {
  return parse(readFileSync("docker-compose.yml", "utf8"), { merge: true });
}

/** The published schema of such files. */
export function composeSchema(): object {
  const text = readFileSync("test/support/compose-schema.jsonl", "utf8");
  if (text === "") throw new Error("make it again by test/support/compose-schema.mjs");
  // It is of draft 7, which is what ajv takes where nothing is said.
  const { $schema: _, ...schema } = z.looseObject({}).parse(JSON.parse(text));
  return schema;
}

const composeModel = z.looseObject({
  services: z.record(
    z.string(),
    z.looseObject({
      networks: z.record(
        z.string(),
        z
          .looseObject({ aliases: z.array(z.string()).optional() })
          .nullable()
          .transform((one) => ({ aliases: one?.aliases ?? [] })),
      ),
      ports: z
        .array(z.looseObject({ host_ip: z.string(), published: z.string(), target: z.number() }))
        .transform((ports) => ports.map((one) => `${one.host_ip}:${one.published}:${one.target}`))
        .optional(),
      volumes: z
        .array(
          z
            .looseObject({
              source: z.string(),
              target: z.string(),
              read_only: z.boolean().optional(),
            })
            .transform((one) => `${one.source}:${one.target}${one.read_only ? ":ro" : ""}`),
        )
        .optional(),
      depends_on: z
        .record(
          z.string(),
          z.looseObject({ condition: z.string() }).transform(({ condition }) => ({ condition })),
        )
        .optional(),
    }),
  ),
});

/**
 * What Compose's own parser made of docker-compose.yml when it was last asked, in short forms. To
 * ask it again (it needs Go's module proxy), write what this prints to compose-model.jsonl:
 *
 *   GOBIN=/tmp go install github.com/compose-spec/compose-go/v2/cmd@v2.9.0
 *   /tmp/cmd -format json -no-path-resolution docker-compose.yml | jq -c .
 */
export function recordedComposeModel(): Readonly<Record<string, object>> {
  const text = readFileSync("test/support/compose-model.jsonl", "utf8");
  return composeModel.parse(JSON.parse(text)).services;
}

/** Its networks that lead nowhere else, by name. */
export function internalNetworks(): readonly string[] {
  const { networks } = composeFile.parse(readComposeFile());
  return Object.entries(networks).flatMap(([name, { internal }]) => (internal ? [name] : []));
}

/** Its services. */
export function composeServices(): Readonly<Record<string, ComposeService>> {
  return composeFile.parse(readComposeFile()).services;
}

/** The services that a name leads to: one of that name, or all of that alias. */
export function servicesNamed(name: string): readonly string[] {
  return Object.entries(composeServices())
    .filter(([own, { networks = {} }]) => {
      return own === name || Object.values(networks).some(({ aliases }) => aliases.includes(name));
    })
    .map(([own]) => own);
}

/** Where a path of a container lies in this repository. */
export function onHost({ volumes = [] }: ComposeService, path: string): string {
  for (const volume of volumes) {
    const [source = "", target = ""] = volume.split(":");
    if (path.startsWith(`${target}/`)) return join(source, path.slice(target.length));
  }
  throw new Error(`${path} is not mounted`);
}

/** How long an Envoy may take to start, in milliseconds. */
const startMsMax = 30_000;

/**
 * What docker-compose.yml starts, as plain processes on loopback, from the same files. What differs
 * stands in one place: a name and a port of the compose file's network is a free port here.
 */
export class ComposeTopology {
  readonly http = new HttpClient();
  readonly headgates: HeadgateProcess[] = [];
  readonly #stage: Stage;
  readonly #services = composeServices();
  /** Free ports by `service:port`. */
  readonly #ports = new Map<string, number | Promise<number>>();

  private constructor(stage: Stage) {
    this.#stage = stage;
    stage.atEnd(() => this.http.close());
  }

  /** Starts all but what watches; resolves when Envoys have found both Headgates. */
  static async start(stage: Stage): Promise<ComposeTopology> {
    const topology = new ComposeTopology(stage);
    const [, ...redisArgs] = topology.#service("redis").command ?? [];
    const [redis, upstream] = await Promise.all([
      startRedis(stage, { args: redisArgs }),
      startUpstream(stage),
    ]);
    topology.#ports.set("redis:6379", redis.port);
    topology.#ports.set("upstream:10080", upstream.port);
    await Promise.all(servicesNamed("headgate").map((name) => topology.#startHeadgate(name)));
    await Promise.all(["envoy-1", "envoy-2"].map((name) => topology.#startEnvoy(name)));
    return topology;
  }

  /** The port of loopback that stands for one of a service. */
  async port(name: string, port: number): Promise<number> {
    const key = `${name}:${port}`;
    const found = this.#ports.get(key) ?? freePort();
    this.#ports.set(key, found);
    return found;
  }

  #service(name: string): ComposeService {
    const found = this.#services[name];
    if (found === undefined) throw new Error(`there is no service ${name}`);
    return found;
  }

  async #startHeadgate(name: string): Promise<void> {
    const own = this.#service(name);
    const { HEADGATE_POLICY: policy = "", ...env } = own.environment ?? {};
    const headgate = await HeadgateProcess.start(this.#stage, {
      policy: { path: onHost(own, policy) },
      env: {
        ...env,
        REDIS_URL: `127.0.0.1:${await this.port("redis", 6_379)}`,
        HEADGATE_CONTROL_ADDR: `127.0.0.1:${await this.port(name, 18_000)}`,
      },
    });
    this.#ports.set(`${name}:8080`, headgate.httpPort);
    this.#ports.set(`${name}:8081`, headgate.grpcPort);
    this.headgates.push(headgate);
  }

  async #startEnvoy(name: string): Promise<void> {
    const own = this.#service(name);
    const args = [...(own.command ?? [])];
    await this.#replace(args, "--config-path", async (path) => {
      const file = join(this.#stage.folder, `${name}.json`);
      await writeFile(file, await this.#onLoopback(name, readFileSync(onHost(own, path), "utf8")));
      return file;
    });
    args.push("--use-dynamic-base-id", "--log-level", "warning");
    const file = await requireProgram("envoy");
    const program = this.#stage.spawn({ name, file, args });
    const adminPort = await this.port(name, 9_901);
    await waitFor(
      `${name} has found both Headgates`,
      async () => {
        if (!program.isRunning) throw new Error(`${name} ended: ${program.output.slice(-2_000)}`);
        const { status } = await this.http.send({ port: adminPort, path: "/ready" });
        if (status !== 200) return false;
        const { body } = await this.http.send({ port: adminPort, path: "/clusters" });
        return body.match(/^headgate::.*::health_flags::healthy$/gm)?.length === 2;
      },
      { withinMs: startMsMax, everyMs: 50 },
    );
  }

  async #replace(
    args: string[],
    flag: string,
    make: (value: string) => Promise<string>,
  ): Promise<void> {
    const index = args.indexOf(flag) + 1;
    if (index === 0) throw new Error(`${flag} is not given`);
    args[index] = await make(args[index] ?? "");
  }

  /** The same configuration, with ports of loopback for names and ports. */
  async #onLoopback(name: string, text: string): Promise<string> {
    const visit = async (value: unknown): Promise<unknown> => {
      if (Array.isArray(value)) return (await Promise.all(value.map(visit))).flat();
      if (typeof value !== "object" || value === null) return value;
      const own = socketAddress.safeParse(value);
      if (own.success) return this.#address(name, own.data.socket_address.port_value);
      const remote = lbEndpoint.safeParse(value);
      if (remote.success) return this.#endpoints(name, remote.data);
      const entries: [string, unknown][] = [];
      for (const [key, one] of Object.entries(value)) entries.push([key, await visit(one)]);
      return Object.fromEntries(entries);
    };
    // On a busy machine Envoy would give up on the rate limits of requests, and let them pass.
    return JSON.stringify(await visit(parse(text))).replaceAll('"0.02s"', '"3s"');
  }

  /** A name with several services is several endpoints, as its lookup would be. */
  async #endpoints(name: string, { endpoint }: z.infer<typeof lbEndpoint>): Promise<unknown[]> {
    const { address, port_value: port } = endpoint.address.socket_address;
    const found = address === "127.0.0.1" ? [name] : servicesNamed(address);
    if (found.length === 0) throw new Error(`${address} leads nowhere`);
    return Promise.all(
      found.map(async (one) => ({ endpoint: { address: await this.#address(one, port) } })),
    );
  }

  async #address(name: string, port: number): Promise<object> {
    const found = await this.port(name, port);
    return { socket_address: { address: "127.0.0.1", port_value: found } };
  }
}

const socketAddress = z.strictObject({
  socket_address: z.strictObject({ address: z.string(), port_value: z.number() }),
});

const lbEndpoint = z.strictObject({ endpoint: z.strictObject({ address: socketAddress }) });
