import { type OptionRow, optionFlag, wholeNumberOption } from "../app/options/option.js";

/** Flags of the command line, with a text for each flag with a value. */
export interface DemoFlags {
  readonly envoyPort?: string;
  readonly grpcPort?: string;
  readonly port?: string;
  readonly upstreamPort?: string;
  readonly policy?: string;
  readonly waitingRoom?: boolean;
  readonly threeLayers?: boolean;
  readonly llm?: boolean;
  /** False with --no-traffic. */
  readonly traffic?: boolean;
  readonly quietTraffic?: boolean;
  /** False with --no-install. */
  readonly install?: boolean;
}

/** Validated options of the demo. */
export interface DemoOptions {
  /** 0 picks a free port, here and below. */
  readonly envoyPort: number;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly upstreamPort: number;
  /** The example: rate limits, a waiting room, three layers of protection, or budgets. */
  readonly example: DemoExample;
  /** The policy file; if absent, the example's own. */
  readonly policy?: string;
  readonly traffic: TrafficChoice;
  /** Whether Envoy may be installed if there is none. */
  readonly mayInstall: boolean;
}

/** Folder of an example below `envoy/`. */
export type DemoExample = "demo" | "waiting-room" | "three-layers" | "llm";

/** How traffic is shown: every second, only changes, or no traffic at all. */
type TrafficChoice = "shown" | "quiet" | "none";

/** Options, or all problems with them. */
type ParsedDemoOptions =
  | { readonly kind: "options"; readonly options: DemoOptions }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Declaration and help text of a flag. */
interface DemoFlagRow {
  readonly flags: string;
  readonly docs: string;
}

const portMax = 65_535;

const ports = {
  envoyPort: portOption({ env: "ENVOY_PORT", defaultValue: 10_000 }),
  grpcPort: portOption({ env: "GRPC_PORT", defaultValue: 8_081 }),
  port: portOption({ env: "PORT", defaultValue: 8_080 }),
  upstreamPort: portOption({ env: "UPSTREAM_PORT", defaultValue: 0 }),
} as const;

/** Names of the ports' settings, for messages. */
export const portSettings = {
  envoyPort: settingName(ports.envoyPort),
  grpcPort: settingName(ports.grpcPort),
  httpPort: settingName(ports.port),
  upstreamPort: settingName(ports.upstreamPort),
} as const;

/** All flags of `headgate demo`, in the order of its help. */
export const demoFlagRows: readonly DemoFlagRow[] = [
  portFlag(ports.envoyPort, "the port of Envoy for callers"),
  portFlag(ports.grpcPort, "the port of Headgate for Envoy"),
  portFlag(ports.port, "Headgate's HTTP port: /json, health, /metrics"),
  portFlag(ports.upstreamPort, "the port of the small service behind Envoy; 0 picks a free port"),
  {
    flags: "--policy <PATH>",
    docs: "your own policy: for the domain demo, or of a room in front of the service shop",
  },
  {
    flags: "--waiting-room",
    docs: "a waiting room in front of a small shop, to look at in a browser, with other visitors",
  },
  {
    flags: "--three-layers",
    docs: "an overloaded service, and a page on which each layer of its protection can be switched",
  },
  {
    flags: "--llm",
    docs: "budgets for a fake language model: money, tokens, calls in flight, a cheaper model",
  },
  { flags: "--no-traffic", docs: "send no requests" },
  { flags: "--quiet-traffic", docs: "send requests, but report only the first refusal" },
  { flags: "--no-install", docs: "do not install Envoy if it is missing" },
];

/** Reads the demo's options: flags, then environment, then defaults; reports all problems. */
export function parseDemoOptions(sources: {
  readonly flags: DemoFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
}): ParsedDemoOptions {
  const { flags } = sources;
  const problems: string[] = [];
  const read = (name: keyof typeof ports): number => {
    const parsed = readPort(ports[name], { flag: flags[name], env: sources.env });
    if (typeof parsed === "number") return parsed;
    problems.push(parsed);
    return 0;
  };
  const options: DemoOptions = {
    envoyPort: read("envoyPort"),
    grpcPort: read("grpcPort"),
    httpPort: read("port"),
    upstreamPort: read("upstreamPort"),
    example: exampleOf(flags),
    ...(flags.policy === undefined ? {} : { policy: flags.policy }),
    traffic: flags.traffic === false ? "none" : flags.quietTraffic === true ? "quiet" : "shown",
    mayInstall: flags.install !== false,
  };
  problems.push(...sharedPorts(options));
  const given = exampleFlags.filter(({ name }) => flags[name] === true);
  if (given.length > 1) {
    const words = given.map(({ example }) => `--${example}`).join(" and ");
    problems.push(
      `${words} are ${given.length === 2 ? "two" : "three"} examples: give one of them`,
    );
  }
  return problems.length > 0 ? { kind: "problems", problems } : { kind: "options", options };
}

const exampleFlags = [
  { name: "waitingRoom", example: "waiting-room" },
  { name: "threeLayers", example: "three-layers" },
  { name: "llm", example: "llm" },
] as const;

function exampleOf(flags: DemoFlags): DemoExample {
  return exampleFlags.find(({ name }) => flags[name] === true)?.example ?? "demo";
}

function portOption(row: {
  readonly env: string;
  readonly defaultValue: number;
}): OptionRow<number> {
  return wholeNumberOption({ ...row, docs: "", range: [0, portMax] });
}

function portFlag(row: OptionRow<number>, docs: string): DemoFlagRow {
  const { env, defaultText } = row;
  const more = `(default ${defaultText}; env ${env})`;
  return { flags: `--${optionFlag(row)} <NUMBER>`, docs: `${docs} ${more}` };
}

function settingName(row: OptionRow<number>): string {
  return `--${optionFlag(row)} or ${row.env}`;
}

/** Returns the port, or the problem with it. */
function readPort(
  row: OptionRow<number>,
  { flag, env }: { flag: string | undefined; env: Readonly<Record<string, string | undefined>> },
): number | string {
  const text = flag ?? env[row.env];
  if (text === undefined) return row.defaultValue;
  const parsed = row.parse(text);
  if (parsed.kind === "value") return parsed.value;
  return `${flag === undefined ? row.env : `--${optionFlag(row)}`} ${parsed.message}`;
}

/** Returns the problems of servers that use the same port. */
function sharedPorts(options: DemoOptions): readonly string[] {
  const owners = new Map<number, string>();
  const problems: string[] = [];
  for (const name of ["envoyPort", "grpcPort", "httpPort", "upstreamPort"] as const) {
    const port = options[name];
    const owner = owners.get(port);
    if (port === 0) continue;
    if (owner === undefined) owners.set(port, portSettings[name]);
    else problems.push(`${portSettings[name]}: port ${port} is already used by ${owner}`);
  }
  return problems;
}
