import { type Charge, costHitsMax } from "../../src/core/limits/bucket.js";
import { sizedKey } from "../../src/core/limits/key.js";
import { drainTimeUsMax, hitsMax } from "../../src/core/limits/limit.js";
import { testCharge, testKey } from "../support/charges.js";

/** One request of a case, and what must follow. */
export interface Step {
  readonly ask: readonly Charge[];
  readonly isDenied: boolean;
  /** A charge each. */
  readonly isOver: readonly boolean[];
  /** Hits in use afterwards, by key, rounded up; 0 where nothing is stored. */
  readonly used?: Readonly<Record<string, number>>;
}

/** A short history on keys of its own. */
export interface Case {
  readonly name: string;
  readonly steps: readonly Step[];
}

const yearUs = 31_536_000_000_000;

/** Ten hits a year, burst ten: in the time of a test nothing drains that anyone could see. */
function slow(key: string, overrides: Omit<Partial<Charge>, "key"> = {}): Charge {
  return testCharge({ key, hits: 10, periodUs: yearUs, burst: 10, ...overrides });
}

/** A limit of so many hits that requests carry for one descriptor. */
function carried(hits: number, overrides: Partial<Charge> = {}): Charge {
  const lastKey = testKey("o");
  const key = sizedKey(lastKey, hits);
  return { ...slow(key, { hits, burst: hits }), lastKey, ...overrides };
}

const refund = { isRefund: true } as const;
const shadow = { role: "shadow" } as const;
const quota = { role: "quota" } as const;
const settle = { role: "settle" } as const;

