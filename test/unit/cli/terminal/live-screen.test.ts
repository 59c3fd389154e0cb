import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";
import { TopOrder } from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { busyScript } from "../../../support/admin-script.js";
import { type AdminScript, AdminServer } from "../../../support/admin-server.js";
import { captureCli } from "../../../support/cli.js";
import { FakeTerminal } from "../../../support/fake-terminal.js";
import { waitFor } from "../../../support/wait.js";

const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";

let server: AdminServer | undefined;

afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function start(script: AdminScript) {
  server = await AdminServer.start(script);
  const env = { NO_COLOR: "1", HEADGATE_ADMIN_URL: server.url };
  return (words: string, terminal: FakeTerminal) => captureCli(words.split(" "), { env, terminal });
}

describe("headgate top", () => {
  it.each(["q", "\u0003", "\u001b", "signal"])(
    "is drawn again in place until %o, and gives the terminal back",
    async (key) => {
      let asked = 0;
      const run = await start({
        limits: {
          topKeys: () => {
            asked += 1;
            return busyScript.limits.topKeys();
          },
        },
      });
      const terminal = new FakeTerminal({ columns: 80, rows: 12 });
      const ended = run("top --every 100ms", terminal);
      await waitFor("it was drawn three times", () => asked >= 3);
      if (key === "signal") terminal.interrupt();
      else terminal.type(key);
      expect(await ended).toEqual({ code: 0, out: "", err: "" });
      expect(terminal.written.startsWith(enter)).toBe(true);
      expect(terminal.written.endsWith(leave)).toBe(true);
      expect(terminal.isHeld).toBe(false);
      const pictures = terminal.written.slice(enter.length, -leave.length).split("\u001b[H");
      expect(pictures.length).toBeGreaterThanOrEqual(3);
      expect(pictures[1]).toContain("Keys with most requests");
      expect(pictures[1]).toContain("q quit");
      // No line scrolls the screen.
      for (const picture of pictures) expect(picture.split("\r\n").length).toBeLessThanOrEqual(12);
    },
  );

  it("shows denials and near ones by a key, and as many as fit", async () => {
    const asked: unknown[] = [];
    const run = await start({
      limits: {
        topKeys: ({ order, count, domain, ruleLabel }) => {
          asked.push({ order, count, domain, ruleLabel });
          return busyScript.limits.topKeys();
        },
        nearLimitKeys: busyScript.limits.nearLimitKeys,
      },
    });
    const terminal = new FakeTerminal({ rows: 15 });
    const ended = run("top shop --rule user --every 100ms", terminal);
    await waitFor("hits", () => terminal.written.includes("most requests"));
    terminal.type("d");
    await waitFor("denials", () => terminal.written.includes("most denials"));
    terminal.type("n");
    await waitFor("near ones", () => terminal.written.includes("nearest to their limit"));
    terminal.type("x");
    terminal.type("q");
    expect((await ended).code).toBe(0);
    const usual = { count: 10, domain: "shop", ruleLabel: "user" };
    expect(asked[0]).toEqual({ ...usual, order: TopOrder.HITS });
    expect(asked).toContainEqual({ ...usual, order: TopOrder.DENIALS });
  });

  it("keeps the last picture while nobody answers, and says so", async () => {
    let isBroken = false;
    const run = await start({
      limits: {
        topKeys: () => {
          if (isBroken) throw new ConnectError("the store is away", Code.Unavailable);
          return busyScript.limits.topKeys();
        },
      },
    });
    const terminal = new FakeTerminal();
    const ended = run("top --every 100ms", terminal);
    await waitFor("a picture", () => terminal.written.includes("4,200"));
    isBroken = true;
    await waitFor("words", () => terminal.written.includes("The store is away."));
    expect(terminal.written.split("\u001b[H").at(-1)).toContain("4,200");
    terminal.type("q");
    expect((await ended).code).toBe(0);
  });

  it("gives the terminal back where nobody answers at first", async () => {
    const run = await start({});
    const terminal = new FakeTerminal();
    const { code, err } = await run("top", terminal);
    expect(code).toBe(1);
    expect(err).toContain("headgate top: ");
    expect(terminal.written).toBe(enter + leave);
    expect(terminal.isHeld).toBe(false);
  });
});

describe("headgate tail", () => {
  it("shows decisions as they come, what was left out, and ends by Ctrl-C", async () => {
    const run = await start(busyScript);
    const terminal = new FakeTerminal();
    let isEnded = false;
    const ended = run("tail shop", terminal).finally(() => {
      isEnded = true;
    });
    await waitFor("it follows", () => terminal.isHeld);
    // What was shown is known at the end; until then nothing ends it by itself.
    await new Promise((resolve) => setImmediate(resolve));
    expect(isEnded).toBe(false);
    terminal.interrupt();
    const { code, err } = await ended;
    expect(code).toBe(0);
    expect(err).not.toContain("headgate tail:");
    expect(terminal.isHeld).toBe(false);
  });

  it("asks for what was wished for, and ends after so many", async () => {
    const asked: unknown[] = [];
    const run = await start({
      limits: {
        async *tailDecisions(request, context) {
          asked.push(request);
          yield* busyScript.limits.tailDecisions(request, context);
        },
      },
    });
    const words = "tail shop --denied --rule user --having plan=free --sample 0.5 --per-second 9";
    const { code, out, err } = await run(`${words} -n 2 -o json`, new FakeTerminal());
    expect(code).toBe(0);
    expect(asked).toMatchObject([
      {
        domain: "shop",
        deniedOnly: true,
        ruleLabel: "user",
        having: [{ key: "plan", value: "free" }],
        sampleRatio: 0.5,
        perSecondMax: 9,
      },
    ]);
    // Each decision is written by itself; the test's output puts nothing between.
    expect(out.split("}{").length).toBe(2);
    expect(err).toContain("Following decisions at");
  });

  it("says how many were left out", async () => {
    const run = await start({
      limits: {
        async *tailDecisions(request, context) {
          for await (const message of busyScript.limits.tailDecisions(request, context)) {
            yield message;
            if ("decisions" in message) return;
          }
        },
      },
    });
    const { code, out, err } = await run("tail", new FakeTerminal());
    expect(code).toBe(0);
    expect(out).toContain("denied   shop/user  user=");
    expect(err).toContain("1,200 skipped because of the rate");
  });

  it("tells why it was cut off", async () => {
    const run = await start({
      limits: {
        // biome-ignore lint/correctness/useYield: it fails before
        async *tailDecisions() {
          throw new ConnectError("too many follow already", Code.ResourceExhausted);
        },
      },
    });
    const { code, err } = await run("tail", new FakeTerminal());
    expect(code).toBe(1);
    expect(err).toContain("Too many follow already.");
  });
});
