import { createHash } from "node:crypto";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { verifyWithEnvoy } from "../../src/cli/generate/verify-envoy.js";
import type { Document } from "../../src/generate/base/document.js";
import {
  isPlainList,
  isPlainMap,
  type PlainMap,
  type PlainValue,
  plainTree,
} from "../../src/generate/base/plain-tree.js";
import { bootstrapMessage } from "../../src/generate/check/find-messages.js";
import { TestAuthority } from "./certificates.js";
import type { ProgramExit } from "./child-program.js";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { within } from "./wait.js";

const checkMsMax = 60_000;

/** An empty file for each configuration that an Envoy has accepted; a fresh clone has none. */
const acceptedFolder = "node_modules/.cache/accepted-by-envoy";

/** How a real Envoy ends that only looks at its configuration, and all that it says. */
export async function validateWithEnvoy(
  stage: Stage,
  words: readonly string[],
): Promise<{ readonly exit: ProgramExit; readonly output: string }> {
  const file = await requireProgram("envoy");
  const args = ["--mode", "validate", "--disable-hot-restart", ...words];
  const program = stage.spawn({ name: "envoy", file, args });
  const exit = await within("Envoy has validated", checkMsMax, program.exited);
  return { exit, output: program.output };
}

/**
 * What a real Envoy says against documents: one line for each that it refuses. Whole configurations
 * are taken as they are; fragments of one folder are put into one small configuration. These
 * certificates stand for those that the documents name. Configurations that this Envoy has accepted
 * before are not shown to it again.
 */
export async function refusalsByEnvoy(
  documents: readonly Document[],
  certificates: CertificateFiles,
): Promise<readonly string[]> {
  const path = await requireProgram("envoy");
  const marked = wholeConfigurations(documents).map((one) => ({
    ...one,
    mark: join(acceptedFolder, digestOf([path, statSync(path).mtimeMs, one.value])),
  }));
  const unknown = marked.filter(({ mark }) => !existsSync(mark));
  const whole = unknown.map(({ name, value }): Document => {
    const message = bootstrapMessage;
    const part = withCertificates(value, certificates);
    return { path: name, kind: { format: "yaml", is: "envoy", message }, parts: [part], title: "" };
  });
  const verdicts = await verifyWithEnvoy(whole, { kind: "found", path, version: "1.40.0" });
  if (verdicts.length !== whole.length) throw new Error("some were not checked");
  mkdirSync(acceptedFolder, { recursive: true });
  for (const [i, { mark }] of unknown.entries()) {
    if (verdicts[i]?.refusal === undefined) writeFileSync(mark, "");
  }
  return verdicts.flatMap((one) =>
    one.refusal === undefined ? [] : [`${one.path}: ${one.refusal}`],
  );
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

interface Named {
  readonly name: string;
  readonly value: PlainValue;
}

function wholeConfigurations(documents: readonly Document[]): readonly Named[] {
  const whole: Named[] = [];
  const fragments = new Map<string, Fragment[]>();
  for (const { path, kind, parts } of documents) {
    if (kind.format !== "yaml" || kind.is !== "envoy" || kind.message === names.secrets) continue;
    const value = parts.map(plainTree);
    const isWhole = value.some(
      (part) => isPlainMap(part) && part["static_resources"] !== undefined,
    );
    if (kind.message === bootstrapMessage && isWhole) {
      whole.push(...value.map((one) => ({ name: path, value: one })));
      continue;
    }
    const folder = path.split("/").slice(0, -1).join("/");
    const known = fragments.get(folder) ?? [];
    fragments.set(folder, known);
    for (const one of value.flatMap((part) => (isPlainList(part) ? part : [part]))) {
      known.push({ path, message: kind.message, value: one });
    }
  }
  for (const [name, pieces] of fragments) whole.push({ name, value: smallBootstrap(pieces) });
  return whole;
}

interface Fragment {
  readonly path: string;
  readonly message: string;
  readonly value: PlainValue;
}

/** Full names of the messages that fragments are. */
const names = {
  bootstrap: bootstrapMessage,
  cluster: "envoy.config.cluster.v3.Cluster",
  httpFilter: "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
  listener: "envoy.config.listener.v3.Listener",
  localReplies: "envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig",
  overload: "envoy.config.overload.v3.OverloadManager",
  runtime: "envoy.config.bootstrap.v3.LayeredRuntime",
  secrets: "envoy.service.discovery.v3.DiscoveryResponse",
  virtualHost: "envoy.config.route.v3.VirtualHost",
} as const;

const types = "type.googleapis.com/envoy.extensions.filters";
const routerType = `${types}.http.router.v3.Router`;
const managerType = `${types}.network.http_connection_manager.v3.HttpConnectionManager`;

/** A configuration that has each piece in its place, and no more than it takes besides. */
function smallBootstrap(pieces: readonly Fragment[]): PlainValue {
  const known: readonly string[] = Object.values(names);
  const lost = pieces.find(({ message }) => !known.includes(message));
  if (lost !== undefined) throw new Error(`no place is known for ${lost.message}`);
  const clusters = valuesOf(pieces, names.cluster);
  const own = new Set(clusters.map((one) => (isPlainMap(one) ? one["name"] : undefined)));
  const pattern = /"cluster(?:_name)?":"([^"]+)"/g;
  const used = new Set(
    Array.from(JSON.stringify(pieces).matchAll(pattern), ([, name = ""]) => name),
  );
  const others = [...used]
    .filter((name) => !own.has(name))
    .map((name) => ({ name, type: "STATIC" }));
  return {
    node: { id: "a", cluster: "a" },
    ...Object.assign({}, ...valuesOf(pieces, names.bootstrap)),
    ...only("layered_runtime", valuesOf(pieces, names.runtime)),
    ...only("overload_manager", valuesOf(pieces, names.overload)),
    static_resources: {
      listeners: [
        ...["inbound", "outbound"].map((side) => smallListener(side, pieces)),
        ...valuesOf(pieces, names.listener),
      ],
      clusters: [...clusters, ...others],
    },
  };
}

