import { describe, expect, it } from "vitest";
import {
  isDriven,
  layeredRuntime,
} from "../../../../../src/generate/envoy/http/layered-runtime.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { testService } from "../../../../support/admission.js";
import { reportedService } from "../../../../support/control-rig.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";

const guard = "envoy.reloadable_features.ext_proc_graceful_grpc_close";

interface Layers {
  readonly layers: readonly {
    readonly name: string;
    readonly static_layer?: Readonly<Record<string, unknown>>;
  }[];
}

function layersOf(services: readonly ServicePolicy[], minor = 40): Layers["layers"] {
  const { context } = testContext({ services, minor });
  const tree = layeredRuntime(context);
  expect(apiProblems("envoy.config.bootstrap.v3.LayeredRuntime", tree)).toEqual([]);
  return (plain(tree) as Layers).layers;
}

describe("layeredRuntime()", () => {
  it("lets the operator win over Headgate, and Headgate over what is built in", () => {
    const layers = layersOf([reportedService("orders")]);
    expect(layers.map(({ name }) => name)).toEqual(["static", "headgate", "admin"]);
    expect(layers[1]).toMatchObject({
      rtds_layer: {
        name: "headgate",
        rtds_config: {
          initial_fetch_timeout: "1s",
          api_config_source: {
            grpc_services: [
              {
                envoy_grpc: {
                  cluster_name: "headgate_control",
                  retry_policy: {
                    retry_back_off: { base_interval: "0.1s", max_interval: "0.5s" },
                  },
                },
              },
            ],
          },
        },
      },
    });
  });

  it("asks Headgate for nothing where it drives nothing", () => {
    expect(layersOf([testService(undefined)]).map(({ name }) => name)).toEqual(["static", "admin"]);
  });

  it("ends streams of ext_proc instead of resetting them, where Envoy can", () => {
    expect(layersOf([testService({})])[0]?.static_layer).toEqual({ [guard]: true });
    expect(layersOf([testService({})], 33)[0]?.static_layer).toEqual({});
    expect(layersOf([testService(undefined)])[0]?.static_layer).toEqual({});
  });
});

describe("isDriven()", () => {
  const local = { requests: 1, perMs: 1_000, burst: 1 } as const;
  it.each([
    ["nothing", testService(undefined), false],
    ["limits that come back", reportedService("orders"), true],
    [
      "a gate",
      testService({ gate: { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 } }),
      true,
    ],
    [
      "a backstop",
      testService(undefined, { localRateLimit: { ...local, when: "withoutHeadgate" } }),
      true,
    ],
    [
      "a bucket that is always there",
      testService(undefined, { localRateLimit: { ...local, when: "always" } }),
      false,
    ],
  ])("knows what Headgate drives: %s", (_, service, expected) => {
    expect(isDriven(service)).toBe(expected);
  });
});
