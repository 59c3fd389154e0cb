import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { priorities } from "../../../../src/core/admission/priority.js";
import type { QueueSettings } from "../../../../src/core/admission/request-queue.js";
import { tickMs } from "../../../../src/decide/admission/admission.js";
import { waitTimeoutMarginMs } from "../../../../src/decide/admission/admission-call.js";
import { AdmittedRequest } from "../../../../src/decide/admission/admitted-request.js";
import { permitLeaseMsMin } from "../../../../src/decide/admission/permit-lease.js";
import { longWaitMs } from "../../../../src/decide/admission/service-events.js";
import type { ServiceConcurrency } from "../../../../src/policy/services/service-concurrency.js";
import { AdmissionRig, type AskingRequest, testService } from "../../../support/admission.js";
import { propertyRuns } from "../../../support/seeds.js";

const fifo: QueueSettings = { sizeMax: 3, waitMsMax: 2_000, order: "fifo", codel: undefined };

/** A limit that bounds the window of the queue. */
const windowConcurrency: ServiceConcurrency = {
  settings: { law: "window", limits: { initial: 30, min: 2, max: 100 } },
  per: undefined,
  signal: undefined,
  sources: ["extProc"],
  feedback: [],
};

function verdicts(visits: readonly AskingRequest[]): readonly string[] {
  return visits.map(({ verdict }) => verdict);
}

