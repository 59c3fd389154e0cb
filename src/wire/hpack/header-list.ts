import type { HeaderFields } from "../base/http2.js";
import { fieldOverheadBytes } from "./hpack-table.js";

/** A header block's fields, as they are decoded one after the other. */
export class HeaderList implements HeaderFields {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #bytes = 0;

  get count(): number {
    return this.#names.length;
  }

  /** Names, values and 32 for each field. Source: RFC 9113, section 6.5.2. */
  get bytes(): number {
    return this.#bytes;
  }

  name(index: number): string {
    return this.#names[index] ?? "";
  }

  value(index: number): string {
    return this.#values[index] ?? "";
  }

  get(name: string): string | undefined {
    for (let i = 0; i < this.#names.length; i += 1) {
      if (this.#names[i] === name) return this.#values[i];
    }
    return undefined;
  }

  /** Appends a field. */
  add(name: string, value: string): void {
    this.#names.push(name);
    this.#values.push(value);
    this.#bytes += name.length + value.length + fieldOverheadBytes;
  }
}
