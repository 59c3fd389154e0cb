import { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/**
 * A secured connection as a plain stream, for HTTP/2 in Node. The native transport uses the socket
 * itself.
 *
 * HTTP/2 in Node takes over a TLS socket below its streams, and treats every write that it did not
 * begin itself as a fault: the process aborts. A stream that is not a socket avoids this. Its cost
 * is small compared with the encryption.
 */
export class TlsConnection extends Duplex {
  readonly #socket: TLSSocket;
  #bytesWritten = 0;

  constructor(socket: TLSSocket) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    socket.pause();
    socket.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) socket.pause();
    });
    socket.once("end", () => this.push(null));
    // A reset reports no more than an end: no client waits for a response.
    socket.once("error", () => this.destroy());
    socket.once("close", () => this.destroy());
  }

  /** Number of bytes written to it, before encryption. */
  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#bytesWritten += bytes.length;
    this.#socket.write(bytes, done);
  }

  /** Sends what is written in one turn as one record. */
  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void): void {
    const bytes = Buffer.concat(chunks.map(({ chunk }) => chunk));
    this.#bytesWritten += bytes.length;
    this.#socket.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
