import { createHistogram, performance } from "node:perf_hooks";
import { FrameClient } from "./frame-client.js";

/** What a load process is told, as JSON in its first argument. */
export interface LoadOrder {
  readonly port: number;
  readonly path: string;
  /** Prepared messages in base64; each connection walks through them in its own order. */
  readonly messages: readonly string[];
  readonly connectionCount: number;
  readonly inFlightPerConnection: number;
  readonly durationMs: number;
}

/** What it prints when it is done, as JSON. */
export interface LoadReport {
  readonly callCount: number;
  readonly failedCount: number;
  readonly deniedCount: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** RateLimitResponse begins with field 1, a varint: OVER_LIMIT is 2. */
const overLimit = Buffer.from([0x08, 0x02]);

/** Keeps a fixed number of calls in flight for a time (a closed loop), and measures each. */
export async function runLoad(order: LoadOrder): Promise<LoadReport> {
  const messages = order.messages.map((message) => Buffer.from(message, "base64"));
  const clients = await Promise.all(
    Array.from({ length: order.connectionCount }, () =>
      FrameClient.connect(order.port, order.path),
    ),
  );
  const histogram = createHistogram();
  const counts = { callCount: 0, failedCount: 0, deniedCount: 0 };
  const startMs = performance.now();
  const endMs = startMs + order.durationMs;
  await Promise.all(
    clients.flatMap((client, connection) =>
      Array.from({ length: order.inFlightPerConnection }, (_, slot) => {
        // A stride that is odd and prime to most counts, so that connections do not march in step.
        let at = connection * 7_919 + slot * 104_729;
        return new Promise<void>((resolve) => {
          const next = (): void => {
            const sentMs = performance.now();
            if (sentMs >= endMs) {
              resolve();
              return;
            }
            at += 1;
            client.call(messages[at % messages.length] ?? Buffer.alloc(0), (answer) => {
              histogram.record(Math.max(1, Math.round((performance.now() - sentMs) * 1_000)));
              counts.callCount += 1;
              if (answer === undefined) counts.failedCount += 1;
              else if (answer.subarray(0, 2).equals(overLimit)) counts.deniedCount += 1;
              next();
            });
          };
          next();
        });
      }),
    ),
  );
  const elapsedMs = performance.now() - startMs;
  for (const client of clients) client.close();
  const [p50Ms, p99Ms] = [50, 99].map((percent) => histogram.percentile(percent) / 1_000);
  return { ...counts, elapsedMs, p50Ms: p50Ms ?? 0, p99Ms: p99Ms ?? 0 };
}

if (process.argv[2] === "run") {
  let text = "";
  for await (const chunk of process.stdin) text += String(chunk);
  const order = JSON.parse(text) as LoadOrder;
  process.stdout.write(JSON.stringify(await runLoad(order)));
}
