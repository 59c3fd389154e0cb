import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Config, loadConfig } from "../../src/app/config/config.js";
import { optionNames, optionRow } from "../../src/app/options/options.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { captureCli } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { objectProblems, readSchemas } from "../support/object-schemas.js";
import { useStage } from "../support/stage.js";
import { readYamlFile } from "../support/yaml-file.js";

const stage = useStage("test");

/** Written by hand: what the folder is, and what it is made from. */
const handWritten = ["README.md", "policy.yaml"];

/** What makes the rest; looked at, or with UPDATE_GOLDEN=1 written anew. */
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const generated = await captureCli([
  ...["generate", "kubernetes", "k8s/policy.yaml", "--replicas", "3", "--out", "k8s"],
  isUpdating ? "--force" : "--check",
]);

const [kustomization] = readYamlFile("k8s/plain/kustomization.yaml");
const { resources } = z.object({ resources: z.array(z.string()) }).parse(kustomization);
const manifests = resources.flatMap((name) => readYamlFile(join("k8s/plain", name)));

/** The only manifest of that kind, read as `shape` says. */
function theOne<T>(kind: string, shape: z.ZodType<T>): T {
  const found = manifests.filter((manifest) => Reflect.get(Object(manifest), "kind") === kind);
  expect(found).toHaveLength(1);
  return shape.parse(found[0]);
}

const labels = z.record(z.string(), z.string());
const httpProbe = z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) });

const deployment = theOne(
  "Deployment",
  z.object({
    spec: z.object({
      selector: z.object({ matchLabels: labels }),
      template: z.object({
        metadata: z.object({ labels, annotations: labels }),
        spec: z.object({
          serviceAccountName: z.string(),
          terminationGracePeriodSeconds: z.number(),
          securityContext: z.record(z.string(), z.unknown()),
          containers: z
            .array(
              z.object({
                args: z.array(z.string()),
                ports: z.array(z.object({ name: z.string(), containerPort: z.number() })),
                env: z.array(z.object({ name: z.string(), value: z.string() })),
                resources: z.object({ limits: z.object({ memory: z.string() }) }),
                startupProbe: httpProbe,
                readinessProbe: httpProbe,
                livenessProbe: httpProbe,
                securityContext: z.record(z.string(), z.unknown()),
                volumeMounts: z.array(
                  z.object({ name: z.string(), mountPath: z.string(), readOnly: z.literal(true) }),
                ),
              }),
            )
            .length(1),
          volumes: z.array(z.looseObject({ name: z.string() })),
        }),
      }),
    }),
  }),
);
const pod = deployment.spec.template.spec;
const podLabels = deployment.spec.template.metadata.labels;
const [container = expect.fail("there is no container")] = pod.containers;
const ports = new Map(container.ports.map(({ name, containerPort }) => [name, containerPort]));

