import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { findNearestName } from "../../policy/text/nearest-name.js";
import type { ListenText } from "../options/address-option.js";
import { ignoredNotices } from "../options/ignored-options.js";
import { optionFlag } from "../options/option.js";
import { type OptionName, type OptionValues, optionNames, optionRow } from "../options/options.js";
import { presetOptionRows, presets } from "../options/presets.js";
import { parseTimings, type Timings, testTimingsName } from "../options/test-timings.js";
import { type AdminChoice, type AdminValues, chooseAdmin } from "./admin-choice.js";
import { chooseControl } from "./control-choice.js";
import { checkOpenPorts } from "./open-ports.js";
import { chooseOtlp, type OtlpChoice, type OtlpValues } from "./otlp-choice.js";
import { type PolicyFileStyle, readErrorWords } from "./policy-files.js";
import { chooseRegions, type RegionsChoice } from "./region-choice.js";
import { chooseSignals, type SignalChoice } from "./signal-choice.js";
import { chooseStats, type StatsChoice, type StatsValues } from "./stats-choice.js";
import { chooseStore, isOverTls, type StoreChoice, speaksTls } from "./store-choice.js";
import { chooseTls, type TlsChoice, type TlsValues } from "./tls-choice.js";
import { chooseTracing, type TracingChoice, type TracingValues } from "./tracing-choice.js";
import { chooseXds, type XdsChoice } from "./xds-choice.js";

type SecretName =
  | "redisUrl"
  | "redisAuth"
  | "redisSentinelAuth"
  | "redisPerSecondUrl"
  | "redisPerSecondAuth"
  | "redisPerSecondSentinelAuth"
  | "xdsHeaders"
  | "prometheusUrl"
  | "regionStores"
  | "respPassword";

/** All settings of the process, checked. */
export interface Config
  extends Omit<
    OptionValues,
    | SecretName
    | "region"
    | "respAddress"
    | "signalTokens"
    | keyof TlsValues
    | keyof StatsValues
    | keyof TracingValues
    | keyof OtlpValues
    | keyof AdminValues
  > {
  readonly store: StoreChoice;
  /** The regions that share limits, including that of this process. Absent: there are none. */
  readonly regions?: RegionsChoice;
  /** TLS on the gRPC port. Absent if it is plaintext. */
  readonly tls?: TlsChoice;
  /** The admin API. Absent if there is none. */
  readonly admin?: AdminChoice;
  /** The RESP port. Absent if there is none. */
  readonly resp?: RespChoice;
  /** A policy file, or a directory of them. */
  readonly policyPath: string;
  /** Which files of such a directory are read. */
  readonly policyStyle: PolicyFileStyle;
  /** A control plane that provides the policy, in place of files. */
  readonly xds?: XdsChoice;
  /** Address of the control port if only the policy is Headgate's own; see `chooseControl`. */
  readonly ownPolicyControlAddress?: OptionValues["controlAddress"];
  /** Access to sources of signals. */
  readonly signals: SignalChoice;
  /** Destinations of statistics besides `/metrics`. */
  readonly stats: StatsChoice;
  /** Absent if decisions are not traced. */
  readonly tracing?: TracingChoice;
  /** Absent if metrics are only scraped and log lines are only written. */
  readonly otlp?: OtlpChoice;
  /** The fleet's times. They differ from the defaults only in tests. */
  readonly timings: Timings;
  /** Directories besides the policy's own that are watched for swaps. */
  readonly watchedDirectories: readonly string[];
  /** Notices to the user about accepted settings. They contain no values. */
  readonly notices: readonly string[];
  /** Warning about ports that anyone can reach, with a remedy. Undefined: there are none. */
  readonly openPorts?: string;
}

/** The RESP port, as configured. */
export interface RespChoice extends ListenText {
  /** Absent if no password is required. */
  readonly password?: string;
}

/** A configuration, or all problems with it. */
export type LoadedConfig =
  | { readonly kind: "config"; readonly config: Config }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Sources of settings. */
interface ConfigSources {
  /** By option name. Undefined if the flag was not given. */
  readonly flags: Readonly<Partial<Record<OptionName, string>>>;
  /** The environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Maximum size of a file that contains a secret, in bytes. */
export const secretFileBytesMax = 65_536;

/**
 * Reads all settings: flags, then environment, then the preset, then defaults. Reports every
 * problem at once. No problem contains a value.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const problems: string[] = [];
  const values: Partial<Record<OptionName, unknown>> = {};
  const preset = presetOf(sources);
  for (const name of optionNames) {
    const parsed = readOption(name, sources, preset);
    if (parsed.kind === "problem") problems.push(parsed.message);
    else values[name] = parsed.value;
  }
  problems.push(...unknownNames(sources.env));
  if (problems.length > 0) return { kind: "problems", problems };
  // An assertion, because text is decoded here: each row parsed its own value.
  return combine(values as OptionValues, sources);
}

/** Returns the settings of the named preset. Empty if it is unknown, which its own row reports. */
function presetOf({ flags, env }: ConfigSources): Readonly<Record<string, string>> {
  const row = presetOptionRows.preset;
  const parsed = row.parse(flags.preset ?? env[row.env] ?? row.defaultValue);
  return parsed.kind === "value" ? presets[parsed.value] : {};
}

type ReadOption =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "problem"; readonly message: string };