function smallListener(side: string, pieces: readonly Fragment[]): PlainValue {
  const mine = pieces.filter(({ path }) => path.includes("outbound") === (side === "outbound"));
  const filters = valuesOf(mine, names.httpFilter);
  const manager: PlainMap = {
    "@type": managerType,
    stat_prefix: "a",
    ...only("local_reply_config", valuesOf(mine, names.localReplies)),
    route_config: { name: "a", virtual_hosts: valuesOf(mine, names.virtualHost) },
    http_filters: [
      ...filters.filter((one) => !JSON.stringify(one).includes(routerType)),
      { name: "envoy.filters.http.router", typed_config: { "@type": routerType } },
    ],
  };
  const name = "envoy.filters.network.http_connection_manager";
  return {
    name: side,
    address: {
      socket_address: { address: "127.0.0.1", port_value: side === "outbound" ? 2 : 1 },
    },
    filter_chains: [{ filters: [{ name, typed_config: manager }] }],
  };
}

function valuesOf(pieces: readonly Fragment[], message: string): readonly PlainValue[] {
  return pieces.filter((piece) => piece.message === message).map(({ value }) => value);
}

/** A field that has a value, or no field. */
function only(name: string, [value]: readonly PlainValue[]): PlainMap {
  return value === undefined ? {} : { [name]: value };
}

/** Paths of files of certificates that hold. */
export interface CertificateFiles {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

/** Makes them in a folder that is there. */
export function writeCertificates(folder: string): CertificateFiles {
  const authority = new TestAuthority();
  const { certificate, key } = authority.issue({ names: ["headgate"] });
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  return {
    authority: write("ca.pem", authority.certificate),
    certificate: write("cert.pem", certificate),
    key: write("key.pem", key),
  };
}

/** Puts files that are there in the places of those that a document names. */
function withCertificates(value: PlainValue, files: CertificateFiles): PlainValue {
  if (isPlainList(value)) return value.map((item) => withCertificates(item, files));
  if (!isPlainMap(value)) return value;
  const byName: Readonly<Record<string, string>> = {
    trusted_ca: files.authority,
    certificate_chain: files.certificate,
    private_key: files.key,
  };
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      // Envoy looks whether it is there, and reads it once it runs.
      if (name === "path_config_source") return [name, { path: files.authority }];
      const filename = Object.hasOwn(byName, name) ? byName[name] : undefined;
      const isFile = isPlainMap(item) && item["filename"] !== undefined;
      return [
        name,
        isFile && filename !== undefined ? { filename } : withCertificates(item, files),
      ];
    }),
  );
}
