import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { renderDocument } from "../../src/generate/base/render.js";
import { generate } from "../../src/generate/generate.js";
import type { PolicyText } from "../../src/policy/parse.js";
import { Envoy } from "./envoy.js";
import type { Json } from "./envoy-config.js";
import { freePort } from "./free-port.js";
import { policyOf } from "./generated.js";
import type { Stage } from "./stage.js";

/** Ports of a generated proxy, as its policy names them. */
export interface ProxyPorts {
  readonly port: number;
  readonly outboundPort: number;
  readonly adminPort: number;
  readonly statisticsPort: number;
}

/** What is generated. */
export interface GeneratedWish {
  /** Lines of `services`, from the margin. */
  readonly services: string;
  /** Lines of `proxies` beside its listener, from the margin. */
  readonly proxies?: string;
  /** More fields of `proxies.listener`. */
  readonly listener?: Readonly<Record<string, unknown>>;
  /** More lines of `spec`, from the margin. */
  readonly more?: string;
  /** Pages that the policy names. */
  readonly pages?: readonly PolicyText[];
  /** Which of its documents runs. Default `edge/envoy.yaml`. */
  readonly document?: string;
  /** Changes the text before it runs: what no policy can say. */
  readonly edit?: (text: string) => string;
}

/** A running proxy, and the policy that it was generated from. */
export interface GeneratedEnvoy {
  readonly envoy: Envoy;
  readonly ports: ProxyPorts;
  readonly policy: string;
}

/** Starts an Envoy of what is generated for a policy, as it is printed; it ends with the stage. */
export async function startGeneratedEnvoy(
  stage: Stage,
  wish: GeneratedWish,
): Promise<GeneratedEnvoy> {
  const ports = await freePorts();
  const policy = policyText(wish, ports);
  return { envoy: await startPolicyEnvoy(stage, { policy, ports, ...wish }), ports, policy };
}

/** Free ports for a generated proxy. */
export async function freePorts(): Promise<ProxyPorts> {
  const [port, outboundPort] = [await freePort(), await freePort()];
  return { port, outboundPort, adminPort: await freePort(), statisticsPort: await freePort() };
}

/** Where the files of secrets are put: `proxies.secretsFolder` of a policy that names some. */
export function secretsFolder(stage: Stage): string {
  return join(stage.folder, "secrets");
}

/** Starts an Envoy of what is generated for a policy whose listener has these ports. */
export async function startPolicyEnvoy(
  stage: Stage,
  {
    policy,
    ports: { port, adminPort },
    document = "edge/envoy.yaml",
    pages = [],
    edit = (text) => text,
  }: Pick<GeneratedWish, "document" | "pages" | "edit"> & Pick<GeneratedEnvoy, "policy" | "ports">,
): Promise<Envoy> {
  const path = join(stage.folder, `proxy-${port}`, document);
  const texts = generatedTexts([{ file: "policy.yaml", text: policy }, ...pages], document);
  const secrets = `${dirname(document)}/secrets/`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, edit(texts.get(document) ?? ""));
  for (const [name, text] of texts) {
    if (!name.startsWith(secrets)) continue;
    await writeFile(join(secretsFolder(stage), name.slice(secrets.length)), text);
  }
  return Envoy.startFile(stage, { path, port, adminPort });
}

/** What a generated proxy does with responses of its own: those that shed load get retry-after. */
export function generatedLocalReplies(): Json {
  const services = "- {name: upstream, upstream: {address: 127.0.0.1, port: 8080}}";
  const ports = { port: 8081, outboundPort: 8082, adminPort: 8083, statisticsPort: 8084 };
  const document = "edge/envoy.yaml";
  const text = policyText({ services }, ports);
  const rendered = generatedTexts([{ file: "policy.yaml", text }], document).get(document) ?? "";
  const { listeners } = parse(rendered).static_resources;
  const found = listeners
    .flatMap(({ filter_chains: chains }: { filter_chains: readonly Json[] }) => chains)
    .flatMap(({ filters }: { filters: readonly Json[] }) => filters)
    .map((filter: { typed_config: Json }) => filter.typed_config["local_reply_config"])
    .find((config: Json | undefined) => config !== undefined);
  if (found === undefined) throw new Error("no connection manager is generated");
  return found;
}

function policyText(wish: GeneratedWish, ports: ProxyPorts): string {
  const { services, proxies = "", more = "", listener = {} } = wish;
  return [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: {name: tests}",
    "spec:",
    ...indented(more, 2),
    "  proxies:",
    `    listener: ${JSON.stringify({ ...ports, ...listener })}`,
    ...indented(proxies, 4),
    "  services:",
    ...indented(services, 4),
    "",
  ].join("\n");
}

/** Lines moved so that the leftmost has this margin. */
export function indented(text: string, margin: number): readonly string[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const least = Math.min(...lines.map((line) => line.search(/\S/)));
  return lines.map((line) => `${" ".repeat(margin)}${line.slice(least)}`);
}

/** The texts of all documents, this one among them; throws where there is a problem. */
function generatedTexts(
  texts: readonly PolicyText[],
  document: string,
): ReadonlyMap<string, string> {
  const made = policyOf(texts);
  const wish = { target: "envoy", policy: made, options: defaultGenerateOptions } as const;
  const { documents, problems } = generate(wish, []);
  const errors = problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new Error(`not generated: ${JSON.stringify(errors)}`);
  if (!documents.some(({ path }) => path === document)) {
    throw new Error(`no document is called ${document}`);
  }
  const origin = { target: "envoy", policy: made } as const;
  return new Map(documents.map((one) => [one.path, renderDocument(one, origin)]));
}
