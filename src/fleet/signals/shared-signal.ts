import {
  type SignalStore,
  type SignalTurn,
  sharedReadingsBytesMax,
} from "../../store/coordination/signal-store.js";
import { readJsonAnswer } from "./signal-answers.js";
import type { SignalReader, SignalReadings } from "./signal-readings.js";

interface SharedSignalParts {
  readonly store: SignalStore;
  /** Polls the source itself. */
  readonly reader: SignalReader;
  readonly source: string;
  readonly replicaId: string;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly keysMax: number | undefined;
}

/** Fraction of a poll's timeout within which the store must answer whose turn it is. */
const turnTimeRatio = 0.25;

/**
 * Reads a source that one replica polls for its fleet. The others take its readings, which are up
 * to `everyMs` older. A replica whose poll fails releases its turn, so a source that only this
 * replica cannot reach is read by the next one. Without the store, each replica polls by itself.
 */
export class SharedSignalReader implements SignalReader {
  readonly #parts: SharedSignalParts;
  readonly #turn: SignalTurn;

  constructor(parts: SharedSignalParts) {
    this.#parts = parts;
    const { source, replicaId, everyMs, timeoutMs } = parts;
    // A replica's polls are spread in time, and the last one may have taken its whole timeout.
    this.#turn = { source, replicaId, turnMs: Math.ceil(1.5 * everyMs + timeoutMs) };
  }

  async read(deadlineMs: number): Promise<SignalReadings> {
    const { store, reader, timeoutMs, keysMax } = this.#parts;
    const askedMs = deadlineMs - (1 - turnTimeRatio) * timeoutMs;
    const text = await store.take(this.#turn, askedMs).catch(() => undefined);
    const shared = text === undefined ? undefined : readShared(text, keysMax);
    if (shared !== undefined) return shared;
    // If the store is unreachable, this is not reported, and each replica polls by itself.
    const ignore = (): void => {};
    try {
      const readings = await reader.read(deadlineMs);
      const own = writeShared(readings);
      if (Buffer.byteLength(own) <= sharedReadingsBytesMax) {
        store.tell(this.#turn, own).catch(ignore);
      }
      return readings;
    } catch (thrown) {
      store.release(this.#turn).catch(ignore);
      throw thrown;
    }
  }
}

function writeShared(readings: SignalReadings): string {
  if (readings.kind === "whole") return JSON.stringify(readings.reading);
  return JSON.stringify(Object.fromEntries(readings.readings));
}

/** Returns undefined if it cannot be read. Then this replica polls. */
function readShared(text: string, keysMax: number | undefined): SignalReadings | undefined {
  try {
    return readJsonAnswer(text, { pointer: [], ...(keysMax === undefined ? {} : { keysMax }) });
  } catch {
    return undefined;
  }
}
