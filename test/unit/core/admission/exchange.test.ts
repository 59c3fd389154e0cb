import { array, assert as assertProperty, constantFrom, pre, property } from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ExchangeEffect,
  type ExchangeEvent,
  type ExchangeState,
  type ForwardingTerms,
  newExchange,
  stepExchange,
} from "../../../../src/core/admission/exchange.js";
import type {
  BodyMode,
  ExchangePart,
  ExchangeReply,
  Refusal,
} from "../../../../src/core/admission/exchange-messages.js";
import { propertyRuns } from "../../../support/seeds.js";

const terms: ForwardingTerms = {
  setHeaders: [{ name: "x-request-priority", value: "high" }],
  removeHeaders: ["x-inner"],
  metadata: new Map([["priority", "high"]]),
  responseHeaders: undefined,
  isFollowed: true,
};
const cookie = { name: "set-cookie", value: "room=1", isAppended: true } as const;
const refusal: Refusal = {
  status: 429,
  grpcStatus: undefined,
  headers: [],
  body: "",
  details: "headgate_priority",
};

/** Events by short names, for tables. */
const events = {
  requestHeaders: part("requestHeaders"),
  bufferedHeaders: awaiting("buffered"),
  partialHeaders: awaiting("bufferedPartial"),
  requestBody: part("requestBody"),
  requestTrailers: part("requestTrailers"),
  responseHeaders: part("responseHeaders"),
  responseBody: part("responseBody"),
  responseTrailers: part("responseTrailers"),
  observedHeaders: part("requestHeaders", true),
  observedResponse: part("responseHeaders", true),
  unknown: { kind: "message", message: { kind: "unknown" } },
  malformed: { kind: "message", message: { kind: "malformed" } },
  admitted: { kind: "admitted", terms },
  admittedUnfollowed: { kind: "admitted", terms: { ...terms, isFollowed: false } },
  admittedRerouted: { kind: "admitted", terms: { ...terms, clearsRoute: true } },
  admittedSkipping: { kind: "admitted", terms: { ...terms, responseHeaders: "skip" } },
  admittedWithCookie: {
    kind: "admitted",
    terms: { ...terms, responseHeaders: "skip", responseSetHeaders: [cookie] },
  },
  unfollowedWithCookie: {
    kind: "admitted",
    terms: { ...terms, isFollowed: false, responseSetHeaders: [cookie] },
  },
  refused: { kind: "refused", refusal },
  waiting: { kind: "waiting", timeoutMs: 2_000 },
  tooLarge: { kind: "tooLarge", refusal: { ...refusal, status: 431 } },
  ended: { kind: "callerEnded" },
} as const satisfies Record<string, ExchangeEvent>;
type EventName = keyof typeof events;

function part(name: ExchangePart, isObserved = false): ExchangeEvent {
  const headers = new Map([[":path", "/"]]);
  const message = {
    kind: "part",
    part: name,
    headers,
    attributes: new Map(),
    isEndOfStream: false,
    isObserved,
  } as const;
  return { kind: "message", message };
}

/** Headers of a request that is decided with its body. */
function awaiting(request: BodyMode, isEndOfStream = false): ExchangeEvent {
  const event = part("requestHeaders");
  if (event.kind !== "message" || event.message.kind !== "part") throw new Error("no part");
  const bodyModes = { request, response: "none" } as const;
  return { ...event, message: { ...event.message, bodyModes, isEndOfStream }, awaitsBody: true };
}

function run(names: readonly EventName[]) {
  const seen: string[] = [];
  let state: ExchangeState = newExchange;
  for (const name of names) {
    const step = stepExchange(state, events[name]);
    state = step.state;
    seen.push(...step.replies.map(wordsOfReply), ...step.effects.map(wordsOfEffect));
  }
  return { seen, state: state.kind };
}

function wordsOfReply(reply: ExchangeReply): string {
  if (reply.kind === "continue") {
    const isCookieSet = reply.setHeaders.includes(cookie);
    const isRouted = reply.clearsRoute === true ? " elsewhere" : "";
    const says = reply.metadata === undefined ? "" : " with a verdict";
    return `continue ${reply.part}${isCookieSet ? " with a cookie" : says}${isRouted}`;
  }
  return reply.kind === "wait" ? `wait ${reply.timeoutMs}` : `immediate ${reply.refusal.status}`;
}

