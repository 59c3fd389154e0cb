import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import type { AdminScript } from "./admin-server.js";

/** A time that answers hold: 2026-11-21T12:00:00Z. */
export const scriptedTime = timestampFromMs(1_795_262_400_000);

const seconds = (count: number) => ({ seconds: BigInt(count), nanos: 0 });

const pace = {
  name: "pace",
  hits: 5n,
  period: seconds(10),
  burst: 20n,
  algorithm: "gcra",
  role: "enforce",
  onStoreFailure: "local",
};

const ann = [
  { key: "plan", value: "free" },
  { key: "user", value: "ann" },
];

/** A caller's value that would act on a terminal, and one that is long. */
const wicked = [{ key: "user", value: `\u001b[2J\u202e${"mallory".repeat(20)}` }];

const day = (text: string) => timestampFromMs(Date.parse(`${text}T00:00:00Z`));

/** A budget of money, and an account that has spent much of it. */
export const scriptedBudget = {
  name: "team-month",
  unit: "money",
  currency: "USD",
  decimals: 9,
  amount: 500_000_000_000n,
  services: ["llm"],
  models: ["gpt-*"],
  per: ["header x-team", "model"],
  period: "month",
  timeZone: "Europe/Berlin",
  windowStart: day("2026-11-01"),
  windowEnd: day("2026-12-01"),
  over: "refuse",
  warnAt: 0.8,
  onStoreFailure: "local",
  whenLost: "release",
  domain: "shop",
};

const sums = {
  accountCount: 1_234n,
  spent: 1_250_005_750_000n,
  reserved: 120_000_000_000n,
  spentBefore: 900_000_000_000n,
  lost: 1_000_000n,
  capacity: 3_000_000_000_000n,
  warnedCount: 2n,
  overCount: 1n,
  projectedOverCount: 3n,
  usedRatioMax: 1.02,
  projected: 1_875_008_625_000n,
  readAt: scriptedTime,
};

const account = {
  account: { budget: "team-month", values: ["research", "gpt-4o"] },
  capacity: 600_000_000_000n,
  toppedUp: 100_000_000_000n,
  spent: 450_005_750_000n,
  reserved: 12_000_000_000n,
  spentBefore: 400_000_000_000n,
  lost: 0n,
  usedRatio: 0.77,
  projected: 675_000_000_000n,
  exhaustedAt: day("2026-11-27"),
};

const topUp = {
  id: "t-1f2e3d4c",
  account: account.account,
  amount: 100_000_000_000n,
  expiresAt: day("2026-12-01"),
  reason: "launch week",
  author: "ann",
  version: 3n,
};

const override = {
  id: "o-1f2e3d4c",
  domain: "shop",
  entries: ann,
  isPrefix: false,
  limitName: "",
  effect: { case: "multiplier", value: 2 },
  expiresAt: timestampFromMs(1_795_521_600_000),
  reason: "launch week",
  author: "ann",
  createdAt: scriptedTime,
  version: 7n,
} as const;

const service = {
  name: "checkout",
  law: "gradient",
  concurrencyLimit: 120n,
  inFlight: 84n,
  rttMs: 23.4,
  minRttMs: 9.6,
  gradient: 0.8,
  gate: "limiting",
  rejectRatio: 0.034,
  waiting: 12n,
  overflowPerSecond: 3.5,
  reservedHigh: 24n,
  shares: [
    { node: "edge-0", share: 80n, inFlight: 60n, acknowledgedVersion: "4", age: seconds(1) },
    { node: "edge-1", share: 40n, inFlight: 24n, acknowledgedVersion: "4" },
  ],
};

/** A room at one of two replicas, which share its line. */
const room = (replica: string, joined: bigint) => ({
  name: "drop",
  service: "checkout",
  replica,
  mode: "open",
  phase: "preQueue",
  events: [{ name: "friday", startsAt: scriptedTime, endsAt: timestampFromMs(1_795_266_000_000) }],
  override: { mode: "open", activeUsers: 500n, openedEvent: "friday" },
  line: {
    waiting: 12_345n,
    active: 490n,
    activeMax: 500n,
    arrivalsPerSecond: 12.5,
    entriesPerSecond: 2.4,
    abandonment: 0.0005,
    sessionLength: seconds(180),
    rejectRatio: 0.1,
    rangeFactor: 1.3,
    opensIn: seconds(600),
    age: seconds(replica === "headgate-6d4c-x2" ? 1 : 4),
  },
  estimate: { low: seconds(4_500), middle: seconds(5_100), high: seconds(5_800) },
  leader: "headgate-6d4c-x2",
  isStoreReachable: replica === "headgate-6d4c-x2",
  onStoreFailure: "keep",
  gateRejectRatio: 0.25,
  requests: { joined, entered: 900n, full: 3n, forged: 1n },
  waits: 900n,
  waitsInRange: 815n,
});