/** The configuration that the pods start with; their Secret's files are written here. */
async function podConfig(): Promise<Config> {
  const env: Record<string, string> = {};
  for (const { name, value } of container.env) env[name] = value;
  for (const [name, text] of [
    ["REDIS_URL_FILE", "redis://redis.redis.svc.cluster.local:6379"],
    ["REDIS_AUTH_FILE", ""],
  ] as const) {
    const path = join(stage.folder, name);
    await writeFile(path, text);
    env[name] = path;
  }
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

describe("k8s/", () => {
  it("is what headgate makes of its policy, and says so by itself", () => {
    expect(generated.code, generated.out + generated.err).toBe(0);
    const readme = readFileSync("k8s/README.md", "utf8");
    expect(readme).toContain("headgate generate kubernetes k8s/policy.yaml --replicas 3 --out k8s");
  });

  it("applies every manifest, but what needs the Prometheus operator or cert-manager", () => {
    const ofOthers = ["certificate.yaml", "servicemonitor.yaml"];
    const applied = [...resources, "kustomization.yaml", ...ofOthers];
    expect(readdirSync("k8s/plain").sort()).toEqual(applied.sort());
  });

  it("keeps what is no manifest out of their folder, the chart above all", () => {
    const folders = ["chart", "plain", "quotas"];
    const others = [".headgate-kubernetes.sha256", "redis-user.txt", "runbook.md"];
    expect(readdirSync("k8s").sort()).toEqual([...handWritten, ...folders, ...others].sort());
  });

  it("holds what the API of Kubernetes knows", () => {
    const schemas = readSchemas();
    for (const manifest of manifests) expect(objectProblems(schemas, manifest)).toEqual([]);
    for (const name of ["servicemonitor", "certificate"]) {
      const [object] = readYamlFile(`k8s/plain/${name}.yaml`);
      expect(objectProblems(schemas, object)).toEqual([]);
    }
    expect(manifests.length).toBeGreaterThanOrEqual(resources.length);
  });

  it("would notice what the API does not know, misses or types otherwise", () => {
    const schemas = readSchemas();
    const service = { apiVersion: "v1", kind: "Service", spec: { ports: [{ prot: 1 }], type: 2 } };
    expect(objectProblems(schemas, service)).toEqual([
      'Service spec.ports[0]: "port" is missing',
      'Service spec.ports[0].prot: "prot" is not a field of its API here',
      "Service spec.type: must be string",
    ]);
    expect(objectProblems(schemas, { apiVersion: "v2", kind: "Service" })).toEqual([
      'Service kind: "v2" has no kind "Service"',
    ]);
  });

  it("sets options that Headgate has, all of them right", async () => {
    const known = optionNames.flatMap((name) => {
      const { env, isSecret } = optionRow(name);
      return isSecret ? [env, `${env}_FILE`] : [env];
    });
    // For Node, and not for us.
    known.push("NODE_OPTIONS");
    for (const { name } of container.env) expect(known).toContain(name);
    const config = await podConfig();
    expect(config.store.kind).toBe("redis");
    expect(config.grpcPort).toBe(ports.get("grpc"));
    expect(config.monitoringAddress).toEqual({ host: "0.0.0.0", port: ports.get("monitoring") });
    expect(config.host).toBe("127.0.0.1");
    expect(config.requireClientCertificates).toBe(true);
    expect(config.openPorts).toBeUndefined();
    expect(config.controlAddress).toEqual({ host: "0.0.0.0", port: ports.get("control") });
  });

  it("mounts the directories that its options name", async () => {
    const mounted = container.volumeMounts.map(({ mountPath }) => mountPath);
    const { policyPath } = await podConfig();
    expect(mounted).toContain(policyPath);
    for (const { name, value } of container.env) {
      if (!/_FILE$|_TLS_.*CERT$|_TLS_KEY$/.test(name)) continue;
      expect(
        mounted.some((path) => value.startsWith(`${path}/`)),
        value,
      ).toBe(true);
    }
    const volumes = pod.volumes.map(({ name }) => name);
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(volumes);
  });

  it("mounts a policy that headgate takes, and its domains", () => {
    const map = theOne(
      "ConfigMap",
      z.object({ metadata: z.object({ name: z.string() }), data: labels }),
    );
    const sources = Object.entries(map.data).map(([file, text]) => ({ file, text }));
    expect(parsePolicy(sources)).toMatchObject({ kind: "policy", domains: ["shop"] });
    expect(pod.volumes).toContainEqual({ name: "policy", configMap: { name: map.metadata.name } });
  });

  it("gives pods longer to end than Headgate takes", async () => {
    const { drainDelayMs, drainGraceMs } = await podConfig();
    const marginMs = 5_000;
    const allowedMs = pod.terminationGracePeriodSeconds * 1_000;
    expect(allowedMs).toBeGreaterThanOrEqual(drainDelayMs + drainGraceMs + marginMs);
  });

  it("probes and scrapes what Headgate serves", async () => {
    const policy = "domain: shop\ndescriptors: []\n";
    const port = await freePort();
    const env = { HEADGATE_MONITORING_ADDR: `127.0.0.1:${port}` };
    await HostedHeadgate.start(stage, { policy, env });
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
    const { startupProbe, readinessProbe, livenessProbe } = container;
    for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe]) {
      expect(httpGet.port).toBe("monitoring");
      expect(await status(httpGet.path)).toBe(200);
    }
    const { annotations } = deployment.spec.template.metadata;
    expect(annotations["prometheus.io/port"]).toBe(String(ports.get("monitoring")));
    expect(await status(annotations["prometheus.io/path"] ?? "")).toBe(200);
  });

  it("keeps JavaScript's heap well below the memory that a pod may have", () => {
    const limitMi = Number(container.resources.limits.memory.replace("Mi", ""));
    const options = container.env.find(({ name }) => name === "NODE_OPTIONS")?.value ?? "";
    const heapMi = Number(options.replace("--max-old-space-size=", ""));
    expect(heapMi).toBeGreaterThanOrEqual(128);
    expect(heapMi).toBe(limitMi / 2);
  });

  it("lets proxies in at both of their ports, and the monitoring at its own", () => {
    const policy = theOne(
      "NetworkPolicy",
      z.object({
        spec: z.object({
          ingress: z.array(
            z.object({
              from: z.array(z.object({ namespaceSelector: z.object({ matchLabels: labels }) })),
              ports: z.array(z.object({ port: z.string() })),
            }),
          ),
        }),
      }),
    );
    const rules = policy.spec.ingress.map(({ from, ports: open }) => [
      from.map(({ namespaceSelector }) => Object.keys(namespaceSelector.matchLabels).join()).join(),
      open.map(({ port }) => port).join(),
    ]);
    expect(rules).toEqual([
      ["headgate.dev/client", "grpc,control"],
      ["kubernetes.io/metadata.name", "monitoring"],
    ]);
  });

  it("selects the same pods everywhere", () => {
    expect(deployment.spec.selector.matchLabels).toEqual(podLabels);
    const selectors = manifests.flatMap((manifest) => {
      const spec: unknown = Reflect.get(Object(manifest), "spec");
      const { selector, podSelector } = z
        .object({ selector: z.unknown().optional(), podSelector: z.unknown().optional() })
        .parse(spec ?? {});
      return [selector, podSelector].filter((one) => one !== undefined);
    });
    // Deployment, two Services, disruption budget, network policy.
    expect(selectors).toHaveLength(5);
    for (const selector of selectors) {
      const { matchLabels = selector } = z
        .looseObject({ matchLabels: z.unknown().optional() })
        .parse(selector);
      expect(matchLabels).toEqual(podLabels);
    }
  });

  it("names ports that the pods have", () => {
    const named = JSON.stringify(manifests).matchAll(/"(?:targetPort|port)":"(\w+)"/g);
    const names = [...named].map(([, name]) => name ?? "");
    expect(names.length).toBeGreaterThan(5);
    for (const name of names) expect([...ports.keys()]).toContain(name);
  });

  it("tells each pod of the replicas that there are at least", async () => {
    const { spec } = theOne(
      "HorizontalPodAutoscaler",
      z.object({
        spec: z.object({ minReplicas: z.number(), scaleTargetRef: z.object({ name: z.string() }) }),
      }),
    );
    expect((await podConfig()).replicas).toBe(spec.minReplicas);
    expect(spec.scaleTargetRef.name).toBe("headgate");
  });

  it("runs without privileges", () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(container.args).toEqual(["serve"]);
  });
});
