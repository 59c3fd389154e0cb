import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import type { ScenarioDeploy } from "../../policy/scenario/scenario-events.js";
import type { EventCalendar } from "./calendar.js";
import { HeadgateReplica } from "./headgate-replica.js";
import { randomStream, type SeededRandom } from "./seeded-random.js";
import { SimulatedEnvoy } from "./simulated-envoy.js";
import type { HeadgatePlace, SimulatedHeadgate } from "./simulated-headgate.js";
import type { SimulatedService } from "./simulated-service.js";

interface FleetParts {
  readonly scenario: Pick<Scenario, "fleet" | "seed">;
  readonly calendar: EventCalendar;
  readonly services: () => Iterable<SimulatedService>;
  /** Starts a process of Headgate. @param purpose name of its random stream */
  readonly startHeadgate: (
    place: HeadgatePlace,
    purpose: string,
    replicaCount: () => number,
  ) => SimulatedHeadgate;
}

/** Envoys, replicas of Headgate and their zones. */
export class SimulatedFleet {
  readonly #parts: FleetParts;
  readonly envoys: readonly SimulatedEnvoy[];
  readonly replicas: readonly HeadgateReplica[];

  constructor(parts: FleetParts) {
    this.#parts = parts;
    const { scenario, calendar, startHeadgate } = parts;
    const { fleet, seed } = scenario;
    const replicas: HeadgateReplica[] = [];
    const aliveCount = (): number =>
      Math.max(1, replicas.filter(({ current }) => current !== undefined).length);
    // During creation, the count already includes all replicas.
    const replicaCount = (): number =>
      replicas.length < fleet.headgates ? fleet.headgates : aliveCount();
    for (let index = 0; index < fleet.headgates; index += 1) {
      const start = (place: HeadgatePlace, life: number): SimulatedHeadgate =>
        startHeadgate(place, `headgate ${index}${life === 0 ? "" : ` ${life}`}`, replicaCount);
      replicas.push(new HeadgateReplica({ index, zone: index % fleet.zones, start }));
    }
    this.replicas = replicas;
    this.envoys = Array.from({ length: fleet.envoys }, (_, index) => {
      const random = randomStream(seed, `envoy ${index}`);
      const zone = index % fleet.zones;
      return new SimulatedEnvoy({ index, zone, calendar, random, replicas, settings: fleet });
    });
  }

  /** Returns a random Envoy that accepts connections; undefined: there is none. */
  pickEnvoy(random: SeededRandom): SimulatedEnvoy | undefined {
    const { envoys } = this;
    if (envoys.length === 1) return envoys[0]?.isAway === true ? undefined : envoys[0];
    const draw = random.next();
    const picked = envoys[Math.floor(draw * envoys.length)];
    if (picked?.isAway !== true) return picked;
    const others = envoys.filter(({ isAway }) => !isAway);
    return others[Math.floor(draw * others.length)];
  }

  /** Sets the offset of a replica's wall clock. */
  setSkew(index: number, skewMs: number): void {
    const replica = this.replicas[index];
    if (replica !== undefined) replica.skewMs = skewMs;
  }

  /** Takes a whole zone away at once. */
  loseZone(zone: number): void {
    for (const envoy of this.envoys) if (envoy.zone === zone) envoy.crash();
    for (const replica of this.replicas) if (replica.zone === zone) replica.crash();
    for (const service of this.#parts.services()) service.setZoneLost(zone, true);
  }

  /** Brings a zone back. */
  returnZone(zone: number): void {
    for (const service of this.#parts.services()) service.setZoneLost(zone, false);
    for (const replica of this.replicas) if (replica.zone === zone) replica.comeBack();
    for (const envoy of this.envoys) if (envoy.zone === zone) envoy.comeBack();
  }

  /** Restarts replicas, Envoys or workers in sequence. @param service owner of the workers */
  deploy({ of, parts, down: downMs, pause: pauseMs }: ScenarioDeploy, service: SimulatedService) {
    const { calendar } = this.#parts;
    const steps = this.#stepsOf(of, parts, service);
    for (const [i, { stop, start }] of steps.entries()) {
      const atMs = i * (downMs + pauseMs);
      if (atMs === 0) stop();
      else calendar.after(atMs, stop);
      calendar.after(atMs + downMs, start);
    }
  }

  #stepsOf(
    of: ScenarioDeploy["of"],
    partCount: number,
    service: SimulatedService,
  ): readonly { readonly stop: () => void; readonly start: () => void }[] {
    switch (of) {
      case "headgates":
        return this.replicas.map((replica) => ({
          stop: () => replica.drain(),
          start: () => replica.comeBack(),
        }));
      case "envoys":
        return this.envoys.map((envoy) => ({
          stop: () => envoy.leave(),
          start: () => envoy.comeBack(),
        }));
      case "workers":
        return Array.from({ length: partCount }, (_, i) => ({
          stop: () => service.stopPart(partCount),
          start: () => service.startPart(i, partCount),
        }));
    }
  }
}
