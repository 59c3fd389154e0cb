import { argv } from "node:process";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { FleetService, LimitService } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { HttpClient } from "../support/http-client.js";

/**
 * Runs in a process of its own, until it is killed: callers at a rate, or open consoles.
 *
 * Usage: console-clients.ts decide PORT PER_SECOND RULES | look PORT CONSOLES
 */
const [, , kind, ...numbers] = argv;
const [port = 0, count = 0, ruleCount = 0] = numbers.map(Number);
if (kind === "decide") await decideSteadily(port, { perSecond: count, ruleCount });
else await Promise.all(Array.from({ length: count }, () => look(port)));

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

/** An open console: what the overview polls, and the tail beside it. */
async function look(port: number): Promise<void> {
  // As browsers do on a port without TLS.
  const baseUrl = `http://127.0.0.1:${port}`;
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true });
  const fleet = createClient(FleetService, transport);
  const limits = createClient(LimitService, transport);
  const follow = async (): Promise<void> => {
    const tail = limits.tailDecisions({ sampleRatio: 0.1, perSecondMax: 50 });
    for await (const _ of tail);
  };
  void follow();
  let since: { readonly seconds: bigint } | undefined;
  for (;;) {
    const asked = since === undefined ? {} : { since };
    const { replicas } = await fleet.getHistory(asked);
    const [own] = replicas;
    if (own?.start !== undefined) {
      since = { seconds: own.start.seconds + BigInt(own.admitted.length - 1) };
    }
    await pause(1_000);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
