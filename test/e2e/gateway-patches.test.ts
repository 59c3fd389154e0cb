import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import { generateGateway } from "../../src/generate/gateway/gateway.js";
import { validateWithEnvoy } from "../support/envoy-validation.js";
import { freePort } from "../support/free-port.js";
import {
  applyPatchPolicies,
  gatewayBootstrap,
  gatewayResources,
} from "../support/gateway-patches.js";
import {
  caseOptions,
  casePolicy,
  type GeneratedCase,
  generatedCases,
} from "../support/generated.js";
import { useStage } from "../support/stage.js";

/**
 * What Envoy Gateway would hand to Envoy, taken by a real Envoy: resources as Envoy Gateway makes
 * them, patched as it patches them, and its bootstrap with ours merged as it merges it.
 */
const stage = useStage("file");

function madeOf(given: GeneratedCase) {
  const policy = casePolicy(given);
  const options = caseOptions(given);
  const { documents } = generateGateway(policy, options);
  const objects = documents.flatMap(({ parts }) => parts.map((part) => Object(plainTree(part))));
  return { policy, options, objects };
}

const cases = generatedCases()
  .filter(({ target }) => target === "gateway")
  // One listener is done over here, without objects of a user's; of the others there is what Envoy
  // Gateway's translator makes.
  .filter((given) => (casePolicy(given).proxies.gateway.listeners ?? []).length <= 1)
  .filter((given) => caseOptions(given).existing.length === 0)
  .filter((given) => madeOf(given).objects.length > 0);

describe("generateGateway() and Envoy", () => {
  it.concurrent.each(cases.map((given) => [given.name, given] as const))(
    "%s: patched resources are valid, with the bootstrap",
    async (name, given) => {
      const { policy, options, objects } = madeOf(given);
      const resources = gatewayResources({
        listener: `${options.namespace}/shop/http`,
        port: await freePort(),
        hosts: policy.services.flatMap((service) => {
          const namespace = service.namespace ?? options.namespace;
          const cluster = `httproute/${namespace}/${service.name}/rule/0`;
          const hosts = service.hosts.length > 0 ? service.hosts : [`${service.name}.test`];
          return hosts.map((host) => ({ host, cluster }));
        }),
        extProcs: objects
          .filter(({ kind }) => kind === "EnvoyExtensionPolicy")
          .map(({ metadata }) => {
            return `envoyextensionpolicy/${metadata.namespace}/${metadata.name}/extproc/0`;
          }),
      });
      const patches = objects.filter(({ kind }) => kind === "EnvoyPatchPolicy");
      const patched = applyPatchPolicies(patches, resources);
      const file = join(stage.folder, `${name.replaceAll("/", "-")}.json`);
      await writeFile(file, JSON.stringify(gatewayBootstrap(patched)));
      const proxy = objects.find(({ kind }) => kind === "EnvoyProxy");
      const merged = proxy === undefined ? [] : ["--config-yaml", proxy.spec.bootstrap.value];
      const { exit, output } = await validateWithEnvoy(stage, ["--config-path", file, ...merged]);
      expect(exit, output).toEqual({ code: 0 });
    },
  );
});