function readOption(
  name: OptionName,
  { flags, env }: ConfigSources,
  preset: Readonly<Record<string, string>>,
): ReadOption {
  const row = optionRow(name);
  const flag = flags[name];
  if (flag !== undefined) {
    const parsed = row.parse(flag);
    return parsed.kind === "value" ? parsed : problem(`--${optionFlag(row)} ${parsed.message}`);
  }
  const own = env[row.env];
  const fileName = `${row.env}_FILE`;
  const path = row.isSecret ? env[fileName] : undefined;
  if (path !== undefined && path !== "") {
    if (own !== undefined) return problem(`${row.env} and ${fileName} are both set; remove one`);
    return readSecret(path, fileName);
  }
  const text = own ?? preset[row.env];
  if (text === undefined) return { kind: "value", value: row.defaultValue };
  const parsed = row.parse(text);
  return parsed.kind === "value" ? parsed : problem(`${row.env} ${parsed.message}`);
}

/** Reads a secret from a file, without the newline that editors leave at its end. */
function readSecret(path: string, fileName: string): ReadOption {
  try {
    if (statSync(path).size > secretFileBytesMax) {
      return problem(`${fileName} names a file of more than ${secretFileBytesMax} bytes`);
    }
    const text = readFileSync(path, "utf8").replace(/\r?\n$/, "");
    return { kind: "value", value: text === "" ? undefined : text };
  } catch (thrown) {
    return problem(`${fileName} names a file that cannot be read: ${readErrorWords(thrown)}`);
  }
}

function problem(message: string): { readonly kind: "problem"; readonly message: string } {
  return { kind: "problem", message };
}

const ourPrefix = "HEADGATE_";

/** Variables with which the command line finds a running service. One environment may have both. */
const commandLineNames: readonly string[] = [
  "HEADGATE_ADMIN_URL",
  "HEADGATE_ADMIN_TOKEN",
  "HEADGATE_ADMIN_TOKEN_FILE",
  "HEADGATE_ADMIN_CA",
  "HEADGATE_ADMIN_CERT",
  "HEADGATE_ADMIN_KEY",
];

/**
 * Returns problems for names with Headgate's prefix that are not settings, so that a typo is never
 * silent. Names that Kubernetes adds for a Service called headgate or headgate-... are accepted.
 */
function unknownNames(env: ConfigSources["env"]): readonly string[] {
  const options = optionNames.flatMap((name) => {
    const row = optionRow(name);
    return row.isSecret ? [row.env, `${row.env}_FILE`] : [row.env];
  });
  const known = [...options, ...commandLineNames];
  const ours = known.filter((name) => name.startsWith(ourPrefix));
  // This name is accepted, but never suggested.
  const accepted = [...known, testTimingsName];
  return Object.keys(env)
    .filter(
      (name) => name.startsWith(ourPrefix) && !accepted.includes(name) && !isServiceLink(name),
    )
    .map((name) => {
      const nearest = findNearestName(name, ours);
      const hint =
        nearest === undefined ? "see `headgate serve --help`" : `did you mean ${nearest}?`;
      return `${name} is not a setting; ${hint}`;
    });
}

/** Source: Kubernetes, "Discovering services", environment variables. */
function isServiceLink(name: string): boolean {
  return /_SERVICE_(?:HOST|PORT)(?:_|$)|^HEADGATE(?:_.*)?_PORT(?:_\d+_[A-Z]+(?:_\w+)?)?$/.test(
    name,
  );
}

/** Returns the values without secrets. The choices that use the secrets contain them. */
function withoutSecrets(values: OptionValues) {
  const { redisUrl: _url, redisAuth: _auth, redisSentinelAuth: _sentinelAuth, ...others } = values;
  const { redisPerSecondUrl: _perSecondUrl, redisPerSecondAuth: _perSecondAuth, ...more } = others;
  const { redisPerSecondSentinelAuth: _perSecondSentinelAuth, xdsHeaders: _h, ...less } = more;
  const { prometheusUrl: _prometheusUrl, signalTokens: _signalTokens, ...fewer } = less;
  const { consoleKey: _consoleKey, consoleOidcClientSecret: _clientSecret, ...few } = fewer;
  const { region: _region, regionStores: _regionStores, ...least } = few;
  const { respAddress: _respAddress, respPassword: _respPassword, ...rest } = least;
  return rest;
}

