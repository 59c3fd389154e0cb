import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { PolicyBuilder } from "../../../../src/policy/policy.js";
import { admission } from "../../../../src/policy/services/service-admission.js";
import { concurrency } from "../../../../src/policy/services/service-concurrency.js";
import { service } from "../../../../src/policy/services/service-form.js";
import { priority } from "../../../../src/policy/services/service-priority.js";
import { serviceRateLimit } from "../../../../src/policy/services/service-rate-limit.js";
import type { Form, MapForm } from "../../../../src/policy/text/form.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";
import { policyOf } from "../../../support/service-texts.js";

/** Every name that a map may hold somewhere. */
function namesOf({ rows }: MapForm): readonly string[] {
  return Object.entries(rows).flatMap(([name, { form }]) => [name, ...namesBelow(form)]);
}

function namesBelow(form: Form): readonly string[] {
  if (form.kind === "map") return namesOf(form.map());
  if (form.kind === "list") return namesBelow(form.item);
  return form.kind === "any" ? form.of.flatMap(namesBelow) : [];
}

const names = [...new Set(namesOf(service))];

const words = [
  ...["a", "x-user", "10.0.0.0/8", "/a", "user", "shop", "remote_address", "mean", "p99"],
  ...["5ms", "2s", "3x", "critical", "low", "off", "eager", "fifo", "signal", "latencyShed"],
  ...["extProc", "permits", 'request.path == "/a"', "http://a", "", "\ud83d\ude00"],
];

const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom<unknown>(...words, 0, 1, 5, 0.5, -1, 1e9, true, false, undefined),
    fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 6 }),
    fc.array(tie("value"), { maxLength: 3 }),
  ),
}));

/** Services in which names mostly stand where they belong, and many parts are right. */
const services = fc.record(
  {
    name: fc.constantFrom("a", "b", "c", "d"),
    admission: partOf(admission.shape.names, [
      {},
      { maxInFlight: 5, shedAt: "eager", dryRun: true },
      { queue: {}, estimatedWait: { max: "2x" }, throttle: { per: "caller" } },
    ]),
    concurrency: partOf(concurrency.shape.names, [
      {},
      { law: "window", limits: { max: 20 } },
      { law: "signal", signal: { fixed: 1 }, per: { header: "x-user" } },
    ]),
    priority: partOf(priority.shape.names, [
      { rules: [{ when: 'request.path == "/a"', is: "low" }] },
      { from: { trust: { sources: ["10.0.0.0/8"], principals: ["a*"] } }, authPaths: ["/a"] },
    ]),
    rateLimit: partOf(serviceRateLimit.shape.names, [
      { domain: "shop", descriptors: [[{ header: "x-user", as: "user" }]] },
    ]),
  },
  { requiredKeys: ["name"] },
);

function partOf(keys: readonly string[], right: readonly object[]) {
  return fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...right) }, mapOf(keys));
}

function mapOf(keys: readonly string[]) {
  return fc.dictionary(fc.constantFrom(...keys), anyValue, { maxKeys: 4 });
}

describe("parsePolicy(), of any services", () => {
  it("tells problems, or gives services that can be indexed and asked", () => {
    let goodCount = 0;
    let wrongCount = 0;
    fc.assert(
      fc.property(fc.array(services, { minLength: 1, maxLength: 3 }), (given) => {
        const text = policyOf(...given.map((service) => JSON.stringify(service)));
        const parsed = parsePolicy([{ file: "a.yaml", text }]);
        if (parsed.kind === "problems") {
          wrongCount += 1;
          expect(parsed.problems.length).toBeGreaterThan(0);
          return;
        }
        goodCount += 1;
        const builder = new PolicyBuilder("v1");
        builder.addServices(structuredClone(parsed.services));
        const { serviceIndex } = builder.finish();
        const facts = { headers: new Map([[":path", "/a"]]), attributes: new Map() };
        for (const { name } of parsed.services) {
          expect(serviceIndex.named(name)?.classifier.classify(facts)).toBeTypeOf("string");
        }
      }),
      propertyRuns(200),
    );
    expect(goodCount).toBeGreaterThan(metCount(20));
    expect(wrongCount).toBeGreaterThan(metCount(20));
  });
});
