import { Agent, type ClientRequest, type IncomingHttpHeaders, request } from "node:http";
import { parseDocument } from "yaml";
import { FakeModel, type ModelPace } from "../../src/demo/llm/llm-model.js";
import { systemClock } from "../../src/host/clock.js";
import { type AdminClients, adminClients } from "./admin.js";
import type { Envoy } from "./envoy.js";
import { indented, startGeneratedEnvoy } from "./generated-envoy.js";
import {
  type HeadgateOptions,
  HeadgateProcess,
  type RunningHeadgate,
  storeBudgetMs,
} from "./headgate-process.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import { RedisServer } from "./redis-server.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** What an edge in front of a model is. */
export interface BudgetEdgeWish {
  /** Lines of `budgets`, from the margin. */
  readonly budgets: string;
  /** `usage` of the service, in braces. Default: all of it from bodies. */
  readonly usage?: string;
  /** Lines of the service beside, from the margin. */
  readonly service?: string;
  /** Default 1. */
  readonly headgateCount?: number;
  /** Whether responses are shown to the last Headgate alone, and requests to the others. */
  readonly observesElsewhere?: true;
  readonly pace?: Partial<ModelPace>;
  readonly env?: Readonly<Record<string, string>>;
  /** More words of Redis's command line. */
  readonly redisArgs?: readonly string[];
}

/** How an account stands; amounts are small enough for numbers. */
export interface SeenAccount {
  readonly spent: number;
  readonly reserved: number;
  readonly lost: number;
}

/** What a call asks for. */
export interface ModelAsk {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly path?: string;
}

/** What a call came to. */
export interface ModelAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Whether it ended as it should. */
  readonly isWhole: boolean;
}

/** A call on its way. */
export class ModelCall {
  /** What has come so far. */
  text = "";
  readonly ended: Promise<ModelAnswer>;
  readonly #sent: ClientRequest;

  constructor(agent: Agent, port: number, { headers = {}, body = {}, path }: ModelAsk) {
    const options = { host: "127.0.0.1", port, agent, method: "POST" };
    this.#sent = request({ ...options, path: path ?? "/v1/chat/completions", headers });
    this.ended = new Promise((resolve) => {
      const end = (status: number, has: IncomingHttpHeaders, isWhole: boolean): void =>
        resolve({ status, headers: has, text: this.text, isWhole });
      this.#sent.once("error", () => end(0, {}, false));
      this.#sent.once("response", (response) => {
        const { statusCode = 0, headers: has } = response;
        response.on("data", (chunk: Buffer) => {
          this.text += String(chunk);
        });
        response.once("close", () => end(statusCode, has, response.complete));
        response.once("error", () => end(statusCode, has, false));
      });
    });
    this.#sent.end(JSON.stringify({ model: "large-1", messages: [], ...body }));
  }

  /** Leaves. */
  abort(): void {
    this.#sent.destroy();
  }
}

/** A model that streams, an Envoy in front of it, its Headgates, and their Redis. */
export class BudgetEdge<Headgate extends RunningHeadgate = RunningHeadgate> {
  readonly envoy: Envoy;
  readonly headgates: readonly Headgate[];
  readonly redis: RedisServer;
  readonly model: FakeModel;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #admins: readonly AdminClients[];

  private constructor(
    parts: Pick<BudgetEdge<Headgate>, "envoy" | "headgates" | "redis" | "model">,
  ) {
    this.envoy = parts.envoy;
    this.headgates = parts.headgates;
    this.redis = parts.redis;
    this.model = parts.model;
    this.#admins = parts.headgates.map((headgate) => adminClients(headgate.portOf("admin")));
  }

  /** Starts one of which each part is ready; it ends with the stage. */
  static start(stage: Stage, wish: BudgetEdgeWish): Promise<BudgetEdge> {
    return BudgetEdge.#start(stage, wish, (options) => HostedHeadgate.start(stage, options));
  }

  /** As `start`, with Headgates that can be killed. */
  static startProcesses(stage: Stage, wish: BudgetEdgeWish): Promise<BudgetEdge<HeadgateProcess>> {
    return BudgetEdge.#start(stage, wish, (options) => HeadgateProcess.start(stage, options));
  }