function wordsOfEffect(effect: ExchangeEffect): string {
  if (effect.kind === "end") return `end ${effect.end}`;
  if (effect.kind === "begin" && effect.body !== undefined) {
    return `begin with ${effect.body.isWhole ? "a body" : "the beginning of a body"}`;
  }
  return effect.kind === "failStream" ? `fail ${effect.fault}` : effect.kind;
}

interface Row {
  readonly it: string;
  readonly events: readonly EventName[];
  readonly seen: readonly string[];
}

const rows: readonly Row[] = [
  {
    it: "holds a place until the response is complete",
    events: ["requestHeaders", "admitted", "responseHeaders", "ended"],
    seen: [
      "begin",
      "continue requestHeaders with a verdict",
      "continue responseHeaders",
      "responded",
      "end completed",
      "endStream",
    ],
  },
  {
    it: "tells trailers too, where the upstream's status may stand",
    events: ["requestHeaders", "admitted", "responseHeaders", "responseTrailers", "ended"],
    seen: [
      "begin",
      "continue requestHeaders with a verdict",
      "continue responseHeaders",
      "responded",
      "continue responseTrailers",
      "responded",
      "end completed",
      "endStream",
    ],
  },
  {
    it: "takes an end before any response for a caller that gave up",
    events: ["requestHeaders", "admitted", "ended"],
    seen: ["begin", "continue requestHeaders with a verdict", "end left", "endStream"],
  },
  {
    it: "takes it for the end of the exchange where it asked for no response headers",
    events: ["requestHeaders", "admittedSkipping", "ended"],
    seen: ["begin", "continue requestHeaders with a verdict", "end completed", "endStream"],
  },
  {
    it: "ends the stream with the answer where nobody needs to know how it ends",
    events: ["requestHeaders", "admittedUnfollowed", "ended"],
    seen: ["begin", "continue requestHeaders with a verdict", "end completed", "endStream"],
  },
  {
    it: "sets a cookie on the response, also where admission skips responses",
    events: ["requestHeaders", "admittedWithCookie", "responseHeaders", "ended"],
    seen: [
      "begin",
      "continue requestHeaders with a verdict",
      "continue responseHeaders with a cookie",
      "responded",
      "end completed",
      "endStream",
    ],
  },
  {
    it: "ends an exchange that nobody follows with the cookie on its response",
    events: ["requestHeaders", "unfollowedWithCookie", "responseHeaders", "ended"],
    seen: [
      "begin",
      "continue requestHeaders with a verdict",
      "continue responseHeaders with a cookie",
      "end completed",
      "endStream",
    ],
  },
  {
    it: "sets no cookie where Envoy only lets it observe",
    events: ["observedHeaders", "unfollowedWithCookie"],
    seen: ["begin", "end completed", "endStream"],
  },
  {
    it: "answers a refusal at once, and nothing after it",
    events: ["requestHeaders", "refused", "responseHeaders", "ended"],
    seen: ["begin", "immediate 429", "endStream"],
  },
  {
    it: "asks Envoy once to wait longer",
    events: ["requestHeaders", "waiting", "waiting", "admitted", "responseHeaders", "ended"],
    seen: [
      "begin",
      "wait 2000",
      "continue requestHeaders with a verdict",
      "continue responseHeaders",
      "responded",
      "end completed",
      "endStream",
    ],
  },
  {
    it: "leaves the queue when its caller does, and hears no verdict any more",
    events: ["requestHeaders", "waiting", "ended", "admitted"],
    seen: ["begin", "wait 2000", "end left", "endStream"],
  },
  {
    it: "gives its place up when Envoy answers by itself meanwhile",
    events: ["requestHeaders", "waiting", "responseHeaders", "admitted", "responseBody", "ended"],
    seen: [
      "begin",
      "wait 2000",
      "continue responseHeaders",
      "end left",
      "continue responseBody",
      "endStream",
    ],
  },
  {
    it: "decides a request with its body, and says in the answer to it what admission wants said",
    events: ["bufferedHeaders", "requestBody", "admitted", "responseHeaders", "ended"],
    seen: [
      "continue requestHeaders",
      "begin with a body",
      "continue requestBody with a verdict",
      "continue responseHeaders",
      "responded",
      "end completed",
      "endStream",
    ],
  },
  {
    it: "refuses it then, and asks for more time then",
    events: ["partialHeaders", "requestBody", "waiting", "refused", "ended"],
    seen: [
      "continue requestHeaders",
      "begin with the beginning of a body",
      "wait 2000",
      "immediate 429",
      "endStream",
    ],
  },
  {
    it: "sends it elsewhere then",
    events: ["bufferedHeaders", "requestBody", "admittedRerouted"],
    seen: [
      "continue requestHeaders",
      "begin with a body",
      "continue requestBody with a verdict elsewhere",
    ],
  },
  {
    it: "asks for no place for a caller that leaves before its body has come",
    events: ["bufferedHeaders", "ended", "requestBody"],
    seen: ["continue requestHeaders", "endStream"],
  },
  {
    it: "lets an answer of Envoy's pass that comes instead of the body",
    events: ["bufferedHeaders", "responseHeaders", "ended"],
    seen: ["continue requestHeaders", "continue responseHeaders", "answeredBefore", "endStream"],
  },
  {
    it: "refuses trailers without a body: nothing could be set on that request",
    events: ["bufferedHeaders", "requestTrailers", "ended"],
    seen: ["continue requestHeaders", "immediate 400", "endStream"],
  },
  {
    it: "answers trailers after a body",
    events: ["bufferedHeaders", "requestBody", "admitted", "requestTrailers"],
    seen: [
      "continue requestHeaders",
      "begin with a body",
      "continue requestBody with a verdict",
      "continue requestTrailers",
    ],
  },
  {
    it: "refuses a second piece while the first one is decided",
    events: ["bufferedHeaders", "requestBody", "requestBody"],
    seen: ["continue requestHeaders", "begin with a body", "end broken", "fail outOfOrder"],
  },
  {
    it: "refuses a body that is larger than is read",
    events: ["bufferedHeaders", "tooLarge", "requestBody"],
    seen: ["continue requestHeaders", "immediate 431", "endStream"],
  },
  {
    it: "refuses headers that come twice before a body",
    events: ["bufferedHeaders", "bufferedHeaders"],
    seen: ["continue requestHeaders", "fail outOfOrder"],
  },
  {
    it: "answers bodies and trailers that it has no use for",
    events: ["requestHeaders", "admitted", "requestBody", "requestTrailers", "responseBody"],
    seen: [
      "begin",
      "continue requestHeaders with a verdict",
      "continue requestBody",
      "continue requestTrailers",
      "continue responseBody",
    ],
  },
  {
    it: "answers nothing where Envoy only lets it observe, and learns all the same",
    events: ["observedHeaders", "admitted", "observedResponse", "ended"],
    seen: ["begin", "responded", "end completed", "endStream"],
  },
  {
    it: "lets an observed response pass that came before its verdict",
    events: ["observedHeaders", "requestBody", "observedResponse", "ended"],
    seen: ["begin", "end left", "endStream"],
  },
  {
    it: "holds no observed request, whatever the verdict",
    events: ["observedHeaders", "waiting", "refused", "ended"],
    seen: ["begin", "endStream"],
  },
  {
    it: "lets an answer pass that was made before anybody asked",
    events: ["responseHeaders", "responseBody", "ended"],
    seen: ["continue responseHeaders", "answeredBefore", "continue responseBody", "endStream"],
  },
  {
    it: "learns nothing from the trailers of such an answer",
    events: ["responseHeaders", "responseTrailers", "ended"],
    seen: ["continue responseHeaders", "answeredBefore", "continue responseTrailers", "endStream"],
  },
  {
    it: "answers nothing to one that it only observes",
    events: ["observedResponse", "ended"],
    seen: ["answeredBefore", "endStream"],
  },
  {
    it: "refuses request headers after an answer",
    events: ["responseHeaders", "requestHeaders"],
    seen: ["continue responseHeaders", "answeredBefore", "fail outOfOrder"],
  },
  {
    it: "refuses an exchange that begins with something else",
    events: ["responseBody"],
    seen: ["fail noRequestHeaders"],
  },
  {
    it: "refuses request headers that come twice, and gives the place back",
    events: ["requestHeaders", "admitted", "requestHeaders", "ended"],
    seen: ["begin", "continue requestHeaders with a verdict", "end broken", "fail outOfOrder"],
  },
  {
    it: "refuses response headers that come twice",
    events: ["requestHeaders", "admitted", "responseHeaders", "responseHeaders"],
    seen: [
      "begin",
      "continue requestHeaders with a verdict",
      "continue responseHeaders",
      "responded",
      "end broken",
      "fail outOfOrder",
    ],
  },
  {
    it: "refuses a body while the request still waits",
    events: ["requestHeaders", "requestBody", "admitted"],
    seen: ["begin", "end broken", "fail outOfOrder"],
  },
  {
    it: "refuses a request that is larger than is read: an error could let it pass",
    events: ["tooLarge", "requestHeaders", "ended"],
    seen: ["immediate 431", "endStream"],
  },
  {
    it: "refuses one that grows too large while it waits, and leaves the queue",
    events: ["requestHeaders", "waiting", "tooLarge", "admitted"],
    seen: ["begin", "wait 2000", "immediate 431", "end left", "endStream"],
  },
  {
    it: "ends well what was let in before it grew too large",
    events: ["requestHeaders", "admitted", "tooLarge", "ended"],
    seen: ["begin", "continue requestHeaders with a verdict", "end left", "endStream"],
  },
  {
    it: "answers nothing too large that it only observes",
    events: ["observedHeaders", "waiting", "tooLarge", "refused"],
    seen: ["begin", "end left", "endStream"],
  },
  {
    it: "refuses what it does not know",
    events: ["requestHeaders", "admitted", "unknown"],
    seen: ["begin", "continue requestHeaders with a verdict", "end broken", "fail unknown"],
  },
  {
    it: "refuses what is no message",
    events: ["malformed", "requestHeaders"],
    seen: ["fail malformed"],
  },
  { it: "ends a stream that nothing came on", events: ["ended", "ended"], seen: ["endStream"] },
];

