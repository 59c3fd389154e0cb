import { assert } from "../../core/base/errors.js";
import { type Policy, PolicyBuilder } from "../../policy/policy.js";
import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import type { ScenarioEvent } from "../../policy/scenario/scenario-events.js";
import { MemoryLimitStore } from "../../store/memory.js";
import { ArrivalTimes } from "./arrival-times.js";
import { EventCalendar } from "./calendar.js";
import { createDraw, meanOf } from "./distributions.js";
import { RequestSource } from "./request-source.js";
import { RunRecord, type RunWindow, type WindowRecord } from "./run-record.js";
import { randomStream } from "./seeded-random.js";
import { RunSeries } from "./series.js";
import { SimulatedCaller } from "./simulated-caller.js";
import { SimulatedFleet } from "./simulated-fleet.js";
import { SimulatedHeadgate } from "./simulated-headgate.js";
import { SimulatedService } from "./simulated-service.js";
import { StoreLink, VirtualBudgets, VirtualPermits, VirtualStore } from "./virtual-store.js";

/** Inputs for a simulation. */
export interface SimulationParts {
  readonly scenario: Scenario;
  /** Undefined: no limits. */
  readonly policy: Policy | undefined;
  /** Numbers in the file of each trace. */
  readonly traces: ReadonlyMap<string, readonly number[]>;
  /** Returns a strong hash of a text, in hexadecimal. */
  readonly digest: (text: string) => string;
}

/**
 * Number of promise turns that run before time advances: more than a batch's decisions take, from
 * the store's answer through a fallback to the waiting request.
 */
const promiseTurns = 10;

/** Number of events between two checks of the control. */
const eventsPerLook = 20_000;

/** Decides whether a run continues; asked at intervals. */
export interface RunControl {
  /** Reports whether to continue; yields to other tasks. @param ratio progress, 0 to 1 */
  goesOn(ratio: number): Promise<boolean>;
}

/** Runs a scenario in simulated time, with the program's own decisions. */
export class Simulation {
  readonly record: RunRecord;
  readonly series: RunSeries;
  readonly #parts: SimulationParts;
  readonly #calendar = new EventCalendar();
  readonly #services: ReadonlyMap<string, SimulatedService>;
  readonly #fleet: SimulatedFleet;
  readonly #link: StoreLink;
  #hasResolved = false;

