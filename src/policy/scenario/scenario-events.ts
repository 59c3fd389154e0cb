import { flag, number, whole, words } from "../text/form.js";
import { field, inner, object, placed } from "../text/object.js";
import { anyTime, distributedTime, scenarioName, someTime } from "./scenario-times.js";

/** Maximum number of workers of one service. */
const workersMax = 100_000;

/** Maximum numbers of replicas of Headgate, of zones, and of Envoys. */
const headgatesMax = 16;
const zonesMax = 16;
const envoysMax = 1_000;

const warmUp = object(
  { title: "a service's warmUp", docs: "Work takes longer after the start, and ever less so." },
  {
    for: field(someTime, "How long.", { needs: "a duration" }),
    factor: field(number({ min: 1, max: 100 }), "How many times as long at first.", {
      default: 4,
    }),
  },
);

/** A service of a scenario. */
export const scenarioService = object(
  { title: "a service", docs: "A service with workers behind one queue." },
  {
    name: field(scenarioName, "Its name, as the policy has it.", { needs: "the service's name" }),
    workers: field(whole({ min: 1, max: workersMax }), "Requests that it serves at a time.", {
      needs: "a whole number",
    }),
    serviceTime: field(distributedTime, "How long a worker takes for a request.", {
      needs: "a duration, or a distribution",
    }),
    queue: field(
      whole({ min: 0, max: 1_000_000 }),
      "Requests that wait for a worker at most; more fail with 503. Default: no bound.",
    ),
    stopsAbandoned: field(words("yes", "no"), "Whether it stops work for callers that have left.", {
      default: "no",
    }),
    contention: field(
      number({ min: 1, max: 100 }),
      "How many times as long work takes when all workers are busy.",
      { default: 1 },
    ),
    warmUp: field(inner(warmUp), "Slower work after the start."),
  },
);

/** A service with workers behind one queue. */
export type ScenarioService = typeof scenarioService.defaults;

const store = object(
  { title: "a scenario's store", docs: "The store that holds rate limits." },
  {
    latency: field(distributedTime, "How long a call takes.", {
      default: { kind: "exponential", meanMs: 1 },
      writtenDefault: "1ms",
    }),
  },
);

/** The fleet of a scenario. */
export const scenarioFleet = object(
  { title: "a fleet", docs: "The proxies, Headgate and its store." },
  {
    envoys: field(whole({ min: 1, max: envoysMax }), "Envoys.", {
      default: 2,
    }),
    headgates: field(whole({ min: 1, max: headgatesMax }), "Replicas of Headgate.", {
      default: 1,
    }),
    balancing: field(
      words("leastRequest", "connection"),
      "How an Envoy chooses a replica: the less busy of two for each request, as generated " +
        "configuration has it, or one for as long as a connection lasts, as behind a load " +
        "balancer of connections.",
      { default: "leastRequest" },
    ),
    connectionLifetime: field(
      someTime,
      "With `balancing: connection`: how long one lasts at most. Default: as long as its replica.",
    ),
    zones: field(
      whole({ min: 1, max: zonesMax }),
      "Zones, among which Envoys, replicas of Headgate and workers are divided evenly.",
      { default: 1 },
    ),
    zoneLocal: field(
      flag,
      "Whether Envoys prefer the replicas and the workers of their own zone.",
      { default: false },
    ),
    store: field(inner(store), "The store that holds rate limits.", { default: store.defaults }),
  },
);

const service = placed(scenarioName);
const caller = placed(scenarioName);

const kinds = ["workers", "slow", "store", "callers", "clock", "zone", "deploy"] as const;

const workersChange = object(
  { title: "a change of workers", docs: "Workers are lost, or come back." },
  {
    service: field(service, "The service. Default: the first one."),
    ratio: field(number({ min: 0, max: 100 }), "Workers, as a multiple of those at the start.", {
      needs: "a ratio such as 0.5",
    }),
    work: field(
      words("finished", "lost"),
      "What happens to requests at lost workers: they are finished, or they fail.",
      { default: "finished" },
    ),
  },
);

const slowChange = object(
  { title: "a slow service", docs: "Work takes longer." },
  {
    service: field(service, "The service. Default: the first one."),
    factor: field(number({ min: 0.01, max: 1_000 }), "How many times as long.", {
      needs: "a factor such as 3",
    }),
  },
);

const storeChange = object(
  { title: "a store's trouble", docs: "The store is away, or slow." },
  {
    state: field(words("away", "slow"), "What is wrong with it.", { default: "away" }),
    latency: field(distributedTime, "How long a call takes when it is slow.", {
      default: { kind: "exponential", meanMs: 20 },
      writtenDefault: "20ms",
    }),
  },
);

const callersChange = object(
  { title: "a wild caller", docs: "A caller sends more or less." },
  {
    name: field(caller, "The caller. Default: all of them."),
    factor: field(number({ min: 0, max: 1_000 }), "How many times its rate.", {
      needs: "a factor such as 10",
    }),
  },
);

const clockChange = object(
  { title: "a clock skew", docs: "The wall clock of a replica of Headgate is wrong." },
  {
    headgate: field(whole({ min: 1, max: headgatesMax }), "Which replica, from 1.", {
      default: 1,
    }),
    ahead: field(anyTime, "By how much it is fast.", { default: 0 }),
    behind: field(anyTime, "By how much it is slow.", { default: 0 }),
  },
);

const zoneChange = object(
  {
    title: "a lost zone",
    docs: "A zone is lost: its Envoys, replicas of Headgate and workers, with their requests.",
  },
  {
    lost: field(whole({ min: 1, max: zonesMax }), "Which zone, from 1.", {
      needs: "the number of a zone",
    }),
  },
);

const deployChange = object(
  { title: "a deploy", docs: "Programs are restarted one after the other." },
  {
    of: field(words("headgates", "envoys", "workers"), "What is restarted.", {
      default: "headgates",
    }),
    service: field(service, "With `of: workers`: the service. Default: the first one."),
    parts: field(
      whole({ min: 1, max: 100 }),
      "With `of: workers`: how many equal parts of them are restarted in turn.",
      { default: 4 },
    ),
    down: field(someTime, "How long each is away. What it works on is finished before.", {
      default: 5_000,
    }),
    pause: field(anyTime, "The time from the return of one to the stop of the next.", {
      default: 5_000,
    }),
  },
);

/** Programs that are restarted one after the other. */
export type ScenarioDeploy = typeof deployChange.defaults;

/** An event of a scenario. */
export const scenarioEvent = object(
  {
    title: "an event",
    docs: "Something that changes while the scenario runs.",
    exclusive: [kinds, ["for", "deploy"]],
    needed: [kinds],
  },
  {
    at: field(anyTime, "When.", { needs: "a duration from the start" }),
    for: field(someTime, "How long. Default: until the end."),
    workers: field(inner(workersChange), "Workers are lost, or come back."),
    slow: field(inner(slowChange), "Work takes longer."),
    store: field(inner(storeChange), "The store is away, or slow."),
    callers: field(inner(callersChange), "A caller sends more or less."),
    clock: field(inner(clockChange), "A wall clock is wrong."),
    zone: field(inner(zoneChange), "A zone is lost."),
    deploy: field(inner(deployChange), "Programs are restarted one after the other."),
  },
  {
    data: (read) => read,
    check(block) {
      if (kinds.some((kind) => !block.isLeftOut(kind))) return;
      const message = "the event changes nothing";
      block.report("", { id: "HG125", message, expected: `one of ${kinds.join(", ")}` });
    },
  },
);

/** Something that changes while a scenario runs. */
export type ScenarioEvent = typeof scenarioEvent.defaults;
