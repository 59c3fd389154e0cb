import { fileURLToPath } from "node:url";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import {
  type RateLimitConfig,
  RateLimitConfigSchema,
} from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import { rateLimitConfigTypeUrl } from "../../src/rpc/rate-limit-config.js";
import type { ChildProgram } from "./child-program.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** With what the server program is started. */
export interface XdsServerSettings {
  /** 0 takes a free one. */
  readonly port: number;
  /** Clients then need a certificate of the same authority. */
  readonly tls?: {
    readonly certificateFile: string;
    readonly keyFile: string;
    readonly authorityFile: string;
  };
}

/** One request as the server saw it. */
export interface XdsRequest {
  /** 1 for the first stream since the server started. */
  readonly stream: number;
  readonly version: string;
  readonly nonce: string;
  readonly typeUrl: string;
  readonly resourceNames: readonly string[];
  readonly nodeId: string;
  readonly nodeMetadata: Readonly<Record<string, unknown>>;
  readonly userAgent: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The reason of a NACK; absent otherwise. */
  readonly refusal?: string;
  readonly code?: number;
}

/** A set of resources, as the server sends it. */
export interface XdsSet {
  readonly typeUrl: string;
  readonly version: string;
  readonly resources: readonly { readonly typeUrl: string; readonly base64: string }[];
}

/** What the server may be told to do. */
export type XdsCommand =
  /** Hold this set, and send it to all who are there. */
  | ({ readonly kind: "hold" } & XdsSet)
  /** Send this once, and go on holding what is held. */
  | ({ readonly kind: "send" } & XdsSet)
  /** Send these bytes as a message. */
  | { readonly kind: "sendBytes"; readonly base64: string }
  /** Take streams and requests, and never answer. */
  | { readonly kind: "silence" }
  /** End all streams with a gRPC status. */
  | { readonly kind: "endStreams"; readonly code: number; readonly details: string };

/** One configuration; fields that are left out have their protobuf default. */
export type ConfigInit = MessageInitShape<GenMessage<RateLimitConfig>>;

/** A control plane in a process of its own, on loopback. */
export class XdsServer {
  readonly #stage: Stage;
  readonly #settings: XdsServerSettings;
  #program: ChildProgram;
  #port = 0;
  #controlPort = 0;

  private constructor(stage: Stage, settings: XdsServerSettings) {
    this.#stage = stage;
    this.#settings = settings;
    this.#program = this.#spawn();
  }

  /** Starts one; it holds nothing yet. */
  static async start(stage: Stage, settings: Partial<XdsServerSettings> = {}): Promise<XdsServer> {
    const server = new XdsServer(stage, { port: 0, ...settings });
    await server.#listens();
    return server;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get process(): ChildProgram {
    return this.#program;
  }

  /** Holds these configurations as one set. */
  hold(version: string, configs: readonly ConfigInit[]): Promise<void> {
    return this.tell({ kind: "hold", ...xdsSet(version, configs) });
  }

  async tell(command: XdsCommand): Promise<void> {
    const body = JSON.stringify(command);
    await fetch(`http://127.0.0.1:${this.#controlPort}/`, { method: "POST", body });
  }

  /** All requests since it was started, in order. */
  async requests(): Promise<readonly XdsRequest[]> {
    return (await this.#look()).requests;
  }

  /** Streams that are open now. */
  async streamCount(): Promise<number> {
    return (await this.#look()).streamCount;
  }

  /** Waits until a request is as wanted, and answers it. */
  async requestWith(what: string, isWanted: (one: XdsRequest) => boolean): Promise<XdsRequest> {
    return waitFor(what, async () => (await this.requests()).find(isWanted), { withinMs: 20_000 });
  }

  async kill(): Promise<void> {
    await this.#program.kill();
  }

  /** Starts it again on the same port, with an empty memory. */
  async restart(): Promise<void> {
    await this.#program.kill();
    this.#program = this.#spawn();
    await this.#listens();
  }

  #spawn(): ChildProgram {
    const script = fileURLToPath(new URL("./xds-server-program.ts", import.meta.url));
    const settings = JSON.stringify({ ...this.#settings, port: this.#port || this.#settings.port });
    return this.#stage.spawn({
      name: "xDS server",
      file: process.execPath,
      args: ["--import", "tsx", script, settings],
    });
  }

  async #listens(): Promise<void> {
    const line = await waitFor(
      "the xDS server prints its ports",
      () => {
        if (!this.#program.isRunning) throw new Error(this.#program.output);
        return this.#program.output.includes("\n") && this.#program.output;
      },
      { withinMs: 20_000 },
    );
    const { port, controlPort } = JSON.parse(line);
    this.#port = port;
    this.#controlPort = controlPort;
  }

  async #look(): Promise<{
    readonly requests: readonly XdsRequest[];
    readonly streamCount: number;
  }> {
    const response = await fetch(`http://127.0.0.1:${this.#controlPort}/`);
    return JSON.parse(await response.text());
  }
}

/** Configurations as a set. */
export function xdsSet(version: string, configs: readonly ConfigInit[]): XdsSet {
  return {
    typeUrl: rateLimitConfigTypeUrl,
    version,
    resources: configs.map((config) => {
      const bytes = toBinary(RateLimitConfigSchema, create(RateLimitConfigSchema, config));
      return { typeUrl: rateLimitConfigTypeUrl, base64: Buffer.from(bytes).toString("base64") };
    }),
  };
}
