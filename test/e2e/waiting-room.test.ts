import { beforeAll, describe, expect, it } from "vitest";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { navigation, RoomEdge, type Visitor } from "../support/room-edge.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

/** One visitor at a time, who may stay for a minute. */
const oneAtATime = `
  capacity: {activeUsers: 1}
  session: {length: 1m}
  refresh: 1s
  missedRefreshes: 100
`;

const leadingMetric = "headgate_waiting_room_leading";
const phaseMetric = "headgate_waiting_room_phase";
const rejectMetric = "headgate_waiting_room_gate_reject_ratio";

const often = { everyMs: 200 };

const quiet = `
  capacity: {activeUsers: 1}
  refresh: 1s
  missedRefreshes: 60
`;

function lobby(words: string): string {
  return `<!doctype html>\n<p data-state="{{state}}">${words} {{position}}</p>\n`;
}

/** A room for each test; they share Envoy, Headgates and Redis. */
let edge: RoomEdge<HeadgateProcess>;

beforeAll(async () => {
  edge = await RoomEdge.startProcesses(stage, {
    rooms: {
      order: { room: oneAtATime },
      forms: { room: oneAtATime },
      lobby: { room: `${oneAtATime}  page: {templateFile: lobby.html}\n` },
      renewal: {
        room: `
          capacity: {activeUsers: 1}
          session: {length: 10s}
          refresh: 1s
        `,
      },
      sampled: { room: oneAtATime, admission: "{maxInFlight: 100, sampleRatio: 0.01}" },
      event: { room: quiet },
      gate: {
        room: `${oneAtATime}
  estimatedWait: {sigmoid: {midpoint: 5s, slope: 5}}
  gate: {}
`,
      },
      hostile: { room: oneAtATime },
      leader: { room: oneAtATime },
      outage: { room: oneAtATime },
      loss: { room: oneAtATime },
    },
    pages: [{ file: "lobby.html", text: lobby("Your place is") }],
  });
});

/** A visitor inside a room, and as many waiting. */
async function occupied(room: string, waitingCount: number) {
  const inside = edge.visitor(stage, room);
  await waitFor("a session is spare", async () => (await inside.go()) === "in", often);
  const waiting: Visitor[] = [];
  for (let i = 0; i < waitingCount; i += 1) {
    const visitor = edge.visitor(stage, room);
    expect(await visitor.go()).toBe("waiting");
    waiting.push(visitor);
  }
  return { inside, waiting };
}

