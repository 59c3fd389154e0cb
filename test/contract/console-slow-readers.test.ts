import { describe, expect, it } from "vitest";
import { tailRingCharsMax } from "../../src/decide/inspect/decision-tail.js";
import { adminClients, startAdminApp } from "../support/admin.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9}}]}
`;

const valueChars = 2_000;
const callCount = 100;
const descriptorsPerCall = 20;

/** What lies between the ring and a reader: windows and buffers of HTTP/2, and one message. */
const betweenChars = 524_288;

describe("a console that reads nothing", () => {
  it("keeps no more of the tail than a ring, and no decision waits for it", async () => {
    const { app, port } = await startAdminApp(stage, policy);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const decide = async (call: string): Promise<number> => {
      const descriptors = Array.from({ length: descriptorsPerCall }, (_, i) => ({
        entries: [{ key: "user", value: `${call} ${i} `.padEnd(valueChars, "x") }],
      }));
      const body = JSON.stringify({ domain: "shop", descriptors });
      const answer = await http.send({ port: app.httpAddress.port, path: "/json", body });
      return answer.status;
    };
    const end = new AbortController();
    stage.atEnd(() => end.abort());
    const { limits } = adminClients(port);
    const wanted = { sampleRatio: 1, perSecondMax: 1_000 };
    const tail = limits.tailDecisions(wanted, { signal: end.signal })[Symbol.asyncIterator]();
    // It follows from here on, and takes nothing more.
    await tail.next();
    for (let i = 0; i < callCount; i += 1) expect(await decide(`unread${i}`)).toBe(200);
    let unreadChars = 0;
    let droppedCount = 0n;
    for (let isThere = false; !isThere; ) {
      // Now it reads on: what was kept meanwhile comes first.
      const [taken] = await Promise.all([tail.next(), decide("read")]);
      if (taken.done === true) throw new Error("the tail has ended");
      droppedCount += taken.value.droppedCount;
      for (const { entries } of taken.value.decisions) {
        const value = entries[0]?.value ?? "";
        if (value.startsWith("unread")) unreadChars += value.length;
        else isThere = true;
      }
    }
    expect(unreadChars).toBeGreaterThan(0);
    expect(unreadChars).toBeLessThan(tailRingCharsMax + betweenChars);
    expect(callCount * descriptorsPerCall * valueChars).toBeGreaterThan(4 * betweenChars);
    expect(droppedCount).toBeGreaterThan(0n);
  });
});
