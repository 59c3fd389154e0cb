import { readEnvoyImage } from "../../app/config/envoy-image.js";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { ClockReading, DoctorInput, DoctorPolicy } from "../../doctor/diagnostic.js";
import { type EnvoyDump, readConfigDump } from "../../doctor/envoy-dump.js";
import { type EnvoyStats, readStats } from "../../doctor/envoy-stats.js";
import { type HeadgateView, readHeadgate } from "../../doctor/headgate-view.js";
import { mapAt, numberAt, parsePlain, textAt } from "../../doctor/json-access.js";
import { isPlainMap, type PlainMap } from "../../generate/base/plain-tree.js";
import { findDeprecated } from "../../generate/check/deprecated-fields.js";
import { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { Terminal } from "../terminal/terminal.js";
import {
  askServer,
  type DoctorAnswer,
  readSourceFile,
  SourceFailure,
  shownServer,
} from "./doctor-sources.js";

/** The subject of a comparison. */
interface DoctorSubject {
  readonly source:
    | { readonly kind: "envoy"; readonly url: URL; readonly watchMs: number }
    | { readonly kind: "files"; readonly configDump: string; readonly stats: string | undefined };
  readonly headgate: URL | undefined;
  readonly policy: DoctorPolicy | undefined;
  readonly cluster: string | undefined;
  readonly ownVersion: string;
  readonly clock: Clock;
  readonly terminal: Pick<Terminal, "onEnd">;
}

/** Time between two samples of requests in flight, in milliseconds. */
const sampleEveryMs = 250;

/**
 * Reads all inputs of the doctor's comparison.
 *
 * @throws SourceFailure if Envoy, or a file in its place, cannot be read
 */
export async function gatherDoctorInput(subject: DoctorSubject): Promise<DoctorInput> {
  const { source, policy, cluster, ownVersion } = subject;
  const envoy = await (source.kind === "envoy"
    ? readEnvoy(source, subject)
    : readEnvoyFiles(source));
  const headgate = subject.headgate && (await readHeadgateSide(subject.headgate));
  return {
    ...envoy.seen,
    policy,
    cluster,
    ownVersion,
    headgate: headgate?.view,
    headgateFailure: headgate?.failure,
    clocks: {
      ...(envoy.clock === undefined ? {} : { envoy: envoy.clock }),
      ...(headgate?.clock === undefined ? {} : { headgate: headgate.clock }),
    },
  };
}

type EnvoySeen = Pick<
  DoctorInput,
  "dump" | "deprecated" | "stats" | "runtime" | "envoyVersion" | "envoyNowMs"
>;

interface EnvoySide {
  readonly seen: EnvoySeen;
  readonly clock: ClockReading | undefined;
}

async function readEnvoyFiles(
  source: DoctorSubject["source"] & { readonly kind: "files" },
): Promise<EnvoySide> {
  const { dump, deprecated } = dumpOf(await readSourceFile(source.configDump), source.configDump);
  const text = source.stats === undefined ? undefined : await readSourceFile(source.stats);
  const stats = text === undefined ? [] : [statsOf(text, source.stats ?? "")];
  const envoyVersion = versionOf(dump, undefined);
  const known = { dump, deprecated, stats, envoyVersion };
  const seen = { ...known, runtime: undefined, envoyNowMs: undefined };
  return { seen, clock: undefined };
}

async function readEnvoy(
  { url, watchMs }: DoctorSubject["source"] & { readonly kind: "envoy" },
  { clock, terminal }: DoctorSubject,
): Promise<EnvoySide> {
  const shown = shownServer(url);
  const asked = await askWell(url, "/config_dump?include_eds");
  const { dump, deprecated } = dumpOf(asked.text, shown);
  const runtime = parsePlain((await askServer(url, "/runtime")).text);
  const server = parsePlain((await askServer(url, "/server_info")).text);
  const stats: EnvoyStats[] = [];
  const endMs = clock.monotonicMs() + watchMs;
  let isEnded = false;
  // Also keeps the process alive between samples.
  const stop = terminal.onEnd(() => {
    isEnded = true;
  });
  try {
    while (clock.monotonicMs() < endMs && !isEnded) {
      stats.push(statsOf((await askWell(url, `/stats?${sampleQuery}`)).text, shown));
      await new Promise<void>((resolve) => void clock.schedule(sampleEveryMs, resolve));
    }
  } finally {
    stop();
  }
  const last = await askWell(url, "/stats?format=json");
  stats.push(statsOf(last.text, shown));
  return {
    seen: {
      dump,
      deprecated,
      stats,
      runtime: runtime.kind === "read" && isPlainMap(runtime.value) ? runtime.value : undefined,
      envoyVersion: versionOf(dump, server.kind === "read" ? server.value : undefined),
      envoyNowMs: last.dateMs,
    },
    clock: clockOf(last),
  };
}

/** Query for each sample. All statistics of thousands of clusters would be too many. */
const sampleQuery = new URLSearchParams({
  format: "json",
  filter: String.raw`\.upstream_rq_active$|\.ratelimit\.|\.ext_proc\.`,
}).toString();

async function askWell(url: URL, path: string): Promise<DoctorAnswer> {
  const answer = await askServer(url, path);
  if (answer.status === httpStatuses.ok) return answer;
  throw new SourceFailure(
    `${shownServer(url)} answers ${answer.status} to ${path.split("?")[0]}: ` +
      "is it an Envoy's admin port?",
  );
}

function dumpOf(text: string, from: string): Pick<DoctorInput, "dump" | "deprecated"> {
  const read = readConfigDump(text);
  if (read.kind === "dump") {
    const deprecated = findDeprecated(read.tree, new EnvoyApi(readEnvoyImage()));
    return { dump: read.dump, deprecated };
  }
  throw new SourceFailure(`the configuration of ${from} cannot be read: ${read.why}`);
}

function statsOf(text: string, from: string): EnvoyStats {
  const read = readStats(text);
  if (read.kind === "stats") return read.stats;
  throw new SourceFailure(`the statistics of ${from} cannot be read: ${read.why}`);
}

/** `/server_info` reports `<commit>/1.40.0/Clean/RELEASE/BoringSSL`. */
function versionOf(
  { bootstrap }: EnvoyDump,
  server: Parameters<typeof textAt>[0],
): string | undefined {
  const said = textAt(server, "version")?.split("/")[1];
  if (said !== undefined) return said;
  const build: PlainMap | undefined = mapAt(
    bootstrap,
    "node",
    "user_agent_build_version",
    "version",
  );
  const [major, minor] = [numberAt(build, "major_number"), numberAt(build, "minor_number")];
  if (major === undefined || minor === undefined) return undefined;
  return `${major}.${minor}.${numberAt(build, "patch") ?? 0}`;
}

interface HeadgateSide {
  readonly view: HeadgateView | undefined;
  readonly failure: string | undefined;
  readonly clock: ClockReading | undefined;
}

async function readHeadgateSide(url: URL): Promise<HeadgateSide> {
  try {
    const [readiness, metrics] = [
      await askServer(url, "/readyz"),
      await askServer(url, "/metrics"),
    ];
    const view = readHeadgate({ readiness: readiness.text, metrics: metrics.text });
    return { view, failure: undefined, clock: clockOf(readiness) };
  } catch (thrown) {
    if (!(thrown instanceof SourceFailure)) throw thrown;
    return { view: undefined, failure: thrown.message, clock: undefined };
  }
}

/** The error is half a second, because dates are whole seconds, plus half the round trip. */
function clockOf({ dateMs, askedMs, answeredMs }: DoctorAnswer): ClockReading | undefined {
  if (dateMs === undefined) return undefined;
  const aheadMs = dateMs - (askedMs + answeredMs) / 2;
  return { aheadMs, errorMs: 500 + (answeredMs - askedMs) / 2 };
}
