import { beforeEach, describe, expect, it } from "vitest";
import { type LogEvent, silentLogger } from "../../../../src/app/base/logger.js";
import { sha256 } from "../../../../src/app/base/sha256.js";
import { policyVersion } from "../../../../src/app/config/policy-files.js";
import { PolicyShadow } from "../../../../src/app/decisions/policy-shadow.js";
import { policyToJson, shadowId } from "../../../../src/app/policy/policy-admin-records.js";
import { ServiceError } from "../../../../src/core/base/errors.js";
import { noOverrides } from "../../../../src/core/limits/override-table.js";
import { noDifference } from "../../../../src/decide/shadow/shadow-counts.js";
import { ShadowLedger } from "../../../../src/fleet/claims/shadow-ledger.js";
import type { SharedRecords } from "../../../../src/fleet/records/shared-records.js";
import type { LedgerEntry } from "../../../../src/store/coordination/ledger-store.js";
import { MemoryLedger } from "../../../../src/store/coordination/memory-coordination.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { memoryRecords } from "../../../support/memory-records.js";
import { parseHere } from "../../../support/parse-here.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const live = testPolicy([{ path: ["user"], effect: [testLimit(100)] }]);
const text = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 1}
`;
const files = [{ file: "a.yaml", text }];
const version = policyVersion(files);

let clock: FakeClock;
let records: SharedRecords;
let shadow: PolicyShadow;
let spaces: string[];
let events: LogEvent[];
let active: string;
let isAway: boolean;
let recordVersion: number;

beforeEach(() => {
  clock = new FakeClock();
  records = memoryRecords(clock);
  spaces = [];
  events = [];
  active = "v1";
  isAway = false;
  recordVersion = 0;
  const ledger = new ShadowLedger({ store: new MemoryLedger(clock), random: new FakeRandom(2) });
  const note = (event: LogEvent): void => {
    events.push(event);
  };
  shadow = new PolicyShadow({
    records,
    ledger: {
      add: async (entry: LedgerEntry) => {
        const sums = await ledger.add(entry);
        // It is counted, and nobody is told.
        if (isAway) throw new ServiceError("STORE_TIMEOUT");
        return sums;
      },
    },
    policies: { current: () => ({ ...live, version: active }), onLoaded: () => () => {} },
    overrides: { current: () => noOverrides },
    liveNameOf: (key) => key,
    openSpace: (name) => {
      spaces.push(name);
      return new MemoryLimitStore({ clock });
    },
    parse: {},
    parser: parseHere,
    clock,
    random: new FakeRandom(),
    logger: { ...silentLogger, info: note, error: note },
    storeBudgetMs: 10,
    newKeysPerSecondMax: 1_000,
    switches: noSwitches,
    digest: sha256,
    isBusy: () => false,
  });
});

async function put(run: string | undefined): Promise<void> {
  const facts = { version, appliedEpochMs: 5, author: "ann", reason: "", source: "admin" } as const;
  const value = run === undefined ? undefined : policyToJson({ ...facts, files }, run);
  const change = { kind: "policy", id: shadowId, value, audit: undefined } as const;
  const outcome = await records.change({ ...change, expectedVersion: recordVersion });
  recordVersion = outcome.kind === "changed" && value !== undefined ? outcome.version : 0;
  await settle();
}

async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) {
    clock.runTurns();
    await settlePromises();
  }
}

async function callTwice(): Promise<void> {
  const entries = [{ key: "user", value: "ann" }];
  const query = { domain: "shop", descriptors: [{ entries, hits: 1, isRefund: false }] };
  const verdict = { isDenied: false, statuses: [{ isOver: false }] };
  const prepared = { descriptors: [] };
  for (let i = 0; i < 2; i += 1) {
    // Of the active policy nothing is looked at but its verdict.
    const fallback = { isDenied: false, charges: [], results: [], nowUs: 0, isFromMemory: false };
    const request = { ...fallback, isFallback: true } as const;
    shadow.current()?.note({ query, hits: 1, prepared: prepared as never, request, verdict });
    await settle();
  }
}

async function pass(seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i += 1) {
    clock.advance(1_000);
    await settle();
  }
}

describe("PolicyShadow", () => {
  it("runs what the record names, in a space of its own, and reports what it counts", async () => {
    expect(shadow.report()).toBeUndefined();
    await put("ab1");
    expect(spaces).toEqual(["shadow:ab1:"]);
    await callTwice();
    await pass(1);
    expect(shadow.report()).toEqual({
      policyVersion: "v1",
      shadowVersion: version,
      sinceEpochMs: 5,
      callCount: 2,
      unseenCount: 0,
      rules: [
        { ...noDifference, domain: "shop", label: "user", newlyDeniedCount: 1, sameCount: 1 },
      ],
    });
    expect(shadow.totals).toMatchObject({ comparedCount: 2, newlyDeniedCount: 1 });
    await put(undefined);
    expect(shadow.current()).toBeUndefined();
    expect(shadow.report()).toBeUndefined();
  });

  it("begins anew with another run", async () => {
    await put("ab1");
    await callTwice();
    await pass(1);
    await put("ab2");
    expect(spaces).toEqual(["shadow:ab1:", "shadow:ab2:"]);
    expect(shadow.report()?.callCount).toBe(0);
  });

  it("counts once what the ledger may have heard already", async () => {
    await put("ab1");
    await callTwice();
    isAway = true;
    await pass(3);
    isAway = false;
    await callTwice();
    await pass(2);
    expect(shadow.report()?.callCount).toBe(4);
  });

  it("ends an hour after somebody looked last, for all", async () => {
    await put("ab1");
    await pass(1_800);
    shadow.report();
    await pass(3_500);
    expect(shadow.current()).toBeDefined();
    await pass(110);
    expect(shadow.current()).toBeUndefined();
    expect(records.list("policy").has(shadowId)).toBe(false);
    expect(events.map(({ event }) => event)).toContain("shadowExpired");
  });

  it("takes itself away when it is active", async () => {
    active = version;
    await put("ab1");
    expect(shadow.current()).toBeUndefined();
    expect(records.list("policy").has(shadowId)).toBe(false);
  });

  it("runs nothing of a record that it cannot read, and says so once", async () => {
    const change = { kind: "policy", id: shadowId, expectedVersion: 0, audit: undefined } as const;
    await records.change({ ...change, value: { what: 1 } });
    await settle();
    await records.change({ ...change, id: "other", value: {} });
    await settle();
    expect(shadow.current()).toBeUndefined();
    expect(events.map(({ event }) => event)).toEqual(["shadowRefused"]);
    shadow.close();
    records.close();
    expect(clock.timerCount).toBe(0);
  });
});
