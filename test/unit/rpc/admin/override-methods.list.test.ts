import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createContextValues, createHandlerContext } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import type { Principal } from "../../../../src/core/base/access-list.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { overrideToJson } from "../../../../src/fleet/records/override-record.js";
import { OverrideRegistry } from "../../../../src/fleet/records/override-registry.js";
import {
  LimitService,
  ListOverridesRequestSchema,
  ListOverridesResponseSchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { adminCallKey } from "../../../../src/rpc/admin/call.js";
import { listMethod, overridesScannedMax } from "../../../../src/rpc/admin/override-methods.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { memoryRecords } from "../../../support/memory-records.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(2, { name: "pace" }), testLimit(100, { name: "daily" })] },
  { path: ["plan", "user"], effect: [testLimit(5)] },
  { path: ["idle"], effect: [testLimit(50)] },
  { path: ["team*"], effect: [testLimit(50)] },
]);

const all: Principal = { name: "ann", grants: [{ role: "reader", domains: undefined }] };
const shop: Principal = { name: "bob", grants: [{ role: "reader", domains: ["shop"] }] };

function contextOf(principal: Principal) {
  return createHandlerContext({
    service: LimitService,
    method: LimitService.method.listOverrides,
    protocolName: "test",
    requestMethod: "POST",
    url: "http://localhost",
    contextValues: createContextValues().set(adminCallKey, {
      principal,
      isStillAllowed: async () => true,
      onRead: () => {},
      onEnd: () => {},
    }),
  });
}

/** Many of one plan, and a few of everything else. */
const manyCount = 2 * overridesScannedMax + 500;

const few: readonly Partial<Override>[] = [
  { id: "a-user", entries: [{ key: "user", value: "ann" }] },
  { id: "b-frozen", entries: [{ key: "user", value: "bob" }], effect: { kind: "frozen" } },
  { id: "c-daily", entries: [{ key: "user", value: "cy" }], limitName: "daily" },
  { id: "d-other", entries: [{ key: "user", value: "cy" }], limitName: "none" },
  { id: "e-gold", entries: [{ key: "plan", value: "gold" }], isPrefix: true },
  { id: "f-left", domain: "left", entries: [{ key: "user", value: "ann" }] },
  { id: "g-team", entries: [{ key: "teams", value: "x" }], isPrefix: true },
  { id: "z-last", entries: freeOf("zoe"), effect: { kind: "frozen" } },
];

function freeOf(user: string) {
  return [
    { key: "plan", value: "free" },
    { key: "user", value: user },
  ];
}

const clock = new FakeClock();
const records = memoryRecords(clock);
let overrides: OverrideRegistry;

beforeAll(async () => {
  const usual: Override = {
    id: "none",
    domain: "shop",
    entries: [],
    isPrefix: false,
    effect: { kind: "multiplier", by: 2 },
    reason: "a test",
    author: "op",
    createdEpochMs: 0,
  };
  const many = Array.from({ length: manyCount }, (_, i) => {
    return { id: `m-${i}`, entries: freeOf(`u${i}`) };
  });
  for (const fields of [...many, ...few]) {
    const { id, ...override } = { ...usual, ...fields };
    const value = overrideToJson({ id, ...override });
    await records.change({ kind: "override", id, value, expectedVersion: 0, audit: undefined });
  }
  overrides = new OverrideRegistry({ records, clock });
});

type Asked = MessageInitShape<typeof ListOverridesRequestSchema>;

async function page(asked: Asked, principal = all) {
  const list = listMethod({ policies: { current: () => policy }, records, overrides });
  const request = create(ListOverridesRequestSchema, asked);
  return create(ListOverridesResponseSchema, await list(request, contextOf(principal)));
}

