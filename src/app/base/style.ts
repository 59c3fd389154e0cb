/** Colours of a terminal, or plain text without one. */
export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly command: (text: string) => string;
}

/** Source: ECMA-48, Select Graphic Rendition. */
export function createStyle(isColored: boolean): Style {
  const paint = (code: number) => (text: string) =>
    isColored ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { bold: paint(1), dim: paint(2), good: paint(32), bad: paint(31), command: paint(36) };
}

/** Reports whether colours are wanted. Source: no-color.org, force-color.org, then the terminal. */
export function isColorWanted(
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  const { NO_COLOR: never = "", FORCE_COLOR: always = "", TERM: terminal } = env;
  if (never !== "") return false;
  if (always !== "") return always !== "0";
  return isTerminal && terminal !== "dumb";
}
