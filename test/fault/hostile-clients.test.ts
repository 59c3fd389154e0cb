import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
} from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { FakeRandom } from "../support/fake-random.js";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { FrameClient } from "../support/http2-frames.js";
import { rawRequest } from "../support/raw-field.js";
import { type AskedDescriptor, outcomeOf, type RlsClient, rlsPath } from "../support/rls-client.js";
import { firstSeed, seedsFirstName } from "../support/seeds.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";
import { withheldTime } from "../support/withheld-time.js";

const seed = firstSeed(Date.now() % 1_000_000);

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: vast
    rate_limit: {unit: hour, requests_per_unit: 4294967295}
`);

const goodRequest: RateLimitRequest = create(RateLimitRequestSchema, {
  domain: "edge",
  descriptors: [{ entries: [{ key: "other", value: "one" }] }],
});

function changed(fields: Partial<RateLimitRequest>): Uint8Array {
  return toBinary(RateLimitRequestSchema, { ...goodRequest, ...fields });
}

/** The good request, and behind it a field of bytes that the message does not have. */
function withUnknownField(): Uint8Array {
  return Buffer.concat([changed({}), Buffer.of(0xfa, 0x07, 2, 1, 2)]);
}

/** An empty descriptor; what is only of these has no domain, but too many come first. */
const rawDescriptor = Buffer.of(0x12, 0);

const messages: readonly (readonly [string, Uint8Array, string])[] = [
  ["nothing", Buffer.alloc(0), "INVALID_ARGUMENT"],
  ["bytes that are not a message", Buffer.from("GET / HTTP/1.1\r\n\r\n"), "INVALID_ARGUMENT"],
  ["a message that ends in the middle", changed({}).subarray(0, 12), "INVALID_ARGUMENT"],
  ["a value of any bytes", rawRequest("edge", "account", Buffer.of(0x61, 0xff, 0)), "OK"],
  ["a value of many bytes", rawRequest("edge", "account", Buffer.alloc(250_000, 0xff)), "OK"],
  ["no domain", changed({ domain: "" }), "INVALID_ARGUMENT"],
  ["no descriptors", changed({ descriptors: [] }), "INVALID_ARGUMENT"],
  ["more than 256 KiB", rawRequest("edge", "other", Buffer.alloc(262_144, "a")), "OVER_LIMIT"],
  ["more descriptors than are counted", Buffer.alloc(262_000, rawDescriptor), "OVER_LIMIT"],
  ["a field that is not known", withUnknownField(), "OK"],
];

/** A question about the account, and how many hits are left after it. */
interface Counted {
  readonly what: string;
  readonly descriptors: readonly AskedDescriptor[];
  readonly hits?: number;
  readonly outcome: string;
  readonly remaining: readonly number[];
}

const counted: readonly Counted[] = [
  {
    what: "the same descriptor twice is counted twice",
    descriptors: [{ entries: ["account=twice"] }, { entries: ["account=twice"] }],
    outcome: "OK",
    remaining: [9, 8],
  },
  {
    what: "zero hits of the request mean one",
    descriptors: [{ entries: ["account=zero"] }],
    hits: 0,
    outcome: "OK",
    remaining: [9],
  },
  {
    what: "zero hits of the descriptor only look",
    descriptors: [{ entries: ["account=looks"], hits: 0n }],
    outcome: "OK",
    remaining: [10],
  },
  {
    what: "the most hits there are never fit a small limit",
    descriptors: [{ entries: ["account=greedy"] }],
    hits: 4_294_967_295,
    outcome: "OVER_LIMIT",
    remaining: [0],
  },
  {
    what: "the most hits there are fit the largest limit once",
    descriptors: [{ entries: ["vast=once"] }, { entries: ["vast=other"], hits: 4_294_967_294n }],
    hits: 4_294_967_295,
    outcome: "OK",
    remaining: [0, 1],
  },
  {
    what: "refunds of what was never taken leave the bucket empty",
    descriptors: [{ entries: ["account=kind"], hits: 1_000n, isRefund: true }],
    outcome: "OK",
    remaining: [10],
  },
];

/** Below the cap a client may leave as many calls unfinished as it likes. */
const unharmed = { answered: 0, reset: 0, ended: 0, goaways: 0, isClosed: false };

describe("a port that hostile clients reach", () => {
  const stage = useStage("file");
  let headgate: HeadgateProcess;
  let client: RlsClient;

  beforeAll(async () => {
    headgate = await HeadgateProcess.start(stage, {
      policy,
    });
    client = startClient(stage, headgate);
  });

  async function expectServing(): Promise<void> {
    expect(outcomeOf(await client.ask({ descriptors: [["other=one"]] }))).toBe("OK");
    await expectUnharmed(headgate);
  }

  describe("a message that holds", () => {
    it.each(messages)(
      "%s is answered with its status, and no other call is harmed",
      async (_, bytes, expected) => {
        expect(outcomeOf(await client.sendBytes(bytes))).toBe(expected);
        await expectServing();
      },
    );

    it(`random bytes is refused, never a crash (${seedsFirstName}=${seed})`, async () => {
      const random = new FakeRandom(seed);
      const outcomes = new Set<string>();
      for (let count = 0; count < 500; count += 1) {
        const bytes = Buffer.from(changed({}));
        const isMutation = random.next() < 0.5;
        const length = isMutation ? bytes.length : Math.floor(random.next() * 200);
        const noise = isMutation ? bytes : Buffer.alloc(length);
        const changes = isMutation ? 3 : length;
        for (let i = 0; i < changes; i += 1) {
          noise.writeUInt8(Math.floor(random.next() * 256), Math.floor(random.next() * length));
        }
        outcomes.add(outcomeOf(await client.sendBytes(noise)));
      }
      for (const outcome of outcomes) expect(["OK", "INVALID_ARGUMENT"]).toContain(outcome);
      await expectServing();
    });
  });

  describe("bytes that are not the port's protocol", () => {
    it.each([
      ["gRPC", () => headgate.grpcPort],
      ["HTTP", () => headgate.httpPort],
    ])("end their own connection to the %s port, and no other", async (_, portOf) => {
      const socket = connect({ host: "127.0.0.1", port: portOf() });
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.on("error", () => {});
      socket.resume();
      socket.write(Buffer.alloc(65_536, 0x80));
      await closed;
      await expectServing();
    });
  });

  describe("a request's hits", () => {
    it.each(counted)("$what", async ({ descriptors, hits = 0, outcome, remaining }) => {
      const answer = await client.ask({ descriptors, hits });
      expect(outcomeOf(answer)).toBe(outcome);
      if (answer.kind !== "decided") throw new Error("not decided");
      expect(answer.response.statuses.map((status) => status.limitRemaining)).toEqual(remaining);
    });

    it("of any number are as many as can be counted", async () => {
      const descriptors = [{ entries: ["account=beyond"], hits: 2n ** 64n - 1n }];
      expect(outcomeOf(await client.ask({ descriptors }))).toBe("OVER_LIMIT");
      await expectServing();
    });
  });

  describe("a client that opens 10,000 streams on one connection", () => {
    it("is refused beyond the cap, and others are served", async () => {
      const call = async (): Promise<string> => {
        return outcomeOf(await client.ask({ descriptors: [["other=one"]] }));
      };
      const withheldMs = withheldTime(stage, headgate.process.pid);
      const others = Traffic.start(stage, { callersCount: 4, call, withheldMs });
      const beforeBytes = await headgate.residentBytes();
      const flood = await FrameClient.open(headgate.grpcPort);
      stage.atEnd(() => flood.close());
      flood.openStreams(rlsPath, 500);
      await waitFor("others go on", () => others.counts.total >= 50);
      expect({ ...flood.counts, isClosed: flood.isClosed }).toEqual(unharmed);
      for (let count = 0; count < 10; count += 1) flood.openStreams(rlsPath, 950);
      await waitFor("what is beyond the cap is refused, or the connection cut", () => {
        return flood.isClosed || flood.counts.goaways > 0 || flood.counts.reset >= 9_000;
      });
      others.beginPhase();
      await waitFor("others go on", () => others.counts.total >= 300);
      const grownBytes = (await headgate.residentBytes()) - beforeBytes;
      expect(grownBytes).toBeLessThan(50 * 1_048_576);
      flood.close();
      const { total, byOutcome, slowestMs } = await others.stop();
      expect(byOutcome).toEqual({ OK: total });
      expect(slowestMs).toBeLessThan(1_500);
      await expectServing();
    });
  });
});