  /** @param windows parts of the run whose requests are counted separately */
  constructor(parts: SimulationParts, windows: readonly RunWindow[]) {
    this.#parts = parts;
    const { scenario } = parts;
    this.record = new RunRecord(
      windows,
      scenario.callers.map(({ name }) => name),
    );
    this.#link = this.#createLink();
    this.#services = new Map(
      scenario.services.map((service) => [service.name, this.#createService(service)]),
    );
    this.#fleet = this.#createFleet();
    for (const caller of scenario.callers) this.#createCaller(caller);
    for (const event of scenario.events) this.#schedule(event);
    for (const { fromMs, toMs } of windows) {
      for (const ms of [fromMs, toMs]) {
        this.#calendar.after(ms, () => this.record.advance(this.#calendar.nowMs));
      }
    }
    const services = [...this.#services.values()];
    const { callers } = scenario;
    const [fleet, link, record] = [this.#fleet, this.#link, this.record];
    this.series = new RunSeries({ services, fleet, link, callers, record });
    this.#calendar.every(1_000, () => this.series.endSecond());
  }

  /** Current time of the run, in milliseconds. */
  get nowMs(): number {
    return this.#calendar.nowMs;
  }

  /** Runs to the end, or until the control stops it. */
  async run(control: RunControl): Promise<void> {
    const { durationMs } = this.#parts.scenario;
    let count = 0;
    while (this.#calendar.step(durationMs)) {
      if (this.#hasResolved) await this.#runPromises();
      count += 1;
      if (count % eventsPerLook !== 0) continue;
      if (!(await control.goesOn(this.nowMs / durationMs))) return;
    }
  }

  /** Returns the requests that services were offered and could have served in time, in a window. */
  possible({ window }: WindowRecord, service?: string): number {
    const names = service === undefined ? [...this.#services.keys()] : [service];
    return names.reduce((sum, name) => sum + this.series.possible(name, window), 0);
  }

  async #runPromises(): Promise<void> {
    this.#hasResolved = false;
    for (let turn = 0; turn < promiseTurns; turn += 1) await undefined;
  }

  #onResolved = (): void => {
    this.#hasResolved = true;
  };

  #createLink(): StoreLink {
    const { scenario, traces } = this.#parts;
    const random = randomStream(scenario.seed, "store");
    return new StoreLink({
      calendar: this.#calendar,
      latencyMs: createDraw(scenario.fleet.store.latency, { random, traces }),
      onResolved: this.#onResolved,
    });
  }

  #createService(settings: Scenario["services"][number]): SimulatedService {
    const { scenario, traces } = this.#parts;
    const { seed, fleet } = scenario;
    const { name, workers, serviceTime } = settings;
    const random = randomStream(seed, `service ${name}`);
    return new SimulatedService({
      name,
      workers,
      settings,
      calendar: this.#calendar,
      draw: createDraw(serviceTime, { random, traces }),
      meanMs: meanOf(serviceTime, traces),
      zoneCount: fleet.zones,
      isZoneLocal: fleet.zoneLocal,
      random: randomStream(seed, `zones ${name}`),
    });
  }

  #createFleet(): SimulatedFleet {
    const { scenario, digest, policy = new PolicyBuilder("none").finish() } = this.#parts;
    const calendar = this.#calendar;
    const clock = {
      monotonicMs: () => calendar.nowMs,
      epochUs: () => Math.floor(calendar.nowMs * 1_000),
      schedule: () => () => {},
      scheduleTurn: () => () => {},
    };
    const random = randomStream(scenario.seed, "limits");
    const store = new VirtualStore(this.#link, new MemoryLimitStore({ clock, random }));
    const isShared = scenario.fleet.headgates > 1;
    const permits = isShared ? new VirtualPermits(this.#link) : undefined;
    const budgets = isShared ? new VirtualBudgets(this.#link) : undefined;
    const stores = { store, permits, budgets };
    const common = { policy, calendar, ...stores, digest, onResolved: this.#onResolved };
    return new SimulatedFleet({
      scenario,
      calendar,
      services: () => this.#services.values(),
      startHeadgate: (replica, purpose, replicaCount) => {
        const own = randomStream(scenario.seed, purpose);
        return new SimulatedHeadgate({ ...common, replica, random: own, replicaCount });
      },
    });
  }

  #createCaller(settings: Scenario["callers"][number]): SimulatedCaller {
    const { scenario, policy, traces } = this.#parts;
    const { seed, durationMs, events } = scenario;
    const { name, rate } = settings;
    const factors = events.flatMap(({ at: fromMs = 0, for: forMs, callers }) => {
      if (callers?.factor === undefined) return [];
      if (callers.name !== undefined && callers.name.value !== name) return [];
      const toMs = forMs === undefined ? durationMs : fromMs + forMs;
      return [{ fromMs, toMs, factor: callers.factor }];
    });
    const host = policy?.serviceIndex.named(settings.service)?.service.hosts[0];
    return new SimulatedCaller({
      settings,
      calendar: this.#calendar,
      service: this.#service(settings.service),
      fleet: this.#fleet,
      deniesWithoutAnswer: policy?.proxies.headgate.deniesWithoutAnswer ?? false,
      times: new ArrivalTimes({ rate, traces, factors, untilMs: durationMs }),
      source: new RequestSource({
        settings,
        host: settings.host ?? host ?? settings.service,
        random: randomStream(seed, `requests ${name}`),
      }),
      arrivals: randomStream(seed, `arrivals ${name}`),
      attempts: randomStream(seed, `attempts ${name}`),
      record: this.record.caller(name),
    });
  }

  #service(name: string | undefined): SimulatedService {
    const [first] = this.#services.values();
    const found = name === undefined ? first : this.#services.get(name);
    assert(found !== undefined, "names of services were checked where they were read");
    return found;
  }

  #schedule({ at: atMs = 0, for: forMs, ...event }: ScenarioEvent): void {
    this.#calendar.after(atMs, () => this.#begin(event));
    if (forMs !== undefined) this.#calendar.after(atMs + forMs, () => this.#finish(event));
  }

  #begin({ workers, slow, store, clock, zone, deploy }: ScenarioChange): void {
    if (workers !== undefined) {
      this.#service(workers.service?.value).setWorkers(workers.ratio ?? 1, workers.work);
    }
    if (slow !== undefined) this.#service(slow.service?.value).slowFactor = slow.factor ?? 1;
    if (store?.state === "away") this.#link.isAway = true;
    if (store?.state === "slow") {
      const random = randomStream(this.#parts.scenario.seed, "slow store");
      const { traces } = this.#parts;
      this.#link.slowLatencyMs = createDraw(store.latency, { random, traces });
    }
    if (clock !== undefined) this.#fleet.setSkew(clock.headgate - 1, clock.ahead - clock.behind);
    if (zone?.lost !== undefined) this.#fleet.loseZone(zone.lost - 1);
    if (deploy !== undefined) this.#fleet.deploy(deploy, this.#service(deploy.service?.value));
  }

  #finish({ workers, slow, store, clock, zone }: ScenarioChange): void {
    if (workers !== undefined) this.#service(workers.service?.value).setWorkers(1, "finished");
    if (slow !== undefined) this.#service(slow.service?.value).slowFactor = 1;
    if (store?.state === "away") this.#link.isAway = false;
    if (store?.state === "slow") this.#link.slowLatencyMs = undefined;
    if (clock !== undefined) this.#fleet.setSkew(clock.headgate - 1, 0);
    if (zone?.lost !== undefined) this.#fleet.returnZone(zone.lost - 1);
  }
}

type ScenarioChange = Omit<ScenarioEvent, "at" | "for">;
