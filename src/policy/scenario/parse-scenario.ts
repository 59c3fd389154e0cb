import type { PolicyText } from "../parse.js";
import { quoteText } from "../problems/problem.js";
import type { ParseProblems } from "../problems/problem-log.js";
import type { Block } from "../text/block.js";
import { readBlockFile } from "../text/block-file.js";
import { any, duration, readBy, ruledText, text, whole } from "../text/form.js";
import { findNearestName } from "../text/nearest-name.js";
import {
  field,
  inner,
  innerBlock,
  innerBy,
  items,
  object,
  type PlacedValue,
  placed,
} from "../text/object.js";
import type { TextRule } from "../text/text-rules.js";
import { type Objective, parseObjective } from "./objective.js";
import { type ScenarioCaller, scenarioCaller } from "./scenario-callers.js";
import {
  type ScenarioEvent,
  type ScenarioService,
  scenarioEvent,
  scenarioFleet,
  scenarioService,
} from "./scenario-events.js";
import type { ScenarioRate } from "./scenario-rate.js";
import {
  anyTime,
  scenarioFile,
  scenarioMsMax,
  scenarioName,
  type TimeDistribution,
} from "./scenario-times.js";

/** Maximum number of each in one scenario. */
const servicesMax = 20;
const callersMax = 50;
const eventsMax = 100;
const objectivesMax = 50;

/** Maximum number of requests of one scenario: several minutes of simulation. */
const scenarioRequestsMax = 20_000_000;

const objectiveRule: TextRule = {
  charsMax: 200,
  forbidden: /[\p{Cc}\p{Cs}]/u,
  expected: 'an objective, such as "goodput >= 0.95"',
};

const sentence = ruledText({ ...objectiveRule, charsMax: 2_000, expected: "a text" });

const plainObjective = placed(ruledText(objectiveRule));

const windowed = object(
  { title: "an objective", docs: "What must come of a part of the run." },
  {
    expect: field(plainObjective, "A metric and a bound.", { needs: objectiveRule.expected }),
    from: field(anyTime, "When the part begins. Default: after the warm-up."),
    to: field(anyTime, "When it ends. Default: with the scenario."),
  },
);

const windowedInner = innerBy(windowed, (block) => windowed.read(block));

/** An objective as it is written, for a part of the run. */
interface ReadObjective {
  readonly expect: PlacedValue<string> | undefined;
  readonly from: number | undefined;
  readonly to: number | undefined;
}

const objectiveItem = readBy<ReadObjective>(
  any(text(objectiveRule), windowedInner),
  (reader, place) => {
    const content = reader.contentOf(place);
    if (content !== undefined && "items" in content) return windowedInner.read(reader, place);
    const expect = plainObjective.read(reader, place);
    return expect && { expect, from: undefined, to: undefined };
  },
);

function listOf<Data>(expected: string, max: number, item: Parameters<typeof items<Data>>[0]) {
  return items(item, { expected, max, min: 1 });
}

/** A scenario file: what `headgate simulate` runs. */
export const scenarioForm = object(
  { title: "a scenario", docs: "Services, callers and events, and what must come of them." },
  {
    name: field(scenarioName, "What results are called. Default: the name of the file."),
    description: field(sentence, "What the scenario shows."),
    policy: field(
      scenarioFile,
      "The policy's file or folder, relative to the scenario. Default: nothing is limited.",
    ),
    duration: field(duration({ minMs: 1_000, maxMs: scenarioMsMax }), "How long it lasts.", {
      default: 60_000,
    }),
    warmUp: field(anyTime, "The first part, which results leave out.", { default: 0 }),
    seed: field(whole({ min: 0, max: 2 ** 32 - 1 }), "What all that is random begins with.", {
      default: 1,
    }),
    services: field(
      listOf("a list of services", servicesMax, innerBlock(scenarioService)),
      "The services.",
      { needs: "a list of services" },
    ),
    callers: field(
      listOf("a list of callers", callersMax, innerBlock(scenarioCaller)),
      "Who sends requests.",
      { needs: "a list of callers" },
    ),
    fleet: field(inner(scenarioFleet), "The proxies, Headgate and its store.", {
      default: scenarioFleet.defaults,
    }),
    events: field(
      items(innerBlock(scenarioEvent), { expected: "a list of events", max: eventsMax }),
      "What changes while it runs.",
      { default: [] },
    ),
    objectives: field(
      items(objectiveItem, { expected: "a list of objectives", max: objectivesMax }),
      'What must come of it, such as "goodput >= 0.95".',
      { default: [] },
    ),
  },
);