/** Answers of every method that reads, of a system that is busy. */
export const busyScript = {
  limits: {
    listRules: () => ({
      rules: [
        {
          domain: "shop",
          label: "plan.user",
          limits: [pace, { ...pace, name: "daily", period: seconds(86_400), burst: 5n }],
          counts: { hits: 123_456n, overLimitHits: 78n, nearLimitHits: 9n },
        },
        { domain: "shop", label: "plan_internal.user", isUnlimited: true },
      ],
      policyVersion: "a0d28aa75823",
    }),
    getKey: () => ({
      states: [
        {
          ruleLabel: "plan.user",
          limit: pace,
          override: { ...override, version: 0n },
          usedHits: 20,
          remainingHits: 0n,
          retryAfter: { seconds: 1n, nanos: 760_000_000 },
          fullAfter: seconds(40),
          key: "2g4:shop4:plan4:free4:user3:ann4:pace",
        },
      ],
    }),
    topKeys: () => ({
      keys: [
        { key: { domain: "shop", entries: ann }, ruleLabel: "plan.user", count: 4_200n },
        {
          key: { domain: "shop", entries: wicked },
          ruleLabel: "user",
          count: 1_000n,
          errorMax: 12n,
        },
      ],
      since: scriptedTime,
    }),
    nearLimitKeys: () => ({
      keys: [
        {
          key: { domain: "shop", entries: ann, limitName: "pace" },
          ruleLabel: "plan.user",
          usedRatio: 1,
          isOver: true,
          seenAt: scriptedTime,
        },
        {
          key: { domain: "shop", entries: wicked },
          ruleLabel: "user",
          usedRatio: 0.85,
          seenAt: scriptedTime,
        },
      ],
    }),
    async *tailDecisions(_request, context) {
      yield {};
      const usual = { time: scriptedTime, domain: "shop", decidedBy: "store", hits: 1n };
      yield {
        decisions: [
          { ...usual, entries: ann, ruleLabel: "plan.user", remainingHits: 4n },
          { ...usual, entries: wicked, ruleLabel: "user", isDenied: true, hits: 3n },
        ],
        droppedCount: 1_200n,
      };
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    },
    listOverrides: () => ({ overrides: [override] }),
    explain: () => ({
      current: {
        isDenied: true,
        policyVersion: "a0d28aa75823",
        service: "checkout",
        isDomainKnown: true,
        descriptors: [
          {
            entries: ann,
            hits: 1n,
            effect: "limited",
            matchedLabel: "plan.user",
            isOver: true,
            changesAfter: { seconds: 1n, nanos: 760_000_000 },
            tried: [
              { label: "plan.user", isMatch: true },
              {
                label: "plan_partner.user",
                why: '"plan" does not have the value "partner"',
              },
            ],
            states: [
              {
                ruleLabel: "plan.user",
                limit: pace,
                usedHits: 20,
                retryAfter: { seconds: 1n, nanos: 760_000_000 },
                fullAfter: seconds(40),
                key: "2g4:shop4:plan4:free4:user3:ann4:pace",
              },
            ],
          },
        ],
        leftOut: [{ index: 1, key: "x-tenant", why: "the request has no such part" }],
      },
      candidate: {
        policyVersion: "0123456789ab",
        service: "checkout",
        isDomainKnown: true,
        descriptors: [{ entries: ann, hits: 1n, effect: "unmatched" }],
      },
    }),
  },
  policies: {
    getPolicy: () => ({ policy: { version: "a0d28aa75823" }, shadow: { version: "0123456789ab" } }),
    listPolicies: () => ({
      policies: [
        {
          version: "a0d28aa75823",
          appliedAt: scriptedTime,
          author: "ann",
          reason: "launch week",
          source: "admin",
        },
      ],
    }),
    getShadowReport: () => ({
      policyVersion: "a0d28aa75823",
      shadowVersion: "0123456789ab",
      since: scriptedTime,
      callCount: 10_000n,
      rules: [
        {
          domain: "shop",
          label: "plan.user",
          newlyDeniedCount: 250n,
          sameCount: 9_750n,
          beganLiveCount: 9n,
        },
        {
          domain: "shop",
          label: "user",
          newlyAllowedCount: 3n,
          sameCount: 40n,
          beganEmptyCount: 4n,
        },
        { domain: "shop", label: "remote_address", sameCount: 10_000n },
      ],
    }),
  },
  quotas: {
    listQuotas: () => ({
      quotas: [
        {
          name: "search",
          domain: "shop",
          bucketKeys: ["plan", "user"],
          classHeader: "x-tier",
          ttl: seconds(10),
          callsShare: 0.1,
          beforeAssignment: "allow",
          poolCount: 2n,
          bucketCount: 30n,
          demandRate: 1_530.5,
          heldRate: 1_000,
        },
        { name: "tried", domain: "shop", bucketKeys: ["user"], beforeAssignment: "deny" },
      ],
    }),
    listQuotaPools: () => ({
      pools: [
        {
          quotas: ["search"],
          domain: "shop",
          entries: ann,
          mode: "limited",
          limits: [{ hits: 1_000n, period: seconds(1), burst: 500n, usedHits: 250 }],
          lease: { state: "leased", rate: 1_000, left: seconds(12) },
          demandRate: 1_530.5,
          heldRate: 990,
          bucketCount: 30n,
          shares: [
            {
              node: "edge-0",
              weight: 3,
              demandRate: 900,
              assignment: { case: "tokens", value: { rate: 750, tokensMax: 187n } },
              heldRate: 750,
              age: seconds(1),
            },
            { node: wicked[0]?.value ?? "", weight: 1, demandRate: 630.5, age: seconds(3) },
            {
              node: "edge-2",
              weight: 1,
              assignment: { case: "blanket", value: "deny" },
              heldRate: 0,
              age: seconds(7),
              isLeft: true,
            },
          ],
        },
        {
          quotas: ["search", "tried"],
          domain: "shop",
          entries: wicked,
          mode: "limited",
          limits: [{ hits: 5n, period: seconds(60), burst: 5n }],
          lease: { state: "unrenewed", rate: 0.08, left: seconds(4) },
          demandRate: 0.01,
          heldRate: 0.08,
          bucketCount: 1n,
          shares: [],
        },
      ],
      poolCount: 40n,
    }),
  },
  rooms: {
    listRooms: () => ({
      rooms: [room("headgate-6d4c-x1", 5_000n), room("headgate-6d4c-x2", 8_000n)],
    }),
    setRoomOverride: ({ room: name, mode, activeUsers, entriesPerMinute, openEvent, reset }) => {
      if (name !== "drop") throw new ConnectError("unknown waiting room", 5);
      if (reset) return {};
      return {
        override: {
          mode: mode === "" ? "open" : mode,
          openedEvent: openEvent ?? "",
          ...(activeUsers === undefined ? {} : { activeUsers }),
          ...(entriesPerMinute === undefined ? {} : { entriesPerMinute }),
        },
      };
    },
    letIn: () => ({ number: 1_234n }),
    explainTicket: () => ({
      kind: "waiting",
      number: 1_234n,
      state: "waiting",
      ahead: 56n,
      estimate: { low: seconds(90), middle: seconds(100), high: seconds(120) },
      time: scriptedTime,
    }),
  },
  budgets: {
    listBudgets: ({ budget, withoutSums }) => ({
      budgets: [
        { ...scriptedBudget, ...(withoutSums ? {} : { sums }) },
        {
          name: "everybody-minute",
          unit: "tokens",
          amount: 1_000_000n,
          drainPeriod: seconds(60),
          over: "annotate",
          onStoreFailure: "allow",
          whenLost: "charge",
          isDryRun: true,
          ...(withoutSums ? {} : { sums: { accountCount: 1n, spent: 12n, capacity: 1_000_000n } }),
        },
      ].filter(({ name }) => budget === "" || budget === name),
      policyVersion: "v1",
    }),
    listBudgetAccounts: () => ({
      budget: scriptedBudget,
      accounts: [
        account,
        { ...account, account: { budget: "team-month", values: [wicked[0]?.value ?? "", ""] } },
      ],
    }),
    getBudgetAccount: () => ({ budget: scriptedBudget, account, topUps: [topUp] }),
    listTopUps: () => ({ topUps: [topUp] }),
    topUpBudget: ({ amount, account: named, reason, id, expiresAt }) => ({
      topUp: {
        ...topUp,
        ...(named === undefined ? {} : { account: named }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
        amount,
        reason,
        id: id === "" ? topUp.id : id,
      },
      account,
    }),
    deleteTopUp: () => ({}),
    refundBudget: ({ amount }) => ({ refunded: amount - 1n, account }),
    listUsage: ({ fromDay, groupBy }) => ({
      currency: "USD",
      decimals: 9,
      rows: [
        {
          day: groupBy.length === 0 ? fromDay : "",
          service: groupBy.length === 0 ? "llm" : "",
          ...(groupBy.length === 0 ? { account: account.account } : {}),
          model: "gpt-4o",
          callCount: 1_200n,
          inputTokens: 1_500_000n,
          cachedTokens: 20n,
          outputTokens: 90_000n,
          cost: 5_750_000n,
        },
        { model: '=cmd|"x"', callCount: 3n, account: { budget: "team-month", values: ["@a"] } },
        { isRest: true, callCount: 9n },
      ],
    }),
  },
  fleet: {
    listServices: () => ({ services: [service, { name: "search", law: "off", inFlight: 3n }] }),
    getFleet: () => ({
      replica: "headgate-6d4c-x2",
      leader: "headgate-6d4c-x1",
      term: 12n,
      replicaCount: 3,
      store: "redis",
      isDegraded: true,
      services: [service],
    }),
    getGateThresholds: ({ service: name }) => {
      if (name !== "checkout") throw new ConnectError("there is no such service", 5);
      return { thresholds: { service: name, openBelow: 0.7, closeAbove: 0.9, version: 3n } };
    },
    listAudit: () => ({
      entries: [
        {
          number: 9n,
          time: scriptedTime,
          author: "ann",
          role: "operator",
          action: "SetOverride",
          subject: "o-1f2e3d4c",
          before: "",
          after: '{"effect":"twice"}',
          reason: "launch week, as agreed with everybody in a long meeting",
          replica: "headgate-6d4c-x2",
        },
      ],
    }),
  },
} satisfies AdminScript;