/** All ids, and how many pages they took. */
async function pages(asked: Asked, principal = all) {
  const ids: string[] = [];
  let pageToken = "";
  let count = 0;
  do {
    const { overrides, nextPageToken } = await page({ ...asked, pageToken }, principal);
    ids.push(...overrides.map(({ id }) => id));
    pageToken = nextPageToken;
    count += 1;
  } while (pageToken !== "");
  return { ids, count };
}

describe("ListOverrides", () => {
  it("lists each once, by their ids", async () => {
    const { ids, count } = await pages({ pageSize: 1_000 });
    expect(ids).toHaveLength(manyCount + few.length);
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
    expect(count).toBe(5);
  });

  it("reads so many a call, and goes on where it ended", async () => {
    const beginsWith = freeOf("zoe");
    const first = await page({ beginsWith });
    expect(first.overrides).toEqual([]);
    expect(first.nextPageToken).not.toBe("");
    expect(await pages({ beginsWith })).toEqual({ ids: ["z-last"], count: 3 });
    expect(await pages({ frozenOnly: true })).toEqual({ ids: ["b-frozen", "z-last"], count: 3 });
  });

  it("ends a page where it is full", async () => {
    const first = await page({ domain: "shop", pageSize: 2 });
    expect(first.overrides.map(({ id }) => id)).toEqual(["a-user", "b-frozen"]);
    const { pageToken, domain } = { pageToken: first.nextPageToken, domain: "shop" };
    const second = await page({ domain, pageSize: 2, pageToken });
    expect(second.overrides.map(({ id }) => id)).toEqual(["c-daily", "d-other"]);
  });

  it.each([
    ["entries", { beginsWith: [{ key: "user", value: "cy" }] }, ["c-daily", "d-other"]],
    ["a longer descriptor", { beginsWith: [...freeOf("zoe"), { key: "x", value: "" }] }, []],
    ["a rule and its limits", { ruleLabel: "user" }, ["a-user", "b-frozen", "c-daily"]],
    ["a rule below a prefix", { ruleLabel: "plan.user", frozenOnly: true }, ["z-last"]],
    ["a rule that nothing changes", { ruleLabel: "idle" }, []],
    ["a rule with a pattern", { ruleLabel: "team*" }, ["g-team"]],
  ] as const)("takes those of %s", async (_, wanted, ids) => {
    const asked = { domain: "shop", ...wanted } as Asked;
    expect((await pages(asked)).ids).toEqual(ids);
  });

  it("counts a prefix for each rule below it", async () => {
    const { ids } = await pages({ domain: "shop", ruleLabel: "plan.user", pageSize: 1_000 });
    expect(ids).toContain("e-gold");
    expect(ids).toHaveLength(manyCount + 2);
  });

  it("shows domains that their caller may see, and no others", async () => {
    expect((await pages({ domain: "left" })).ids).toEqual(["f-left"]);
    expect((await pages({}, shop)).ids).not.toContain("f-left");
    await expect(page({ domain: "left" }, shop)).rejects.toThrow("role reader in this domain");
  });

  it("ends no page with an id that its caller may not see", async () => {
    const left: Principal = { name: "cy", grants: [{ role: "reader", domains: ["left"] }] };
    const beginsWith = [{ key: "user", value: "ann" }];
    expect(await page({ beginsWith }, left)).toMatchObject({
      overrides: [{ id: "f-left" }],
      nextPageToken: "",
    });
    expect(await page({ frozenOnly: true }, left)).toMatchObject({
      overrides: [],
      nextPageToken: "",
    });
  });

  it("suggests names of domains and rules that are not there", async () => {
    await expect(pages({ domain: "shpo" })).rejects.toThrow('did you mean "shop"?');
    const asked = page({ domain: "shop", ruleLabel: "usr" });
    await expect(asked).rejects.toThrow('unknown rule; did you mean "user"?');
    await expect(page({ ruleLabel: "user" })).rejects.toThrow("rule_label: set a domain");
    const beginsWith = [{ key: "", value: "x" }];
    await expect(page({ beginsWith })).rejects.toThrow("begins_with[0].key: required");
  });
});
