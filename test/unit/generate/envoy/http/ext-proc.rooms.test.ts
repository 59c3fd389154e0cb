import { describe, expect, it } from "vitest";
import { extProcFilter, usesExtProc } from "../../../../../src/generate/envoy/http/ext-proc.js";
import type { RoomPolicy } from "../../../../../src/policy/waiting-rooms/room-policy.js";
import { testService } from "../../../../support/admission.js";
import { filterFields, testContext } from "../../../../support/envoy-parts.js";
import { RoomRig } from "../../../../support/room-rig.js";
import { testRoom } from "../../../../support/waiting-rooms.js";

/** A room that looks at all that one can look at. */
const curious = testRoom({
  joinLimit: {
    per: { kind: "header", header: "x-user" },
    requests: 1,
    periodSeconds: 60,
    burst: 1,
  },
  bypass: {
    headers: [{ name: "x-staff", values: ["yes"] }],
    sources: ["10.0.0.0/8"],
    priorities: [],
  },
});

function fieldsOf(rooms: readonly RoomPolicy[], rig: RoomRig) {
  const { services } = rig.admission.policy;
  const { context } = testContext({ services, waitingRooms: rooms });
  return filterFields(extProcFilter(services, context)) as {
    readonly forward_rules: {
      readonly allowed_headers: { readonly patterns: readonly { readonly exact: string }[] };
    };
    readonly request_attributes?: readonly string[];
    readonly mutation_rules: { readonly allow_expression: { readonly regex: string } };
  };
}

describe("extProcFilter() with waiting rooms", () => {
  it.each([
    ["one that looks at little", testRoom()],
    ["one that looks at all", curious],
  ])("sends what rooms look at and nothing else: %s", (_, room) => {
    const rig = new RoomRig([room]);
    const { forward_rules: rules, request_attributes: attributes = [] } = fieldsOf([room], rig);
    const sent = rules.allowed_headers.patterns.map(({ exact }) => exact);
    const { requestHeaderNames, responseHeaderNames, attributeNames } = rig.rooms;
    expect(new Set(sent)).toEqual(new Set([...requestHeaderNames, ...responseHeaderNames]));
    expect(new Set(attributes)).toEqual(attributeNames);
  });

  it("lets rooms set every header that they set", () => {
    const rig = new RoomRig();
    const waiting = rig.browse();
    rig.line.isFull = true;
    const kept = [
      waiting,
      rig.browse(),
      rig.ask({ headers: { accept: "*/*", "sec-fetch-mode": "navigate" } }),
      rig.ask({ headers: { "sec-fetch-mode": "navigate", "content-type": "application/grpc" } }),
      ...["join", "leave"].flatMap((one) => [rig.call(one), rig.call(one, waiting.cookie, "POST")]),
    ];
    rig.line.isFull = false;
    rig.line.entries.set(0, { kind: "entered", session: 5, usedSecond: 100 });
    const entered = rig.browse(waiting.cookie);
    expect(entered.shown).toBe("admitted");
    const headers = [
      ...kept.flatMap(({ refusals }) => refusals.flatMap((refusal) => refusal.headers)),
      ...entered.terms.flatMap(({ responseSetHeaders = [] }) => responseSetHeaders),
    ];
    const names = new Set(headers.map(({ name }) => name));
    for (const name of ["set-cookie", "refresh", "content-security-policy", "allow", "vary"]) {
      expect(names).toContain(name);
    }
    const { regex } = fieldsOf([testRoom()], rig).mutation_rules.allow_expression;
    const isTaken = new RegExp(`^(?:${regex})$`);
    for (const name of names) expect(name).toMatch(isTaken);
  });

  it("stands before the services of rooms, and no others", () => {
    const waitingRooms = [testRoom({ service: "orders" })];
    const other = testService(undefined, { name: "other" });
    expect(usesExtProc(testService(undefined), { waitingRooms })).toBe(true);
    expect(usesExtProc(other, { waitingRooms })).toBe(false);
  });
});