describe("stepExchange()", () => {
  it.each(rows)("$it", ({ events: names, seen }) => {
    expect(run(names).seen).toEqual(seen);
  });

  it.each(["request", "response"] as const)("refuses a %s body that goes through it", (side) => {
    const begin = events.requestHeaders;
    if (begin.kind !== "message" || begin.message.kind !== "part") throw new Error("no part");
    const bodyModes = { request: "none", response: "none", [side]: "fullDuplexStreamed" } as const;
    const { effects } = stepExchange(newExchange, {
      kind: "message",
      message: { ...begin.message, bodyModes },
    });
    expect(effects).toEqual([{ kind: "failStream", fault: "bodiesStreamed" }]);
  });

  it.each([
    { what: "a mode that does not hold headers back", event: awaiting("streamed") },
    { what: "no mode", event: awaiting("none") },
    { what: "no body", event: awaiting("buffered", true) },
  ])("decides on headers where there is $what", ({ event }) => {
    expect(stepExchange(newExchange, event).effects.map(wordsOfEffect)).toEqual(["begin"]);
  });

  it("sets no mode of response headers with the answer to a body: Envoy ignores it", () => {
    let state: ExchangeState = newExchange;
    for (const name of ["bufferedHeaders", "requestBody", "admittedSkipping"] as const) {
      const step = stepExchange(state, events[name]);
      state = step.state;
      for (const reply of step.replies) expect(reply).toMatchObject({ responseHeaders: undefined });
    }
    expect(state).toMatchObject({ kind: "admitted", skipsResponse: false });
  });

  it("says with the answer to the request what admission wants said", () => {
    const begun = stepExchange(newExchange, events.requestHeaders);
    const { replies } = stepExchange(begun.state, events.admitted);
    expect(replies).toEqual([
      {
        kind: "continue",
        part: "requestHeaders",
        setHeaders: terms.setHeaders,
        removeHeaders: terms.removeHeaders,
        metadata: { namespace: "headgate", fields: terms.metadata },
        responseHeaders: undefined,
      },
    ]);
  });

  const names = Object.keys(events).filter((name): name is EventName => name in events);
  const histories = array(constantFrom(...names), { maxLength: 12 });

  it("asks for the response on which it sets a cookie", () => {
    const responsesOf = (...names: readonly EventName[]) => {
      let state: ExchangeState = newExchange;
      const asked: (string | undefined)[] = [];
      for (const name of names) {
        const step = stepExchange(state, events[name]);
        state = step.state;
        for (const reply of step.replies) {
          asked.push(reply.kind === "continue" ? reply.responseHeaders : reply.kind);
        }
      }
      return asked;
    };
    expect(responsesOf("requestHeaders", "admittedSkipping")).toEqual(["skip"]);
    expect(responsesOf("requestHeaders", "admittedWithCookie")).toEqual(["send"]);
    expect(responsesOf("requestHeaders", "unfollowedWithCookie")).toEqual(["send"]);
    expect(responsesOf("requestHeaders", "admittedUnfollowed")).toEqual([undefined]);
  });

  it("gives every place back exactly once, in any order of events", () => {
    check((seen, history) => {
      const begun = seen.filter((word) => word.startsWith("begin")).length;
      const ended = seen.filter((word) => word.startsWith("end ")).length;
      expect(begun).toBeLessThanOrEqual(1);
      expect(ended).toBe(begun === 1 && !isRefused(seen, history) ? 1 : 0);
    });
  });

  it("ends every stream exactly once, in any order of events", () => {
    check((seen) => {
      expect(seen.filter((word) => word === "endStream" || word.startsWith("fail ")).length).toBe(
        1,
      );
    });
  });

  it("answers each message at most once, and nothing after the stream's end", () => {
    check((seen, history) => {
      const asked = history.map((name) => partOf(events[name]));
      for (const name of new Set(asked)) {
        const answered = seen.filter((word) => `${word} `.startsWith(`continue ${name} `)).length;
        expect(answered).toBeLessThanOrEqual(asked.filter((one) => one === name).length);
      }
      const end = seen.findIndex((word) => word === "endStream" || word.startsWith("fail "));
      expect(seen.slice(end + 1)).toEqual([]);
      expect(seen.filter((word) => word.startsWith("wait ")).length).toBeLessThanOrEqual(1);
    });
  });

  it("never answers an exchange that it only observes", () => {
    check((seen, history) => {
      pre(history.find((name) => name in opening) === "observedHeaders");
      expect(seen.filter((word) => /^(continue|wait|immediate) /.test(word))).toEqual([]);
    });
  });

  /** Runs random histories, each with the end that every stream has. */
  function check(expectOf: (seen: readonly string[], history: readonly EventName[]) => void): void {
    assertProperty(
      property(histories, (history) => {
        const whole: readonly EventName[] = [...history, "ended"];
        expectOf(run(whole).seen, whole);
      }),
      propertyRuns(500),
    );
  }
});

function partOf(event: ExchangeEvent): string {
  return event.kind === "message" && event.message.kind === "part" ? event.message.part : "";
}

/** What an exchange may begin with, or fail with. */
const opening = {
  requestHeaders: true,
  bufferedHeaders: true,
  partialHeaders: true,
  observedHeaders: true,
  requestBody: true,
  requestTrailers: true,
  responseHeaders: true,
  observedResponse: true,
  responseBody: true,
  responseTrailers: true,
  unknown: true,
  malformed: true,
  tooLarge: true,
  ended: true,
};

/** Whether the verdict that counted was a refusal: it is the first one after `begin`. */
function isRefused(seen: readonly string[], history: readonly EventName[]): boolean {
  if (seen.includes("immediate 429")) return true;
  // An observed exchange shows no refusal: it began, and neither went on nor gave anything back.
  return (
    history.includes("observedHeaders") &&
    history.includes("refused") &&
    !seen.some((word) => word.startsWith("end "))
  );
}
