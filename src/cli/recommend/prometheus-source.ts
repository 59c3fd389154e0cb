import { exitCodes } from "../../app/base/failure.js";
import { askText } from "../../app/base/signal-http.js";
import { chooseSignals } from "../../app/config/signal-choice.js";
import { isServiceError } from "../../core/base/errors.js";
import { systemClock } from "../../host/clock.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { formatDuration, parseDurationMs } from "../../policy/text/duration.js";
import type { StepObservations, StepSubjects } from "../../recommend/join-services.js";
import {
  type QueryRange,
  rangeStepsMax,
  readMatrix,
  readRange,
  readVector,
} from "../../recommend/services/prometheus-answers.js";
import {
  type ServiceMeasure,
  type ServiceSeries,
  windowsOfSeries,
} from "../../recommend/services/prometheus-windows.js";
import {
  type EnvoyPeaks,
  observeWindows,
  type ServiceObservations,
} from "../../recommend/services/service-observations.js";
import { isLoopback, readPem, readToken } from "../admin/admin-client.js";
import { CommandFailure, usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import {
  fillQuery,
  type PrometheusPlan,
  proxyPeaks,
  queryNames,
  ruleHitsQuery,
  ruleRatesQuery,
  serviceQueries,
  serviceQueryNames,
} from "./prometheus-queries.js";
import { hitsOf, observeRules, type RuleServer } from "./prometheus-rules.js";

/** Flags for Prometheus. */
export interface PrometheusFlags {
  readonly prometheus?: string;
  readonly prometheusCa?: string;
  readonly range: string;
  readonly step: string;
  readonly query?: readonly string[];
}

/** Timeouts of one answer and of all together, in milliseconds. */
const answerMsMax = 30_000;
const allMsMax = 300_000;

/** Maximum size of an answer, in bytes: four times 10,000 steps of one series. */
const answerBytesMax = 2_097_152;

/** @throws CommandFailure for wrong usage */
export function readPrometheusPlan({ range, step, query = [] }: PrometheusFlags): PrometheusPlan {
  const [rangeMs = 0, stepMs = 0] = [parseDurationMs(range), parseDurationMs(step)];
  if (stepMs < 1_000) throw usageFailure("--step must be a duration of at least 1s, such as 1m");
  if (rangeMs < 2 * stepMs || rangeMs > rangeStepsMax * stepMs) {
    const most = formatDuration(rangeStepsMax * stepMs);
    throw usageFailure(`--range must be a duration from two steps to ${most}, such as 1d`);
  }
  const queries = new Map(
    query.map((text) => {
      const [name, ...rest] = text.split("=");
      const known = queryNames.find((one) => one === name);
      if (known !== undefined && rest.length > 0) return [known, rest.join("=")] as const;
      const names = queryNames.join(", ");
      throw usageFailure(
        `--query ${visibleText(name ?? "")}: write NAME=PROMQL with one of ${names}`,
      );
    }),
  );
  const times = { window: formatDuration(stepMs), range: formatDuration(rangeMs) };
  return { times, rangeMs, stepMs, queries };
}

/** Returns all queries for some services and rules, to read and to adapt. */
export function showQueries({ services, rules }: StepSubjects, plan: PrometheusPlan): string {
  const ofRules = rules.flatMap((rule) => {
    const name = hitsOf(rule);
    if (name === undefined) return [];
    return [`# ${rule.domain}/${rule.label}`, `${name}=${ruleHitsQuery(rule, name, plan)}`, ""];
  });
  const lines = services.flatMap((service) => [
    `# ${service.name}`,
    ...Object.entries(queriesOf(service, plan)).map(([name, query]) => `${name}=${query}`),
    "",
  ]);
  const peaks = Object.entries(proxyPeaks).map(([name, of]) => `${name}=${of(plan.times.range)}`);
  return [...lines, ...ofRules, "# all", `rules=${ruleRatesQuery(plan.times)}`, ...peaks].join(
    "\n",
  );
}

function queriesOf(service: ServicePolicy, { times, queries }: PrometheusPlan) {
  const all = serviceQueries(service, times);
  for (const name of serviceQueryNames) {
    const own = queries.get(name);
    if (own !== undefined) all[name] = fillQuery(own, service, times);
  }
  return all;
}

/**
 * Queries Prometheus for all services and rules.
 *
 * @throws CommandFailure if it does not answer, or not like Prometheus
 */
export async function observePrometheus(
  { services, rules }: StepSubjects,
  { flags, plan, context }: PrometheusCall,
): Promise<StepObservations> {
  const server = createServer(flags, context);
  const nowMs = Math.floor(systemClock.epochUs() / 1_000);
  const endMs = nowMs - (nowMs % plan.stepMs);
  const range = { startMs: endMs - plan.rangeMs, endMs, stepMs: plan.stepMs };
  const observed: ServiceObservations[] = [];
  for (const service of services) {
    context.terminal.isScreen && context.output.err(`Asking for ${visibleText(service.name)} …`);
    observed.push(await observeService(server, service, { plan, range }));
  }
  const peak = (name: keyof typeof proxyPeaks) =>
    server.peak(name, proxyPeaks[name](plan.times.range));
  const proxies: EnvoyPeaks =
    services.length === 0
      ? {}
      : {
          heapBytes: await peak("heapBytes"),
          downstreamConnections: await peak("downstreamConnections"),
        };
  return { services: observed, proxies, ...(await observeRules(rules, { server, plan, range })) };
}

/** Inputs of a command that queries Prometheus. */
export interface PrometheusCall {
  readonly flags: PrometheusFlags;
  readonly plan: PrometheusPlan;
  readonly context: CommandContext;
}

async function observeService(
  server: PrometheusServer,
  service: ServicePolicy,
  { plan, range }: { readonly plan: PrometheusPlan; readonly range: QueryRange },
): Promise<ServiceObservations> {
  const queries = queriesOf(service, plan);
  const read = (measure: ServiceMeasure) => server.range(measure, queries[measure], range);
  const series: ServiceSeries = {
    perSecond: await read("perSecond"),
    latencyMs: await read("latencyMs"),
    inFlight: await read("inFlight"),
    p50Ms: await read("p50Ms"),
    p99Ms: await read("p99Ms"),
    errorsPerSecond: await read("errorsPerSecond"),
    limit: await read("limit"),
  };
  const windows = windowsOfSeries(series, range);
  const envoy = {
    connections: await server.peak("connections", queries.connections),
    pendingRequests: await server.peak("pendingRequests", queries.pendingRequests),
  };
  const observed = observeWindows(
    { service: service.name, source: "Prometheus" },
    { windows, envoy },
  );
  if (observed.requestCount > 0) return observed;
  const note =
    `Prometheus has no values for perSecond with latencyMs or inFlight in ${plan.times.range}. ` +
    "--show-queries prints the queries, and --query replaces one; --step must be longer than two " +
    "scrape intervals.";
  return { ...observed, notes: [note] };
}

interface PrometheusServer extends RuleServer {
  /** Returns one series; `name` is for messages. */
  range(name: string, query: string, range: QueryRange): Promise<readonly number[]>;
}

function createServer(flags: PrometheusFlags, context: CommandContext): PrometheusServer {
  const { url, authorization } = readUrl(flags.prometheus ?? "", context);
  const ca = readPem(flags.prometheusCa, "CERTIFICATE");
  if (ca !== undefined && url.protocol === "http:") {
    throw usageFailure("--prometheus-ca needs a URL that starts with https://");
  }
  const untilMs = systemClock.monotonicMs() + allMsMax;
  const ask = async <T>(
    name: string,
    path: string,
    { fields, read }: { fields: Record<string, string>; read: (text: string) => T },
  ): Promise<T> => {
    const asked = new URL(url);
    asked.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v1/${path}`;
    asked.search = new URLSearchParams(fields).toString();
    const nowMs = systemClock.monotonicMs();
    if (nowMs >= untilMs) {
      const words = `${shown(url)}: not all queries were answered in ${allMsMax / 60_000} minutes`;
      throw new CommandFailure(exitCodes.unreachable, `${words}; use --service or a longer --step`);
    }
    try {
      return read(
        await askText({
          url: asked,
          ...(authorization === undefined ? {} : { authorization }),
          ca,
          accept: "application/json",
          bytesMax: answerBytesMax,
          deadlineMs: Math.min(untilMs, nowMs + answerMsMax),
          clock: systemClock,
        }),
      );
    } catch (thrown) {
      if (!isServiceError(thrown)) throw thrown;
      const words = `${shown(url)}, query ${name}: ${thrown.message}`;
      throw new CommandFailure(exitCodes.unreachable, `${words} --show-queries prints it.`);
    }
  };
  return {
    range: (name, query, range) => {
      const fields = rangeFields(query, range);
      return ask(name, "query_range", { fields, read: (text) => readRange(text, range) });
    },
    matrix: (name, query, range) => {
      const fields = rangeFields(query, range);
      return ask(name, "query_range", { fields, read: (text) => readMatrix(text, range) });
    },
    vector: (name, query) => ask(name, "query", { fields: { query }, read: readVector }),
    peak: async (name, query) => {
      const values = await ask(name, "query", { fields: { query }, read: readVector });
      return values.length === 0 ? undefined : Math.max(...values.map(({ value }) => value));
    },
  };
}

function rangeFields(query: string, { startMs, endMs, stepMs }: QueryRange) {
  const [start = "", end = "", step = ""] = [startMs, endMs, stepMs].map((ms) => `${ms / 1_000}`);
  return { query, start, end, step };
}

function shown(url: URL): string {
  return visibleText(url.host);
}

/**
 * Reads the URL of Prometheus, and the credentials: the token of HEADGATE_PROMETHEUS_TOKEN, or the
 * user and password of a HEADGATE_PROMETHEUS_URL on the same host.
 */
function readUrl(
  text: string,
  { env, output }: Pick<CommandContext, "env" | "output">,
): { readonly url: URL; readonly authorization: string | undefined } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === "" && url.password === "" && url.search === "";
  if (url === undefined || !isPlain || !/^https?:$/.test(url.protocol)) {
    throw usageFailure(
      "--prometheus must be a URL such as http://prometheus:9090, without a password or a query",
    );
  }
  const token = readToken(env, "HEADGATE_PROMETHEUS_TOKEN");
  const { prometheus } = chooseSignals(
    { prometheusUrl: env["HEADGATE_PROMETHEUS_URL"], signalTokens: undefined },
    [],
  );
  const isSame = prometheus !== undefined && new URL(prometheus.url).origin === url.origin;
  const login = isSame ? prometheus.authorization : undefined;
  const authorization = token === undefined ? login : `Bearer ${token}`;
  if (authorization !== undefined && url.protocol === "http:" && !isLoopback(url.hostname)) {
    output.err(`Note: the credentials are sent to ${shown(url)} unencrypted; https is safer.`);
  }
  return { url, authorization };
}
