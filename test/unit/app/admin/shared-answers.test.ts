import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { SharedAnswers, sharedAnswersMax } from "../../../../src/app/admin/shared-answers.js";
import type { Principal } from "../../../../src/core/base/access-list.js";
import { adminMethods } from "../../../../src/rpc/admin/methods.js";
import { RequestBodies } from "../../../../src/rpc/admin/request-body.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { HttpClient } from "../../../support/http-client.js";
import { useStage } from "../../../support/stage.js";

const stage = useStage("test");

const everywhere: Principal = {
  name: "ann",
  grants: [{ role: "reader", domains: undefined }],
};
const shopOnly: Principal = { name: "bob", grants: [{ role: "reader", domains: ["shop"] }] };

/** Answers how often it was called, and how long its body is. */
async function start(bodyBytes = 0) {
  const clock = new FakeClock();
  const shared = new SharedAnswers(clock, new RequestBodies());
  const http = new HttpClient();
  let callCount = 0;
  let principal = everywhere;
  const handle = async () => {
    callCount += 1;
    const answer = Buffer.from(`call ${callCount}${" ".repeat(bodyBytes)}`);
    const body = (async function* () {
      yield answer;
    })();
    return { status: 200, header: new Headers({ "content-type": "application/json" }), body };
  };
  const server = createServer(async (request, response) => {
    const method = adminMethods.get(request.url ?? "");
    if (method === undefined) throw new Error("there is no such method");
    const handler = Object.assign(handle, {}) as never;
    const answered = await shared.answer({ request, response, method, handler, principal });
    if (answered === undefined) response.end("not shared");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => server.close());
  stage.atEnd(() => http.close());
  const { port } = server.address() as AddressInfo;
  const ask = async (
    body: unknown = {},
    { method = "FleetService/GetHistory", headers = {} as Record<string, string> } = {},
  ): Promise<string> => {
    const path = `/headgate.admin.v1.${method}`;
    const all = { "content-type": "application/json", ...headers };
    const answer = await http.send({ port, path, headers: all, body: JSON.stringify(body) });
    return answer.body.trim();
  };
  const be = (who: Principal): void => {
    principal = who;
  };
  return { clock, shared, ask, be };
}

describe("SharedAnswers", () => {
  it("calls once for all who ask the same in a second", async () => {
    const { clock, ask } = await start();
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(["call 1", "call 1", "call 1"]);
    expect(await ask({ service: "orders" })).toBe("call 2");
    expect(await ask()).toBe("call 1");
    clock.advance(1_000);
    expect(await ask()).toBe("call 3");
  });

  it("answers nobody with what others may see", async () => {
    const { ask, be } = await start();
    expect(await ask()).toBe("call 1");
    be(shopOnly);
    expect(await ask()).toBe("call 2");
    be({ ...shopOnly, name: "cid" });
    expect(await ask()).toBe("call 2");
  });

  it("calls anew after somebody has changed something", async () => {
    const { shared, ask } = await start();
    await ask();
    shared.clear();
    expect(await ask()).toBe("call 2");
  });

  it("shares no call that changes something, has a deadline or is compressed", async () => {
    const { ask } = await start();
    expect(await ask({}, { method: "LimitService/SetOverride" })).toBe("not shared");
    expect(await ask({}, { headers: { "connect-timeout-ms": "100" } })).toBe("not shared");
    expect(await ask({}, { headers: { "content-encoding": "gzip" } })).toBe("not shared");
    expect(await ask({}, { headers: { "content-type": "application/grpc-web" } })).toBe(
      "not shared",
    );
    expect(await ask({ service: "s".repeat(16_384) })).toBe("not shared");
  });

  it(`keeps at most ${sharedAnswersMax} answers, and 8 MiB of them`, async () => {
    const { ask } = await start();
    for (let i = 1; i <= sharedAnswersMax; i += 1) await ask({ i });
    expect(await ask({ i: 0 })).toBe(`call ${sharedAnswersMax + 1}`);
    expect(await ask({ i: 0 })).toBe(`call ${sharedAnswersMax + 2}`);
    expect(await ask({ i: 1 })).toBe("call 1");
    const long = await start(5 * 1_048_576);
    await long.ask({ i: 1 });
    await long.ask({ i: 2 });
    expect(await long.ask({ i: 1 })).toBe("call 1");
    expect(await long.ask({ i: 2 })).toBe("call 3");
  });
});
