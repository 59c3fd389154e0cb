import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../../../src/core/base/timestamp.js";
import { pageTexts } from "../../../../src/core/waiting-room/page-fields.js";
import { chooseLanguage } from "../../../../src/decide/waiting-room/room-language.js";
import {
  type RoomAsking,
  RoomRig,
  roomsPolicy,
  saleRoom,
  testStatus,
} from "../../../support/room-rig.js";

const hash = (text: string): string => createHash("sha256").update(text).digest("base64");

/** A visitor with 639 people ahead, or as many, who waits for two minutes. */
function waitingRig(
  page: Partial<ReturnType<typeof saleRoom>["page"]> = {},
  aheadCount = 639,
): {
  readonly rig: RoomRig;
  readonly show: (language?: string) => RoomAsking;
} {
  const rig = new RoomRig([saleRoom({ page: { ...saleRoom().page, ...page } })]);
  rig.line.nextNumber = aheadCount;
  const liveAtFront = new Uint8Array(128).fill(0xff);
  const waitingCount = aheadCount + 1;
  const lively = {
    nextNumber: waitingCount,
    liveByBlock: [waitingCount],
    liveAtFront,
    waitingCount,
  };
  rig.line.status = testStatus(lively);
  const { cookie } = rig.browse();
  rig.line.nowSecond = 220;
  return {
    rig,
    show: (language) =>
      rig.browse(cookie, language === undefined ? {} : { "accept-language": language }),
  };
}

