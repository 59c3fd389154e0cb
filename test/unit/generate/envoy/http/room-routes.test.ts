import { describe, expect, it } from "vitest";
import { roomRoutes } from "../../../../../src/generate/envoy/http/room-routes.js";
import type { RoomPolicy } from "../../../../../src/policy/waiting-rooms/room-policy.js";
import { testService } from "../../../../support/admission.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";
import { testRoom } from "../../../../support/waiting-rooms.js";

const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
const extProcName = "envoy.filters.http.ext_proc";
const filters = ["envoy.filters.http.ratelimit", extProcName];
const off = {
  "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
  disabled: true,
};

interface Route {
  readonly name: string;
  readonly match: {
    readonly path?: string;
    readonly prefix?: string;
    readonly path_separated_prefix?: string;
    readonly headers?: readonly { readonly name: string }[];
    readonly runtime_fraction?: unknown;
  };
  readonly direct_response: { readonly status: number };
  readonly response_headers_to_add: readonly { readonly header: { readonly key: string } }[];
  readonly typed_per_filter_config?: Readonly<Record<string, unknown>>;
}

function made(
  rooms: readonly Partial<RoomPolicy>[],
  fields: Parameters<typeof testService>[1] = {},
) {
  const service = testService(undefined, fields);
  const waitingRooms = rooms.map((room) => testRoom({ service: service.name, ...room }));
  const { context, problems } = testContext({ services: [service], waitingRooms });
  const trees = roomRoutes(service, context, { filters });
  for (const tree of trees) expect(apiProblems("envoy.config.route.v3.Route", tree)).toEqual([]);
  const routes = trees.map((tree) => plain(tree) as Route);
  return { problems, routes, gates: routes.filter(isGate) };
}

function isGate({ match }: Route): boolean {
  return match.runtime_fraction !== undefined;
}

/** The headers that a match looks at, with what is asked of them. */
function headersOf({ match }: Route): readonly string[] {
  return (match.headers ?? []).map((header) => JSON.stringify(header));
}

describe("roomRoutes()", () => {
  it("lets Headgate answer at a room's endpoint, with no other filter in front of it", () => {
    const { routes } = made([{ endpointPath: "/queue" }, { name: "b", endpointPath: "/queue" }]);
    expect(routes).toEqual([
      {
        name: "orders-room-1",
        match: { path_separated_prefix: "/queue" },
        direct_response: { status: 503 },
        response_headers_to_add: [
          { header: { key: "retry-after", value: "5" } },
          { header: { key: "cache-control", value: "no-store" } },
        ],
        typed_per_filter_config: { "envoy.filters.http.ratelimit": off },
      },
    ]);
  });

  it("turns away a share of those without the cookie, and asks nobody", () => {
    const { gates } = made([{ name: "sale", gate, visitors: "all" }]);
    expect(gates).toHaveLength(1);
    expect(gates[0]).toMatchObject({
      name: "orders-room-sale-gate",
      match: {
        prefix: "/",
        runtime_fraction: {
          default_value: { numerator: 0, denominator: "HUNDRED" },
          runtime_key: "headgate.waiting_room.sale.reject",
        },
      },
      direct_response: { status: 503 },
      typed_per_filter_config: { "envoy.filters.http.ratelimit": off, [extProcName]: off },
    });
    expect(gates[0]?.match.headers).toContainEqual({
      name: "cookie",
      invert_match: true,
      treat_missing_header_as_empty: true,
      string_match: { contains: "room-cookie=" },
    });
    expect(gates[0]?.response_headers_to_add.map(({ header }) => header.key)).toEqual([
      "retry-after",
      "cache-control",
      "x-envoy-ratelimited",
    ]);
  });

  it("has one route for each path and host that are a part of the service's", () => {
    const match = { hosts: ["a.example"], paths: ["/shop/*", "/cart"], methods: ["GET", "HEAD"] };
    const { gates } = made([{ gate, match }], { hosts: ["a.example", "b.example"] });
    expect(
      gates.map(({ match: { path, path_separated_prefix: prefix } }) => path ?? prefix),
    ).toEqual(["/shop", "/shop", "/cart", "/cart"]);
    const [first = "", second = ""] = gates.map((route) => headersOf(route).join());
    expect(first).toContain('{"exact":"a.example","ignore_case":true}');
    expect(second).toContain('{"prefix":"a.example:","ignore_case":true}');
    expect(first).toContain('{"safe_regex":{"regex":"GET|HEAD"}}');
  });

  it("leaves to Headgate what an earlier room guards, and who may bypass by a header", () => {
    const first = { name: "a", match: { hosts: [], paths: ["/a"], methods: [] } };
    const headers = [{ name: "x-staff", values: ["secret"] }];
    const bypass = { headers, sources: [], priorities: [] };
    const { gates } = made([first, { name: "b", gate, bypass }]);
    const [text = ""] = gates.map((route) => headersOf(route).join());
    expect(text).toContain('{"name":":path","invert_match":true,"string_match":{"exact":"/a"}}');
    expect(text).toContain('{"name":"x-staff","present_match":true,"invert_match":true}');
    expect(text).not.toContain("secret");
  });

  it("leaves bypassed classes out, and says where it cannot tell them", () => {
    const rules = [{ when: 'request.path.startsWith("/staff")', is: "critical" } as const];
    const priority = { ...testService(undefined).priority, rules, authPaths: [] };
    const trust = { anyone: false, sources: [], principals: [] };
    const bypass = (fields: Partial<RoomPolicy["bypass"]>): Partial<RoomPolicy> => {
      return { gate, bypass: { headers: [], sources: [], priorities: [], ...fields } };
    };
    const told = made([bypass({ priorities: ["critical"] })], { priority: { ...priority, trust } });
    expect(told.gates.map((route) => headersOf(route).join())).toEqual([
      expect.stringContaining('"invert_match":true,"string_match":{"prefix":"/staff"}'),
    ]);
    for (const room of [bypass({ sources: ["10.0.0.0/8"] }), bypass({ priorities: ["normal"] })]) {
      const { gates, problems } = made([room], { priority: { ...priority, trust } });
      expect(gates).toEqual([]);
      expect(problems).toMatchObject([{ id: "HG325", severity: "warning" }]);
    }
  });

  it("says so where a gate has more paths than there may be routes", () => {
    const paths = Array.from({ length: 33 }, (_, index) => `/p${index}`);
    const { gates, problems } = made([{ gate, match: { hosts: [], paths, methods: [] } }]);
    expect(gates).toEqual([]);
    expect(problems).toMatchObject([{ id: "HG325" }]);
  });
});
