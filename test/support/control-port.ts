import type { GateState } from "../../src/core/admission/gate.js";
import type { NodeReport } from "../../src/core/feedback/feedback.js";
import type { PushTimes } from "../../src/rpc/control/layer-pusher.js";
import type { ControlService } from "../../src/rpc/nodes/control-stream.js";
import { bundledProgram } from "./bundled-program.js";
import type { ChildProgram } from "./child-program.js";
import type { SharesWish } from "./share-snapshots.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** With what the program is started. */
export interface ControlPortSettings {
  /** 0 takes a free one. */
  readonly port: number;
  /** Services, as the policy file has them. */
  readonly policy: string;
  readonly times?: PushTimes;
}

/** What the stub of a loop is told to say. */
export interface SnapshotCommand {
  readonly version: number;
  /** Undefined: there is no snapshot any more. */
  readonly services?: Readonly<Record<string, SharesWish>>;
  /** Of services without a share. */
  readonly gates?: Readonly<Record<string, GateState>>;
}

/** What the page of the fleet says of one Envoy. */
export interface ShownNode {
  readonly id: string;
  readonly program: string;
  readonly streams: readonly string[];
  readonly problems: readonly string[];
  readonly layer?: { readonly sentVersion: string; readonly acknowledgedVersion?: string };
  readonly services: Readonly<Record<string, { readonly heldShare: number }>>;
}

/** What the program shows. */
export interface ControlPortView {
  /** All reports so far, the oldest first. */
  readonly reports: readonly NodeReport[];
  /** Messages from Envoys so far, by service. */
  readonly messages: Readonly<Record<ControlService, number>>;
  readonly fleet: {
    readonly nodes: readonly ShownNode[];
    readonly problems: {
      readonly servicesWithoutCluster: readonly string[];
      readonly clustersWithoutService: readonly string[];
    };
  };
}

/** A control port with a stub in place of the fleet's loop. */
export interface ControlPort {
  readonly port: number;
  /** Another snapshot holds from now on. */
  say(command: SnapshotCommand): Promise<void>;
  look(): Promise<ControlPortView>;
}

/** One in a process of its own, which can be killed. */
export class ControlPortProcess implements ControlPort {
  readonly #program: ChildProgram;
  readonly port: number;
  readonly #controlPort: number;

  private constructor(program: ChildProgram, ports: { port: number; controlPort: number }) {
    this.#program = program;
    this.port = ports.port;
    this.#controlPort = ports.controlPort;
  }

  static async start(stage: Stage, settings: ControlPortSettings): Promise<ControlPortProcess> {
    const script = bundledProgram(new URL("./control-port-program.ts", import.meta.url));
    const program = stage.spawn({
      name: "control port",
      file: process.execPath,
      args: [script, JSON.stringify(settings)],
    });
    const line = await waitFor(
      "the control port listens",
      () => {
        if (!program.isRunning) throw new Error(program.output);
        return /^\{.*\}$/m.exec(program.output)?.[0];
      },
      { withinMs: 30_000 },
    );
    return new ControlPortProcess(program, JSON.parse(line));
  }

  async say(command: SnapshotCommand): Promise<void> {
    const body = JSON.stringify(command);
    await fetch(`http://127.0.0.1:${this.#controlPort}/`, { method: "POST", body });
  }

  async look(): Promise<ControlPortView> {
    const response = await fetch(`http://127.0.0.1:${this.#controlPort}/`);
    return JSON.parse(await response.text());
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#program.kill();
  }
}
