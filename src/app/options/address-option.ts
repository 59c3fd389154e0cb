import type { OptionRow, ParsedOption } from "./option.js";

/** An address to listen on, in Go's syntax: `:9090`, `127.0.0.1:9090` or `[::1]:9090`. */
export interface ListenText {
  readonly host: string;
  readonly port: number;
}

const portMax = 65_535;

/** Parses an address. `:9090` means all addresses. Undefined if it is not an address. */
function parseListenText(text: string): ListenText | undefined {
  const [, bracketed, plain = "", digits = ""] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*)):([0-9]{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === "" || port > portMax) return undefined;
  return { host: bracketed ?? (plain || "0.0.0.0"), port };
}

type AddressText = Omit<OptionRow<unknown>, "valueName" | "parse" | "defaultValue">;

/** Creates an option for a listening address. */
export function addressOption(
  row: AddressText & { readonly defaultValue: ListenText },
): OptionRow<ListenText> {
  return { ...row, valueName: "ADDRESS", parse: parseAddress };
}

/** Creates an option for a listening address. An empty text means none. */
export function optionalAddressOption(
  row: AddressText & { readonly defaultValue: ListenText | undefined },
): OptionRow<ListenText | undefined> {
  return {
    ...row,
    valueName: "ADDRESS",
    parse: (text) => (text === "" ? { kind: "value", value: undefined } : parseAddress(text)),
  };
}

function parseAddress(text: string): ParsedOption<ListenText> {
  const value = parseListenText(text);
  if (value !== undefined) return { kind: "value", value };
  return { kind: "problem", message: "must be an address like :9090 or 127.0.0.1:9090" };
}
