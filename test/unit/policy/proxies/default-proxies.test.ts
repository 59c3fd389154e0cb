import { expect, it } from "vitest";
import { defaultProxies } from "../../../../src/policy/proxies/default-proxies.js";
import { proxies } from "../../../../src/policy/proxies/proxies.js";

it("defaultProxies is what the fields of `proxies` have as defaults", () => {
  expect(defaultProxies).toStrictEqual(proxies.defaults.policy);
});
