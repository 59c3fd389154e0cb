import type { OptionRow, ParsedOption } from "./option.js";

/** A place to listen at, as Go writes it: `:9090`, `127.0.0.1:9090` or `[::1]:9090`. */
export interface ListenText {
  readonly host: string;
  readonly port: number;
}

const portMax = 65_535;

/** `:9090` is all addresses; undefined for a text that is no address. */
function parseListenText(text: string): ListenText | undefined {
  const [, bracketed, plain = "", digits = ""] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*)):([0-9]{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === "" || port > portMax) return undefined;
  return { host: bracketed ?? (plain || "0.0.0.0"), port };
}

type AddressText = Omit<OptionRow<unknown>, "valueName" | "parse" | "defaultValue">;

/** Where something listens. */
export function addressOption(
  row: AddressText & { readonly defaultValue: ListenText },
): OptionRow<ListenText> {
  return { ...row, valueName: "ADDRESS", parse: parseAddress };
}

/** Where something listens; an empty text is nowhere. */
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
