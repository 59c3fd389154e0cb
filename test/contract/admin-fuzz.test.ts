import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adminMessageBytesMax, adminMethods } from "../../src/rpc/admin/methods.js";
import { startAdminApp } from "../support/admin.js";
import { propertyRuns } from "../support/seeds.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

/** Bytes that look like a message now and then: fields with lengths that are wrong. */
const messages = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc
    .array(
      fc.tuple(
        fc.integer({ min: 1, max: 15 }),
        fc.integer({ min: 0, max: 7 }),
        fc.uint8Array({ maxLength: 20 }),
      ),
      { maxLength: 8 },
    )
    .map((fields) =>
      Uint8Array.from(
        fields.flatMap(([field, type, bytes]) => [(field << 3) | type, bytes.length, ...bytes]),
      ),
    ),
);

/** What the fields of requests are called, with values of any kind. */
const names = "domain,key,override,entries,request,files,candidate,pageToken,count,version,reason";
const json = fc.dictionary(fc.constantFrom(...names.split(",")), fc.jsonValue(), { maxKeys: 6 });

describe("the admin API under any message", () => {
  it("answers each, says nothing of itself, and lives", async () => {
    const env = { HEADGATE_ADMIN_OPEN: "true", HEADGATE_ADMIN_CALLS_PER_SECOND: "100000" };
    const { metrics, port } = await startAdminApp(stage, policy, env);
    const paths = [...adminMethods.keys()].filter((path) => !path.endsWith("TailDecisions"));
    const send = async (path: string, type: string, body: Uint8Array | string) => {
      const url = `http://127.0.0.1:${port}${path}`;
      const headers = { "content-type": type, te: "trailers" };
      const signal = AbortSignal.timeout(10_000);
      const response = await fetch(url, { method: "POST", headers, body, signal });
      return { status: response.status, text: await response.text() };
    };
    const path = fc.constantFrom(...paths);
    await fc.assert(
      fc.asyncProperty(path, messages, async (to, bytes) => {
        const { status, text } = await send(to, "application/proto", bytes);
        // What is no message at all the library itself calls internal, and reads no further.
        const isOurs = status === 500 && !text.includes("parse binary");
        expect(isOurs ? text : "").toBe("");
        const framed = Uint8Array.from([0, 0, 0, 0, bytes.length, ...bytes]);
        await send(to, "application/grpc-web+proto", framed);
        await send(to, "application/grpc-web+proto", bytes);
      }),
      propertyRuns(150),
    );
    await fc.assert(
      fc.asyncProperty(path, json, async (to, value) => {
        const { status, text } = await send(to, "application/json", JSON.stringify(value));
        expect(status === 500 ? text : "").toBe("");
      }),
      propertyRuns(150),
    );
    for (const to of paths) {
      const long = JSON.stringify({ domain: "x".repeat(adminMessageBytesMax) });
      expect((await send(to, "application/json", long)).status).not.toBe(200);
      expect((await send(to, "text/plain", "{}")).status).toBe(415);
    }
    expect((await send("/nothing", "application/json", "{}")).status).toBe(501);
    const page = await metrics();
    expect(page).toMatch(/^headgate_internal_errors_total 0$/m);
    expect(page).not.toContain('code="internal"');
  });
});
