import { createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { FakeRandom } from "../support/fake-random.js";

/** Ways to write the same requests down. */
export const replayFormats = ["text", "JSON", "CSV"] as const;

/** One of them. */
export type ReplayFormat = (typeof replayFormats)[number];

const clientCount = 20_000;
const pathCount = 50;
const linesPerChunk = 1_000;

/** Each caller's address, each customer's plan, and each path have limits; one is in windows. */
const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: replay}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: remote_address, rate_limit: {unit: minute, requests_per_unit: 30, burst: 10}}
        - key: plan
          value: partner
          descriptors:
            - key: user
              rate_limits:
                - {name: pace, unit: second, requests_per_unit: 20, burst: 40}
                - {name: daily, unit: day, requests_per_unit: 100000}
        - key: plan
          descriptors:
            - {key: user, rate_limit: {name: free, period: 10s, requests_per_unit: 5}}
        - key: path
          rate_limit: {unit: second, requests_per_unit: 200, algorithm: fixed_window}
  services:
    - name: shop
      hosts: [shop.example]
      rateLimit:
        domain: shop
        descriptors:
          - [remote_address]
          - [{header: x-plan, as: plan}, {header: x-user, as: user}]
          - [{header: ":path", as: path}]
`;

/** Writes the policy that logs are run through. @returns its path */
export async function writeReplayPolicy(directory: string): Promise<string> {
  const path = join(directory, "replay-policy.yaml");
  await writeFile(path, policyText);
  return path;
}

/** Writes a log of so many requests, the same ones in every format. @returns its path */
export async function writeReplayLog(
  directory: string,
  { format, lineCount }: { readonly format: ReplayFormat; readonly lineCount: number },
): Promise<string> {
  const path = join(directory, `replay-${format}.log`);
  await pipeline(Readable.from(chunksOf(format, lineCount)), createWriteStream(path));
  return path;
}

/** What the formats say of a request; text says less. */
interface Request {
  readonly time: string;
  readonly client: number;
  readonly address: string;
  readonly path: string;
  readonly status: number;
  readonly flags: string;
  readonly host: string;
  readonly id: string;
  readonly bytes: number;
}

const csvTitles = "start_time,method,path,authority,response_code,response_flags,x_forwarded_for";

function* chunksOf(format: ReplayFormat, lineCount: number): Generator<string> {
  if (format === "CSV") yield `${csvTitles},x-user,x-plan,bytes_sent\n`;
  const random = new FakeRandom(1);
  let timeMs = Date.UTC(2026, 0, 5, 8);
  for (let done = 0; done < lineCount; done += linesPerChunk) {
    const lines: string[] = [];
    for (let i = done; i < Math.min(lineCount, done + linesPerChunk); i += 1) {
      timeMs += random.next() < 0.3 ? 1 : 0;
      lines.push(lineOf(format, requestAt(timeMs, random)));
    }
    yield `${lines.join("\n")}\n`;
  }
}

/** Few clients and paths make most of the calls; each took up to a fifth of a second. */
function requestAt(timeMs: number, random: FakeRandom): Request {
  const client = Math.floor(random.next() ** 2 * clientCount);
  const path = Math.floor(random.next() ** 1.5 * pathCount);
  const wasLimited = random.next() < 0.02;
  return {
    time: new Date(timeMs - Math.floor(random.next() * 200)).toISOString(),
    client,
    address: `10.${client >> 8}.${client & 255}.7`,
    path: path < 40 ? `/api/v1/things/${path}` : `/api/v1/search?q=${path}`,
    status: wasLimited ? 429 : 200,
    flags: wasLimited ? "RL" : "-",
    host: random.next() < 0.95 ? "shop.example" : "other.example:443",
    id: `${random.id()}-${random.id()}`,
    bytes: Math.floor(random.next() * 10_000),
  };
}

const userAgent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)";

function lineOf(format: ReplayFormat, request: Request): string {
  const { time, client, address, path, status, flags, host, id, bytes } = request;
  const [user, plan] = [`user-${client}`, client % 50 === 0 ? "partner" : "free"];
  switch (format) {
    case "text":
      return (
        `[${time}] "GET ${path} HTTP/1.1" ${status} ${flags} 0 ${bytes} 12 11 "${address}" ` +
        `"${userAgent}" "${id}" "${host}" "10.9.1.1:8080"`
      );
    case "JSON":
      return JSON.stringify({
        start_time: time,
        method: "GET",
        path,
        protocol: "HTTP/1.1",
        response_code: status,
        response_flags: flags,
        bytes_received: 0,
        bytes_sent: bytes,
        duration: 12,
        upstream_service_time: "11",
        x_forwarded_for: address,
        user_agent: userAgent,
        request_id: id,
        authority: host,
        upstream_host: "10.9.1.1:8080",
        upstream_cluster: "shop",
        downstream_remote_address: `${address}:${30_000 + (bytes % 20_000)}`,
        route_name: "default",
        x_user: user,
        x_plan: plan,
      });
    case "CSV":
      return [time, "GET", path, host, status, flags, address, user, plan, bytes].join(",");
  }
}
