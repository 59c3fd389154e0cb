import { expect } from "vitest";
import { failureModePolicy, type ModeOutcomes, ModeTraffic } from "./failure-modes.js";
import { HeadgateProcess, type RunningHeadgate } from "./headgate-process.js";
import { outcomeOf, RlsClient } from "./rls-client.js";
import type { Stage } from "./stage.js";
import { withheldTime } from "./withheld-time.js";

/** What every mode answers while the store is well. */
export const wellOutcomes: ModeOutcomes = { local: "OK", allow: "OK", deny: "OK", error: "OK" };

/** What every mode answers while it is not. */
export const faultOutcomes: ModeOutcomes = {
  local: "OK",
  allow: "OK",
  deny: "OVER_LIMIT",
  error: "UNAVAILABLE",
};

/** A Headgate under the traffic of every failure mode, asked directly over gRPC. */
export interface FaultRig {
  readonly headgate: HeadgateProcess;
  readonly traffic: ModeTraffic;
  readonly client: RlsClient;
}

/** Starts both; resolves when every mode is well. */
export async function startFaultRig(
  stage: Stage,
  env: Readonly<Record<string, string>>,
): Promise<FaultRig> {
  const headgate = await HeadgateProcess.start(stage, {
    policy: failureModePolicy,
    env,
  });
  const client = startClient(stage, headgate);
  const traffic = startModeTraffic(stage, headgate, client);
  await traffic.expectFromNowOn(wellOutcomes);
  return { headgate, traffic, client };
}

/** Traffic of every failure mode that ends with the stage. */
export function startModeTraffic(
  stage: Stage,
  headgate: RunningHeadgate,
  client = startClient(stage, headgate),
): ModeTraffic {
  const ask = async (mode: string, account: string): Promise<string> => {
    return outcomeOf(await client.ask({ descriptors: [[`${mode}=${account}`]] }));
  };
  return new ModeTraffic(stage, ask, withheldTime(stage, headgate.pid));
}

/** A gRPC caller that ends with the stage. */
export function startClient(stage: Stage, headgate: RunningHeadgate): RlsClient {
  const client = new RlsClient(headgate.grpcPort);
  stage.atEnd(() => client.close());
  return client;
}

/**
 * The process has lived through it: still there, no bug counted, nothing that looks like a crash.
 */
export async function expectUnharmed(headgate: RunningHeadgate): Promise<void> {
  expect((await headgate.get("/livez")).status).toBe(200);
  expect(await headgate.metric("headgate_internal_errors_total")).toBe(0);
  expect(headgate.output).not.toMatch(/unhandled|uncaught|crash| {4}at /i);
}