// Most of it is waiting.
describe.concurrent("a waiting room", () => {
  it("lets visitors in as others leave, in their order, over any replica", async () => {
    const { inside, waiting } = await occupied("order", 3);
    const [first, second, third] = waiting;
    if (first === undefined || second === undefined || third === undefined) throw new Error("few");
    await waitFor("places are counted", async () => (await third.position())["position"] === 3);
    expect(edge.upstream("order").arrivalsMs).toHaveLength(1);
    expect((await inside.leave()).status).toBe(200);
    await waitFor("the first one enters", async () => (await first.go()) === "in", often);
    await waitFor("the place falls", async () => (await third.position())["position"] === 2, often);
    expect(await second.go()).toBe("waiting");
    expect(await inside.go()).toBe("waiting");
    await first.leave();
    await waitFor("the second one enters", async () => (await second.go()) === "in", often);
    expect((await third.position())["state"]).toBe("waiting");
  });

  it("answers forms, programs and preflights as each of them needs", async () => {
    const { inside } = await occupied("forms", 0);
    const visitor = edge.visitor(stage, "forms");
    const form = await visitor.send("/buy", { method: "POST", body: "item=1" });
    expect([form.status, form.headers["refresh"]]).toEqual([503, undefined]);
    expect(form.body).toContain("What you sent was not delivered.");
    const head = await visitor.send("/", { method: "HEAD" });
    expect([head.status, head.body, head.headers["cache-control"]]).toEqual([200, "", "no-store"]);
    const preflight = await edge.visitor(stage, "forms").send("/", {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "PUT" },
    });
    expect(preflight.body).toBe("answer 200\n");
    const script = await edge.visitor(stage, "forms").send("/api", { headers: { accept: "*/*" } });
    expect(script.body).toBe("answer 200\n");
    const sneaking = await edge.visitor(stage, "forms").go("/static/../cart");
    expect(sneaking).toBe("waiting");
    expect(await inside.go("/cart")).toBe("in");
  });

  it("shows the page of a file beside the policy, and follows its edits", async () => {
    await occupied("lobby", 0);
    const visitor = edge.visitor(stage, "lobby");
    const shown = async () => (await visitor.send("/")).body;
    await waitFor("the place is known", async () => (await shown()).includes("is 1</p>"), often);
    await edge.write("lobby.html", lobby("Soon:"));
    await waitFor("the page changes", async () => (await shown()).includes(">Soon: 1</p>"), often);
  });

  it("keeps the upstream's cookies, and renews sessions while they are used", async () => {
    const headers = { "set-cookie": "shop=1; Path=/", "cache-control": "public, max-age=60" };
    edge.upstream("renewal").answer = () => ({ status: 200, headers });
    const inside = edge.visitor(stage, "renewal");
    const entered = await waitFor(
      "a session is spare",
      async () => {
        const answer = await inside.send("/");
        return answer.body.startsWith("answer") ? answer : undefined;
      },
      often,
    );
    expect(entered.headers["cache-control"]).toBe("public, max-age=60,private");
    expect([...inside.cookies.keys()].toSorted()).toEqual(["headgate-renewal", "shop"]);
    const first = inside.cookies.get("headgate-renewal");
    const other = edge.visitor(stage, "renewal");
    expect(await other.go()).toBe("waiting");
    const startMs = performance.now();
    const seen = new Set<string | undefined>();
    await waitFor(
      "a session has passed",
      async () => {
        expect(await inside.go()).toBe("in");
        seen.add(inside.cookies.get("headgate-renewal"));
        await other.go();
        return performance.now() - startMs > 14_000;
      },
      { withinMs: 40_000, everyMs: 500 },
    );
    expect(seen.size).toBeGreaterThan(3);
    expect(await other.go()).toBe("waiting");
    const thief = edge.visitor(stage, "renewal");
    thief.cookies.set("headgate-renewal", first ?? "");
    expect(await thief.go()).toBe("waiting");
    await waitFor("the session ends", async () => (await other.go()) === "in", {
      ...often,
      withinMs: 40_000,
    });
  });

  it("sets its cookie also where admission asks for few responses", async () => {
    const { inside } = await occupied("sampled", 0);
    expect(inside.cookies.has("headgate-sampled")).toBe(true);
    for (let i = 0; i < 20; i += 1) expect(await inside.go()).toBe("in");
  });

  it("opens an event to all who came early, in an order that chance gives", async () => {
    const startsAt = new Date(Date.now() + 25_000).toISOString();
    const endsAt = new Date(Date.now() + 3_600_000).toISOString();
    const event = `{name: drop, start: ${startsAt}, end: ${endsAt}, preQueue: 10m, shuffle: true}`;
    await edge.change("event", `${quiet}  events: [${event}]\n`);
    for (const headgate of edge.headgates) {
      await waitFor("each replica knows that the event is near", async () => {
        return (await headgate.metric(phaseMetric, { room: "event", phase: "pre_queue" })) === 1;
      });
    }
    const visitors = Array.from({ length: 30 }, () => edge.visitor(stage, "event"));
    const shown = await Promise.all(visitors.map((visitor) => visitor.go()));
    expect(new Set(shown)).toEqual(new Set(["preQueue"]));
    const early = await visitors[0]?.position();
    expect(early?.["position"]).toBeUndefined();
    expect(early?.["opensInSeconds"]).toBeGreaterThan(0);
    await waitFor(
      "the event is open",
      async () => (await visitors[0]?.position())?.["state"] !== "preQueue",
      { ...often, withinMs: 40_000 },
    );
    const places = await waitFor(
      "all have a place of their own",
      async () => {
        const all = await Promise.all(visitors.map((visitor) => visitor.position()));
        const known = all.map(({ state, position }) => (state === "entered" ? 0 : position));
        return new Set(known).size === visitors.length ? known : undefined;
      },
      often,
    );
    expect(places).not.toEqual(places.toSorted((one, other) => Number(one) - Number(other)));
    expect(edge.upstream("event").arrivalsMs).toEqual([]);
  });
});

describe.concurrent("the gate of a waiting room", () => {
  it("has Envoy turn strangers away while the wait is long, and opens again", async () => {
    const { inside, waiting } = await occupied("gate", 1);
    const [first] = waiting;
    await waitFor("the gate is closed", async () => {
      return (await edge.headgates[0]?.metric(rejectMetric, { room: "gate" })) === 1;
    });
    const answer = () => edge.visitor(stage, "gate").send("/");
    const away = await waitFor("Envoy answers by itself", async () => {
      const { status, body, headers } = await answer();
      return status === 503 && body.startsWith("Too many visitors") ? headers : undefined;
    });
    expect(away["cache-control"]).toBe("no-store");
    expect(await first?.go()).toBe("waiting");
    expect(await inside.go()).toBe("in");
    await inside.leave();
    await waitFor("the first one enters", async () => (await first?.go()) === "in", often);
    await first?.leave();
    await waitFor(
      "strangers are asked in again",
      async () => (await answer()).status === 200,
      often,
    );
  });
});

