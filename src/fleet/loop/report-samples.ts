import type { NodeReport, ServiceRemainder, ServiceSamples } from "../../core/feedback/feedback.js";
import { type ByteReader, type ByteWriter, countBytesMax } from "./byte-fields.js";
import { sampleAgeMsMax, sampleStepMs, samplesPerServiceMax } from "./report-format.js";

/** Minimum and maximum size of a sum, in bytes. */
const sumBytes = 9;
const sumBytesMax = 4 * countBytesMax + 8;

interface OpenSum {
  count: number;
  sumMs: number;
  /** Sum of medians, each multiplied by its weight. */
  medianSumMs: number;
  errorCount: number;
}

/** Time of a report, of the previous one, and of the newest of all. */
interface SampleTimes {
  readonly atMs: number;
  readonly lastMs: number;
  readonly referenceMs: number;
}

/**
 * Latencies and errors of all Envoys of one replica, summed by service and start time, which is all
 * that learning from them requires.
 */
export class ReportSamples {
  readonly #sums = new Map<number, OpenSum>();

  /** @param service its position */
  add(service: number, report: NodeReport, { atMs, lastMs, referenceMs }: SampleTimes): void {
    const { latency, errorCount } = report;
    const { count, sumMs, p50 } = latency;
    if (!(count > 0) && !(errorCount > 0)) return;
    if (!(atMs - lastMs <= sampleAgeMsMax)) return;
    const step = Math.ceil(Math.min(sampleAgeMsMax, referenceMs - lastMs) / sampleStepMs);
    const key = service * samplesPerServiceMax + 2 * step + (p50 === undefined ? 0 : 1);
    const known = this.#sums.get(key);
    const sum = known ?? { count: 0, sumMs: 0, medianSumMs: 0, errorCount: 0 };
    if (known === undefined) this.#sums.set(key, sum);
    sum.count += amountOf(count);
    sum.sumMs += amountOf(sumMs);
    sum.medianSumMs += amountOf(count) * amountOf(p50 ?? 0);
    sum.errorCount += amountOf(errorCount);
  }

  /** Writes the sums. Those beyond `bytesMax` are left out, like samples that were lost. */
  write(writer: ByteWriter, bytesMax: number): void {
    const roomCount = Math.floor((bytesMax - writer.position - 4) / sumBytesMax);
    const sums = [...this.#sums].slice(0, Math.max(0, roomCount));
    writer.whole(sums.length);
    for (const [key, { count, sumMs, medianSumMs, errorCount }] of sums) {
      writer.count(Math.floor(key / samplesPerServiceMax));
      writer.count(key % samplesPerServiceMax);
      writer.count(wholeOf(count));
      writer.measure(sumMs);
      if (key % 2 === 1) writer.measure(medianSumMs / Math.max(1, count));
      writer.count(wholeOf(errorCount));
    }
  }
}

/** Reads sums, in turns. @param atMs reference time of their ages */
export function* readSamples(
  reader: ByteReader,
  services: readonly string[],
  atMs: number,
): Generator<undefined, readonly ServiceSamples[]> {
  const samples: ServiceSamples[] = [];
  const countMax = services.length * samplesPerServiceMax;
  yield* reader.rows({ rowBytes: sumBytes, countMax }, () => {
    const service = services[reader.countBelow(services.length)] ?? "";
    const step = reader.countBelow(samplesPerServiceMax);
    const latency = { count: reader.count(), sumMs: reader.measure() };
    const median = step % 2 === 1 ? { p50: reader.measure() } : {};
    samples.push({
      service,
      fromMs: atMs - (step >> 1) * sampleStepMs,
      latency: { ...latency, ...median },
      errorCount: reader.count(),
    });
  });
  return samples;
}

/** Remainders are written in thousandths. */
const partsPerUnit = 1_000;

/** By how much the numbers of all Envoys exceed their reported values, by service. */
export class ReportRemainders {
  readonly #inFlight: Float64Array;
  readonly #rps: Float64Array;

  constructor(serviceCount: number) {
    this.#inFlight = new Float64Array(serviceCount);
    this.#rps = new Float64Array(serviceCount);
  }

  /** @param service its position */
  add(service: number, { inFlight, rps }: Pick<NodeReport, "inFlight" | "rps">): void {
    // Nothing that could be rounded is reported for values that are not numbers.
    if (!Number.isFinite(inFlight) || !Number.isFinite(rps)) return;
    this.#inFlight[service] = (this.#inFlight[service] ?? 0) + inFlight;
    this.#rps[service] = (this.#rps[service] ?? 0) + rps;
  }

  write(writer: ByteWriter): void {
    const services = [...this.#rps.keys()].filter(
      (service) => this.#rps[service] !== 0 || this.#inFlight[service] !== 0,
    );
    writer.whole(services.length);
    for (const service of services) {
      writer.count(service);
      writer.difference(partsOf(this.#inFlight[service] ?? 0));
      writer.difference(partsOf(this.#rps[service] ?? 0));
    }
  }
}

/** Reads remainders, in turns. */
export function* readRemainders(
  reader: ByteReader,
  services: readonly string[],
): Generator<undefined, readonly Omit<ServiceRemainder, "source" | "atMs">[]> {
  const remainders: Omit<ServiceRemainder, "source" | "atMs">[] = [];
  yield* reader.rows({ rowBytes: 3, countMax: services.length }, () => {
    const service = services[reader.countBelow(services.length)] ?? "";
    const inFlight = reader.difference() / partsPerUnit;
    remainders.push({ service, inFlight, rps: reader.difference() / partsPerUnit });
  });
  return remainders;
}

function partsOf(value: number): number {
  const partsMax = 2 ** 32 - 1;
  return Math.max(-partsMax, Math.min(partsMax, Math.round(value * partsPerUnit)));
}

function amountOf(value: number): number {
  return value > 0 ? Math.min(value, Number.MAX_SAFE_INTEGER) : 0;
}

function wholeOf(value: number): number {
  return Math.min(2 ** 32 - 1, Math.round(value));
}