describe("RoomPages", () => {
  it("tell place, people ahead, and a range with its confidence", () => {
    const { body } = waitingRig().show().page;
    expect(body).toContain('<dd data-field="position">640</dd>');
    expect(body).toContain('<dd data-field="ahead">639</dd>');
    expect(body).toMatch(/<dd data-field="wait">9–1[12] minutes \(90% sure\)<\/dd>/);
    expect(body).toContain('<progress max="100" value="16"');
    expect(body).not.toContain("What you sent was not delivered.");
  });

  it("tell a short wait in seconds, rounded outwards to fives", () => {
    const { body } = waitingRig({}, 49).show().page;
    const [, low, high] = /data-field="wait">(\d+)–(\d+) seconds/.exec(body) ?? [];
    expect([Number(low) % 5, Number(high) % 5]).toEqual([0, 0]);
    expect([Number(low) < 50, Number(high) > 50]).toEqual([true, true]);
  });

  it("are small: a page of at most 3 KB compressed", () => {
    expect(gzipSync(waitingRig().show().page.body).length).toBeLessThan(3_072);
  });

  it("are never kept, framed, sniffed, or able to run what is not theirs", () => {
    const { page, header } = readable(waitingRig().show());
    expect(header("cache-control")).toBe("no-store");
    expect(header("vary")).toContain("cookie");
    expect(header("x-content-type-options")).toBe("nosniff");
    const script = /<script[^>]*>([\s\S]*?)<\/script>/.exec(page.body)?.[1] ?? "";
    const style = /<style>([\s\S]*?)<\/style>/.exec(page.body)?.[1] ?? "";
    const policy = header("content-security-policy");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`script-src 'sha256-${hash(script)}'`);
    expect(policy).toContain(`style-src 'sha256-${hash(style)}'`);
    expect(policy).toContain("frame-ancestors 'self'");
  });

  it("load again without a script, each at its own time around the refresh interval", () => {
    const { rig, show } = waitingRig();
    const seconds = [0, 0.5, 0.999].map((draw) => {
      rig.draw = draw;
      const { page, header } = readable(show());
      expect(page.body).toContain(`content="${header("refresh")}"></noscript>`);
      return Number(header("refresh"));
    });
    expect(seconds).toEqual([18, 20, 22]);
  });

  it("count down to an event, and give no place before it where places are drawn", () => {
    const { rig, show } = waitingRig();
    const early = { phase: "preQueue", opensSecond: 220 + 1_800, shufflesNext: true } as const;
    rig.line.status = testStatus({ ...early, nextNumber: 640 });
    const { body } = show().page;
    expect(body).toContain('<p data-field="opens">Starts in 30 minutes.</p>');
    expect(body).toContain('<dd data-field="position"></dd>');
    expect(body).toContain('<dd data-field="ahead"></dd>');
    expect(body).not.toContain("not known yet");
    rig.line.status = testStatus({ ...early, shufflesNext: false, nextNumber: 640 });
    expect(show().page.body).toContain('<dd data-field="position">1</dd>');
  });

  it.each([
    { inSeconds: 0.2, opensIn: "1 second" },
    { inSeconds: 59, opensIn: "59 seconds" },
    { inSeconds: 61, opensIn: "2 minutes" },
    { inSeconds: 7_199, opensIn: "120 minutes" },
    { inSeconds: 7_201, opensIn: "3 hours" },
    { inSeconds: 172_799, opensIn: "48 hours" },
    { inSeconds: 172_801, opensIn: "3 days" },
  ])("say that $inSeconds s are $opensIn, and when that is", ({ inSeconds, opensIn }) => {
    const { rig, show } = waitingRig({ template: "{{opensIn}}|{{opensAt}}|" });
    expect(show().page.body).toMatch(/^\|\|/);
    rig.line.status = testStatus({ phase: "preQueue", opensSecond: 220 + inSeconds });
    const atSecond = Math.round(rig.admission.clock.epochUs() / 1e6 + inSeconds);
    const [text, at] = show().page.body.split("|");
    expect([text, at]).toEqual([opensIn, formatTimestamp(atSecond * 1e6)]);
  });

  it("name the event that is open or opens next, and none that is over", () => {
    const { rig, show } = waitingRig();
    const { clock } = rig.admission;
    const nowMs = clock.epochUs() / 1_000;
    const events = [nowMs - 500, nowMs + 2_000].map((startsAtMs, i) => ({
      name: ["first", "second"][i] ?? "",
      startsAtMs,
      endsAtMs: startsAtMs + 1_000,
      preQueueMs: 0,
      shuffles: true,
      activeUsersMax: undefined,
      entriesPerMinuteMax: undefined,
    }));
    const page = { ...saleRoom().page, template: "{{event}}|" };
    rig.admission.policy = roomsPolicy([saleRoom({ page, events })]);
    const named = (): string | undefined => show().page.body.split("|")[0];
    expect(named()).toBe("first");
    clock.advance(499);
    expect(named()).toBe("first");
    clock.advance(1);
    expect(named()).toBe("second");
    clock.advance(10_000);
    expect(named()).toBe("");
  });

  it("say that the wait is not known where nobody can enter", () => {
    const { rig, show } = waitingRig();
    rig.line.status = testStatus({ nextNumber: 640, entriesPerSecond: undefined });
    expect(show().page.body).toContain('<dd data-field="wait">not known yet</dd>');
  });

  it("have the status that the policy says", () => {
    expect(waitingRig({ status: 503 }).show().page.status).toBe(503);
  });

  it("speak the visitor's language where the policy has its texts", () => {
    const texts = new Map([
      ["de", new Map([["waitingTitle", "Sie sind in der Reihe"]])],
      ["ar", new Map([["waitingTitle", "أنت في الطابور"]])],
    ]);
    const { show } = waitingRig({ texts });
    const german = show("fr, de-CH;q=0.9, en;q=0.1").page.body;
    expect(german).toContain('<html lang="de" dir="ltr"');
    expect(german).toContain("<title>Sie sind in der Reihe</title>");
    expect(german).toMatch(/9–1[12] Minuten/);
    expect(german).toContain("Your place");
    expect(show("ar").page.body).toContain('<html lang="ar" dir="rtl"');
    expect(show("ja").page.body).toContain('<html lang="en" dir="ltr"');
    expect(show().page.body).toContain("<title>You are in line</title>");
  });

  it("escape what texts say, and know no fields that texts make up", () => {
    const text = `<script>alert("1")</script> & '{{ahead}}' {{constructor}}`;
    const names = Object.keys(pageTexts).map((name) => [name, text] as const);
    const { body } = waitingRig({ texts: new Map([["en", new Map(names)]]) }).show().page;
    expect(body).not.toContain("<script>alert");
    const escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;639&#39; ";
    expect(body).toContain(`<title>${escaped}</title>`);
    expect(body).toContain(`<dt>${escaped}</dt>`);
  });

  it("are the operator's template, with escaped values and the script at its end", () => {
    const template = '<body class="{{state}}"><b>{{title}}</b>{{ ahead }}{{nothing}}</body>';
    const texts = new Map([["en", new Map([["waitingTitle", "<i>"]])]]);
    const { page, header } = readable(waitingRig({ template, texts }).show());
    expect(page.body).toMatch(/^<body class="waiting"><b>&lt;i&gt;<\/b>639<script data-endpoint=/);
    expect(page.body.trimEnd()).toMatch(/<\/script>\n<\/body>$/);
    expect(header("content-security-policy")).not.toContain("script-src");
  });
});

describe("chooseLanguage()", () => {
  const languages = new Map([
    ["de", ""],
    ["pt-BR", ""],
  ]);

  it.each([
    { accept: undefined, language: "en" },
    { accept: "de-AT", language: "de" },
    { accept: "PT-br", language: "pt-BR" },
    { accept: "pt", language: "en" },
    { accept: "de;q=0.5, en;q=0.6", language: "en" },
    { accept: "de;q=0, en", language: "en" },
    { accept: "de;q=2, pt-BR;q=x", language: "en" },
    { accept: `${"xx,".repeat(200)}de`, language: "en" },
    { accept: "-,;;q=1,de", language: "de" },
  ])("answers $accept in $language", ({ accept, language }) => {
    expect(chooseLanguage(accept, languages)).toBe(language);
  });
});

/** A page and its headers. */
function readable(asking: RoomAsking) {
  return { page: asking.page, header: (name: string) => asking.header(name) };
}