describe.concurrent("hostile visitors of a waiting room", () => {
  it("get nothing for forged, replayed, shared and swollen cookies", async () => {
    const { inside, waiting } = await occupied("hostile", 1);
    const [victim] = waiting;
    const ticket = victim?.cookies.get("headgate-hostile") ?? "";
    const session = inside.cookies.get("headgate-hostile") ?? "";
    const try_ = async (cookie: string): Promise<string> => {
      const { body } = await edge
        .visitor(stage, "hostile")
        .send("/", { headers: { ...navigation, cookie } });
      return /data-state="(\w+)"/.exec(body)?.[1] ?? "in";
    };
    const changed = `${session.slice(0, 10)}${session[10] === "A" ? "B" : "A"}${session.slice(11)}`;
    expect(await try_(`headgate-hostile=${changed}`)).toBe("waiting");
    expect(await try_(`headgate-hostile=${"A".repeat(50_000)}`)).toBe("waiting");
    const bomb = Array.from({ length: 2_000 }, (_, i) => `headgate-hostile=${i}`).join("; ");
    expect(await try_(bomb)).toBe("waiting");
    // Whoever shares a ticket has the same place, and not another one.
    const twin = edge.visitor(stage, "hostile");
    twin.cookies.set("headgate-hostile", ticket);
    expect((await twin.position())["position"]).toBe((await victim?.position())?.["position"]);
    await inside.leave();
    await waitFor("the ticket enters", async () => (await twin.go()) === "in", often);
    expect(await victim?.go()).toBe("in");
    // It is one session, and ends for both.
    await twin.leave();
    await waitFor(
      "both tickets are worth nothing",
      async () => {
        return (await try_(`headgate-hostile=${ticket}`)) === "waiting";
      },
      often,
    );
  });
});

describe("a waiting room whose parts fail", () => {
  it("keeps visitors in and out while Redis is away, and their places after it", async () => {
    const { inside, waiting } = await occupied("outage", 2);
    edge.redis.pause();
    const [first, second] = waiting;
    const stranger = edge.visitor(stage, "outage");
    await waitFor("strangers are told", async () => (await stranger.go()) === "unavailable", often);
    expect(await inside.go()).toBe("in");
    expect(await first?.go()).toBe("waiting");
    edge.redis.resume();
    await edge.known();
    await waitFor("strangers join", async () => (await stranger.go()) === "waiting", often);
    await inside.leave();
    await waitFor("the first one enters", async () => (await first?.go()) === "in", often);
    expect(await stranger.go()).toBe("waiting");
    await first?.leave();
    await waitFor("the second one enters", async () => (await second?.go()) === "in", often);
    expect(await stranger.go()).toBe("waiting");
  });

  it("goes on when the replica that leads it is killed", async () => {
    const { inside, waiting } = await occupied("leader", 2);
    const leading = await waitFor("somebody leads", async () => {
      for (const headgate of edge.headgates) {
        if ((await headgate.metric(leadingMetric, { room: "leader" })) === 1) return headgate;
      }
      return undefined;
    });
    await leading.process.kill();
    // Until Envoy knows, it lets pass what it asks the one that is gone.
    await waitFor("Envoy knows that it is gone", async () => {
      return (await edge.envoy.stat("cluster.headgate.membership_healthy")) === 1;
    });
    await inside.leave();
    const [first, second] = waiting;
    await waitFor("the next one enters", async () => (await first?.go()) === "in", often);
    expect(await second?.go()).toBe("waiting");
  });

  it("begins a new line when Redis has lost the old one", async () => {
    const { inside, waiting } = await occupied("loss", 1);
    const everybody = [inside, ...waiting];
    const old = everybody.map(ticketOf);
    await edge.redis.kill();
    await edge.redis.restart();
    await waitFor("another line has begun", () => {
      const running = edge.headgates.filter(({ isRunning }) => isRunning);
      return running.every(({ output }) => output.includes('"roomLineBegan","room":"loss"'));
    });
    await waitFor(
      "one of them is in, and the others wait, by tickets of that line",
      async () => {
        const shown = await Promise.all(everybody.map((visitor) => visitor.go()));
        const isNew = everybody.every((visitor) => !old.includes(ticketOf(visitor)));
        return isNew && shown.toSorted().join() === "in,waiting";
      },
      often,
    );
  });

  /** The text of its only cookie. */
  function ticketOf({ cookies }: Visitor): string | undefined {
    return cookies.get("headgate-loss");
  }
});
