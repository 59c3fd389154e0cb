import type { Worker } from "node:worker_threads";
import { startOwnWorker } from "../../app/base/own-worker.js";
import { assert } from "../../core/base/errors.js";
import type { CallerCounts, LayersCounts, ServiceCounts } from "./layers-counts.js";
import { type LayersSettings, layersLoadMax } from "./layers-settings.js";

/** Inputs of the service's thread. */
export interface ServiceOrder {
  /** 0 picks a free port. */
  readonly port: number;
  /** Name of the port's setting in errors. */
  readonly portSetting: string;
  readonly settings: LayersSettings;
}

/** Inputs of the caller's thread. */
export interface CallerOrder {
  /** Port of Envoy. */
  readonly port: number;
  readonly settings: LayersSettings;
}

/** Message to a thread: new settings, or a request for its counts. */
export type LayersPartMessage =
  | { readonly kind: "settings"; readonly settings: LayersSettings }
  | { readonly kind: "counts" };

/** Message from a thread: its port, once, and then the requested counts. */
export type LayersPartReply<Counts> =
  | { readonly kind: "ready"; readonly port: number }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "counts"; readonly counts: Counts };

const limitMegabytes = 1_024;

/** A part of the example in its own thread, so that no part delays another. */
class LayersPart<Counts> {
  readonly #worker: Worker;
  readonly #waiting: ((reply: LayersPartReply<Counts>) => void)[] = [];

  constructor(module: string, order: ServiceOrder | CallerOrder) {
    this.#worker = startOwnWorker(module, { workerData: order, limitMegabytes });
    this.#worker.on("message", (reply: LayersPartReply<Counts>) => this.#waiting.shift()?.(reply));
    this.#worker.on("error", ({ message }) => {
      for (const reply of this.#waiting.splice(0)) reply({ kind: "failed", message });
    });
  }

  /** Returns the port on which it listens, if it does. */
  async ready(): Promise<number> {
    const reply = await this.#next();
    if (reply.kind === "failed") throw new Error(reply.message);
    assert(reply.kind === "ready", "a thread says first that it is ready");
    return reply.port;
  }

  set settings(settings: LayersSettings) {
    this.#tell({ kind: "settings", settings });
  }

  async counts(): Promise<Counts> {
    this.#tell({ kind: "counts" });
    const reply = await this.#next();
    if (reply.kind === "failed") throw new Error(reply.message);
    assert(reply.kind === "counts", "a thread answers what it is asked");
    return reply.counts;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #tell(request: LayersPartMessage): void {
    this.#worker.postMessage(request);
  }

  /** Replies come in the order of the requests. */
  #next(): Promise<LayersPartReply<Counts>> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** The service and its caller, each in its own thread, and the settings of both. */
export class LayersRig {
  readonly servicePort: number;
  readonly #service: LayersPart<ServiceCounts>;
  #caller: LayersPart<CallerCounts> | undefined;
  #settings: LayersSettings;

  private constructor(service: LayersPart<ServiceCounts>, port: number, settings: LayersSettings) {
    this.#service = service;
    this.servicePort = port;
    this.#settings = settings;
  }

  /** Starts the service. The caller needs an Envoy first. */
  static async start(order: ServiceOrder): Promise<LayersRig> {
    const service = new LayersPart<ServiceCounts>("demo/three-layers/layers-service-thread", order);
    try {
      return new LayersRig(service, await service.ready(), order.settings);
    } catch (thrown) {
      await service.close();
      throw thrown;
    }
  }

  async startCaller(port: number): Promise<void> {
    const order: CallerOrder = { port, settings: this.#settings };
    this.#caller = new LayersPart<CallerCounts>("demo/three-layers/layers-caller-thread", order);
    await this.#caller.ready();
  }

  get settings(): LayersSettings {
    return this.#settings;
  }

  set settings(settings: LayersSettings) {
    this.#settings = settings;
    this.#service.settings = settings;
    if (this.#caller !== undefined) this.#caller.settings = settings;
  }

  async counts(): Promise<LayersCounts> {
    assert(this.#caller !== undefined, "there is a caller before anything is counted");
    // The service last, so that it has done everything answered by then.
    const caller = await this.#caller.counts();
    return { caller, service: await this.#service.counts() };
  }

  async close(): Promise<void> {
    await Promise.all([this.#caller?.close(), this.#service.close()]);
  }
}

/** Reads settings from the page; undefined if they are invalid. */
export function readLayersSettings(text: string): LayersSettings | undefined {
  const value = parse(text);
  const layers = field(value, "layers");
  const [client, proxy, server] = [
    field(layers, "client"),
    field(layers, "proxy"),
    field(layers, "server"),
  ];
  const loadRatio = ratioOf(field(value, "loadRatio"), layersLoadMax);
  const workersRatio = ratioOf(field(value, "workersRatio"), 1);
  if (loadRatio === undefined || workersRatio === undefined) return undefined;
  if (typeof client !== "boolean" || typeof proxy !== "boolean") return undefined;
  if (typeof server !== "boolean") return undefined;
  return { layers: { client, proxy, server }, loadRatio, workersRatio };
}

function ratioOf(value: unknown, most: number): number | undefined {
  return typeof value === "number" && value >= 0 && value <= most ? value : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function field(value: unknown, name: string): unknown {
  return Reflect.get(Object(value), name);
}
