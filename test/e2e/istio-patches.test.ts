import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { Tree } from "../../src/generate/base/document.js";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import { memberOf } from "../../src/generate/base/tree-members.js";
import { generateIstio } from "../../src/generate/istio/istio.js";
import { TestAuthority } from "../support/certificates.js";
import { validateWithEnvoy } from "../support/envoy-validation.js";
import { freePort } from "../support/free-port.js";
import { caseOptions, casePolicy, generatedCases } from "../support/generated.js";
import { HttpClient } from "../support/http-client.js";
import { applyEnvoyFilter, type MeshProxy, meshBootstrap } from "../support/istio-mesh.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

/**
 * What Istio would hand to Envoy, taken by a real Envoy: proxies as Istio makes them, patched as it
 * patches them, and the bootstrap with the override that Istio's agent gives as `--config-yaml`.
 */
const stage = useStage("file");

const ofModels = ["models", "embeddings", "cheaper"];

const clusters = ["orders", "search", "users", ...ofModels].flatMap((name) => [
  { name: `outbound|8080||${hostOf(name)}`, service: hostOf(name) },
  { name: `outbound|9090||${hostOf(name)}`, service: hostOf(name) },
]);

function hostOf(name: string): string {
  const namespace = ofModels.includes(name) ? "llm" : "shop";
  return `${name}.${namespace}.svc.cluster.local`;
}

const headgate = [
  { name: "outbound|8081||headgate.headgate.svc.cluster.local", service: "headgate" },
  { name: "outbound|443||headgate.example.com", service: "headgate" },
];

async function proxyFor(path: string): Promise<MeshProxy> {
  const listenerPort = await freePort();
  if (path === "gateway.yaml") {
    const hosts = ["orders", "search", "other", ...ofModels].flatMap((name) =>
      [80, 443].map((port) => ({
        name: `${name}.example.com:${port}`,
        cluster: "outbound|8080||orders.shop.svc.cluster.local",
      })),
    );
    return { context: "GATEWAY", listenerPort, hosts, clusters: [...clusters, ...headgate] };
  }
  if (path === "callers.yaml") {
    const hosts = clusters.map(({ name }) => {
      const [, port, , host] = name.split("|");
      return { name: `${host}:${port}`, cluster: name };
    });
    return {
      context: "SIDECAR_OUTBOUND",
      // The port that the services of most cases are called by.
      listenerPort: 8_080,
      hosts,
      clusters: [...clusters, ...headgate],
    };
  }
  const own = /sidecars\/(.*)\.yaml/.exec(path)?.[1] ?? "";
  return {
    context: "SIDECAR_INBOUND",
    listenerPort,
    podPort: 8_080,
    hosts: [{ name: "inbound|http|8080", cluster: "inbound|8080||" }],
    clusters: [
      { name: "inbound|8080||", service: hostOf(own) },
      ...(own === "users"
        ? [{ name: "inbound|80||", service: "users.accounts.svc.cluster.local" }]
        : []),
      // Sidecars know all services of the mesh.
      ...clusters,
      ...headgate,
    ],
  };
}

function generatedOf(name: string) {
  const given = generatedCases().find((one) => one.name === name);
  if (given === undefined) throw new Error(`there is no case ${name}`);
  return generateIstio(casePolicy(given), caseOptions(given)).documents;
}

const cases = generatedCases()
  .filter(({ target }) => target === "istio")
  .map(({ name }) => name)
  .filter((name) => generatedOf(name).length > 0);

/** Where a case has certificates, they have to be there. */
async function writeCertificates(): Promise<void> {
  const authority = new TestAuthority();
  const { certificate, key } = authority.issue({ names: ["headgate.example.com"] });
  await writeFile(join(stage.folder, "ca.crt"), authority.certificate);
  await writeFile(join(stage.folder, "tls.crt"), certificate);
  await writeFile(join(stage.folder, "tls.key"), key);
}

/** Patches of ports and hosts that the proxies of this test do not have. */
const elsewhere = new RegExp(
  [
    '"(?:portNumber|destinationPort)":(?:9090|8081|8082)\\b',
    '"name":"[^"]+:(?:9090|443|8443)"',
    '"domainName":"mutual[.]example[.]com"',
  ].join("|"),
);

describe("generateIstio() and Envoy", () => {
  beforeAll(writeCertificates);

  it.concurrent.each(cases)(
    "%s: patched proxies are valid, each with its bootstrap",
    async (name) => {
      const documents = generatedOf(name);
      const filters = documents.filter(({ path }) => /sidecars|callers|gateway\.yaml/.test(path));
      for (const { path, parts } of filters) {
        const objects = parts.filter((part) => memberOf(part, "kind") === "EnvoyFilter");
        if (objects.length === 0) continue;
        const proxy = await proxyFor(path);
        const patched = applyEnvoyFilter(objects.map(plainTree), proxy);
        const others = patched.unused.filter((one) => !elsewhere.test(one));
        expect(others, `${name} ${path}`).toEqual([]);
        const file = join(stage.folder, `${name}-${path}`.replaceAll("/", "-"));
        await writeFile(file, JSON.stringify(meshBootstrap(patched)));
        const bootstrap = path === "gateway.yaml" ? "gateway-bootstrap.yaml" : "bootstrap.yaml";
        const [map] = documents.find((one) => one.path === bootstrap)?.parts ?? [];
        const data = map && plainTree(map);
        const override = textOf(data).replaceAll("/etc/headgate", stage.folder);
        const words = ["--config-path", file, "--config-yaml", override];
        const { exit, output } = await validateWithEnvoy(stage, words);
        expect(exit, output).toEqual({ code: 0 });
      }
    },
  );

  it("asks about the policy's hosts at a gateway, and about no others", async () => {
    const objects = partsOf("istio/admission-of-one", "gateway.yaml");
    const proxy = await proxyFor("gateway.yaml");
    const adminPort = await freePort();
    const admin = { address: { socket_address: { address: "127.0.0.1", port_value: adminPort } } };
    const { stats_config: _, ...bootstrap } = meshBootstrap(
      applyEnvoyFilter(objects.map(plainTree), proxy),
    );
    const file = join(stage.folder, "asking.json");
    await writeFile(file, JSON.stringify({ ...bootstrap, admin }));
    const args = ["--config-path", file, "--concurrency", "1", "--use-dynamic-base-id"];
    stage.spawn({ name: "envoy", file: await requireProgram("envoy"), args });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    await waitFor("Envoy is live", async () => {
      return (await http.send({ port: adminPort, path: "/ready" })).status === 200;
    });
    const asked = async (name: string): Promise<number> => {
      const port = proxy.listenerPort;
      const headers = { host: `${name}.example.com:80` };
      await http.send({ port, path: "/", headers });
      const path = "/stats?filter=ext_proc.headgate.failure_mode_allowed";
      const { body } = await http.send({ port: adminPort, path });
      return Number(/failure_mode_allowed: (\d+)/.exec(body)?.[1] ?? 0);
    };
    expect(await asked("other")).toBe(0);
    expect(await asked("search")).toBe(0);
    expect(await asked("orders")).toBe(1);
    expect(await asked("search")).toBe(1);
  });
});

function partsOf(name: string, path: string): readonly Tree[] {
  return generatedOf(name).find((one) => one.path === path)?.parts ?? [];
}

function textOf(map: unknown): string {
  const text = Object(Object(map)["data"])["custom_bootstrap.json"];
  if (typeof text !== "string") throw new Error("the ConfigMap has no bootstrap");
  return text;
}