  static async #start<Headgate extends RunningHeadgate>(
    stage: Stage,
    wish: BudgetEdgeWish,
    startOne: (options: HeadgateOptions) => Promise<Headgate>,
  ): Promise<BudgetEdge<Headgate>> {
    const pace = { firstMs: 5, everyMs: 2, outputTokens: 20, ...wish.pace };
    const model = new FakeModel({ clock: systemClock, pace });
    const cheaper = new FakeModel({ clock: systemClock, pace, model: "small-1" });
    const modelPort = await model.listen(0, "test");
    const cheaperPort = await cheaper.listen(0, "test");
    for (const one of [model, cheaper]) stage.atEnd(() => one.close());
    const redis = await RedisServer.start({ engine: "redis", args: wish.redisArgs ?? [] });
    stage.atEnd(() => redis.stop());
    const services = serviceLines(wish, modelPort, cheaperPort);
    const more = ["budgets:", ...indented(wish.budgets, 2)].join("\n");
    const policy = policyText(more, services);
    const env = {
      REDIS_URL: `127.0.0.1:${redis.port}`,
      HEADGATE_ADMIN_OPEN: "true",
      HEADGATE_BUDGET_LEASE_MS: "2000",
      ...wish.env,
    };
    const headgates = await Promise.all(
      Array.from({ length: wish.headgateCount ?? 1 }, () => startOne({ policy, env })),
    );
    const [first] = headgates;
    if (first === undefined) throw new Error("an edge needs a Headgate");
    const [port, controlPort] = [first.grpcPort, first.portOf("control")];
    const { envoy } = await startGeneratedEnvoy(stage, {
      proxies: `headgate: {address: 127.0.0.1, port: ${port}, controlPort: ${controlPort}}`,
      services,
      more,
      edit: (text) => edited(text, headgates, wish.observesElsewhere === true),
    });
    const asked = wish.observesElsewhere === true ? headgates.length - 1 : headgates.length;
    await waitFor("Envoy finds its Headgates", async () => {
      return (await envoy.stat("cluster.headgate.membership_healthy")) === asked;
    });
    const edge = new BudgetEdge({ envoy, headgates, redis, model });
    stage.atEnd(() => edge.#agent.destroy());
    return edge;
  }

  /** Begins a call. */
  open(ask: ModelAsk = {}): ModelCall {
    return new ModelCall(this.#agent, this.envoy.port, ask);
  }

  /** Calls, and waits for its end. */
  call(ask: ModelAsk = {}): Promise<ModelAnswer> {
    return this.open(ask).ended;
  }

  /** How an account stands, as a replica says. */
  async account(budget: string, values: readonly string[], replica = 0): Promise<SeenAccount> {
    const admin = this.#admins[replica];
    if (admin === undefined) throw new Error("there is no such replica");
    const { account } = await admin.budgets.getBudgetAccount({
      account: { budget, values: [...values] },
    });
    const { spent = 0n, reserved = 0n, lost = 0n } = account ?? {};
    return { spent: Number(spent), reserved: Number(reserved), lost: Number(lost) };
  }

  /** Waits until nothing of an account is reserved, and answers how it stands. */
  async settled(budget: string, values: readonly string[], replica = 0): Promise<SeenAccount> {
    const look = async (): Promise<SeenAccount | undefined> => {
      const account = await this.account(budget, values, replica);
      return account.reserved === 0 && account.spent > 0 ? account : undefined;
    };
    return waitFor("all calls are settled", look, { everyMs: 100 });
  }
}

function serviceLines(
  { usage = "{model: body, declaredMax: body, from: body}", service = "" }: BudgetEdgeWish,
  port: number,
  cheaperPort: number,
): string {
  return [
    "- name: models",
    "  hosts: [127.0.0.1]",
    `  upstream: {address: 127.0.0.1, port: ${port}}`,
    `  usage: ${usage}`,
    ...(service === "" ? [] : indented(service, 2)),
    "- name: cheaper",
    "  hosts: [cheaper.example]",
    `  upstream: {address: 127.0.0.1, port: ${cheaperPort}}`,
  ].join("\n");
}

function policyText(more: string, services: string): string {
  return [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: {name: budgets}",
    "spec:",
    ...indented(more, 2),
    "  services:",
    ...indented(services, 4),
    "",
  ].join("\n");
}

/**
 * Gives Envoy all Headgates: those that it asks behind one name, and the one that it shows
 * responses behind another where that is wished. It waits longer than decisions wait for the store.
 */
function edited(
  text: string,
  headgates: readonly RunningHeadgate[],
  observesElsewhere: boolean,
): string {
  const document = parseDocument(
    text.replace(/\bmessage_timeout: [\d.]+s/, `message_timeout: ${(4 * storeBudgetMs) / 1_000}s`),
  );
  const config = document.toJS();
  const { clusters } = config.static_resources;
  const asked = clusters.find((one: { name: string }) => one.name === "headgate");
  const endpointOf = ({ grpcPort }: RunningHeadgate) => ({
    endpoint: {
      address: { socket_address: { address: "127.0.0.1", port_value: grpcPort } },
    },
  });
  const shown = observesElsewhere ? headgates.slice(-1) : [];
  const asking = observesElsewhere ? headgates.slice(0, -1) : headgates;
  asked.load_assignment.endpoints = [{ lb_endpoints: asking.map(endpointOf) }];
  if (!observesElsewhere) return JSON.stringify(config);
  const endpoints = [{ lb_endpoints: shown.map(endpointOf) }];
  // A health check would find out that it has stopped.
  const { health_checks: _, outlier_detection: __, ...rest } = asked;
  const other = { cluster_name: "observers", endpoints };
  clusters.push({ ...rest, name: "observers", load_assignment: other });
  return JSON.stringify(config).replace(
    /("envoy_grpc":\{"cluster_name":")headgate("\},"initial_metadata":\[\{"key":"x-headgate-role")/,
    "$1observers$2",
  );
}