function chooseResp({ respAddress, respPassword }: OptionValues): RespChoice | undefined {
  if (respAddress === undefined) return undefined;
  return { ...respAddress, ...(respPassword === undefined ? {} : { password: respPassword }) };
}

/** Combines options that depend on each other. */
function combine(values: OptionValues, sources: ConfigSources): LoadedConfig {
  const problems: string[] = [];
  const notices = [...ignoredNotices(sources.env)];
  const found = { problems, notices };
  const store = chooseStore(values);
  if (store.kind === "problem") problems.push(store.message);
  const regions = store.kind === "problem" ? undefined : chooseRegions(values, store, problems);
  if (store.kind !== "problem") notices.push(...storeNotices(values, sources, { store, regions }));
  const tls = chooseTls(values, found);
  const xds = chooseXds(values, found);
  const stats = chooseStats(values, sources.env, problems);
  const signals = chooseSignals(values, problems);
  const admin = chooseAdmin(values, found);
  const otlp = chooseOtlp(values, sources.env, problems);
  const resp = chooseResp(values);
  const howSet = {
    isSet: (name: OptionName) => isSet(name, sources),
    hasOwnSetting: optionNames.some((name) => isOurs(name) && isSet(name, sources)),
  };
  const control = chooseControl(values, howSet, found);
  const { address: controlAddress } = control;
  const openPorts = checkOpenPorts({ ...values, controlAddress }, tls, problems);
  const timings = parseTimings(sources.env[testTimingsName]);
  if (timings.kind === "problem") problems.push(`${testTimingsName} ${timings.message}`);
  if (sources.env[testTimingsName] !== undefined) notices.push(testTimingsNotice);
  if (timings.kind === "problem" || store.kind === "problem" || problems.length > 0) {
    return { kind: "problems", problems };
  }
  const runtimeDirectory = join(values.runtimeRoot, values.runtimeSubdirectory);
  const tracing = chooseTracing(values, sources.env);
  const isRuntime = values.policy === undefined;
  const config: Config = {
    ...withoutSecrets(values),
    controlAddress,
    ownPolicyControlAddress: control.ownPolicyAddress,
    store,
    ...(regions === undefined ? {} : { regions }),
    ...(tls === undefined ? {} : { tls }),
    ...(admin === undefined ? {} : { admin }),
    ...(resp === undefined ? {} : { resp }),
    policyPath: values.policy ?? join(runtimeDirectory, values.runtimeAppDirectory),
    policyStyle: isRuntime ? runtimeStyle(values) : "yamlFiles",
    ...(xds === undefined ? {} : { xds }),
    signals,
    stats,
    ...(tracing === undefined ? {} : { tracing }),
    ...(otlp === undefined ? {} : { otlp }),
    ...(openPorts === undefined ? {} : { openPorts }),
    timings: timings.timings,
    watchedDirectories:
      isRuntime && values.runtimeWatchRoot
        ? [join(values.runtimeRoot, ".."), runtimeDirectory]
        : [],
    notices,
  };
  return { kind: "config", config };
}

function runtimeStyle({ runtimeIgnoreDotFiles }: OptionValues): PolicyFileStyle {
  return runtimeIgnoreDotFiles ? "allButDotFiles" : "allFiles";
}

const unsharedPolicyNotice =
  "HEADGATE_POLICY_SOURCE is store, and the store is in memory: an applied policy " +
  "is lost when this process ends. Set REDIS_URL to keep it.";

const testTimingsNotice =
  `${testTimingsName} is set, which is for tests only: leases and lifetimes differ ` +
  "from the documented ones, and replicas with other values cannot work with this " +
  "one.";

function isSet(name: OptionName, { flags, env }: ConfigSources): boolean {
  return flags[name] !== undefined || env[optionRow(name).env] !== undefined;
}

/** Reports whether an option does not exist in envoyproxy/ratelimit. */
function isOurs(name: OptionName): boolean {
  return optionRow(name).env.startsWith(ourPrefix);
}

/** Returns notices on settings that have no effect with this store, but look as if they had. */
function storeNotices(
  { policySource }: OptionValues,
  sources: ConfigSources,
  { store, regions }: Pick<Config, "store"> & { readonly regions: RegionsChoice | undefined },
): readonly string[] {
  const tlsNames = optionNames.filter((name) => name.startsWith("redisTls") && name !== "redisTls");
  const isOver =
    speaksTls(store) || (regions?.peers.some(({ redis }) => isOverTls(redis)) ?? false);
  const isTlsUnused = tlsNames.some((name) => isSet(name, sources)) && !isOver;
  return [
    ...(isTlsUnused
      ? ["REDIS_TLS_ names are set, but no Redis is reached over TLS; set REDIS_TLS to true."]
      : []),
    ...(policySource === "store" && store.kind !== "redis" ? [unsharedPolicyNotice] : []),
  ];
}
