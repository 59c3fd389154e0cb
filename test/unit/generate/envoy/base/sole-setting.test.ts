import { describe, expect, it } from "vitest";
import { soleSetting } from "../../../../../src/generate/envoy/base/sole-setting.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { testService } from "../../../../support/admission.js";
import { type TestProxy, testContext } from "../../../../support/envoy-parts.js";

function service(name: string, fields: Partial<ServicePolicy> = {}): ServicePolicy {
  return testService(undefined, { name, ...fields });
}

/** The setting of a filter that services have by the first letter of their name; `-` has none. */
function settingOf(services: readonly ServicePolicy[], proxy: TestProxy = {}) {
  const { context, problems } = testContext(proxy);
  const setting = soleSetting(services, context, {
    id: "HG322",
    name: "adaptiveConcurrency",
    what: "adaptive concurrency",
    of: ({ name }) => (name.startsWith("-") ? undefined : { letter: name.slice(0, 1) }),
  });
  return { setting, reported: problems.map(({ spot, hint }) => [spot.service, hint.slice(0, 15)]) };
}

describe("soleSetting()", () => {
  it("is that of all services that have one", () => {
    const all = [service("-1"), service("a1"), service("a2")];
    expect(settingOf(all)).toEqual({ setting: { letter: "a" }, reported: [] });
    expect(settingOf([service("-1")])).toEqual({ setting: undefined, reported: [] });
  });

  it("reports every service that wants another than the first, and says what to do", () => {
    const { setting, reported } = settingOf([service("a1"), service("b1"), service("-1")]);
    expect(setting).toEqual({ letter: "a" });
    expect(reported).toEqual([["b1", "the same for al"]]);
  });

  it("does not look at services whose other side has the filter", () => {
    const services = [service("a1"), service("b1", { direction: "outbound" })];
    const reported = (side: "inbound" | "outbound") =>
      settingOf(services, { role: "sidecar", side });
    expect(reported("inbound")).toEqual({ setting: { letter: "a" }, reported: [] });
    expect(reported("outbound")).toEqual({ setting: { letter: "b" }, reported: [] });
  });
});
