import { describe, expect, it } from "vitest";
import { requestKindOf } from "../../../../src/decide/waiting-room/room-request.js";
import { RoomRig, saleRoom } from "../../../support/room-rig.js";

const html = "text/html,*/*;q=0.8";

describe("requestKindOf()", () => {
  it.each<{ it: string; headers: Record<string, string>; kind: string }>([
    {
      it: "a browser that goes to a page",
      headers: { accept: html, "sec-fetch-mode": "navigate" },
      kind: "page navigation safe",
    },
    { it: "an old browser", headers: { accept: html }, kind: "page navigation safe" },
    {
      it: "a picture of a page",
      headers: { accept: "image/*", "sec-fetch-mode": "no-cors" },
      kind: "json safe",
    },
    {
      it: "a script that asks for HTML",
      headers: { accept: html, "sec-fetch-mode": "cors" },
      kind: "page safe",
    },
    { it: "a program", headers: { accept: "*/*" }, kind: "json safe" },
    { it: "a program that says nothing", headers: {}, kind: "json safe" },
    {
      it: "a form",
      headers: { ":method": "POST", accept: html, "sec-fetch-mode": "navigate" },
      kind: "page navigation",
    },
    { it: "HEAD", headers: { ":method": "HEAD", accept: html }, kind: "page navigation safe head" },
    {
      it: "gRPC",
      headers: { ":method": "POST", "content-type": "application/grpc", accept: html },
      kind: "grpc",
    },
    {
      it: "a preflight",
      headers: {
        ":method": "OPTIONS",
        origin: "https://a.example",
        "access-control-request-method": "PUT",
      },
      kind: "json preflight",
    },
    { it: "OPTIONS of a program", headers: { ":method": "OPTIONS" }, kind: "json" },
    {
      it: "a page loaded ahead",
      headers: { accept: html, "sec-purpose": "prefetch;prerender" },
      kind: "page navigation safe prefetch",
    },
    {
      it: "a page loaded ahead by an old browser",
      headers: { accept: html, purpose: "prefetch" },
      kind: "page navigation safe prefetch",
    },
    {
      it: "a header too long to be one",
      headers: { accept: `${"a/b,".repeat(1_000)}text/html` },
      kind: "json safe",
    },
  ])("knows $it", ({ headers, kind }) => {
    const one = requestKindOf(new Map(Object.entries({ ":method": "GET", ...headers })));
    const words = [
      one.wants,
      one.isNavigation && "navigation",
      one.isSafe && "safe",
      one.isHead && "head",
      one.isPreflight && "preflight",
      one.isPrefetch && "prefetch",
    ];
    expect(words.filter((word) => word !== false).join(" ")).toBe(kind);
  });
});

describe("requests without a session", () => {
  it("pass with `visitors: navigations`, unless a browser goes to a page", () => {
    const rig = new RoomRig();
    expect(rig.ask({ headers: { accept: "application/json" } }).shown).toBe("admitted");
    expect(rig.ask({ headers: { accept: html, "sec-fetch-mode": "cors" } }).shown).toBe("admitted");
    expect(rig.browse().shown).toBe("waiting");
  });

  it("all wait with `visitors: all`, each told in its way", () => {
    const rig = new RoomRig([saleRoom({ visitors: "all" })]);
    const json = rig.ask({ headers: { accept: "application/json" } });
    expect(json.page.status).toBe(503);
    expect(json.header("content-type")).toBe("application/json");
    expect(json.json).toMatchObject({
      inWaitingRoom: true,
      state: "waiting",
      waitTimeKnown: true,
      waitTime: 1,
      position: 1,
      ahead: 0,
      queueIsFull: false,
      queueAll: false,
      refreshIntervalSeconds: 20,
    });
    expect(json.header("retry-after")).toBe("20");
    const grpc = rig.ask({ headers: { ":method": "POST", "content-type": "application/grpc" } });
    expect(grpc.page.grpcStatus).toBe(14);
    expect(grpc.header("grpc-status-details-bin")).toBeDefined();
    expect(rig.browse().header("content-type")).toBe("text/html; charset=utf-8");
  });

  it("never lose a form silently: 503, no refresh, and words that say so", () => {
    const rig = new RoomRig();
    const posted = rig.browse(undefined, { ":method": "POST" });
    expect(posted.page.status).toBe(503);
    expect(posted.header("refresh")).toBeUndefined();
    expect(posted.page.body).toContain("What you sent was not delivered.");
    expect(posted.page.body).not.toContain('http-equiv="refresh"');
    expect(posted.page.body).toContain("data-unsafe");
    expect(posted.cookie).toBeDefined();
  });

  it("get headers alone for HEAD", () => {
    const { page, cookie } = new RoomRig().browse(undefined, { ":method": "HEAD" });
    expect([page.status, page.body, cookie !== undefined]).toEqual([200, "", true]);
  });

  it("pass as a CORS preflight, at the room's endpoints too", () => {
    const rig = new RoomRig([saleRoom({ visitors: "all" })]);
    const headers = {
      ":method": "OPTIONS",
      origin: "https://a.example",
      "access-control-request-method": "POST",
    };
    expect(rig.ask({ headers }).shown).toBe("admitted");
  });

  it("get no place for what a browser only loads ahead", () => {
    const rig = new RoomRig();
    const ahead = rig.browse(undefined, { "sec-purpose": "prefetch" });
    expect([ahead.page.status, ahead.cookie]).toEqual([503, undefined]);
    expect(rig.line.nextNumber).toBe(0);
  });

  it("are only counted where Envoy waits for no answer", () => {
    const rig = new RoomRig();
    rig.line.spareCount = 1;
    const { cookie = "" } = rig.browse();
    const observed = (headers: Record<string, string>) =>
      rig.ask({ headers: { accept: html, ...headers }, isObserved: true }).shown;
    expect([observed({}), observed({ cookie })]).toEqual(["admitted", "admitted"]);
    expect([rig.line.nextNumber, rig.count("session"), rig.count("joined")]).toEqual([1, 1, 0]);
  });
});
