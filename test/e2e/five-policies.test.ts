import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { casePolicy, type PolicyCase, policyCases } from "../support/generated.js";
import { type HttpAnswer, type HttpAsk, HttpClient } from "../support/http-client.js";
import {
  type PolicyAnswer,
  type PolicyRequest,
  policyRequests,
} from "../support/policy-requests.js";
import { type PolicyRig, startPolicy } from "../support/policy-rig.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

/**
 * Five policies as users would write them, each with what its requests get: at the Envoy that is
 * generated, at what istiod makes of it for sidecars and for a gateway, and at what Envoy Gateway
 * makes of it. Real Envoys, and a real Headgate.
 */
const stage = useStage("file");

const http = new HttpClient();
afterAll(() => http.close());

const callersShape = z.record(z.string(), z.object({ token: z.string(), key: z.string() }));

/** What a caller shows: each place takes one of both. */
function credentialsOf(caller: string | undefined, { folder }: PolicyCase): Record<string, string> {
  if (caller === undefined) return {};
  const file = join(folder, "..", "..", "callers.json");
  const callers = callersShape.parse(JSON.parse(readFileSync(file, "utf8")));
  const { token = `${callers["ann"]?.token.slice(0, -4)}AAAA`, key = "no-key" } =
    callers[caller] ?? {};
  return { authorization: `Bearer ${token}`, "x-api-key": key };
}

/** The host by which a service is asked: its own, or in a mesh its name there. */
function hostOf(name: string, given: PolicyCase): string {
  const service = casePolicy(given).services.find((one) => one.name === name);
  const { upstream, hosts } = service ?? {};
  return (given.place === "istio-sidecar" ? upstream?.address : hosts?.[0]) ?? "";
}

/** What an answer has of all that is expected, in the same form. */
function seen({ status, headers, body }: HttpAnswer, wanted: PolicyAnswer): unknown {
  const names = Object.entries(wanted.headers).map(([name, text]) => {
    const value = headers[name]?.toString() ?? null;
    const isMet = text !== null && value !== null && new RegExp(`^(?:${text})$`).test(value);
    return [name, isMet ? text : value];
  });
  const isStatus = [wanted.status].flat().includes(status);
  return {
    ...wanted,
    status: isStatus ? wanted.status : status,
    headers: Object.fromEntries(names),
    ...(wanted.body === undefined ? {} : { body: body.trim() }),
  };
}

/** How many got which status, where no service answers before all are in work or refused. */
async function countsAtOnce(
  rig: PolicyRig,
  asks: readonly HttpAsk[],
): Promise<Readonly<Record<string, number>>> {
  let answeredCount = 0;
  const answers = asks.map(async ({ headers, ...ask }) => {
    const answer = await http.send({ ...ask, headers: { ...headers, "x-hold": "1" } });
    answeredCount += 1;
    return answer.status;
  });
  const heldCount = () => rig.upstreams.reduce((sum, one) => sum + one.heldCount, 0);
  try {
    await waitFor("all are in work or refused", () => heldCount() + answeredCount === asks.length);
  } finally {
    for (const upstream of rig.upstreams) upstream.release();
  }
  const counts: Record<string, number> = {};
  for (const status of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Every request that is meant, in turn. */
function asksOf(rig: PolicyRig, given: PolicyCase, request: PolicyRequest): readonly HttpAsk[] {
  const { ask, as, to, paths = [ask.path] } = request;
  return to.flatMap((service) =>
    (request.hosts ?? [hostOf(service, given)]).flatMap((host) => {
      const headers = { host, ...credentialsOf(as, given), ...ask.headers };
      return paths.flatMap((path) => {
        return rig.portsOf(service).map((port) => ({ ...ask, path, headers, port }));
      });
    }),
  );
}

async function askOnce(rig: PolicyRig, given: PolicyCase, request: PolicyRequest): Promise<void> {
  const { times, atOnce, gets, what } = request;
  for (const ask of asksOf(rig, given, request)) {
    const words = `${given.name}: ${what} (${ask.headers?.["host"]}${ask.path})`;
    if (atOnce !== undefined) {
      const counts = await countsAtOnce(rig, Array<HttpAsk>(atOnce).fill(ask));
      expect(counts, words).toEqual(gets.counts);
    }
    for (let i = 0; atOnce === undefined && i < times; i += 1) {
      expect(seen(await http.send(ask), gets), words).toEqual(gets);
    }
  }
}

describe("policies as users write them", () => {
  it.concurrent.each(policyCases())("$name: requests get what they should", async (given) => {
    const rig = await startPolicy(stage, given);
    for (const request of policyRequests(given)) {
      if (!request.eventually) await askOnce(rig, given, request);
      else {
        const look = async () => {
          await askOnce(rig, given, request);
          return true;
        };
        // Limits and shares are learned from these requests: they come as often as from callers.
        await waitFor(request.what, look, { everyMs: 10 });
      }
    }
  });
});
