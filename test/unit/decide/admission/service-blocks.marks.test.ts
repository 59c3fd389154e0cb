import { beforeEach, describe, expect, it } from "vitest";
import type { Limit } from "../../../../src/core/limits/limit.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { askedOnce } from "../../../../src/policy/services/service-rate-limit.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import {
  AdmissionRig,
  type AskingRequest,
  servicesPolicy,
  testService,
} from "../../../support/admission.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const rateLimit = {
  domain: "shop",
  inExtProc: true,
  descriptors: [askedOnce([{ kind: "header", header: "x-user", key: "user" }])],
};

let clock = new FakeClock();

beforeEach(() => {
  clock = new FakeClock();
});

/** A service whose requests one limit of one a minute counts. @param admission undefined: none */
function rigOf(limit: Partial<Limit>, admission?: Parameters<typeof testService>[0]) {
  const service = testService(admission ?? {}, {
    rateLimit,
    ...(admission === undefined ? { admission: undefined, concurrency: undefined } : {}),
  });
  const rules = testPolicy([{ path: ["user"], effect: [testLimit(1, limit)] }]);
  const policy = servicesPolicy([service], rules);
  const policies = { current: () => policy };
  const store = new MemoryLimitStore({ clock });
  const counters = new DecisionCounters();
  const decider = createTestDecider({ clock, store, policies, counters });
  return new AdmissionRig(policy, { clock, decider });
}

async function ask(rig: AdmissionRig): Promise<AskingRequest> {
  const [visit] = rig.askMany(1, { user: "a" });
  rig.clock.runTurns();
  await settlePromises();
  if (visit === undefined) throw new Error("one was asked for");
  return visit;
}

const annotating: Partial<Limit> = {
  role: "shadow",
  over: { kind: "annotate", headers: [{ name: "x-over", value: "yes" }] },
};
const falling: Partial<Limit> = {
  role: "shadow",
  over: { kind: "fallback", to: { kind: "cluster", cluster: "cheap" } },
};

describe.each([{ admission: {} }, { admission: undefined }])(
  "requests over a limit, with admission $admission",
  ({ admission }) => {
    it("pass with the limit's headers", async () => {
      const rig = rigOf(annotating, admission);
      const within = await ask(rig);
      const over = await ask(rig);
      const names = [within, over].map(({ terms }) => terms[0]?.setHeaders.map(({ name }) => name));
      expect(names).toEqual([["x-request-priority"], ["x-request-priority", "x-over"]]);
      expect(over.terms[0]).not.toHaveProperty("clearsRoute");
    });

    it("lose what callers say in those headers", async () => {
      const rig = rigOf(annotating, admission);
      expect((await ask(rig)).terms[0]?.removeHeaders).toEqual(["x-over"]);
      const other = rigOf(falling, admission);
      expect((await ask(other)).terms[0]?.removeHeaders).toEqual(["x-headgate-fallback"]);
      expect((await ask(rigOf({}, admission))).terms[0]?.removeHeaders).toEqual([]);
    });

    it("go where the limit sends them, and Envoy chooses their route again", async () => {
      const rig = rigOf(falling, admission);
      expect((await ask(rig)).terms[0]).not.toHaveProperty("clearsRoute");
      const { terms } = await ask(rig);
      expect(terms[0]).toMatchObject({ clearsRoute: true });
      const header = { name: "x-headgate-fallback", value: "cheap" };
      expect(terms[0]?.setHeaders).toContainEqual(header);
    });
  },
);

describe("a request that is held and then passes", () => {
  it("has the marks of the limit", async () => {
    const paced: Partial<Limit> = {
      hits: 60,
      over: { kind: "delay", maxMs: 5_000 },
      warn: { atRatio: 0.5, headers: [{ name: "x-near", value: "yes" }] },
    };
    const rig = rigOf({ ...paced, burst: 1 }, {});
    await ask(rig);
    const held = await ask(rig);
    expect(held.verdict).toBe("waiting");
    clock.advance(1_001);
    expect(held.terms[0]?.setHeaders).toContainEqual({ name: "x-near", value: "yes" });
  });
});