/** An objective for a part of a run. */
export interface ScenarioObjective extends Objective {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A scenario as it is written. */
export interface Scenario {
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly policy: string | undefined;
  readonly durationMs: number;
  readonly warmUpMs: number;
  readonly seed: number;
  /** At least one each; names are unique. */
  readonly services: readonly (ScenarioService & {
    readonly name: string;
    readonly workers: number;
    readonly serviceTime: TimeDistribution;
  })[];
  /** @property service the name of one of the services */
  readonly callers: readonly (Omit<ScenarioCaller, "service"> & {
    readonly name: string;
    readonly rate: ScenarioRate;
    readonly service: string;
  })[];
  readonly fleet: typeof scenarioFleet.defaults;
  readonly events: readonly ScenarioEvent[];
  readonly objectives: readonly ScenarioObjective[];
}

/** Result of reading a scenario file. */
export type ParsedScenario =
  | { readonly kind: "scenario"; readonly scenario: Scenario }
  | ParseProblems;

/** Reads a scenario file: returns the scenario, or all problems at once. */
export function parseScenario(given: PolicyText): ParsedScenario {
  const parsed = readBlockFile(given, {
    shape: scenarioForm.shape,
    read: (block) => finish(block, scenarioForm.read(block)),
    content: "scenario",
    expected: "services: and callers:",
  });
  return parsed.kind === "problems" ? parsed : { kind: "scenario", scenario: parsed.value };
}

type ReadScenario = typeof scenarioForm.defaults;

/** Completes services and callers after their names are known. */
function finish(block: Block, read: ReadScenario): Scenario | undefined {
  const { duration: durationMs, warmUp: warmUpMs, services = [], callers = [] } = read;
  if (warmUpMs >= durationMs) {
    block.refuseOrder(["warmUp", "duration"], '"warmUp" is not shorter than "duration"', "less");
  }
  for (const name of ["services", "callers"]) {
    const isEmpty = (name === "services" ? services : callers).length === 0;
    if (!isEmpty || block.field(name) === undefined) continue;
    block.report(name, { id: "HG125", message: `"${name}" is empty`, expected: "at least one" });
  }
  const serviceNames = namesOf([...services]);
  const callerNames = namesOf([...services, ...callers]).filter(
    (name) => !serviceNames.includes(name),
  );
  const names = { services: serviceNames, callers: callerNames };
  checkEvents(block, read, names);
  const objectives = read.objectives.flatMap((one) => objectiveOf(block, { one, read, names }));
  const finished = {
    ...read,
    durationMs,
    warmUpMs,
    services: services.flatMap(({ data }) => {
      const { name, workers, serviceTime } = data;
      if (name === undefined || workers === undefined || serviceTime === undefined) return [];
      return [{ ...data, name, workers, serviceTime }];
    }),
    callers: callers.flatMap(({ data }) => {
      const { name, rate, service } = data;
      const called =
        known(block, service, { names: serviceNames, what: "a service" }) ?? serviceNames[0];
      if (name === undefined || rate === undefined || called === undefined) return [];
      return [{ ...data, name, rate, service: called }];
    }),
    events: read.events.map(({ data }) => data),
    objectives,
  };
  checkSize(block, finished);
  return finished;
}

/** Returns the names, and reports each one that occurs twice or is a priority class. */
function namesOf(
  each: readonly { readonly block: Block; readonly data: { readonly name: string | undefined } }[],
): readonly string[] {
  const names = new Set<string>(["critical", "high", "normal", "low"]);
  for (const { block, data } of each) {
    if (data.name === undefined) continue;
    if (names.has(data.name)) {
      const message = `the name ${quoteText(data.name)} is taken`;
      const expected = "a name of its own among services, callers and classes";
      block.report("name", { id: "HG133", message, expected });
    }
    names.add(data.name);
  }
  return [...names].slice(4);
}

/** Returns a name that must be a known one; undefined, and reported, if it is not. */
function known(
  { reader }: Block,
  named: PlacedValue<string> | undefined,
  { names, what }: { readonly names: readonly string[]; readonly what: string },
): string | undefined {
  if (named === undefined || names.includes(named.value)) return named?.value;
  return reader.report(named.node, {
    id: "HG133",
    message: `${quoteText(named.value)} is not ${what} of this scenario`,
    expected: names.join(", "),
    suggestion: findNearestName(named.value, names),
  });
}

interface KnownNames {
  readonly services: readonly string[];
  readonly callers: readonly string[];
}

function checkEvents(block: Block, { events, fleet }: ReadScenario, names: KnownNames): void {
  const services = { names: names.services, what: "a service" };
  const callers = { names: names.callers, what: "a caller" };
  for (const { block: own, data } of events) {
    known(block, data.workers?.service, services);
    known(block, data.slow?.service, services);
    known(block, data.deploy?.service, services);
    known(block, data.callers?.name, callers);
    const { clock, zone } = data;
    for (const [name, what, number, max] of [
      ["clock", "headgate", clock?.headgate, fleet.headgates],
      ["zone", "zone", zone?.lost, fleet.zones],
    ] as const) {
      if (number === undefined || number <= max) continue;
      const message = `there is no ${what} ${number}`;
      own.report(name, { id: "HG141", message, expected: `1 to ${max}` });
    }
  }
}

function objectiveOf(
  { reader }: Block,
  { one, read, names }: { one: ReadObjective; read: ReadScenario; names: KnownNames },
): readonly ScenarioObjective[] {
  const { expect, from: fromMs = read.warmUp, to: toMs = read.duration } = one;
  if (expect === undefined) return [];
  const objective = parseObjective(expect.value, names);
  if ("message" in objective) {
    reader.report(expect.node, objective);
    return [];
  }
  if (fromMs < toMs && toMs <= read.duration) return [{ ...objective, fromMs, toMs }];
  const message = "the part of this objective is empty, or beyond the end";
  reader.report(expect.node, { id: "HG240", message, expected: "from before to" });
  return [];
}

/** Refuses a scenario that would take too long, as far as its rates show. */
function checkSize(block: Block, { callers, durationMs, events }: Scenario): void {
  const factor = events.reduce((most, { callers: wild }) => Math.max(most, wild?.factor ?? 1), 1);
  let requestCount = 0;
  for (const { rate } of callers) {
    if (rate.kind === "trace") continue;
    const perSecondMax = Math.max(...rate.points.map(({ perSecond }) => perSecond));
    requestCount += (perSecondMax * factor * durationMs) / 1_000;
  }
  if (requestCount <= scenarioRequestsMax) return;
  const message = `about ${Math.round(requestCount).toLocaleString("en")} requests are too many`;
  const most = scenarioRequestsMax.toLocaleString("en");
  const expected = `at most ${most}: lower the rates or the duration`;
  block.report("callers", { id: "HG160", message, expected });
}
