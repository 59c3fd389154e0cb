import { Envoy } from "./envoy.js";
import { type EnvoyOptions, fromHeader, type Json } from "./envoy-config.js";
import { type HeadgateOptions, HeadgateProcess, type RunningHeadgate } from "./headgate-process.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import type { Stage } from "./stage.js";
import { startUpstream, type Upstream } from "./upstream.js";

/** What stands in a row: client, Envoy, upstream; and beside Envoy, Headgate. */
export interface GatewayOptions {
  readonly policy: NonNullable<HeadgateOptions["policy"]>;
  /** Settings of each Headgate. Default: one, with the embedded store. */
  readonly headgateEnvs?: readonly Readonly<Record<string, string>>[];
  /**
   * What Envoy asks: each a descriptor, of the request headers `x-<key>`, in order. A descriptor is
   * asked for by the requests that carry all of its headers.
   */
  readonly descriptorKeys?: readonly (readonly string[])[];
  /** Envoy's settings; `rateLimits` here come after those that `descriptorKeys` makes. */
  readonly envoy?: Partial<EnvoyOptions>;
}

/** A running row. */
export interface Gateway<Headgate extends RunningHeadgate = HeadgateProcess> {
  readonly envoy: Envoy;
  readonly headgates: readonly [Headgate, ...Headgate[]];
  readonly upstream: Upstream;
  /** Sends a request whose headers are `x-<key>`, through Envoy. */
  send(values?: Readonly<Record<string, string>>): Promise<HttpAnswer>;
}

/** Starts an upstream, Headgates with a process each, and an Envoy; all end with the stage. */
export function startGateway(stage: Stage, options: GatewayOptions): Promise<Gateway> {
  return startRow(stage, options, (one) => HeadgateProcess.prepare(stage, one));
}

/** As `startGateway`, with Headgates that share a process: for all that is not about processes. */
export function startHostedGateway(
  stage: Stage,
  options: GatewayOptions,
): Promise<Gateway<HostedHeadgate>> {
  return startRow(stage, options, (one) => HostedHeadgate.prepare(stage, one));
}

async function startRow<Headgate extends RunningHeadgate & { restart(): Promise<void> }>(
  stage: Stage,
  options: GatewayOptions,
  prepare: (options: HeadgateOptions) => Promise<Headgate>,
): Promise<Gateway<Headgate>> {
  const { policy, headgateEnvs = [{}], descriptorKeys = [], envoy: envoyOptions = {} } = options;
  const upstream = await startUpstream(stage);
  const [first, ...others] = await Promise.all(headgateEnvs.map((env) => prepare({ policy, env })));
  if (first === undefined) throw new Error("a gateway has at least one Headgate");
  const headgates = [first, ...others] as const;
  const startEnvoy = (): Promise<Envoy> =>
    Envoy.start(stage, {
      upstreamPort: upstream.port,
      headgatePorts: headgates.map((headgate) => headgate.grpcPort),
      ...envoyOptions,
      rateLimits: [...descriptorKeys.map(rateLimitOf), ...(envoyOptions.rateLimits ?? [])],
    });
  const ready = Promise.all(headgates.map((headgate) => headgate.restart()));
  // Who checks health would take one that still starts for a broken one, for a while.
  if (envoyOptions.isHealthChecked === true) await ready;
  const [envoy] = await Promise.all([startEnvoy(), ready]);
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send = (values: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> => {
    const headers = Object.entries(values).map(([key, value]) => [`x-${key}`, value]);
    return http.send({ port: envoy.port, headers: Object.fromEntries(headers) });
  };
  return { envoy, headgates, upstream, send };
}

/** What traffic through a gateway counts: the status, as text. */
export async function statusOf(answer: Promise<HttpAnswer>): Promise<string> {
  return String((await answer).status);
}

function rateLimitOf(keys: readonly string[]): Json {
  return { actions: keys.map((key) => fromHeader(`x-${key}`, key)) };
}

/** What a client is told about its limit, as Envoy writes it; absent where there is no header. */
export interface RateLimitHeaders {
  readonly limit: string | undefined;
  readonly remaining: number | undefined;
  readonly resetSeconds: number | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly isRateLimited: boolean;
}

/** Reads the `x-ratelimit-*` headers of an answer. */
export function rateLimitHeaders({ headers }: HttpAnswer): RateLimitHeaders {
  const text = (name: string): string | undefined => headers[name]?.toString();
  const number = (name: string): number | undefined => {
    const value = text(name);
    return value === undefined ? undefined : Number(value);
  };
  return {
    limit: text("x-ratelimit-limit"),
    remaining: number("x-ratelimit-remaining"),
    resetSeconds: number("x-ratelimit-reset"),
    retryAfterSeconds: number("retry-after"),
    isRateLimited: text("x-envoy-ratelimited") === "true",
  };
}

/** A policy of one domain, "edge", with these descriptors in YAML. */
export function edgePolicy(descriptors: string): string {
  const lines = descriptors.trimEnd().split("\n");
  const indents = lines.filter((line) => line.trim() !== "").map((line) => line.search(/\S/));
  const indent = Math.min(...indents);
  return [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: {name: tests}",
    "spec:",
    "  rateLimits:",
    "    - domain: edge",
    "      descriptors:",
    ...lines.map((line) => `        ${line.slice(indent)}`),
    "",
  ].join("\n");
}