describe("ServiceAdmission", () => {
  describe("permits", () => {
    it("gives as many as there are, and each again when its exchange is over", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 2 })]);
      const visits = rig.askMany(3);
      expect(verdicts(visits)).toEqual(["admitted", "admitted", "concurrency"]);
      visits[0]?.complete();
      expect(rig.ask().verdict).toBe("admitted");
      expect(rig.service().pools.whole.inUseCount()).toBe(2);
    });

    it("takes a permit back once, however often the end is told", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 2 })]);
      const [visit, other] = rig.askMany(2);
      for (const end of ["completed", "left", "broken"] as const) visit?.ticket?.end(end);
      expect(rig.service().pools.whole.inUseCount()).toBe(1);
      other?.leave();
      expect(rig.service().pools.whole.inUseCount()).toBe(0);
      expect(rig.service().counts.leftCount).toBe(0);
    });

    it("does nothing at the end of who was refused", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1 })]);
      rig.ask();
      rig.ask().leave();
      expect(rig.service().pools.whole.inUseCount()).toBe(1);
    });

    it("bounds those of one caller, in the queue as well, and gives them back", () => {
      const maxInFlightPer = {
        per: { kind: "header", header: "x-user" },
        max: 2,
        keysMax: 10,
        scope: "fleet",
      } as const;
      const rig = new AdmissionRig([testService({ maxInFlight: 1, maxInFlightPer, queue: fifo })]);
      const ours = rig.askMany(3, { user: "a" });
      expect(verdicts(ours)).toEqual(["admitted", "waiting", "concurrency"]);
      expect(rig.ask({ user: "b" }).verdict).toBe("waiting");
      ours[1]?.leave();
      expect(rig.ask({ user: "a" }).verdict).toBe("waiting");
      const { keyed } = rig.service().blocks.admission ?? {};
      expect(keyed?.keyCount).toBe(2);
    });

    it("splits them by a header, and lets no key starve another", () => {
      const rig = new AdmissionRig([
        testService(
          { queue: fifo },
          {
            concurrency: {
              settings: { law: "fixed", limits: { initial: 1, min: 1, max: 2 } },
              per: { header: "x-database", names: ["users"], keysMax: 2 },
              signal: undefined,
              sources: ["extProc"],
              feedback: [],
            },
          },
        ),
      ]);
      const ask = (database: string) => rig.ask({ headers: { "x-database": database } });
      const busy = ["users", "users", "users"].map(ask);
      expect(verdicts(busy)).toEqual(["admitted", "admitted", "waiting"]);
      expect(ask("orders").verdict).toBe("admitted");
      // Two keys are held, both in use: all others share one more.
      expect(verdicts(["c", "d", "e"].map(ask))).toEqual(["admitted", "admitted", "waiting"]);
      expect([...rig.service().pools.all()].map(({ label }) => label)).toEqual([
        "users",
        "other",
        "other",
      ]);
      busy[0]?.complete();
      expect(busy[2]?.verdict).toBe("admitted");
    });

    it("bounds all keys together, and serves them in turn", () => {
      const rig = new AdmissionRig([
        testService(
          { maxInFlight: 2, queue: fifo },
          {
            concurrency: {
              settings: { law: "fixed", limits: { initial: 5, min: 1, max: 5 } },
              per: { header: "x-database", names: ["a", "b"], keysMax: 10 },
              signal: undefined,
              sources: ["extProc"],
              feedback: [],
            },
          },
        ),
      ]);
      const ask = (database: string) => rig.ask({ headers: { "x-database": database } });
      const first = ["a", "a"].map(ask);
      const waiting = ["a", "a", "b"].map(ask);
      expect(verdicts(waiting)).toEqual(["waiting", "waiting", "waiting"]);
      for (const visit of first) visit.complete();
      expect(verdicts(waiting)).toEqual(["admitted", "waiting", "admitted"]);
      expect(rig.service().pools.whole.inUseCount()).toBe(2);
    });
  });

  describe("queue", () => {
    it("tells Envoy to wait a little longer than we do, and refuses first", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue: fifo })]);
      rig.ask();
      const visit = rig.ask();
      expect(visit.waits).toEqual([2_000 + waitTimeoutMarginMs]);
      rig.clock.advance(1_999);
      expect(visit.verdict).toBe("waiting");
      rig.clock.advance(1);
      expect(visit.verdict).toBe("queue_timeout");
    });

    it("lets wait at most as long as the caller's own time lasts", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue: fifo })]);
      rig.ask();
      const visit = rig.ask({ headers: { "grpc-timeout": "300m" } });
      expect(visit.waits).toEqual([300 + waitTimeoutMarginMs]);
      rig.clock.advance(300);
      expect(visit.verdict).toBe("deadline");
    });

    it("refuses who finds it full, and lets in the oldest when a permit comes free", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue: fifo })]);
      const first = rig.ask();
      const visits = rig.askMany(4);
      expect(verdicts(visits)).toEqual(["waiting", "waiting", "waiting", "queue_full"]);
      rig.clock.advance(40);
      first.complete();
      expect(verdicts(visits).slice(0, 2)).toEqual(["admitted", "waiting"]);
      const { waits } = rig.service().counts;
      expect(waits.sum).toBe(40);
      expect(waits.counts[waits.bounds.indexOf(50)]).toBe(1);
    });

    it("tells once a second of those who were let in after a long wait, and of nobody else", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue: fifo })]);
      const visits = [rig.ask(), ...rig.askMany(3)];
      for (const waitMs of [longWaitMs, 1, 10]) {
        rig.clock.advance(waitMs);
        visits.shift()?.complete();
      }
      rig.clock.advance(tickMs);
      const longestMs = longWaitMs + 11;
      const reported = { kind: "waitedLong", service: "orders", key: "", count: 2, longestMs };
      expect(rig.events).toEqual([reported]);
      rig.clock.advance(tickMs);
      expect(rig.events).toHaveLength(1);
    });

    it("forgets who leaves it", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue: fifo })]);
      const first = rig.ask();
      const [gone, next] = rig.askMany(2);
      gone?.leave();
      expect(rig.service().counts.leftCount).toBe(1);
      first.complete();
      expect(gone?.verdict).toBe("waiting");
      expect(next?.verdict).toBe("admitted");
      rig.clock.advance(10_000);
      expect(gone?.refusals).toEqual([]);
    });

    it("does not let newcomers overtake who waits", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 2, queue: fifo })]);
      const [first, second] = rig.askMany(2);
      const waiting = rig.ask();
      const newcomers: AskingRequest[] = [];
      waiting.onReported = () => {
        waiting.onReported = undefined;
        newcomers.push(rig.ask());
      };
      first?.complete();
      expect([waiting.verdict, newcomers[0]?.verdict]).toEqual(["admitted", "waiting"]);
      second?.complete();
      expect(newcomers[0]?.verdict).toBe("admitted");
    });

    it("lets nobody overtake when a share has grown unseen, and serves at the next look", () => {
      let shareCount = 1;
      const shares = {
        open: () => ({
          permits: () => shareCount,
          othersInUse: () => 0,
          isLeased: () => true,
          close: () => {},
        }),
      };
      const rig = new AdmissionRig([testService({ maxInFlight: 9, queue: fifo })], { shares });
      rig.ask();
      const waiting = rig.ask();
      shareCount = 2;
      const newcomer = rig.ask();
      expect([waiting.verdict, newcomer.verdict]).toEqual(["admitted", "waiting"]);
      shareCount = 3;
      rig.clock.advance(1_000);
      expect(newcomer.verdict).toBe("admitted");
    });

    it("says only that it is let in of who begins to wait and gets its turn at once", () => {
      let shareCount = 1;
      const shares = {
        open: () => ({
          permits: () => shareCount,
          othersInUse: () => 0,
          isLeased: () => true,
          close: () => {},
        }),
      };
      const rig = new AdmissionRig([testService({ maxInFlight: 9, queue: fifo })], { shares });
      const [, waiting] = rig.askMany(2);
      shareCount = 3;
      const newcomer = rig.ask();
      expect([waiting?.verdict, newcomer.verdict]).toEqual(["admitted", "admitted"]);
      expect(newcomer.waits).toEqual([]);
    });

    it("holds in the queue who is critical rather than refuse, and displaces who is not", () => {
      const queue: QueueSettings = { ...fifo, order: "priority" };
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue })]);
      const first = rig.ask();
      const low = rig.askMany(3, { priority: "low" });
      const critical = rig.ask({ priority: "critical" });
      expect(verdicts(low)).toEqual(["waiting", "waiting", "queue_full"]);
      first.complete();
      expect(critical.verdict).toBe("admitted");
    });

    it("drops who has come beyond the window by the time it shrank", () => {
      const rig = new AdmissionRig([
        testService(
          { maxInFlight: 1, queue: { ...fifo, sizeMax: 100 }, lateAfterMs: 1_000 },
          { concurrency: windowConcurrency },
        ),
      ]);
      const first = rig.ask();
      const visits = rig.askMany(31);
      // The window bounds the queue, and the permits are what they were.
      expect(verdicts(visits.slice(29))).toEqual(["waiting", "queue_full"]);
      rig.clock.advance(1_000);
      // The first one had no place before it: a window of 2 and a margin of 10 are left.
      first.complete();
      for (let i = 0; i < 12; i += 1) {
        expect(visits[i]?.verdict).toBe("admitted");
        visits[i]?.complete();
      }
      expect(visits.slice(12, 30).every(({ verdict }) => verdict === "queue_full")).toBe(true);
    });
  });

  it("takes the permits in use for the place of a late request where there is no queue", () => {
    const rig = new AdmissionRig([
      testService({ lateAfterMs: 1_000 }, { concurrency: windowConcurrency }),
    ]);
    const visits = rig.askMany(25);
    rig.clock.advance(1_000);
    visits.at(-1)?.complete();
    // A margin of 10 below its place.
    expect(rig.service().pools.whole.limit(rig.clock.monotonicMs())).toBe(15);
  });

  it("takes no notice of a reading where the service has no limit that goes by one", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 2 })]);
    rig.admission.read("orders", { isAnew: true, byKey: new Map(), gone: [], rest: 0.5 });
    expect(verdicts(rig.askMany(3))).toEqual(["admitted", "admitted", "concurrency"]);
  });

  describe("deadlines", () => {
    const deadline = { minRemainingMs: 5, marginMs: 10, header: "x-time-left" };

    it("refuses who has too little left, and passes on what is left less a margin", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 5, deadline })]);
      expect(rig.ask({ headers: { "x-time-left": "4" } }).verdict).toBe("deadline");
      const visit = rig.ask({ headers: { "x-time-left": "500" } });
      expect(visit.terms[0]?.setHeaders).toEqual([
        { name: "x-request-priority", value: "normal" },
        { name: "x-time-left", value: "490" },
      ]);
      expect(rig.ask().terms[0]?.setHeaders).toHaveLength(1);
    });

    it("takes off what the wait took", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, deadline, queue: fifo })]);
      const first = rig.ask();
      const headers = { "grpc-timeout": "1S", "content-type": "application/grpc" };
      const visit = rig.ask({ headers });
      rig.clock.advance(200);
      first.complete();
      expect(visit.terms[0]?.setHeaders.at(-1)).toEqual({ name: "grpc-timeout", value: "790m" });
    });

    it("refuses who would be served too late, but for one at a time", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 5, deadline })]);
      const slow = rig.ask();
      rig.clock.advance(300);
      slow.complete();
      const headers = { "x-time-left": "200" };
      const probe = rig.ask({ headers });
      expect(probe.verdict).toBe("admitted");
      expect(rig.ask({ headers }).verdict).toBe("deadline");
      expect(rig.ask({ headers: { "x-time-left": "2000" } }).verdict).toBe("admitted");
    });
  });

  describe("dry run", () => {
    it("decides and counts, and refuses nobody", () => {
      const dryRun = new Set(["permits", "deadline"] as const);
      const deadline = { minRemainingMs: 5, marginMs: 10, header: "x-time-left" };
      const rig = new AdmissionRig([testService({ maxInFlight: 1, deadline, dryRun })]);
      rig.ask();
      expect(rig.ask({ headers: { "x-time-left": "1" } }).verdict).toBe("admitted");
      const { counts } = rig.service();
      expect(counts.dryRefused.of("normal", "deadline")).toBe(1);
      expect(counts.dryRefused.of("normal", "concurrency")).toBe(1);
      expect(counts.refused.of("normal", "deadline")).toBe(0);
      expect(counts.admitted.normal).toBe(2);
      expect(rig.service().pools.whole.inUseCount()).toBe(2);
    });

    it("leaves out a queue that only counts", () => {
      const dryRun = new Set(["queue"] as const);
      const rig = new AdmissionRig([testService({ maxInFlight: 1, queue: fifo, dryRun })]);
      rig.ask();
      expect(rig.ask().verdict).toBe("concurrency");
    });

    it("is what everything is for a request that Envoy only shows", () => {
      const rig = new AdmissionRig([
        testService({ maxInFlight: 1, queue: fifo, ownOverload: "refuse" }),
      ]);
      rig.isOverloaded = true;
      const visits = rig.askMany(2, { isObserved: true });
      expect(verdicts(visits)).toEqual(["admitted", "admitted"]);
      expect(rig.service().counts.dryRefused.of("normal", "ownOverload")).toBe(2);
      for (const visit of visits) visit.complete();
      expect(rig.service().counts.outcomes.success).toBe(2);
      expect(rig.service().pools.whole.inUseCount()).toBe(0);
    });
  });

  it("teaches a law nothing of what this process hears late", () => {
    const limits = { initial: 20, min: 1, max: 100 };
    const rig = new AdmissionRig([
      testService(
        {},
        {
          concurrency: {
            settings: { law: "aimd", limits, increase: 1, decreaseRatio: 0.5 },
            per: undefined,
            signal: undefined,
            sources: ["extProc"],
            feedback: [],
          },
        },
      ),
    ]);
    const drop = (): number => {
      rig.ask().complete(503);
      return rig.service().pools.whole.limit(rig.clock.monotonicMs());
    };
    rig.isLate = true;
    expect(drop()).toBe(20);
    rig.isLate = false;
    expect(drop()).toBe(10);
  });

  describe("refusals", () => {
    it("come with the least wait where none is known, and with the queue's where it is", () => {
      const rig = new AdmissionRig([
        testService({ maxInFlight: 1, queue: { ...fifo, waitMsMax: 60_000 } }),
      ]);
      const first = rig.ask();
      rig.clock.advance(4_000);
      first.complete();
      const [, ...others] = rig.askMany(5);
      const refused = others.at(-1)?.refusals[0];
      expect(refused?.status).toBe(429);
      // Three wait before whoever comes, each for about the 4 s of the one before.
      expect(refused?.headers[0]).toEqual({ name: "retry-after", value: "10" });
    });

    it("have no place in an overload of this process that lets pass, whatever the class", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 1, ownOverload: "allow" })]);
      rig.isOverloaded = true;
      for (const priority of priorities) {
        expect(verdicts(rig.askMany(5, { priority }))).toEqual(new Array(5).fill("admitted"));
      }
      const { counts, pools } = rig.service();
      expect(counts.failureModeAllowedCount).toBe(20);
      expect(counts.admitted).toEqual({ critical: 5, high: 5, normal: 5, low: 5 });
      expect(pools.whole.inUseCount()).toBe(0);
      rig.isOverloaded = false;
      expect(verdicts(rig.askMany(2))).toEqual(["admitted", "concurrency"]);
    });

    it("go on as ever in an overload of this process whose block is dry", () => {
      const dryRun = new Set(["load"] as const);
      const rig = new AdmissionRig([testService({ maxInFlight: 1, dryRun })]);
      rig.isOverloaded = true;
      expect(verdicts(rig.askMany(2))).toEqual(["admitted", "concurrency"]);
    });

    it("spare critical requests when this process is overloaded, and nobody else", () => {
      const rig = new AdmissionRig([testService({ maxInFlight: 10, ownOverload: "refuse" })]);
      rig.isOverloaded = true;
      expect(priorities.map((priority) => rig.ask({ priority }).verdict)).toEqual([
        "admitted",
        "own_overload",
        "own_overload",
        "own_overload",
      ]);
    });
  });

  it("leaks no permit and gives none back twice, whatever happens in whatever order", () => {
    const settings = fc.record({
      waitMsMax: fc.constantFrom(500, 3 * permitLeaseMsMin),
      order: fc.constantFrom("priority", "fifo", "newestFirstUnderOverload"),
      keysMax: fc.constantFrom(2, 3),
    });
    const step = fc.record({
      does: fc.oneof(
        { weight: 3, arbitrary: fc.constant("ask") },
        { weight: 1, arbitrary: fc.constantFrom("complete", "leave", "break", "twice") },
        { weight: 1, arbitrary: fc.constantFrom("pass", "stall") },
      ),
      which: fc.nat(20),
      priority: fc.constantFrom(...priorities),
      user: fc.constantFrom("u0", "u0", "u0", "u0", "u0", "u0", "u1", "u2"),
      peer: fc.constantFrom("a", "b"),
    });
    fc.assert(
      fc.property(settings, fc.array(step, { maxLength: 120 }), (chosen, steps) => {
        const { keysMax, ...patience } = chosen;
        const queue = { ...patience, sizeMax: 4, codel: undefined };
        const per = { kind: "header", header: "x-user" } as const;
        const maxInFlightPer = { per, max: 3, keysMax, scope: "fleet" } as const;
        const rig = new AdmissionRig([testService({ maxInFlight: 3, queue, maxInFlightPer })]);
        const service = rig.service();
        const { whole } = service.pools;
        const open: { visit: AskingRequest; peer: string; user: string }[] = [];
        for (const { does, which, priority, user, peer } of steps) {
          if (does === "ask") open.push({ visit: rig.ask({ priority, user, peer }), user, peer });
          else if (does === "pass") rig.clock.advance(which * 20);
          else if (does === "stall") rig.clock.advance(permitLeaseMsMin + tickMs);
          else {
            const [{ visit } = {}] = open.splice(which % Math.max(1, open.length), 1);
            if (does === "complete") visit?.complete(which % 2 === 0 ? 200 : 503);
            else visit?.ticket?.end(does === "break" ? "broken" : "left");
            if (does === "twice") visit?.ticket?.end("completed");
          }
          const admitted = open.filter(({ visit }) => visit.verdict === "admitted");
          const overdue = admitted.filter(({ visit }) => isOverdue(visit));
          const waiting = open.filter(({ visit }) => visit.verdict === "waiting");
          const held = admitted.length - overdue.length;
          expect(whole.inUseCount()).toBe(held);
          expect(held).toBeLessThanOrEqual(3);
          expect(whole.waitingCount).toBe(waiting.length);
          expect(countOf(admitted, "peer", peer)).toBeLessThanOrEqual(3);
          // With two keys some share a count, and have one of their own later.
          if (keysMax === 3) expect(countOf(admitted, "user", user)).toBeLessThanOrEqual(3);
          for (const one of waiting) {
            expect(held + countOf(overdue, "peer", one.peer)).toBeGreaterThanOrEqual(3);
          }
        }
        for (const { visit } of open) visit.leave();
        expect(whole.inUseCount()).toBe(0);
        expect(whole.waitingCount).toBe(0);
        expect(service.blocks.admission?.keyed?.keyCount).toBe(0);
        for (const peer of ["a", "b"]) expect(whole.bears(peer, 0)).toBe(true);
        for (const { visit } of open)
          expect(visit.terms.length + visit.refusals.length).toBeLessThan(2);
      }),
      propertyRuns(200),
    );
  });
});

function isOverdue({ ticket }: AskingRequest): boolean {
  return ticket instanceof AdmittedRequest && ticket.stage === "overdue";
}

function countOf<K extends string>(
  open: readonly Readonly<Record<K, unknown>>[],
  field: K,
  value: string,
): number {
  return open.filter((one) => one[field] === value).length;
}