/** What every store decides alike; times are left to the law itself, which runs beside. */
export const cases: readonly Case[] = [
  {
    name: "admits the burst, then denies without charging",
    steps: [
      { ask: [slow("a", { cost: 9 })], isDenied: false, isOver: [false], used: { a: 9 } },
      { ask: [slow("a")], isDenied: false, isOver: [false], used: { a: 10 } },
      { ask: [slow("a")], isDenied: true, isOver: [true], used: { a: 10 } },
    ],
  },
  {
    name: "denies a cost larger than the burst, and stores nothing",
    steps: [
      { ask: [slow("a", { cost: 11 })], isDenied: true, isOver: [true], used: { a: 0 } },
      { ask: [slow("a", { cost: costHitsMax })], isDenied: true, isOver: [true], used: { a: 0 } },
      { ask: [slow("a", { cost: 10 })], isDenied: false, isOver: [false], used: { a: 10 } },
    ],
  },
  {
    name: "charges all limits of a request or none",
    steps: [
      { ask: [slow("b", { burst: 1 })], isDenied: false, isOver: [false], used: { b: 1 } },
      {
        ask: [slow("a"), slow("b", { burst: 1 }), slow("c")],
        isDenied: true,
        isOver: [false, true, false],
        used: { a: 0, b: 1, c: 0 },
      },
      {
        ask: [slow("a"), slow("c")],
        isDenied: false,
        isOver: [false, false],
        used: { a: 1, c: 1 },
      },
    ],
  },
  {
    name: "counts a key twice that is charged twice in one request",
    steps: [
      {
        ask: [slow("a", { cost: 6 }), slow("a", { cost: 6 })],
        isDenied: true,
        isOver: [false, true],
        used: { a: 0 },
      },
      {
        ask: [slow("a", { cost: 5 }), slow("a", { cost: 5 })],
        isDenied: false,
        isOver: [false, false],
        used: { a: 10 },
      },
    ],
  },
  {
    name: "evaluates a shadow limit without denying, and charges it while it fits",
    steps: [
      {
        ask: [slow("s", { ...shadow, cost: 8 })],
        isDenied: false,
        isOver: [false],
        used: { s: 8 },
      },
      {
        ask: [slow("a"), slow("s", { ...shadow, cost: 3 })],
        isDenied: false,
        isOver: [false, true],
        used: { a: 1, s: 8 },
      },
      {
        ask: [slow("s", shadow), slow("a", { cost: 10 })],
        isDenied: true,
        isOver: [false, true],
        used: { a: 1, s: 8 },
      },
    ],
  },
  {
    name: "denies by quota limits only when all of them are over",
    steps: [
      {
        ask: [slow("q", { ...quota, cost: 10 })],
        isDenied: false,
        isOver: [false],
        used: { q: 10 },
      },
      {
        ask: [slow("q", quota), slow("r", { ...quota, cost: 9 })],
        isDenied: false,
        isOver: [true, false],
        used: { q: 10, r: 9 },
      },
      {
        ask: [slow("q", quota), slow("r", { ...quota, cost: 2 }), slow("a")],
        isDenied: true,
        isOver: [true, true, false],
        used: { q: 10, r: 9, a: 0 },
      },
    ],
  },
  {
    name: "stores what is settled, into debt of one more burst at most",
    steps: [
      {
        ask: [slow("a", { ...settle, cost: 9 })],
        isDenied: false,
        isOver: [false],
        used: { a: 9 },
      },
      { ask: [slow("a", { ...settle, cost: 5 })], isDenied: true, isOver: [true], used: { a: 14 } },
      {
        ask: [slow("a", { ...settle, cost: 99 })],
        isDenied: true,
        isOver: [true],
        used: { a: 20 },
      },
      { ask: [slow("a", { ...settle, cost: 0 })], isDenied: true, isOver: [true], used: { a: 20 } },
    ],
  },
  {
    name: "settles although another limit denies the request",
    steps: [
      {
        ask: [slow("a", { cost: 11 }), slow("b", { ...settle, cost: 4 }), slow("c")],
        isDenied: true,
        isOver: [true, false, false],
        used: { a: 0, b: 4, c: 0 },
      },
    ],
  },
  {
    name: "gives refunds back, never past an empty bucket, and also when the request is denied",
    steps: [
      { ask: [slow("a", { cost: 7 })], isDenied: false, isOver: [false], used: { a: 7 } },
      {
        ask: [slow("a", { ...refund, cost: 2 })],
        isDenied: false,
        isOver: [false],
        used: { a: 5 },
      },
      {
        ask: [slow("a", { ...refund, cost: 2 }), slow("b", { cost: 11 })],
        isDenied: true,
        isOver: [false, true],
        used: { a: 3, b: 0 },
      },
      {
        ask: [slow("a", { ...refund, cost: 9 })],
        isDenied: false,
        isOver: [false],
        used: { a: 0 },
      },
      { ask: [slow("a", { cost: 10 })], isDenied: false, isOver: [false], used: { a: 10 } },
    ],
  },
  {
    name: "peeks at no cost: over in debt, or by choice when no hit is left",
    steps: [
      { ask: [slow("a", { cost: 0 })], isDenied: false, isOver: [false], used: { a: 0 } },
      { ask: [slow("a", { cost: 10 })], isDenied: false, isOver: [false], used: { a: 10 } },
      { ask: [slow("a", { cost: 0 })], isDenied: false, isOver: [false], used: { a: 10 } },
      {
        ask: [slow("a", { cost: 0, peekExhausted: true })],
        isDenied: true,
        isOver: [true],
        used: { a: 10 },
      },
    ],
  },
  {
    name: "blocks everything at a rate of zero, and lets a peek through",
    steps: [
      { ask: [slow("a", { hits: 0, burst: 0 })], isDenied: true, isOver: [true], used: { a: 0 } },
      { ask: [slow("a", { hits: 0, burst: 0, cost: 0 })], isDenied: false, isOver: [false] },
    ],
  },
  {
    name: "takes a burst that differs from the rate",
    steps: [
      { ask: [slow("a", { burst: 3, cost: 3 })], isDenied: false, isOver: [false], used: { a: 3 } },
      { ask: [slow("a", { burst: 3 })], isDenied: true, isOver: [true], used: { a: 3 } },
      {
        ask: [slow("b", { burst: 50, cost: 50 })],
        isDenied: false,
        isOver: [false],
        used: { b: 50 },
      },
    ],
  },
  {
    name: "keeps what is used when the limit is edited",
    steps: [
      { ask: [slow("a", { cost: 8 })], isDenied: false, isOver: [false], used: { a: 8 } },
      { ask: [slow("a", { burst: 20, hits: 20, cost: 12 })], isDenied: false, isOver: [false] },
      {
        ask: [slow("a", { burst: 21, cost: 0 })],
        isDenied: false,
        isOver: [false],
        used: { a: 20 },
      },
      { ask: [slow("a", { burst: 5 })], isDenied: true, isOver: [true], used: { a: 20 } },
      { ask: [slow("a", { burst: 21, cost: 2 })], isDenied: true, isOver: [true] },
      { ask: [slow("a", { burst: 21 })], isDenied: false, isOver: [false], used: { a: 21 } },
    ],
  },
  {
    name: "keeps a bucket for each limit that is carried, and begins with what the last one used",
    steps: [
      {
        ask: [carried(2, { cost: 2 })],
        isDenied: false,
        isOver: [false],
        used: { oh1: 0, "oh1:2": 2, o: 2 },
      },
      { ask: [carried(2)], isDenied: true, isOver: [true], used: { "oh1:2": 2, o: 2 } },
      {
        ask: [carried(9, { cost: 7 })],
        isDenied: false,
        isOver: [false],
        used: { "oh1:2": 2, "oh1:9": 9, o: 9 },
      },
      { ask: [carried(9)], isDenied: true, isOver: [true] },
      // Lowered: full, by what was used, and no fuller than that.
      { ask: [carried(5)], isDenied: true, isOver: [true], used: { "oh1:5": 5, o: 9 } },
      { ask: [carried(0)], isDenied: true, isOver: [true], used: { "oh1:0": 0, o: 9 } },
      // Nothing is taken where another limit denies; what a limit begins with is taken over.
      {
        ask: [carried(20), slow("a", { cost: 11 })],
        isDenied: true,
        isOver: [false, true],
        used: { "oh2:20": 9, o: 9 },
      },
      {
        ask: [carried(5, { ...refund, cost: 5 })],
        isDenied: false,
        isOver: [false],
        used: { "oh1:5": 0, "oh1:9": 9, o: 0 },
      },
      { ask: [carried(6)], isDenied: false, isOver: [false], used: { "oh1:6": 1, o: 1 } },
      { ask: [carried(2)], isDenied: true, isOver: [true], used: { "oh1:2": 2 } },
    ],
  },
  {
    name: "decides several sizes of one request each by its own",
    steps: [
      {
        ask: [carried(9), carried(2)],
        isDenied: false,
        isOver: [false, false],
        used: { "oh1:9": 1, "oh1:2": 1, o: 1 },
      },
      {
        ask: [carried(9, { cost: 2 }), carried(2, { cost: 2 })],
        isDenied: true,
        isOver: [false, true],
        used: { "oh1:9": 1, "oh1:2": 1, o: 1 },
      },
    ],
  },
  {
    name: "keeps one hit a year",
    steps: [
      { ask: [slow("a", { hits: 1, burst: 1 })], isDenied: false, isOver: [false], used: { a: 1 } },
      { ask: [slow("a", { hits: 1, burst: 1 })], isDenied: true, isOver: [true], used: { a: 1 } },
    ],
  },
  {
    name: "takes the largest numbers a policy may hold",
    steps: [
      {
        ask: [
          slow("a", { hits: hitsMax, periodUs: drainTimeUsMax, burst: hitsMax, cost: hitsMax }),
        ],
        isDenied: false,
        isOver: [false],
      },
      {
        ask: [slow("b", { hits: hitsMax, periodUs: 1_000_000, burst: hitsMax, cost: hitsMax })],
        isDenied: false,
        isOver: [false],
      },
      {
        ask: [slow("c", { ...settle, burst: hitsMax, hits: hitsMax, cost: costHitsMax })],
        isDenied: true,
        isOver: [true],
      },
    ],
  },
];

/** Keys that a protocol or a language could trip over; each must be a bucket of its own. */
export const oddKeys: readonly (readonly [name: string, key: string])[] = [
  ["nothing", ""],
  ["a blank", " "],
  ["a line break", "a\r\nb"],
  ["a protocol word", "$3\r\nfoo\r\n*1\r\n"],
  ["a zero byte", "a\0b"],
  ["a zero byte alone", "\0"],
  ["letters beyond ASCII", "größe"],
  ["the same letters in another form", "gro\u0308ße"],
  ["letters beyond 16 bits", "𝄞☃"],
  ["a pattern", "*?[a-z]"],
  ["braces", "{tag}"],
  ["Lua", "]] redis.call('FLUSHALL') --[["],
  ["a long text", "k".repeat(10_000)],
];
