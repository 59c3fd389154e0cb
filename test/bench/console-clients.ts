import { argv } from "node:process";
import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { msToNextPoll } from "../../src/console/data/poll-times.js";
import { FleetService, LimitService, TopOrder } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { HttpClient } from "../support/http-client.js";

/**
 * Runs in a process of its own, until it is killed: callers at a rate, open consoles with the
 * overview or the live tail, or programs that ask what the overview asks.
 *
 * Usage: console-clients.ts decide PORT PER_SECOND RULES | overview, tail, programs PORT COUNT
 */
const [, , kind, ...numbers] = argv;
const [port = 0, count = 0, ruleCount = 0] = numbers.map(Number);

/** How far the clocks of two browsers are apart, in milliseconds. */
const skewMs = 10;

if (kind === "decide") await decideSteadily(port, { perSecond: count, ruleCount });
else {
  const look = kind === "tail" ? followTail : pollOverview;
  await Promise.all(Array.from({ length: count }, (_, i) => look(port, i)));
}

/** Callers, so that there is something to see. */
async function decideSteadily(
  port: number,
  { perSecond, ruleCount }: { readonly perSecond: number; readonly ruleCount: number },
): Promise<void> {
  const http = new HttpClient();
  for (let i = 0; ; i += 1) {
    const entries = [{ key: `k${i % ruleCount}`, value: "1" }];
    const body = JSON.stringify({ domain: "bench", descriptors: [{ entries }] });
    await http.send({ port, path: "/json", body });
    await pause(1_000 / perSecond);
  }
}

/** Calls as the console makes them; programs do not say that a page asks. */
function transportOf(port: number): Transport {
  const watch: Interceptor = (next) => (request) => {
    if (kind !== "programs") request.header.set("sec-fetch-site", "same-origin");
    return next(request);
  };
  const baseUrl = `http://127.0.0.1:${port}`;
  return createConnectTransport({ baseUrl, useBinaryFormat: true, interceptors: [watch] });
}

async function followTail(port: number): Promise<void> {
  const limits = createClient(LimitService, transportOf(port));
  for await (const _ of limits.tailDecisions({ sampleRatio: 0.1, perSecondMax: 50 }));
}

/** All that the overview polls. */
async function pollOverview(port: number, index: number): Promise<void> {
  const pollEvery = pollAt(index * skewMs);
  const transport = transportOf(port);
  const fleet = createClient(FleetService, transport);
  const limits = createClient(LimitService, transport);
  void pollEvery(15_000, () => fleet.getFleet({}));
  void pollEvery(3_000, () => fleet.listServices({}));
  void pollEvery(5_000, () => limits.topKeys({ order: TopOrder.DENIALS, count: 8 }));
  void pollEvery(5_000, () => {
    const since = { seconds: BigInt(Math.floor(Date.now() / 60_000) - 15) * 60n };
    return fleet.listAudit({ since, pageSize: 50 });
  });
  let since: { readonly seconds: bigint } | undefined;
  await pollEvery(1_000, async () => {
    const { replicas } = await fleet.getHistory(since === undefined ? {} : { since });
    const [own] = replicas;
    if (own?.start !== undefined) {
      since = { seconds: own.start.seconds + BigInt(own.admitted.length - 1) };
    }
  });
}

/** Consoles ask at the same moments, by clocks of their own. */
function pollAt(lateMs: number) {
  return async (ms: number, ask: () => Promise<unknown>): Promise<never> => {
    for (;;) {
      await ask();
      await pause(msToNextPoll(Date.now() - lateMs, ms));
    }
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
