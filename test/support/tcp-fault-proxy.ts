import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Random } from "../../src/core/base/clock.js";
import type { Stage } from "./stage.js";

/** What the network does to connections, old and new. */
export type NetworkFault =
  | { readonly kind: "none" }
  /** Every answer arrives this much later, plus up to `jitterMs`; order is kept. */
  | { readonly kind: "slow"; readonly latencyMs: number; readonly jitterMs: number }
  /** Answers stop for `stallMs`, at the chance `stallRatio` (0..1) each time bytes arrive. */
  | { readonly kind: "stalls"; readonly stallMs: number; readonly stallRatio: number }
  /** Nothing arrives on either side and nobody is told; healed, it all arrives late. */
  | { readonly kind: "partition" }
  /** Connections are reset, new ones too. */
  | { readonly kind: "reset" };

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** When the last delayed bytes arrive: later ones never overtake them. Monotonic milliseconds. */
  arrivesMs: number;
  /** Dropped silently: it stays open and carries nothing any more. */
  isDead: boolean;
}

/** A TCP proxy that breaks connections as networks do. One target at a time, on loopback. */
export class TcpFaultProxy {
  #targetPort: number;
  readonly #random: Random;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #fault: NetworkFault = { kind: "none" };

  private constructor(targetPort: number, random: Random) {
    this.#targetPort = targetPort;
    this.#random = random;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** Listens; ends with the stage. */
  static async start(
    stage: Stage,
    { targetPort, random }: { readonly targetPort: number; readonly random: Random },
  ): Promise<TcpFaultProxy> {
    const proxy = new TcpFaultProxy(targetPort, random);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => proxy.#close());
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that carry something. */
  get linkCount(): number {
    return [...this.#links].filter((link) => !link.isDead).length;
  }

  /** Connections are made to another server from now on, as behind an address that moves. */
  retarget(port: number): void {
    this.#targetPort = port;
  }

  /** Changes what happens from now on. */
  setFault(fault: NetworkFault): void {
    this.#fault = fault;
    for (const link of this.#links) {
      if (fault.kind === "reset") this.#reset(link);
      else this.#flow(link);
    }
  }

  /**
   * What a firewall does that forgot a connection: it looks open and carries nothing; new ones
   * work.
   */
  dropLinksSilently(): void {
    for (const link of this.#links) {
      link.isDead = true;
      this.#flow(link);
    }
  }

  #accept(client: Socket): void {
    const server = connect({ host: "127.0.0.1", port: this.#targetPort, noDelay: true });
    client.setNoDelay(true);
    const link: Link = { client, server, arrivesMs: 0, isDead: false };
    this.#links.add(link);
    client.on("data", (bytes: Buffer) => server.write(bytes));
    server.on("data", (bytes: Buffer) => this.#deliver(link, bytes));
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => {
        // The other side of a dead link never hears of it.
        if (link.isDead) return;
        other.destroy();
        this.#links.delete(link);
      });
    }
    if (this.#fault.kind === "reset") this.#reset(link);
    else this.#flow(link);
  }

  #deliver(link: Link, bytes: Buffer): void {
    const nowMs = performance.now();
    link.arrivesMs = Math.max(link.arrivesMs, nowMs + this.#delayMs());
    if (link.arrivesMs <= nowMs) {
      link.client.write(bytes);
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!link.isDead) link.client.write(bytes);
    }, link.arrivesMs - nowMs);
    this.#timers.add(timer);
  }

  #delayMs(): number {
    const fault = this.#fault;
    if (fault.kind === "slow") return fault.latencyMs + this.#random.next() * fault.jitterMs;
    if (fault.kind === "stalls") {
      return this.#random.next() < fault.stallRatio ? fault.stallMs : 0;
    }
    return 0;
  }

  /** Reading no more fills the sender's own buffers, as a network that carries nothing does. */
  #flow(link: Link): void {
    const isCut = link.isDead || this.#fault.kind === "partition";
    for (const socket of [link.client, link.server]) {
      if (isCut) socket.pause();
      else socket.resume();
    }
  }

  #reset(link: Link): void {
    link.client.resetAndDestroy();
    link.server.destroy();
  }

  #close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const { client, server } of this.#links) {
      client.destroy();
      server.destroy();
    }
    this.#server.close();
  }
}
